"""A batch matched against itself, and that joined with what the index holds: the crawl loop's step.

    Q          r0  r1  r2  r3  r4           equal rows are one group: r0 = r2 = r4
    groups     g0  g1      g2               numbered by their first rows
    near       g0-g2                        pairs of groups within h
    matches    r2: r0   r3: r0 r2   r4: r0 r2 r3
    with first r2: r0   r3: r0 r2?  r4: r0  one each, r3 the earliest of the nearest

So a million equal rows cost what one does with `first`. Without, every row has all earlier ones for
matches, and their number is known before there is memory taken for them.

Invariants
1. Row j of Q is matched with rows i < j of Q only: as if each was asked and then added.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from simindex._kernels import _native
from simindex.clusters import neighbours
from simindex.errors import InvalidBatch
from simindex.records import U64, Matches, QueryStats

I64 = NDArray[np.int64]
U16 = NDArray[np.uint16]

MOST_MATCHES = 1 << 27
"""Within one batch: more would take above 6 GB while they are put in order."""


class Within(NamedTuple):
    """Rows of a batch and earlier ones within h; columns of one length, in no order."""

    row: I64
    earlier: I64
    distance: U16


def within(rows: U64, h: int, *, first: bool, threads: int) -> Within:
    """Each row's matches among the rows before it.

    Parameters
    ----------
    rows : uint64 (n, W)
    first : bool
        At most one match a row: the nearest, and of those the earliest.

    Raises
    ------
    InvalidBatch
        If there are more than MOST_MATCHES; says how many.
    """
    distinct, group = equal_rows(rows)
    repeated = len(distinct) < len(rows)
    a, b, distance = _pairs(rows[distinct] if repeated else rows, h, threads)
    if first:
        return _first(distinct, group, a, b, distance)
    if not repeated:
        return Within(b, a, distance)
    return _all(group, a, b, distance)


def equal_rows(rows: U64) -> tuple[I64, I64]:
    """Groups of equal rows.

    Returns
    -------
    int64 (g,), int64 (n,)
        The first row of each group, ascending; and the group of each row.
    """
    n = len(rows)
    order = _native.sort_rows(np.ascontiguousarray(rows[:, 0]))
    ordered = _native.take_rows(rows, order)
    unlike = np.ones(n, np.bool_)
    if rows.shape[1] > 1:
        order, ordered = _wholly_sorted(order, ordered)
    unlike[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    if unlike.all():
        every = np.arange(n, dtype=np.int64)
        return every, every
    firsts = order[unlike]  # the sort keeps the order of equal rows
    rank = np.argsort(firsts)
    number = np.empty_like(rank)
    number[rank] = np.arange(len(rank))
    group = np.empty(n, np.int64)
    group[order] = number[np.cumsum(unlike) - 1]
    return firsts[rank], group


def _wholly_sorted(order: I64, ordered: U64) -> tuple[I64, U64]:
    """Rows sorted by their first word, with those it leaves tied sorted by the others."""
    tied = np.zeros(len(ordered) + 1, np.bool_)
    tied[1:-1] = ordered[1:, 0] == ordered[:-1, 0]
    among = np.flatnonzero(tied[:-1] | tied[1:])
    if len(among):
        some = ordered[among]
        inner = among[np.lexsort(tuple(some.T[::-1]))]
        order[among], ordered[among] = order[inner], ordered[inner]
    return order, ordered


def _pairs(rows: U64, h: int, threads: int) -> tuple[I64, I64, U16]:
    """Pairs a < b of distinct rows within h, in any order."""
    return neighbours(rows, h)


def _first(distinct: I64, group: I64, a: I64, b: I64, distance: U16) -> Within:
    order = np.lexsort((a, distance, b))
    a, b, distance = a[order], b[order], distance[order]
    kept = np.ones(len(b), np.bool_)
    kept[1:] = b[1:] != b[:-1]
    again = np.ones(len(group), np.bool_)
    again[distinct] = False
    row = np.flatnonzero(again)
    return Within(
        np.concatenate([distinct[b[kept]], row]),
        np.concatenate([distinct[a[kept]], distinct[group[row]]]),
        np.concatenate([distance[kept], np.zeros(len(row), np.uint16)]),
    )


def _all(group: I64, a: I64, b: I64, distance: U16) -> Within:
    """Pairs of groups as pairs of their rows, with those inside each group."""
    size = np.bincount(group)
    across = size[a] * size[b]
    inside = size * (size - 1) // 2
    require_memory_for(float(across.sum(dtype=np.float64) + inside.sum(dtype=np.float64)))
    members = np.argsort(group, kind="stable")
    start = np.cumsum(size) - size
    # Across: the rows of b go round within each row of a.
    pair = np.repeat(np.arange(len(a)), across)
    turn = np.arange(len(pair)) - np.repeat(np.cumsum(across) - across, across)
    one = members[start[a][pair] + turn // size[b][pair]]
    other = members[start[b][pair] + turn % size[b][pair]]
    # Inside: each row with those before it.
    before = np.arange(len(group)) - start[group[members]]
    row = np.repeat(members, before)
    turn = np.arange(len(row)) - np.repeat(np.cumsum(before) - before, before)
    return Within(
        np.concatenate([np.maximum(one, other), row]),
        np.concatenate([np.minimum(one, other), members[start[group[row]] + turn]]),
        np.concatenate([distance[pair], np.zeros(len(row), np.uint16)]),
    )


def require_memory_for(matches: float) -> None:
    """Refuses with InvalidBatch what would be too many matches within a batch."""
    if matches > MOST_MATCHES:
        raise InvalidBatch(
            f"the batch has {matches:.3g} matches within itself, above {MOST_MATCHES:,}: ask for "
            "first=True, or give fewer of its rows at once",
            found=int(matches), expected=MOST_MATCHES,
        )


def joined(
    stored: Matches,
    inside: Within,
    ids: U64,
    keys: list[str] | list[bytes] | None,
    *,
    first: bool,
    started: float,
) -> Matches:
    """Matches of a batch among stored rows and within itself, as one.

    Parameters
    ----------
    ids : uint64 (n,)
        Of the batch's rows.
    keys : list, or None
        Of the batch's rows, in an index that has keys.
    first : bool
        A row with a stored match gets none within the batch.
    started : float
        `time.perf_counter()` when the call began.
    """
    if first and len(stored):
        left = np.ones(len(ids), np.bool_)
        left[stored.query] = False
        inside = Within._make(column[left[inside.row]] for column in inside)
    query, distance, found_ids = stored.query, stored.distance, stored.id
    fetch: Callable[[], list[str] | list[bytes]] | None = None
    if keys is not None:
        fetch = partial(_keys, stored.keys, keys, inside.earlier, None)
    if len(inside.row):
        query, found_ids, distance, order, repeated = _native.arrange(
            np.concatenate([query, inside.row]),
            np.concatenate([found_ids, ids[inside.earlier]]),
            np.concatenate([distance, inside.distance]),
            len(ids), keys is not None,
        )
        if repeated:
            # Rows of one id and distance are one match: a document that was stored twice.
            kept = np.ones(len(query), np.bool_)
            kept[1:] = (query[1:] != query[:-1]) | (found_ids[1:] != found_ids[:-1])
            kept[1:] |= distance[1:] != distance[:-1]
            query, found_ids, distance = query[kept], found_ids[kept], distance[kept]
            order = order[kept] if keys is not None else order
        if keys is not None:
            fetch = partial(_keys, stored.keys, keys, inside.earlier, order)
    return Matches(query, found_ids, distance, _stats(stored.stats, started), fetch)


def _keys(
    stored: Callable[[], list[str] | list[bytes] | None],
    keys: list[str] | list[bytes],
    earlier: I64,
    order: I64 | None,
) -> list[str] | list[bytes]:
    both: list[str] | list[bytes] = [*(stored() or []), *(keys[row] for row in earlier.tolist())]
    return both if order is None else [both[place] for place in order.tolist()]


def _stats(stored: QueryStats, started: float) -> QueryStats:
    """Those of the search of the index, which is all that is not exact and all that is probed."""
    guarantee = stored.guarantee
    if not stored.exact:
        guarantee += "; exact within the batch"
    return stored._replace(guarantee=guarantee, seconds=time.perf_counter() - started)
