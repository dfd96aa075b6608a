"""All pairs of an index, as its users get them; `Index.pairs`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simindex._kernels import _native
from simindex.arrays import I64, U64
from simindex.checks import require_distance
from simindex.errors import InvalidOption
from simindex.options import IndexOptions, as_flag
from simindex.pairs.room import Room
from simindex.pairs.rows import StoredRows
from simindex.pairs.search import PairSearch
from simindex.pairs.tiles import Found
from simindex.records.pairs import CollapsedPairs, EqualRows, PairKeys, Pairs
from simindex.records.reports import Progress
from simindex.storage.snapshot import Snapshot
from simindex.storage.tables.table import keys_of
from simindex.threads import thread_count

METHODS = ("auto", "blocks")

Fetch = Callable[[U64], list[Any]]
"""Keys of rows by their numbers."""

WORTH_THREADS = 100_000
"""Rows below which one thread is as fast."""


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
) -> Iterator[Pairs]:
    """See `Index.pairs`. Options are checked now, pairs are found when they are asked for."""
    require_distance(h, options.bits)
    collapse_equal = as_flag(collapse_equal, "collapse_equal")
    if not isinstance(method, str) or method not in METHODS:
        raise InvalidOption(
            f"method={method!r} is unknown: give one of {', '.join(METHODS)}",
            option="method", found=method, expected=METHODS,
        )
    keyed = options.keyed
    stored = StoredRows(
        snapshot.tables, snapshot.tombstones, words=options.words, numbered=keyed
    )
    search = PairSearch(
        stored, h=h, room=Room.within(memory_limit, stored), collapse=collapse_equal,
        threads=thread_count(threads, len(stored), worth=WORTH_THREADS), progress=progress,
    )
    fetch = partial(stored_keys, stored, options) if keyed else None
    return (_arranged(found, collapse_equal, fetch) for found in search)


def stored_keys(stored: StoredRows, options: IndexOptions, numbers: U64) -> list[Any]:
    """Keys of rows by their numbers, in the same order."""
    places, rows = stored.place(numbers)
    return list(keys_of(stored.tables, places, rows).decoded(options.key_kind))


def _arranged(found: Found, collapse: bool, fetch: Fetch | None) -> Pairs:
    """With a < b, ordered by (a, b, distance); what is at distance 0 as groups, if so wished."""
    if not collapse:
        return Pairs(*_ordered(found, np.arange(len(found)), fetch))
    first, row, _, group_keys = _ordered(found, np.flatnonzero(found.distance == 0), fetch)
    a, b, distance, keys = _ordered(found, np.flatnonzero(found.distance), fetch)
    return CollapsedPairs(a, b, distance, EqualRows(first, row, group_keys), keys)


def _ordered(
    found: Found, some: I64, fetch: Fetch | None
) -> tuple[U64, U64, NDArray[np.uint16], PairKeys | None]:
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
