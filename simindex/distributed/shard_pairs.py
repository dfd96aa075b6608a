"""Pairs of rows of two shards, and of one.

    shards       0    1    2         tasks i <= j:   0-0  0-1  0-2  1-1  1-2  2-2
    i = j        the pairs of the index
    i < j        rows of i are queries to j, a part of them at a time

With `collapse_equal` the row of the smallest id represents the equal rows of a shard. Equal rows of
two shards are pairs at distance 0 of their representatives, and `deduplication` joins them.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations_with_replacement
from typing import Any

import numpy as np

from simindex.arrays import U64, Bools, keys_of_lists, no_keys
from simindex.distributed import regions
from simindex.distributed.merged_answers import merge_pairs
from simindex.distributed.nearness import Near
from simindex.distributed.shard import CHUNK_ROWS, Held, Shard, both_opened, named_rows, opened
from simindex.index.index import Index
from simindex.options import IndexOptions
from simindex.planning.similarity import Similar
from simindex.records.pairs import CollapsedPairs, EqualRows, Pairs

ASKED_ROWS = CHUNK_ROWS
"""Rows of one shard that are looked up in the other at once."""


def pair_tasks(shards: tuple[Shard, ...], h: int) -> list[tuple[Shard, Shard]]:
    """The pairs of shards, the smaller number first, that can have pairs of rows within h."""
    return [
        (one, other) for one, other in combinations_with_replacement(shards, 2)
        if one.rows and other.rows and regions.apart(one.region, other.region) <= h
    ]


def pair_shards(
    one: Held, other: Held, h: int | None = None, *, similarity: float | None = None,
    measure: str = "cosine", recall: float = 1.0, collapse_equal: bool = False,
    memory_limit: int | None = None, threads: int | None = None,
) -> Pairs:
    """All pairs within h of a row of one shard and a row of the other, or of one shard with itself.

    Ordered by (a, b), in memory: `pair_parts` gives them in parts. Give the same shard twice for
    its own pairs. Other parameters and errors are those of `Index.pairs`, and errors of `opened`.
    """
    parts = list(pair_parts(
        one, other, h, similarity=similarity, measure=measure, recall=recall,
        collapse_equal=collapse_equal, memory_limit=memory_limit, threads=threads,
    ))
    if not parts:
        with opened(one) as index:
            parts = [_none(index, Near(h, similarity, measure, recall), collapse_equal)]
    return merge_pairs(parts)


def pair_parts(
    one: Held, other: Held, h: int | None = None, *, similarity: float | None = None,
    measure: str = "cosine", recall: float = 1.0, collapse_equal: bool = False,
    memory_limit: int | None = None, threads: int | None = None,
) -> Iterator[Pairs]:
    """The same in parts, so that an answer of any size takes bounded memory.

    Pairs of a part are ordered by (a, b). No pair comes twice.
    """
    near = Near(h, similarity, measure, recall)
    limits: dict[str, Any] = {"memory_limit": memory_limit, "threads": threads}
    if one is other or one == other:
        with opened(one) as index:
            yield from index.pairs(**near.options, collapse_equal=collapse_equal, **limits)
        return
    with both_opened(one, other) as (index, asked):
        yield from _across(index, asked, other, near, collapse_equal, limits)


def _across(
    index: Index, asked: Index, other: Held, near: Near, collapse: bool, limits: dict[str, Any],
) -> Iterator[Pairs]:
    similar, h = near.similar_in(index), near.radius_in(index)
    told, options = _told(similar), index.options
    sketched = near.sketched_in(index)
    region = other.region if isinstance(other, Shard) else ""
    again, asked_again = (
        (_represented(index, sketched), _represented(asked, sketched))
        if collapse else (None, None)
    )
    for ids, batch in named_rows(index, ASKED_ROWS):
        chosen = regions.within(batch.rows, region, h)
        if again is not None:
            chosen &= ~among(ids, again)
        places = np.flatnonzero(chosen)
        if not len(places):
            continue
        some, ids = batch.take(places), ids[places]
        for found in asked.query_stream(some, **near.options, **limits):
            if asked_again is not None:
                found = found.take(np.flatnonzero(~among(found.id, asked_again)))
            if not len(found):
                continue
            mine, theirs = ids[found.query], found.id
            turned = mine > theirs
            a, b = np.where(turned, theirs, mine), np.where(turned, mine, theirs)
            order = np.lexsort((b, a))
            fetch: Any = None
            if options.keyed:
                fetch = _keys(some.keys, found, turned, order)
            columns = a[order], b[order], found.distance[order]
            if collapse:
                yield CollapsedPairs(*columns, _no_groups(options), fetch, **told)
            else:
                yield Pairs(*columns, fetch, **told)


def _told(similar: Similar | None) -> dict[str, Any]:
    """What pairs of two shards say of a similarity."""
    return {} if similar is None else {**similar.told, "guarantee": similar.guarantee("exact")}


def _none(index: Index, near: Near, collapse: bool) -> Pairs:
    """No pairs, with the columns of others, so that all parts of an answer fit together."""
    told, options = _told(near.similar_in(index)), index.options
    none = np.empty(0, np.uint64)
    columns = none, none, np.empty(0, np.uint16)
    fetch = _no_keys(options)
    if collapse:
        return CollapsedPairs(*columns, _no_groups(options), fetch, **told)
    return Pairs(*columns, fetch, **told)


def _no_groups(options: IndexOptions) -> EqualRows:
    none = np.empty(0, np.uint64)
    return EqualRows(none, none, _no_keys(options))


def _no_keys(options: IndexOptions) -> Any:
    none = no_keys(options.key_kind)
    return (lambda: (none, none)) if options.keyed else None


def _represented(index: Index, sketched: bool) -> U64:
    """Ids of rows that another row of the same shard represents, ascending.

    Where sketches decide they are equal, too: the similarity 1 is within 0 bits of both.
    """
    equal = Near(None, 1.0) if sketched else Near(0)
    parts = [
        part.groups.row.astype(np.uint64)
        for part in index.pairs(**equal.options, collapse_equal=True)
        if isinstance(part, CollapsedPairs)
    ]
    return np.sort(np.concatenate([np.empty(0, np.uint64), *parts]))


def among(ids: U64, known: U64) -> Bools:
    """Which ids are among some that ascend, bool (n,)."""
    if not len(known):
        return np.zeros(len(ids), np.bool_)
    places = np.searchsorted(known, ids)
    there: Bools = known[np.minimum(places, len(known) - 1)] == ids
    return there


def _keys(mine: Any, found: Any, turned: Any, order: Any) -> Any:
    of_mine = [mine[query] for query in found.query.tolist()]
    of_theirs = found.keys() or []
    both = [
        (theirs, own) if turn else (own, theirs)
        for own, theirs, turn in zip(of_mine, of_theirs, turned.tolist(), strict=True)
    ]
    arranged = [both[place] for place in order.tolist()]
    keys = tuple(
        keys_of_lists((names[side] for names in arranged), [mine]) for side in (0, 1)
    )
    return lambda: keys
