"""Deletions: a tombstone (id, commit) kills every row of that id committed before it.

A keyed tombstone also carries the second half of its key's hash and is compared with the stored
key, so that two keys that share an id are never confused. A table that was written at commit
`horizon` has had all tombstones up to that one applied; only later ones concern it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from simindex.errors import CorruptFile
from simindex.records import U64
from simindex.storage.table import I64, Table
from simindex.storage.verification import verified

TOMBSTONE = np.dtype([("id", "<u8"), ("second", "<u8"), ("commit", "<u8")])

Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Tombstones:
    """Deleted ids, sorted by (id, second), each with the latest commit that deleted it.

    `keyed` says that `second` counts.
    """

    id: U64
    second: U64
    commit: U64
    keyed: bool
    newest: int = field(init=False)
    """The latest commit; 0 where there is none."""

    def __post_init__(self) -> None:
        newest = int(self.commit.max()) if len(self.commit) else 0
        object.__setattr__(self, "newest", newest)

    def __len__(self) -> int:
        return len(self.id)

    @classmethod
    def of(cls, ids: U64, second: U64, commit: U64, *, keyed: bool) -> Tombstones:
        """From columns in any order; of several for one id the latest is kept."""
        order = np.lexsort((commit, second, ids))
        ids, second, commit = ids[order], second[order], commit[order]
        last = np.ones(len(ids), np.bool_)
        last[:-1] = (ids[1:] != ids[:-1]) | (second[1:] != second[:-1])
        return cls(ids[last], second[last], commit[last], keyed)

    @classmethod
    def merged(cls, parts: list[Tombstones], *, keyed: bool) -> Tombstones:
        """All tombstones of all parts."""
        none = np.empty(0, np.uint64)
        return cls.of(
            np.concatenate([none, *(p.id for p in parts)]),
            np.concatenate([none, *(p.second for p in parts)]),
            np.concatenate([none, *(p.commit for p in parts)]),
            keyed=keyed,
        )

    def encode(self) -> bytes:
        """The payload of a tombstone run."""
        rows = np.zeros(len(self), TOMBSTONE)
        rows["id"], rows["second"], rows["commit"] = self.id, self.second, self.commit
        return rows.tobytes()

    @classmethod
    def decode(cls, name: str, payload: bytes, *, keyed: bool) -> Tombstones:
        """The tombstones of a payload whose checksum held."""
        if len(payload) % TOMBSTONE.itemsize:
            raise CorruptFile(f"the tombstones of {name} are cut short", path=name)
        rows = np.frombuffer(payload, TOMBSTONE)
        return cls.of(rows["id"], rows["second"], rows["commit"], keyed=keyed)

    def later_than(self, horizon: int) -> bool:
        """Whether any concerns a table of that horizon."""
        return self.newest > horizon

    def dead(self, table: Table, ids: U64, rows: I64) -> Bools:
        """Which of a table's rows, given with their ids, are deleted."""
        dead = np.zeros(len(ids), np.bool_)
        if not self.later_than(table.horizon) or not len(ids):
            return dead
        place = np.searchsorted(self.id, ids)
        inside = place < len(self)
        hits = np.flatnonzero(inside & (self.id[np.minimum(place, len(self) - 1)] == ids))
        if not len(hits):
            return dead
        second = None
        if self.keyed and table.keys is not None:
            second = table.keys.take(rows[hits].astype(np.int64)).hashes()[:, 1]
        at = place[hits]
        open_rows = np.arange(len(hits))
        while len(open_rows):  # more than one round only where several keys share an id
            same = np.ones(len(open_rows), np.bool_)
            if second is not None:
                same = self.second[at[open_rows]] == second[open_rows]
            killed = same & (self.commit[at[open_rows]] > table.horizon)
            dead[hits[open_rows[killed]]] = True
            at[open_rows] += 1
            more = at[open_rows] < len(self)
            more[more] = self.id[at[open_rows[more]]] == ids[hits[open_rows[more]]]
            open_rows = open_rows[more]
        return dead

    def alive(self, table: Table, start: int, stop: int) -> I64 | None:
        """Rows of a slice of a table that are not deleted, from 0 at `start`; None means all."""
        if not self.later_than(table.horizon):
            return None
        rows = np.arange(start, stop, dtype=np.int64)
        dead = self.dead(table, verified(table.ids[start:stop]), rows)
        return np.flatnonzero(~dead).astype(np.int64) if dead.any() else None


def from_ids(ids: U64, commit: int) -> Tombstones:
    """Tombstones of ids, made by a commit."""
    return Tombstones.of(
        ids, np.zeros(len(ids), np.uint64), np.full(len(ids), commit, np.uint64), keyed=False
    )


def from_hashes(parts: list[U64], commit: int) -> Tombstones:
    """Tombstones of keys by their hashes, (n, 2) each, made by a commit."""
    hashes = np.concatenate([np.empty((0, 2), np.uint64), *parts])
    return Tombstones.of(
        hashes[:, 0], hashes[:, 1], np.full(len(hashes), commit, np.uint64), keyed=True
    )
