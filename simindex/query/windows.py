"""All matches of one query, nearest first, in windows that memory holds.

    rows of a table    | piece | piece | piece |     each is searched by itself
    a window           the nearest matches after the last one given, by (distance, id)
    the next window    the same pieces once more, after that one

Invariants
1. A match is in one window, and windows together are what a call without a bound finds: a row under
   the same headers is found in a piece as in its table.
2. A window holds at most twice its size and what a piece has.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Sequence

import numpy as np

from simindex.arrays import U16, U32, U64, Bools
from simindex.methods import psm, scan
from simindex.methods.base import Asked, Found, QueryPlan, TablePlan, joined, live, take
from simindex.options import IndexOptions
from simindex.planning.similarity import Similar
from simindex.query.arrangement import Part, arranged
from simindex.query.sketch_filter import Sketched, promised
from simindex.records.matches import Matches, QueryStats
from simindex.storage.files import readahead
from simindex.storage.tables.table import Table

LEAST_ROWS, MOST_ROWS = 1 << 12, 1 << 20
"""Of a piece, of which all may match: 22 bytes each."""

Place = tuple[int, int]
"""(distance, id) of a match."""


def windows(
    tables: Sequence[Table],
    plan: QueryPlan,
    asked: Asked,
    *,
    most: int,
    limit: int | None,
    options: IndexOptions,
    similar: Similar | None = None,
    sketched: Sketched | None = None,
) -> Generator[Matches, None, None]:
    """Matches of one query, in order, about `most` at a time; of all no more than `limit`.

    `asked` is that of the query alone, as `sketched` is, by which rows within h are kept. At least
    one window comes, which may be empty.

    Notes
    -----
    Every window reads the rows once: what a query matches is given in n / `most` passes for n
    matches, at a few nanoseconds a row and pass.
    """
    after: Place | None = None
    left = limit
    while True:
        started = time.perf_counter()
        window = _Window(most if left is None else min(most, left), after)
        probes = compared = 0
        for table, table_plan in zip(tables, plan.tables, strict=True):
            for found in _pieces(table, table_plan, asked, most):
                probes, compared = probes + found.probes, compared + found.compared
                if sketched is not None:
                    found = sketched.kept(table, found)
                window.add(table, found)
        stats = QueryStats(
            plan.method, *promised(plan, similar), plan.flips, probes, compared, len(tables),
            time.perf_counter() - started,
            **({} if similar is None else similar.told),
        )
        after = window.last
        matches = arranged(
            window.parts, 1, first=False, limit=left, stats=stats, options=options, threads=1
        )
        yield matches
        if left is not None:
            left -= len(matches)
        if after is None or left == 0:
            return


def first_live(table: Table, plan: TablePlan, asked: Asked) -> Found | None:
    """Of all rows within h of one query, deleted ones left out, a nearest one of the lowest id."""
    window = _Window(1, None)
    most = MOST_ROWS if asked.room is None else asked.room.left
    for found in _pieces(table, plan, asked, most):
        window.add(table, found)
    if not window.parts:
        return None
    found = joined([found for _, found in window.parts])
    return take(found, np.lexsort((found.id, found.distance))[:1])


def _pieces(table: Table, plan: TablePlan, asked: Asked, most: int) -> Iterator[Found]:
    """Live rows within h of the query, piece by piece, as the plan finds them."""
    release = asked.stream is not None and asked.stream.release
    asked = asked._replace(first=False, room=None, built=None, stream=None, threads=1)
    # Pieces have no permuted tables: all rows within h are given then, and not some of them.
    compared = plan.exact or plan.design is not None
    look = scan.search if compared else psm.search
    rows = min(max(most, LEAST_ROWS), MOST_ROWS)
    for start in range(0, len(table), rows):
        found = look(_piece(table, start, start + rows, indexed=not compared), plan, asked)
        found = found._replace(row=found.row + np.uint32(start))
        if asked.tombstones is not None and asked.tombstones.concerns(table):
            found = live(table, found, asked.tombstones)
        if release:
            readahead.give_back(table.fingerprints[start : start + rows])
            readahead.give_back(table.ids[start : start + rows])
        yield found


def _piece(table: Table, start: int, stop: int, *, indexed: bool) -> Table:
    """Some rows of a table as one, `indexed` with their part of its header directory."""

    def directory() -> U32:
        within = np.clip(table.directory, start, stop)
        within -= np.uint32(start)
        return within

    stop = min(stop, len(table))
    return Table(
        table.name, table.fingerprints[start:stop], table.ids[start:stop], None,
        horizon=table.horizon, header_bits=table.header_bits if indexed else 0,
        load_directory=directory if indexed else None,
    )


class _Window:
    """The least `most` matches after a place, by (distance, id), of all that are added."""

    def __init__(self, most: int, after: Place | None) -> None:
        self._most, self._after = most, after
        self._held = 0
        self.parts: list[Part] = []
        self.last: Place | None = None
        """The place of the last match that stays; None while all do."""

    def add(self, table: Table, found: Found) -> None:
        kept = np.ones(len(found.id), np.bool_)
        if self._after is not None:
            kept = ~_upto(found.distance, found.id, self._after)
        if self.last is not None:
            kept &= _upto(found.distance, found.id, self.last)
        found = take(found, np.flatnonzero(kept))
        if not len(found.id):
            return
        self.parts.append((table, found))
        self._held += len(found.id)
        if self._held > 2 * self._most:
            self._cut()

    def _cut(self) -> None:
        """Leaves the least `most` matches; of equal ones at the end only one."""
        distance = np.concatenate([found.distance for _, found in self.parts])
        ids = np.concatenate([found.id for _, found in self.parts])
        upto = np.cumsum(np.bincount(distance))
        last = int(np.searchsorted(upto, self._most))
        among = ids[distance == last]
        nth = self._most - 1 - (int(upto[last - 1]) if last else 0)
        self.last = (last, int(np.partition(among, nth)[nth]))
        parts, self.parts, self._held, seen = self.parts, [], 0, False
        for table, found in parts:
            kept = _upto(found.distance, found.id, self.last)
            equal = np.flatnonzero((found.distance == last) & (found.id == np.uint64(self.last[1])))
            kept[equal[0 if seen else 1 :]] = False
            seen = seen or len(equal) > 0
            if kept.any():
                self.parts.append((table, take(found, np.flatnonzero(kept))))
                self._held += int(np.count_nonzero(kept))


def _upto(distance: U16, ids: U64, place: Place) -> Bools:
    """Which matches are at most at a place."""
    last, last_id = np.uint16(place[0]), np.uint64(place[1])
    upto: Bools = (distance < last) | ((distance == last) & (ids <= last_id))
    return upto
