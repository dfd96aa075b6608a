"""All deletions of an index as of one commit: runs of tombstones, and the time of those expired.

    runs       as the catalog stores them: few, and of growing sizes (`writing/policy`)
    a commit   adds a run, or puts one in the place of several; the other runs are shared with the
               deletions of the commit before it, decoded as they are
    a row      is dead if a run has its name, of a later commit than its table's horizon; or if it
               has a time before `expired`

Nothing is merged to look something up, so a commit, and the first look after it, cost what the runs
that changed cost. What was found out about a table is kept, and advanced by later deletions alone:

    DeadRows   which rows of a table are deleted, one bit a row
    Sampled    of some rows of a table, which are deleted: enough to know about how many of all are
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from simindex.arrays import I64, U8, U64, Bools
from simindex.storage.files.checksums import verified, verified_at
from simindex.storage.tables.table import Table
from simindex.storage.tables.tombstones import Tombstones
from simindex.values import dataclass

READ_ROWS = 1 << 16
"""Rows whose ids are looked up together: whole bytes of a mask, and arrays that stay in cache."""

FILTER_BITS = 18
"""Of an id, that say whether any deletion may have it: a table of bytes that stays in cache."""

FILTERED = 1 << 15
"""Deletions up to which that tells most ids apart."""

SAMPLE_BLOCKS, BLOCK_ROWS = 256, 16
"""Rows in a sample of a table, from as many places: within 0.75 % of its rows (standard error)."""


class Deletions:
    """Immutable; see the module."""

    __slots__ = ("expired", "newest", "runs")

    def __init__(self, runs: Sequence[Tombstones] = (), expired: int = 0) -> None:
        self.runs: tuple[Tombstones, ...] = tuple(runs)
        self.expired: int = expired
        self.newest: int = max((run.newest for run in self.runs), default=0)
        """The latest commit that deleted something; 0 where there is none."""

    def __len__(self) -> int:
        """How many are stored; a name that was deleted again may count again."""
        return sum(map(len, self.runs))

    def and_later(self, run: Tombstones, expired: int = 0) -> Deletions:
        """These, and those of a later commit."""
        if not len(run) and expired <= self.expired:
            return self
        runs = (*self.runs, run) if len(run) else self.runs
        return Deletions(runs, max(self.expired, expired))

    def concerns(self, table: Table) -> bool:
        """Whether rows of a table may be deleted."""
        return self.newest > table.horizon or self.expires(table)

    def expires(self, table: Table) -> bool:
        """Whether rows of a table have expired."""
        return self.expired > 0 and self.expired > table.oldest

    def concerning(self, horizon: int) -> int:
        """About how many concern a table of that horizon: those of all runs that have any."""
        return sum(len(run) for run in self.runs if run.newest > horizon)

    def since(self, commit: int, expired: int = 0) -> Deletions:
        """Those of later commits, and what has expired since it was only what `expired` says."""
        return Deletions(
            [run.since(commit) for run in self.runs if run.newest > commit],
            self.expired if self.expired > expired else 0,
        )

    def dead(self, table: Table, ids: U64, rows: I64) -> Bools:
        """Which of a table's rows, given with their ids, are deleted."""
        dead = np.zeros(len(ids), np.bool_)
        if len(ids) and self.newest > table.horizon:
            horizon = np.full(1, table.horizon, np.uint64)
            for run in self.runs:
                if run.newest > table.horizon:
                    dead |= run.killed(ids, table.keys, rows, horizon)
        if len(ids) and self.expires(table):
            assert table.times is not None
            dead |= verified_at(table.times, rows) < self.expired
        return dead

    def dead_parts(self, table: Table) -> Iterator[tuple[int, Bools]]:
        """Which rows of a table are deleted, a part at a time, each with its first row.

        Reads all ids, if there are tombstones for them, and all times, if some have expired.
        Nothing comes where no deletion concerns the table.
        """
        if not self.concerns(table):
            return
        concerning = self._for_all_of(table)
        filters = _filter(concerning)
        times = table.times if self.expires(table) else None
        for start in range(0, len(table), READ_ROWS):
            stop = min(start + READ_ROWS, len(table))
            dead = np.zeros(stop - start, np.bool_)
            if times is not None:
                dead = verified(times[start:stop]) < self.expired
            if concerning.runs:
                ids = verified(table.ids[start:stop])
                some = np.flatnonzero(~dead if filters is None else filters[_filtered(ids)])
                dead[some] |= concerning.dead(table, ids[some], some + start)
            yield start, dead

    def _for_all_of(self, table: Table) -> Deletions:
        """The tombstones that concern a table: as one run, where that is quickly made."""
        runs = [run for run in self.runs if run.newest > table.horizon]
        if len(runs) > 1 and sum(map(len, runs)) <= len(table):
            return Deletions([Tombstones.merged(runs, keyed=runs[0].keyed)])
        return Deletions(runs)

    def live_bits(self, table: Table) -> U8 | None:
        """One bit a row, set unless it is deleted, packed; None if no deletion concerns the table.
        """
        if not self.concerns(table):
            return None
        parts = (np.packbits(~dead) for _, dead in self.dead_parts(table))
        return np.concatenate([np.empty(0, np.uint8), *parts])

    def count(self, table: Table) -> int:
        """How many rows of a table are deleted. Reads as `dead_parts`."""
        return sum(int(np.count_nonzero(dead)) for _, dead in self.dead_parts(table))

    def live_before(self, table: Table, time: int) -> int:
        """How many rows of a table are from before a time, and not deleted.

        Reads all times of a table with such rows, and the ids of these.
        """
        if table.times is None or table.oldest >= time:
            return 0
        count = 0
        for start in range(0, len(table), READ_ROWS):
            times = verified(table.times[start : start + READ_ROWS])
            rows = np.flatnonzero((times >= self.expired) & (times < time)) + start
            if len(rows):
                dead = self.dead(table, verified_at(table.ids, rows), rows)
                count += len(rows) - int(np.count_nonzero(dead))
        return count

    def alive(self, table: Table, start: int, stop: int) -> I64 | None:
        """Rows of a slice of a table that are not deleted, from 0 at `start`; None means all."""
        if not self.concerns(table):
            return None
        rows = np.arange(start, stop, dtype=np.int64)
        dead = self.dead(table, verified(table.ids[start:stop]), rows)
        return np.flatnonzero(~dead).astype(np.int64) if dead.any() else None

    def misplaced(self, secret: bytes) -> int:
        """How many are not found by their keys; see `Tombstones.misplaced`."""
        return sum(run.misplaced(secret) for run in self.runs)


