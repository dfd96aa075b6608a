"""Names of records without an id, kept apart from the ids of other records of the same reading.

    FILE:LINE      unless a record before it has this very id
    FILE:LINE#2    then, or #3 ...: the first that none has

An id that is the name of a record before it comes too late and is refused. Ids of this form are
rare; only those that a file of this reading may need are kept in memory, and of the names that
were made ranges of lines.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from collections.abc import Callable, Sequence

_FORM = re.compile(r"(.+):([0-9]{1,18})(?:#[0-9]+)?", re.ASCII | re.DOTALL)

MOST_RANGES = 1 << 16
"""Of lines of a file; more become one, with the lines of records that have ids."""


class MadeNames:
    """Of one reading.

    Parameters
    ----------
    starts : sequence of str
        What names of its files may begin with; an empty string stands for all.
    holds_records : callable
        Whether a file of some name may hold records.
    """

    def __init__(
        self, starts: Sequence[str] = ("",), holds_records: Callable[[str], bool] = lambda _: True
    ) -> None:
        self._starts, self._holds_records = tuple(starts), holds_records
        self._given: set[str] = set()
        self._made: dict[str, array[int]] = {}
        """By file the first and last lines of runs of records without an id, in rising order."""
        self._run_of: str | None = None
        """The file whose last record had no id."""

    def make(self, file: str, line: int) -> str:
        """The name of a record without an id; lines of a file come in their order."""
        lines = self._made.setdefault(file, array("q"))
        if self._run_of == file:
            lines[-1] = line
        else:
            lines.extend((line, line))
            if len(lines) > 2 * MOST_RANGES:
                del lines[1:-1]
        self._run_of = file
        name, number = f"{file}:{line}", 1
        while name in self._given:
            number += 1
            name = f"{file}:{line}#{number}"
        return name

    def give_all(self, keys: Sequence[str]) -> bool:
        """The same of several, in their order; False if one of them is such a name."""
        self._run_of = None
        if ":" not in "".join(keys):
            return True  # none is of the form, and to look at each takes ten times as long
        return all(map(self.give, [key for key in keys if key.startswith(self._starts)]))

    def give(self, key: str) -> bool:
        """Notes an id; False if it is the name of a record before."""
        self._run_of = None
        if not (key[-1:].isdigit() and key.startswith(self._starts)):
            return True
        found = _FORM.fullmatch(key)
        if found is None or not self._holds_records(found[1]):
            return True
        lines, line = self._made.get(found[1], ()), int(found[2])
        at = bisect_left(lines, line)
        if at < len(lines) and (at % 2 or lines[at] == line):
            return False
        self._given.add(key)
        return True
