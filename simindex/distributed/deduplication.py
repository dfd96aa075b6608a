"""Which rows of all shards lose against a near-duplicate: greedy, in the order of their ids.

    id             1     2     3     5     8
    fingerprint    x     y     x     x'    y         x' within h of x
    kept           1     2
    lost           3 -> 1 at 0     5 -> 1 at 1     8 -> 2 at 0

A row is kept unless a row of a smaller id that is kept is within h of it. One that is lost has lost
to the nearest of these, of equally near ones to the smallest id. As in `simindex dedup`, there are
no chains: each is within h of the one it lost to.

Invariants
1. Only the first row of a fingerprint can be kept: what keeps it away keeps away the rest.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from simindex._kernels import _native
from simindex.arrays import I64, U16, U64, Bools
from simindex.distributed.forests import Forest, united
from simindex.records.pairs import CollapsedPairs, Pairs


class Losers(NamedTuple):
    """Rows that lose, by ascending id: columns uint64 (n,), uint64 (n,) and uint16 (n,)."""

    id: U64
    winner: U64
    distance: U16


def losers(parts: Iterable[Pairs]) -> Losers:
    """The rows that lose, of pairs of all pairs of shards with `collapse_equal`.

    Takes the pairs of different fingerprints into memory, about 120 bytes each, and 60 for each row
    that equals another one.
    """
    joined = _joined(parts)
    groups = _groups(joined)
    near = ~_equal(joined)
    bits = joined.distance[near]
    a = groups.roots_of(joined.a[near])
    b = groups.roots_of(joined.b[near])
    del joined, near
    first, other, distance = _once(np.minimum(a, b), np.maximum(a, b), bits)
    del a, b, bits
    kept_away = _kept_away(first, other)
    return _assigned(groups, first, other, distance, kept_away)


class _Joined(NamedTuple):
    """The columns of all parts, in no order and without their keys."""

    a: U64
    b: U64
    distance: U16
    equal: list[Forest]
    """Rows of a shard that equal another one of it."""
    similarity_bits: int


def _joined(parts: Iterable[Pairs]) -> _Joined:
    none = np.empty(0, np.uint64)
    a, b, distance, equal, bits = [none], [none], [np.empty(0, np.uint16)], [], 0
    for part in parts:
        a.append(part.a.astype(np.uint64, copy=False))
        b.append(part.b.astype(np.uint64, copy=False))
        distance.append(part.distance)
        bits = max(bits, part.similarity_bits)
        if isinstance(part, CollapsedPairs):
            groups = part.groups
            equal.append(Forest(groups.row.astype(np.uint64), groups.first.astype(np.uint64)))
    return _Joined(
        np.concatenate(a), np.concatenate(b), np.concatenate(distance), equal, bits
    )


def _equal(joined: _Joined) -> Bools:
    """Which pairs are of equal fingerprints, bool (p,).

    Of a similarity none: sketches may be equal where fingerprints are not, and then what is near
    one of both is not always near the other. Equal rows of two shards are near each other.
    """
    if joined.similarity_bits:
        return np.zeros(len(joined.distance), np.bool_)
    equal: Bools = joined.distance == 0
    return equal


def _groups(joined: _Joined) -> Forest:
    """Rows of equal fingerprints, with the smallest id of each."""
    equal = _equal(joined)
    return united([Forest(joined.b[equal], joined.a[equal]), *joined.equal])


def _once(a: U64, b: U64, distance: U16) -> tuple[U64, U64, U16]:
    """Pairs of fingerprints, each once, by (a, b): two shards may have both fingerprints."""
    order = _native.sort_rows(b)
    order = order[_native.sort_rows(a[order])]
    a, b, distance = a[order], b[order], distance[order]
    new = np.ones(len(a), np.bool_)
    new[1:] = (a[1:] != a[:-1]) | (b[1:] != b[:-1])
    return a[new], b[new], distance[new]


def _kept_away(a: U64, b: U64) -> U64:
    """Ids of first rows that a kept one keeps away, ascending. Pairs have a < b, by (a, b)."""
    others = np.unique(b)  # only these can be kept away: a set of Python took 100 bytes for each
    gone = np.zeros(len(others) + 1, np.bool_)  # the last is that of a row that cannot
    bounds = np.flatnonzero(np.r_[True, a[1:] != a[:-1], True]) if len(a) else np.empty(0, np.int64)
    own = np.searchsorted(others, a[bounds[:-1]])
    known = own < len(others)
    known[known] = others[own[known]] == a[bounds[:-1]][known]
    own[~known] = len(others)
    places = np.searchsorted(others, b)
    for place, begin, end in zip(own, bounds[:-1], bounds[1:], strict=True):
        if not gone[place]:
            gone[places[begin:end]] = True
    return others[gone[:-1]]


def _assigned(
    groups: Forest, a: U64, b: U64, distance: U16, kept_away: U64
) -> Losers:
    """Each loser with the nearest row that is kept and has a smaller id."""
    again = groups.node != groups.root
    row, first = groups.node[again], groups.root[again]
    # Every row of a fingerprint may lose to all kept rows near it, and to its own first one.
    loser, winner, apart = _candidates(row, first, a, b, distance)
    kept = ~np.isin(winner, kept_away) & (winner < loser)
    loser, winner, apart = loser[kept], winner[kept], apart[kept]
    order = np.lexsort((winner, apart, loser))
    loser, winner, apart = loser[order], winner[order], apart[order]
    new = np.ones(len(loser), np.bool_)
    new[1:] = loser[1:] != loser[:-1]
    return Losers(loser[new], winner[new], apart[new])


def _candidates(
    row: U64, first: U64, a: U64, b: U64, distance: U16
) -> tuple[U64, U64, U16]:
    near = np.concatenate([b, a])
    against = np.concatenate([a, b])
    apart = np.concatenate([distance, distance])
    order = np.argsort(near, kind="stable")
    near, against, apart = near[order], against[order], apart[order]
    begin = np.searchsorted(near, first, side="left")
    count = np.searchsorted(near, first, side="right") - begin
    repeated = np.repeat(np.arange(len(row)), count)
    within: I64 = np.arange(len(repeated)) - np.repeat(np.cumsum(count) - count, count)
    at = begin[repeated] + within
    return (
        np.concatenate([near, row[repeated], row]),
        np.concatenate([against, against[at], first]),
        np.concatenate([apart, apart[at], np.zeros(len(row), np.uint16)]),
    )