def _filter(deletions: Deletions) -> U8 | None:
    """A byte for all ids with some FILTER_BITS, 0 where none of them is deleted; None if there are
    too many."""
    if len(deletions) > FILTERED:
        return None
    found = np.zeros(1 << FILTER_BITS, np.uint8)
    for run in deletions.runs:
        found[_filtered(verified(run.id))] = 1
    return found


def _filtered(ids: U64) -> I64:
    return (ids & np.uint64((1 << FILTER_BITS) - 1)).view(np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class DeadRows:
    """Which rows of a table are deleted, as of a commit."""

    commit: int
    bits: U8 | None
    """One a row, packed; None where no row is deleted."""
    count: int
    expired: int = 0
    """The time of the rows that have expired by then."""

    def advanced(self, table: Table, deletions: Deletions, commit: int) -> DeadRows:
        """As of a later commit, whose deletions these are. Reads all ids if there are new ones."""
        new = deletions.since(max(self.commit, table.horizon), self.expired)
        if not new.concerns(table):
            return DeadRows(commit, self.bits, self.count, deletions.expired)
        bits = np.zeros(-(-len(table) // 8), np.uint8) if self.bits is None else self.bits.copy()
        for start, dead in new.dead_parts(table):
            if dead.any():
                bits[start // 8 : (start + len(dead) + 7) // 8] |= np.packbits(dead)
        count = int(np.bitwise_count(bits).sum(dtype=np.int64))
        return DeadRows(commit, bits if count else None, count, deletions.expired)

    def mask(self, rows: int) -> U8 | None:
        """A byte for each of so many rows; None where no row is deleted."""
        return None if self.bits is None else np.unpackbits(self.bits, count=rows)


NOTHING_DEAD = DeadRows(0, None, 0)
"""Of any table, before the first commit."""


@dataclass(frozen=True, slots=True, eq=False)
class Sampled:
    """Some rows of a table, in order of their ids, and which of them are deleted as of a commit."""

    commit: int
    ids: U64
    rows: I64
    dead: Bools

    @classmethod
    def of(cls, table: Table) -> Sampled:
        """Rows from evenly spaced places, or all rows of a small table."""
        if len(table) <= SAMPLE_BLOCKS * BLOCK_ROWS:
            rows = np.arange(len(table), dtype=np.int64)
        else:
            starts = np.linspace(0, len(table) - BLOCK_ROWS, SAMPLE_BLOCKS).astype(np.int64)
            rows = (starts[:, None] + np.arange(BLOCK_ROWS)).ravel()
        ids = verified_at(table.ids, rows)
        order = np.argsort(ids, kind="stable")
        return cls(0, ids[order], rows[order], np.zeros(len(rows), np.bool_))

    @property
    def share(self) -> float:
        """About what part of the table's rows is deleted."""
        return float(np.count_nonzero(self.dead)) / max(1, len(self.dead))

    def advanced(self, table: Table, deletions: Deletions, commit: int) -> Sampled:
        """As of a later commit, whose deletions these are; costs what the new ones cost."""
        dead, since = self.dead, max(self.commit, table.horizon)
        for run in deletions.runs:
            if run.newest > since and self._may_have(run):
                dead = dead | Deletions([run]).dead(table, self.ids, self.rows)
        if deletions.expires(table):
            dead = dead | Deletions((), deletions.expired).dead(table, self.ids, self.rows)
        return Sampled(commit, self.ids, self.rows, dead)

    def _may_have(self, run: Tombstones) -> bool:
        """Whether one of the rows may have a name of a run; quickly no for most short runs."""
        if len(run) >= len(self.ids) or not len(self.ids):
            return True
        ids = verified(run.id)
        place = np.minimum(self.ids.searchsorted(ids), len(self.ids) - 1)
        return bool((self.ids[place] == ids).any())
