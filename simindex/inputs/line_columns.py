"""Lines of JSON as columns: a kernel reads a block of them, without the interpreter's lock.

    block       {"id": "a", "text": "one"}\\n{"id": 7, "text": "two"}\\n{"id": "c", "text": ...
    plain       1                             0                           1
    texts       one|...                       data and ends; nothing of lines that are not plain
    keys        a|c                           the same

Plain are nearly all lines of nearly all files: an object with both fields, which are strings. What
is not plain is read by `json_lines`, with the same result as if no line had been: a line that is
wrong is never plain.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

from simindex.inputs.document import Source
from simindex.inputs.document_columns import Documents
from simindex.options import MAX_KEY_BYTES

if TYPE_CHECKING:
    from simindex.simhash.features import Column

LEAST_LINES = 64
"""Shorter runs of plain lines are not worth a column: those who take documents handle each column
on its own."""


class LineColumns:
    """The lines of a block.

    Parameters
    ----------
    first : int
        The number of the first line.
    key_field : str
        The field of ids, at the top of each object.
    most_bytes : int
        Of a line that may be plain.
    """

    def __init__(
        self, block: bytes, first: int, source: Source, key_field: str, most_bytes: int
    ) -> None:
        import numpy as np

        from simindex._kernels import _native

        self._block, self._first = block, first
        self._source, self._key_field = source, key_field
        self._data = np.frombuffer(block, np.uint8)
        text, key = (
            np.frombuffer(name.encode("utf-8", "surrogatepass"), np.uint8)
            for name in (source.text_field, key_field)
        )
        (
            self._starts, self._plain, self._texts, self._text_ends, self._keys, self._key_ends
        ) = _native.json_lines(self._data, text, key, most_bytes, MAX_KEY_BYTES)

    def __len__(self) -> int:
        return len(self._plain)

    def runs(self) -> Iterator[tuple[int, int, bool]]:
        """Lines start to stop that come as columns, and others, in their order."""
        import numpy as np

        edges = np.flatnonzero(np.diff(self._plain)) + 1
        others = 0
        for start, stop in pairwise([0, *edges.tolist(), len(self._plain)]):
            if stop - start < LEAST_LINES or not self._plain[start]:
                continue
            if others < start:
                yield others, start, False
            yield start, stop, True
            others = stop
        if others < len(self._plain):
            yield others, len(self._plain), False

    def bytes_of(self, start: int, stop: int) -> bytes:
        """Lines start to stop as they were read."""
        return self._block[self._starts[start] : self._starts[stop]]

    def documents(self, start: int, stop: int) -> Documents | None:
        """Lines start to stop, which are plain; None where a key names a record before it."""
        from simindex.simhash.features import Column

        source, ends = self._source, self._key_ends
        begin = int(ends[start])
        keys = self._keys[begin : int(ends[stop])].tobytes().decode("ascii")
        places = (ends[start : stop + 1] - begin).tolist()
        named = [keys[at:end] for at, end in pairwise(places)]
        if not source.made.give_all(named):
            return None
        source.intake.id_fields[self._key_field] += len(named)
        texts = _alone(Column(self._texts, self._text_ends[start : stop + 1]))
        raw = None
        if source.all_fields:
            raw = _alone(Column(self._data, self._starts[start : stop + 1]))
        return Documents(source.path, self._first + start, named, texts, raw)


def _alone(part: Column) -> Column:
    """A part of a column; copied where it would hold more than twice its own bytes."""
    return part if 2 * part.nbytes >= part.data.nbytes else part.copied()
