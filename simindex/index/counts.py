"""What the calls of one handle have done since it was opened, counted.

    search    query, query_stream, top        side by side, so they add under a lock of their own
    change    seen_or_add, ingest, append …   one at a time, under the lock of the handle

A call that raises an error is not counted. The lock is one that a thread may take again: a signal
handler may ask within a call.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing
from threading import RLock

from simindex.records.matches import Matches


class Tally:
    """Of one method."""

    __slots__ = ("added", "asked", "calls", "found", "seconds")

    calls: int
    asked: int
    found: int
    added: int
    seconds: float

    def __init__(self) -> None:
        self.calls = self.asked = self.found = self.added = 0
        self.seconds = 0.0


class Counts:
    """Of one handle."""

    SEARCHES = ("query", "query_stream", "top")
    CHANGES = ("seen_or_add", "ingest", "append", "replace", "delete", "expire")

    query: Tally
    query_stream: Tally
    top: Tally
    seen_or_add: Tally
    ingest: Tally
    append: Tally
    replace: Tally
    delete: Tally
    expire: Tally

    def __init__(self) -> None:
        self._lock = RLock()
        self.query, self.query_stream, self.top = Tally(), Tally(), Tally()
        self.seen_or_add, self.ingest = Tally(), Tally()
        self.append, self.replace = Tally(), Tally()
        self.delete, self.expire = Tally(), Tally()

    def searched(self, tally: Tally, calls: int, asked: int, found: int, seconds: float) -> None:
        """Adds an answer, or a part of one, to what a search has done; about 0.4 µs."""
        with self._lock:
            tally.calls += calls
            tally.asked += asked
            tally.found += found
            tally.seconds += seconds

    def each(
        self, tally: Tally, parts: Generator[Matches, None, None]
    ) -> Generator[Matches, None, None]:
        """The parts of an answer, each of which is added; `parts` are closed with it."""
        with closing(parts):
            for found in parts:
                self.searched(tally, 0, 0, len(found.query), found.stats.seconds)
                yield found

    def of(self, names: tuple[str, ...]) -> Iterator[tuple[str, Tally]]:
        """The tallies of some methods, by name."""
        seen = self.seen_or_add  # whose calls count one thing, so that they take no longer
        seen.calls = seen.asked = seen.found + seen.added
        return ((name, getattr(self, name)) for name in names)
