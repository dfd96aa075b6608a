"""Deletions: a tombstone (id, commit) kills every row of that id committed before it.

In an index with keys it carries the whole key, and kills the rows whose stored key has the same
bytes: ids only say where to look, so two keys that share an id are never confused, whoever built
them. A table that was written at commit `horizon` has had all tombstones up to that one applied;
only later ones concern it.

    payload, of ids    id, second, commit of each
    payload, of keys   u8 rows, u8 key bytes | id, second, commit of each | key offsets | key bytes
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from simindex.arrays import I64, U8, U64, Bools
from simindex.errors import CorruptFile
from simindex.storage.files.verification import verified
from simindex.storage.tables.keys import KeyHeap
from simindex.storage.tables.names import Names
from simindex.storage.tables.table import Table

TOMBSTONE = np.dtype([("id", "<u8"), ("second", "<u8"), ("commit", "<u8")])

KEYED = np.dtype([("rows", "<u8"), ("key_bytes", "<u8")])
"""Before the rows of an index with keys."""

READ_ROWS = 1 << 16
"""Rows whose ids are looked up together: whole bytes of a mask, and arrays that stay in cache."""

_SLICE_ROWS = 1 << 20


@dataclass(frozen=True, slots=True, eq=False)
class Tombstones:
    """Deleted ids, sorted by (id, second), each with the latest commit that deleted it.

    `second` is the other half of a key's hash, 0 in an index without keys, where `keys` is None.
    """

    id: U64
    second: U64
    commit: U64
    keys: KeyHeap | None
    newest: int = field(init=False)
    """The latest commit; 0 where there is none."""

    def __post_init__(self) -> None:
        newest = int(self.commit.max()) if len(self.commit) else 0
        object.__setattr__(self, "newest", newest)

    def __len__(self) -> int:
        return len(self.id)

    @property
    def keyed(self) -> bool:
        """Whether they are of an index with keys."""
        return self.keys is not None

    @classmethod
    def of(cls, ids: U64, second: U64, commit: U64, keys: KeyHeap | None) -> Tombstones:
        """From columns in any order; of several for one id or key the latest is kept.

        Where different keys have equal hashes, which chance does not bring about, earlier ones of
        a key may stay as well. That does no harm.
        """
        if (ids[1:] > ids[:-1]).all():  # as one run is stored
            return cls(ids, second, commit, keys)
        order = np.lexsort((commit, second, ids))
        ids, second, commit = ids[order], second[order], commit[order]
        repeated = (ids[1:] == ids[:-1]) & (second[1:] == second[:-1])
        if keys is not None:
            places = np.flatnonzero(repeated)
            repeated[places] = keys.equal(order[places], keys, order[places + 1])
        last = np.append(~repeated, True)
        if keys is not None:
            keys = keys.take(order[last])
        return cls(ids[last], second[last], commit[last], keys)

    @classmethod
    def merged(cls, parts: list[Tombstones], *, keyed: bool) -> Tombstones:
        """All tombstones of all parts."""
        none = np.empty(0, np.uint64)
        return cls.of(
            np.concatenate([none, *(p.id for p in parts)]),
            np.concatenate([none, *(p.second for p in parts)]),
            np.concatenate([none, *(p.commit for p in parts)]),
            KeyHeap.joined([p.keys for p in parts if p.keys is not None]) if keyed else None,
        )

    def encode(self) -> bytes:
        """The payload of a tombstone run."""
        rows = np.zeros(len(self), TOMBSTONE)
        rows["id"], rows["second"], rows["commit"] = self.id, self.second, self.commit
        if self.keys is None:
            return rows.tobytes()
        heap = self.keys.slice(0, len(self))
        header = np.zeros((), KEYED)
        header["rows"], header["key_bytes"] = len(self), len(heap.data)
        return b"".join([
            header.tobytes(), rows.tobytes(), heap.offsets.astype("<i8").tobytes(),
            heap.data.tobytes(),
        ])

    @classmethod
    def decode(cls, name: str, payload: bytes, *, keyed: bool) -> Tombstones:
        """The tombstones of a payload whose checksum held.

        Raises CorruptFile if nobody can have written it; no offset of keys is then followed.
        """
        count, keys = len(payload) // TOMBSTONE.itemsize, None
        start = KEYED.itemsize if keyed else 0
        if keyed:
            if len(payload) < start:
                raise CorruptFile(f"the tombstones of {name} end too early", path=name)
            count, key_bytes = (int(size) for size in np.frombuffer(payload, KEYED, 1)[0].item())
            sizes = [start, count * TOMBSTONE.itemsize, 8 * (count + 1), key_bytes]
        else:
            sizes = [count * TOMBSTONE.itemsize]
        if sum(sizes) != len(payload):
            raise CorruptFile(f"the tombstones of {name} have a wrong size", path=name)
        rows = np.frombuffer(payload, TOMBSTONE, count, start)
        if keyed:
            place = start + count * TOMBSTONE.itemsize
            offsets = np.frombuffer(payload, "<i8", count + 1, place)
            data = np.frombuffer(payload, np.uint8, key_bytes, place + offsets.nbytes)
            if offsets[0] != 0 or offsets[-1] != key_bytes or (offsets[1:] < offsets[:-1]).any():
                raise CorruptFile(f"the keys of the tombstones of {name} are damaged", path=name)
            keys = KeyHeap(offsets, data)
        ids, second, commit = (
            np.ascontiguousarray(rows[column]) for column in ("id", "second", "commit")
        )
        return cls.of(ids, second, commit, keys)

    def later_than(self, horizon: int) -> bool:
        """Whether any concerns a table of that horizon."""
        return self.newest > horizon

    def dead(self, table: Table, ids: U64, rows: I64) -> Bools:
        """Which of a table's rows, given with their ids, are deleted."""
        if not self.later_than(table.horizon) or not len(ids):
            return np.zeros(len(ids), np.bool_)
        return self.killed(ids, table.keys, rows, np.full(1, table.horizon, np.uint64))

    def dead_parts(self, table: Table) -> Iterator[tuple[int, Bools]]:
        """Which rows of a table are deleted, a part at a time, each with its first row.

        Reads all ids. Nothing comes where no tombstone concerns the table.
        """
        if self.later_than(table.horizon):
            for start in range(0, len(table), READ_ROWS):
                ids = verified(table.ids[start : start + READ_ROWS])
                yield start, self.dead(table, ids, np.arange(start, start + len(ids)))

    def live_bits(self, table: Table) -> U8 | None:
        """One bit a row, set unless it is deleted, packed; None if no tombstone concerns the table.
        """
        if not self.later_than(table.horizon):
            return None
        parts = (np.packbits(~dead) for _, dead in self.dead_parts(table))
        return np.concatenate([np.empty(0, np.uint8), *parts])

    def killed(self, ids: U64, keys: KeyHeap | None, rows: I64, horizons: U64) -> Bools:
        """Which rows a later tombstone than their horizon concerns.

        `rows` are the places of their keys in `keys`; `horizons` are one for each, or one for all.
        """
        dead = np.zeros(len(ids), np.bool_)
        horizons = np.broadcast_to(horizons, len(ids))
        place = np.searchsorted(self.id, ids)
        inside = place < len(self)
        hits = np.flatnonzero(inside & (self.id[np.minimum(place, len(self) - 1)] == ids))
        at = place[hits]
        while len(hits):  # more than one round only where several keys share an id
            killed = self.commit[at] > horizons[hits]
            if self.keys is not None and keys is not None:
                later = np.flatnonzero(killed)
                chosen = rows[hits[later]].astype(np.int64)
                killed[later] = keys.equal(chosen, self.keys, at[later])
            dead[hits[killed]] = True
            hits, at = hits[~killed], at[~killed] + 1
            more = at < len(self)
            more[more] = self.id[at[more]] == ids[hits[more]]
            hits, at = hits[more], at[more]
        return dead

    def count(self, table: Table) -> int:
        """How many rows of a table are deleted. Reads all its ids."""
        rows = np.arange(len(table), dtype=np.int64)
        return int(np.count_nonzero(self.dead(table, table.ids, rows)))

    def alive(self, table: Table, start: int, stop: int) -> I64 | None:
        """Rows of a slice of a table that are not deleted, from 0 at `start`; None means all."""
        if not self.later_than(table.horizon):
            return None
        rows = np.arange(start, stop, dtype=np.int64)
        dead = self.dead(table, verified(table.ids[start:stop]), rows)
        return np.flatnonzero(~dead).astype(np.int64) if dead.any() else None

    def misplaced(self, secret: bytes) -> int:
        """How many are not found by their keys, since `id` or `second` is not the key's hash."""
        if self.keys is None:
            return 0
        found = 0
        for start in range(0, len(self), _SLICE_ROWS):
            part = slice(start, min(start + _SLICE_ROWS, len(self)))
            hashes = self.keys.slice(part.start, part.stop).hashes(secret)
            other = (hashes[:, 0] != self.id[part]) | (hashes[:, 1] != self.second[part])
            found += int(other.sum())
        return found


def from_deletions(
    deletions: Sequence[Names], commits: Sequence[int], *, keyed: bool
) -> Tombstones:
    """Tombstones of some calls, each with the commit, or whatever number, given for it."""
    parts = [
        Tombstones(one.id, one.second, np.full(len(one), commit, np.uint64), one.keys)
        for one, commit in zip(deletions, commits, strict=True)
    ]
    return Tombstones.merged(parts, keyed=keyed)
