"""All pairs of an index, `Index.pairs`: a search, what sketches keep of it, and its order.

    PairSearch     pairs of rows within h, in no order
    kept_parts     where sketches decide, those that they keep, with their distance
    Repeats        with `collapse_equal` and sketches, before: rows that equal an earlier one

Parts are put in order one at a time, and name their keys when they are asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from simindex._kernels import _native
from simindex.arrays import I64, U16, U64
from simindex.checks import require_distance
from simindex.errors import InvalidOption
from simindex.options import IndexOptions, as_flag
from simindex.pairs import permuted_candidates
from simindex.pairs.find_all import WORTH_THREADS, partition
from simindex.pairs.live_rows import StoredRows
from simindex.pairs.pair_search import PairSearch, block_masks
from simindex.pairs.repeats import Repeats
from simindex.pairs.sketch_filter import READ_BYTES, PairSketches, kept_parts
from simindex.pairs.tiles import Found, Room
from simindex.planning.similarity import Similar
from simindex.records.pairs import CollapsedPairs, EqualRows, PairKeys, Pairs
from simindex.records.reports import Progress
from simindex.resources.threads import thread_count
from simindex.storage.snapshot import Snapshot
from simindex.storage.tables.table import keys_of

METHODS = ("auto", "blocks")

Fetch = Callable[[U64], list[Any]]
"""Keys of rows by their numbers."""

Told = dict[str, Any]
"""What all parts of an answer say of a similarity."""


def index_pairs(
    snapshot: Snapshot,
    options: IndexOptions,
    *,
    h: int,
    method: str,
    memory_limit: int | None,
    collapse_equal: bool,
    threads: int | None,
    progress: Progress | None,
    similar: Similar | None = None,
) -> Iterator[Pairs]:
    """See `Index.pairs`. Options are checked now, pairs are found when they are asked for."""
    h = require_distance(h, options.bits)
    collapse_equal = as_flag(collapse_equal, "collapse_equal")
    if not isinstance(method, str) or method not in METHODS:
        raise InvalidOption(
            f"method={method!r} is unknown",
            remedy=f"give one of {', '.join(METHODS)}", option="method", found=method,
            expected=METHODS,
        )
    keyed = options.keyed
    stored = StoredRows(
        snapshot.tables, snapshot.tombstones, words=options.words,
        numbered=keyed or compares_sketches(similar),
    )
    search = search_of(
        stored, similar, h=h, room=room_within(memory_limit, stored, similar),
        collapse=collapse_equal, progress=progress,
        threads=thread_count(threads, len(stored), worth=WORTH_THREADS), exact=method == "blocks",
    )
    fetch = partial(stored_keys, stored, options) if keyed else None
    told: Told = {}
    if similar is not None:
        orders = None if method == "blocks" else permuted_candidates.chosen(len(stored), similar)
        told = {**similar.told, "guarantee": (
            similar.guarantee("exact") if orders is None
            else similar.guarantee(orders.told, orders.share)
        )}
    return (_arranged(found, collapse_equal, fetch, told) for found in search)


def stored_keys(stored: StoredRows, options: IndexOptions, numbers: U64) -> list[Any]:
    """Keys of rows by their numbers, in the same order."""
    places, rows = stored.place(numbers)
    return keys_of(stored.tables, places, rows).decoded(options.key_kind)


def _arranged(found: Found, collapse: bool, fetch: Fetch | None, told: Told) -> Pairs:
    """With a < b, ordered by (a, b, distance); links to equal rows as groups, if so wished."""
    if not collapse:
        return Pairs(*_ordered(found, np.arange(len(found)), fetch), **told)
    links = found.links
    first, row, _, group_keys = _ordered(found, np.flatnonzero(links), fetch)
    a, b, distance, keys = _ordered(found, np.flatnonzero(~links), fetch)
    return CollapsedPairs(a, b, distance, EqualRows(first, row, group_keys), keys, **told)


def _ordered(
    found: Found, some: I64, fetch: Fetch | None
) -> tuple[U64, U64, U16, PairKeys | None]:
    assert found.a_ids is not None and found.b_ids is not None  # what was asked for
    a, b, distance = found.a_ids[some], found.b_ids[some], found.distance[some]
    turned = a > b
    a, b = np.where(turned, b, a), np.where(turned, a, b)
    order = _native.sort_rows(b)
    order = order[_native.sort_rows(a[order])]
    again = (a[order[1:]] == a[order[:-1]]) & (b[order[1:]] == b[order[:-1]])
    if again.any():  # documents of several rows
        order = np.lexsort((distance, b, a))
    columns = a[order], b[order], distance[order]
    if fetch is None or found.a_numbers is None or found.b_numbers is None:
        return (*columns, None)
    first, second = found.a_numbers[some], found.b_numbers[some]
    first, second = np.where(turned, second, first), np.where(turned, first, second)
    return (*columns, partial(_both, fetch, first[order], second[order]))


def _both(fetch: Fetch, a: U64, b: U64) -> tuple[list[Any], list[Any]]:
    return fetch(a), fetch(b)


def compares_sketches(similar: Similar | None) -> bool:
    """Whether sketches decide about pairs."""
    return similar is not None and similar.sketch_bits > 0


def sketches_of(stored: StoredRows, similar: Similar | None) -> PairSketches | None:
    """Those that decide about pairs; None if the radius alone does."""
    if similar is None or not similar.sketch_bits:
        return None
    return PairSketches(stored, similar)


def room_within(
    memory: int | None, stored: StoredRows, similar: Similar | None, *, beside: int = 0,
    later: int = 0, purpose: str = "pairs",
) -> Room:
    """As `Room.within`, beside what sketches take if they are compared."""
    if compares_sketches(similar):
        beside += READ_BYTES + stored.stored // 8
    return Room.within(memory, stored, beside=beside, later=later, purpose=purpose)


def search_of(
    stored: StoredRows, similar: Similar | None, *, h: int, room: Room, collapse: bool,
    threads: int, progress: Progress | None = None, exact: bool = False,
) -> Iterator[Found]:
    """Pairs of stored rows within h, of a similarity with sketches those that they keep.

    Among many rows these are of as many candidates as the similarity asks for, unless `exact`.
    """
    search = partial(PairSearch, h=h, room=room, threads=threads, progress=progress)
    sketches = sketches_of(stored, similar)
    if sketches is None or similar is None:
        return iter(search(stored, collapse=collapse))
    orders = None if exact else permuted_candidates.chosen(len(stored), similar)
    candidates = partial(_candidates, search=search, orders=orders, progress=progress)
    if not collapse:
        return kept_parts(candidates(stored), sketches, room.chunk)
    return _collapsed(Repeats(stored, sketches, room), candidates, sketches, room)


def _collapsed(
    repeats: Repeats, candidates: Callable[[StoredRows], Iterator[Found]], sketches: PairSketches,
    room: Room,
) -> Iterator[Found]:
    yield from repeats
    yield from kept_parts(candidates(repeats.others()), sketches, room.chunk)


def _candidates(
    stored: StoredRows, search: Callable[..., PairSearch],
    orders: permuted_candidates.Orders | None, progress: Progress | None,
) -> Iterator[Found]:
    """Pairs within the radius: all, or those that agree on a block in one of some orders."""
    if orders is None:
        yield from search(stored, collapse=False)
        return
    blocks = partition(permuted_candidates.BITS, orders.blocks)
    masks = block_masks(blocks, permuted_candidates.BITS)
    found = np.empty((0, 1), np.uint64)  # in the rows' own order
    for number, places in enumerate(permuted_candidates.orders_of(orders.orders)):
        order = permuted_candidates.Order(places)
        back = permuted_candidates.Order(np.argsort(places))
        told = None if progress is None else partial(_told_of, progress, number, orders.orders)
        yield from search(
            stored.reordered(order) if number else stored, collapse=False, blocks=blocks,
            found=order(found) if number else None, progress=told,
        )
        found = np.concatenate([found, back(masks)])


def _told_of(progress: Progress, number: int, orders: int, done: int, rows: int) -> None:
    progress((number * rows + done) // orders, rows)
