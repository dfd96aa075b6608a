"""A batch matched against itself, and that joined with what the index holds: the crawl loop's step.

    Q          r0  r1  r2  r3  r4           r0 = r2 = r4, r1 and r3 within h of each other
    matches    r2: r0   r3: r1   r4: r0 r2
    first      r2: r0   r3: r1   r4: r0     one each

The first of equal rows represents all, so with `first` a million of them cost little more than one.
Without, every row has all earlier ones for matches, and their number is known before memory is
taken for them. With `first`, rows that crowd, different and near, are not all paired either.

Invariants
1. Row j of Q is matched with rows i < j of Q only: as if each was asked and then added.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from simindex._kernels import _native
from simindex.arrays import I64, U16, U64
from simindex.bits.design import BlockDesign
from simindex.errors import TooManyMatches
from simindex.options import IndexOptions
from simindex.pairs.find_all import chosen_blocks, partition
from simindex.planning.question import Question
from simindex.query.sketch_filter import kept_pairs
from simindex.records.batch import Batch
from simindex.records.matches import Matches
from simindex.storage.tables.table import sort_table

MOST_MATCHES = 1 << 27
"""Within one batch: more would take above 6 GB while they are put in order."""

MATCH_BYTES = 72
"""Of a match within a batch while it is put in order with others."""

FEW_PAIRS = 1 << 23
"""Of different rows, up to which all are found where one earlier row of each is asked for."""

LEAF_ROWS = 1 << 8
"""Rows that are compared with one another directly."""

MOST_TABLES, FEW_QUERIES = 16, 1 << 6
"""Beyond so many tables, and below so many queries, rows are compared directly, too."""


class Near(NamedTuple):
    """Rows of a batch and earlier ones within h; columns of one length, in no order."""

    row: I64
    earlier: I64
    distance: U16


def sealed_rows(options: IndexOptions) -> int:
    """From how many rows on a batch is made a segment at once, with what is pending.

    The next batch is looked up in it, and pending rows have no permuted tables: 100,000 queries of
    that many pending rows took 0.87 s of processor time, of a segment 0.05.
    """
    return max(1, options.seal_rows // 8)


def inside(batch: Batch, question: Question, *, threads: int, limit_bytes: int) -> Near:
    """`within` of the rows of a batch, as a question asks; kept by their sketches, if these decide.
    """
    similar, first = question.similar, question.stops_early
    try:
        near = within(
            batch.rows, question.h, first=first, threads=threads, limit_bytes=limit_bytes
        )
    except TooManyMatches as error:
        if not question.first:
            raise
        raise TooManyMatches(
            error.what, remedy="give fewer rows at a time", **error.data
        ) from error
    if similar is None or not similar.sketch_bits or batch.sketches is None:
        return near
    places, distance = kept_pairs(batch.sketches, near.row, near.earlier, similar)
    kept = Near(near.row[places], near.earlier[places], distance)
    return _nearest(kept) if question.first else kept


def within(rows: U64, h: int, *, first: bool, threads: int, limit_bytes: int) -> Near:
    """Each row's matches among the rows before it, with `first` at most one.

    `rows` is uint64 (n, W). Raises TooManyMatches if there are more than MOST_MATCHES, or than so
    many bytes hold; says how many.
    """
    most = FEW_PAIRS if first else min(MOST_MATCHES, limit_bytes // MATCH_BYTES)
    near, *equal, pairs, too_many = _pairs(rows, h, not first, most, threads)
    if not first:
        if too_many:
            raise TooManyMatches(
                f"the batch has {pairs:.3g} matches within itself or more, the limit is {most:,}",
                remedy="give first=True, or fewer rows at a time", found=pairs, expected=most,
                memory_limit=limit_bytes,
            )
        return near
    if too_many:
        _, *equal, _, _ = _pairs(rows, 0, False, most, threads)
        distinct = np.delete(np.arange(len(rows)), equal[1])
        near = _first_by_halves(rows[distinct], h)
        near = Near(distinct[near.row], distinct[near.earlier], near.distance)
    else:
        near = _nearest(near)
    return Near(
        np.concatenate([near.row, equal[1]]),
        np.concatenate([near.earlier, equal[0]]),
        np.concatenate([near.distance, np.zeros(len(equal[1]), np.uint16)]),
    )


def _pairs(
    rows: U64, h: int, expanded: bool, most: int, threads: int
) -> tuple[Near, I64, I64, float, bool]:
    """All pairs, of different rows only unless `expanded`; then (first, row) of equal ones.

    Also how many pairs that means, and whether they are more than `most`: then none are given.
    """
    blocks = chosen_blocks(rows=len(rows), words=rows.shape[1], h=h)
    a, b, distance, first, row, pairs, too_many = _native.all_pairs(
        rows, partition(64 * rows.shape[1], max(1, blocks)), max(0, blocks - h), h, expanded,
        most, threads,
    )
    return Near(b, a, distance), first, row, pairs, too_many


def _nearest(near: Near) -> Near:
    """The nearest match of each row, of equally near ones the earliest."""
    order = np.lexsort((near.earlier, near.distance, near.row))
    row = near.row[order]
    kept = np.ones(len(row), np.bool_)
    kept[1:] = row[1:] != row[:-1]
    return Near._make(column[order[kept]] for column in near)


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
    return Near(late, earlier[late], distance[late])


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


def joined(
    stored: Matches,
    inside: Near,
    ids: U64,
    keys: list[str] | list[bytes] | None,
    *,
    first: bool,
    started: float,
) -> Matches:
    """Matches of a batch among stored rows and within itself, as one.

    `ids`, uint64 (n,), and `keys`, in an index that has them, are of the batch's rows. With `first`
    a row with a stored match gets none within the batch. `started` is the `time.perf_counter()`
    when the call began.
    """
    if first and len(stored):
        left = np.ones(len(ids), np.bool_)
        left[stored.query] = False
        inside = Near._make(column[left[inside.row]] for column in inside)
    query, distance, found_ids = stored.query, stored.distance, stored.id
    order: I64 | None = None
    if len(inside.row):
        query, found_ids, distance, places, repeated = _native.arrange(
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
            places = places[kept] if keys is not None else places
        order = places
    fetch = None if keys is None else partial(_keys, stored, keys, inside.earlier, order)
    # The search of the index is all that is not exact, and all that is probed.
    guarantee = stored.stats.guarantee
    if not stored.stats.exact:
        guarantee += "; exact within the batch"
    stats = stored.stats._replace(guarantee=guarantee, seconds=time.perf_counter() - started)
    return Matches(query, found_ids, distance, stats, fetch)


def _keys(
    stored: Matches,
    keys: list[str] | list[bytes],
    earlier: I64,
    order: I64 | None,
    places: I64 | None,
) -> list[str] | list[bytes]:
    """Keys of the matches at some places, or of all."""
    if order is not None:
        places = order if places is None else order[places]
    if places is None:
        places = np.arange(len(stored) + len(earlier))
    of_stored = places < len(stored)
    known = iter(stored.take(places[of_stored]).keys() or ())
    fresh = iter(earlier[places[~of_stored] - len(stored)].tolist())
    found: Any = [next(known) if is_old else keys[next(fresh)] for is_old in of_stored.tolist()]
    named: list[str] | list[bytes] = found
    return named
