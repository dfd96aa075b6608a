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
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from simindex._kernels import _native
from simindex.errors import InvalidBatch
from simindex.records import U64, Matches, QueryStats
from simindex.simhash.permutation import BlockDesign
from simindex.storage.table import sort_table

I64 = NDArray[np.int64]
U16 = NDArray[np.uint16]

MOST_MATCHES = 1 << 27
"""Within one batch: more would take above 6 GB while they are put in order."""


FEW_ROWS = 1 << 14
"""Which have no more pairs than that."""

FEW_PAIRS = 1 << 23
"""Up to which all pairs are found, where one earlier row of each is asked for."""

SAMPLE_ROWS, SAMPLE_PAIRS = 1 << 12, 1 << 10
"""How many rows are compared to expect a number of pairs; and pairs that are enough for it."""

LEAF_ROWS = 1 << 8
"""Rows that are compared with one another directly."""

MOST_TABLES, FEW_QUERIES = 16, 1 << 6
"""Beyond so many tables, and below so many queries, rows are compared directly, too."""


class Near(NamedTuple):
    """Pairs of rows within h, a < b; columns of one length, in no order."""

    a: I64
    b: I64
    distance: U16


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
    some = rows[distinct] if repeated else rows
    pairs = expected_pairs(some, h) if len(some) > FEW_ROWS else 0
    if first:
        dense = pairs > FEW_PAIRS
        return _first(
            distinct, group, _first_by_halves(some, h) if dense else _pairs(some, h, threads)
        )
    require_memory_for(pairs / 2)  # it may be half of that, not less
    near = _pairs(some, h, threads)
    return _all(group, near) if repeated else Within(near.b, near.a, near.distance)


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


def _pairs(rows: U64, h: int, threads: int) -> Near:
    """Pairs a < b of distinct rows within h, in any order."""
    bounds = np.linspace(0, 64 * rows.shape[1], min(h + 1, 64 * rows.shape[1]) + 1)
    first = bounds.astype(np.uint32)
    blocks = np.column_stack([first[:-1], np.diff(first)])
    found = []
    for block in range(len(blocks)):
        found.append(_native.block_pairs(rows, blocks, block, h, threads))
        require_memory_for(float(sum(len(part[0]) for part in found)))
    one, other, distance = (np.concatenate(column) for column in zip(*found, strict=True))
    return Near(
        np.minimum(one, other).astype(np.int64), np.maximum(one, other).astype(np.int64), distance
    )


def expected_pairs(rows: U64, h: int) -> float:
    """About how many pairs of rows are within h, from those among some of the rows."""
    n, count = len(rows), SAMPLE_ROWS
    draw = np.random.default_rng(0)
    while True:
        some = rows[np.unique(draw.integers(0, n, count))]
        found = len(_pairs(some, h, 1).a)
        if found >= SAMPLE_PAIRS or count * 256 >= n:
            return found * (n / len(some)) ** 2
        count *= 4


def _first_by_halves(rows: U64, h: int) -> Near:
    """One earlier row within h of each row, where all pairs would be too many.

    The later half of a stretch of rows is looked up in its earlier half, as far as it has found
    nothing yet; then stretches twice as long are halved.
    """
    n = len(rows)
    earlier = np.full(n, -1, np.int64)
    distance = np.zeros(n, np.uint16)
    for start in range(0, n, LEAF_ROWS):
        some = rows[start : start + LEAF_ROWS]
        found = _native.scan(some, some, h, False)
        query, row, apart = found[0], found[1].astype(np.int64), found[2]
        before = row < query
        # Of several for one place the last stays: that of the earliest row.
        query, row, apart = query[before][::-1], row[before][::-1], apart[before][::-1]
        earlier[start + query], distance[start + query] = start + row, apart
    size = LEAF_ROWS
    while size < n:
        for start in range(0, n - size, 2 * size):
            middle = start + size
            left = middle + np.flatnonzero(earlier[middle : middle + size] < 0)
            for asked, row, apart in _looked_up(rows[start:middle], rows[left], h):
                earlier[left[asked]], distance[left[asked]] = start + row, apart
        size *= 2
    late = np.flatnonzero(earlier >= 0)
    return Near(earlier[late], late, distance[late])


def _looked_up(rows: U64, queries: U64, h: int) -> Iterator[Near]:
    """(query, row, distance) of a row within h of each query that has one, in some parts.

    Rows within h agree on one of h + 1 blocks: a table of rows sorted by each of them.
    """
    if h >= MOST_TABLES or len(queries) < FEW_QUERIES:
        query, place, apart, _ = _native.scan(rows, queries, h, True)
        yield Near(query, place.astype(np.int64), apart)
        return
    design = BlockDesign.flat(max(2, h + 1), 1, bits=64 * rows.shape[1])
    numbers = np.arange(len(rows), dtype=np.uint64)
    left = np.arange(len(queries))
    for number in range(design.tables):
        table = sort_table("", design.permute(rows, number), numbers, None, horizon=0)
        bits = min(design.header_bits[number], table.header_bits)
        query, place, apart, *_ = _native.probe(
            table.fingerprints, table.directory, table.header_bits, bits,
            design.permute(queries[left], number), np.zeros(1, np.uint64), h, True,
        )
        yield Near(left[query], table.ids[place].astype(np.int64), apart)
        left = np.delete(left, query)


def _first(distinct: I64, group: I64, near: Near) -> Within:
    a, b, distance = near
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


def _all(group: I64, near: Near) -> Within:
    """Pairs of groups as pairs of their rows, with those inside each group."""
    a, b, distance = near
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
