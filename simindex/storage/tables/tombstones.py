"""Deletions: a tombstone (id, commit) kills every row of that id committed before it.

In an index with keys it carries the whole key, and kills the rows whose stored key has the same
bytes: ids only say where to look, so two keys that share an id are never confused, whoever built
them. A table that was written at commit `horizon` has had all tombstones up to that one applied;
only later ones concern it.

    payload, of ids    id, second, commit of each
    payload, of keys   u8 rows, u8 key bytes | id, second, commit of each | key offsets | key bytes
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from simindex._kernels import _native
from simindex.arrays import I64, U64, Bools
from simindex.errors import CorruptFile
from simindex.storage.files.checksums import verified, verified_at
from simindex.storage.files.envelope import Envelope
from simindex.storage.tables.keys import KeyHeap
from simindex.storage.tables.row_names import Names
from simindex.values import dataclass

TOMBSTONE = np.dtype([("id", "<u8"), ("second", "<u8"), ("commit", "<u8")])

KEYED = np.dtype([("rows", "<u8"), ("key_bytes", "<u8")])
"""Before the rows of an index with keys."""

_SLICE_ROWS = 1 << 20


@dataclass(frozen=True, slots=True, eq=False)
class Tombstones:
    """One run: deleted ids, sorted by (id, second), each with the latest commit that deleted it.

    `second` is the other half of a key's hash, 0 in an index without keys, where `keys` is None.
    The columns are in memory, or on the map of a file: see `deletion_file`.
    """

    id: U64
    second: U64
    commit: U64
    keys: KeyHeap | None
    newest: int = -1
    """The latest commit; 0 where there is none. It is looked for unless it is given."""
    envelope: Envelope | None = None
    """The file that they are in."""

    def __post_init__(self) -> None:
        if self.newest < 0:
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
        order = _in_order(ids, second, commit)
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
        for part in parts:
            part._read()
        return cls.of(
            np.concatenate([none, *(p.id for p in parts)]),
            np.concatenate([none, *(p.second for p in parts)]),
            np.concatenate([none, *(p.commit for p in parts)]),
            KeyHeap.joined([p.keys for p in parts if p.keys is not None]) if keyed else None,
        )

    def _read(self) -> None:
        """Verifies all of what is on a map."""
        if self.envelope is not None:
            for column in (self.id, self.second, self.commit):
                verified(column)
            if self.keys is not None:
                verified(self.keys.offsets)
                verified(self.keys.data)

    def encode(self) -> bytes:
        """The payload of a tombstone run."""
        self._read()
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

    def killed(self, ids: U64, keys: KeyHeap | None, rows: I64, horizons: U64) -> Bools:
        """Which rows a later tombstone than their horizon concerns.

        `rows` are the places of their keys in `keys`; `horizons` are one for each, or one for all.
        """
        dead = np.zeros(len(ids), np.bool_)
        if not len(self):
            return dead
        place = verified(self.id).searchsorted(ids)
        np.minimum(place, len(self) - 1, out=place)
        hits = (self.id[place] == ids).nonzero()[0]
        if not len(hits):
            return dead
        at = place[hits]
        horizons = np.broadcast_to(horizons, len(ids))
        while len(hits):  # more than one round only where several keys share an id
            killed = verified_at(self.commit, at) > horizons[hits]
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

    def since(self, commit: int) -> Tombstones:
        """Those of later commits."""
        if not len(self) or int(verified(self.commit).min()) > commit:
            return self
        self._read()
        later = np.flatnonzero(self.commit > np.uint64(commit))
        keys = None if self.keys is None else self.keys.take(later)
        return Tombstones(self.id[later], self.second[later], self.commit[later], keys)

    def misplaced(self, secret: bytes) -> int:
        """How many are not found by their keys, since `id` or `second` is not the key's hash."""
        if self.keys is None:
            return 0
        self._read()
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


def _in_order(ids: U64, second: U64, commit: U64) -> I64:
    """Places by (id, second, commit): a radix sort by ids, then whatever few share theirs."""
    order = _native.sort_rows(np.ascontiguousarray(ids)).astype(np.int64)
    found = ids[order]
    equal = found[1:] == found[:-1]
    if equal.any():
        shared = np.flatnonzero(np.append(equal, False) | np.append(False, equal))
        some = order[shared]
        order[shared] = some[np.lexsort((commit[some], second[some], ids[some]))]
    return order
