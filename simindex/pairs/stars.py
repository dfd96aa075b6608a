"""Which documents become representatives of stars, of pairs that are all known.

    rank            documents by preference, or by their pairs with others, most first
    in that order   a document becomes a representative unless it is near one
    at last         every other document joins the nearest representative

    path    a - b - c - d         by pairs        b: a c      d
                                  prefer a        a: b        c: d

The kernel `star` carries this out. `records/stars.py` does the same for pairs that a caller has.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from simindex._kernels import _native
from simindex.arrays import U16, U32, U64
from simindex.errors import InvalidOption, TooManyMatches
from simindex.pairs.tiles import Found
from simindex.resources.memory import ANSWER_SHARE, answer_bytes
from simindex.values import dataclass

PAIR_BYTES = 32
"""Bytes of a pair of different fingerprints, which is stored for both its rows."""


@dataclass(frozen=True, slots=True, eq=False)
class NearPairs:
    """All pairs of rows that are near each other."""

    first: U32
    """(n,): of each row one with the same fingerprint, the same for all of them."""
    a: U32
    b: U32
    distance: U16

    @classmethod
    def of(
        cls, search: Iterable[Found], rows: int, row_bytes: int, memory_limit: int | None,
        pair_bytes: int = PAIR_BYTES,
    ) -> NearPairs:
        """The pairs that a search finds. They must fit into the memory."""
        first = np.arange(rows, dtype=np.uint32)
        none = np.empty(0, np.uint32)
        a, b, distance = [none], [none], [np.empty(0, np.uint16)]
        pairs = 0
        for found in search:
            assert found.a_numbers is not None and found.b_numbers is not None  # as asked for
            one, other = found.a_numbers.astype(np.uint32), found.b_numbers.astype(np.uint32)
            equal = found.links
            first[other[equal]] = one[equal]
            far = ~equal
            a.append(one[far])
            b.append(other[far])
            distance.append(found.distance[far])
            pairs += len(a[-1])
            _check_room(pairs, row_bytes * rows, memory_limit, pair_bytes)
        return cls(first, np.concatenate(a), np.concatenate(b), np.concatenate(distance))

    def forest(self) -> _native.Forest:
        """Rows that pairs connect."""
        forest = _native.Forest(len(self.first))
        forest.unite(np.arange(len(self.first), dtype=np.uint64), self.first.astype(np.uint64))
        forest.unite(self.a.astype(np.uint64), self.b.astype(np.uint64))
        return forest

    def stars(self, of_row: U32, documents: int, rank: U64 | None = None) -> tuple[U32, U16]:
        """Representative of each document, and the distance to it."""
        rank = np.empty(0, np.uint64) if rank is None else rank
        return _native.star(
            self.first, of_row, documents, self.a, self.b, self.distance, rank
        )


def as_preference(prefer: Any, mode: str) -> Any:
    """The preference, as it was given; InvalidOption where there is none to have."""
    if prefer is not None and mode != "star":
        raise InvalidOption(
            f'prefer needs mode="star": {mode} are named by their smallest ids',
            remedy="leave prefer out", option="prefer",
        )
    return prefer


def _check_room(pairs: int, beside: int, memory_limit: int | None, pair_bytes: int) -> None:
    if memory_limit is None:
        if pair_bytes * pairs <= answer_bytes():
            return
        raise TooManyMatches(
            f"{pairs:,} pairs of different fingerprints found so far, which stars are made of, do "
            f"not fit into {answer_bytes() >> 20:,} MiB, 1/{ANSWER_SHARE} of the memory",
            remedy='give a smaller h, mode="components", or Index.clusters a memory_limit',
            found=pairs, memory_limit=answer_bytes(), expected=answer_bytes() // pair_bytes,
        )
    least = beside + pair_bytes * pairs
    if least > memory_limit:
        raise InvalidOption(
            f"memory_limit={memory_limit:,} bytes is too little for stars: {pairs:,} pairs of "
            f"different fingerprints found so far take {least:,}",
            remedy='give more, a smaller h, or mode="components"', option="memory_limit",
            found=memory_limit, expected=least,
        )
