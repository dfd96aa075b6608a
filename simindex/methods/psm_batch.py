"""PSM for batches: the probes of all queries are partitioned by header, a table is swept in order.

    A    own header and k flips of every query -> partitions            one sweep
    F    own headers -> partitions                                      one sweep
         k flips of those that found nothing -> partitions              one more

[PSM] section 5 reads a file in chunks that are each sorted and probed by every query; here the
table is sorted as a whole, so that a probe has one place in it and the file is read once, in order.

Invariants
1. What is found depends on neither threads nor slices: rounds are of the plan alone.
2. In F a query's matches are of one round, the first that finds any.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simindex._kernels import _native
from simindex.methods.base import Found
from simindex.records import F32, U64
from simindex.storage.table import Table

LEAST_PROBES, MOST_PROBES = 1 << 24, 1 << 26
"""Probes of a call at a time, 16 bytes each, by the size of the table: a sweep of 60 M rows brings
in 480 MB, 54 ms, which few probes would not be worth."""

PROBE_BYTES = 16

Numbers = NDArray[np.uint32]


def search(
    table: Table,
    queries: U64,
    weights: F32,
    order: _native.CheckedVosh,
    *,
    h: int,
    flips: int,
    header_bits: int,
    first: bool,
    threads: int,
) -> Found:
    """Rows of a table within h of each query, under the headers of an order's flip sets.

    Parameters
    ----------
    queries : uint64 (m, W)
    weights : float32 (m, b)
    order : CheckedVosh
        Of `flips` flip sets of `header_bits` header bits, that have networks.
    first : bool
        Drop queries once matched; a query's matches are then those of one round.

    Notes
    -----
    Memory is 16 bytes a probe, of `slice_probes` at a time, beside what is found.
    """
    size = slice_queries(len(table), flips, len(queries), threads)
    starts = range(0, len(queries), size)

    def run(start: int) -> Found:
        stop = start + size
        some = _Slice(table, queries[start:stop], weights[start:stop], order, h)
        found = some.first(header_bits) if first else some.all()
        return found if start == 0 else found._replace(query=found.query + start)

    if threads == 1 or len(starts) == 1:
        return joined([run(start) for start in starts])
    with ThreadPoolExecutor(threads) as pool:
        return joined(list(pool.map(run, starts)))


def slice_queries(rows: int, flips: int, queries: int, threads: int) -> int:
    """How many queries of a call are partitioned at a time, by each thread."""
    most = min(MOST_PROBES, max(LEAST_PROBES, rows)) // (flips + 1) // threads
    share = -(-queries // threads)
    return max(1, -(-share // -(-share // most)))


def joined(parts: list[Found]) -> Found:
    """The finds of several parts as one."""
    if len(parts) == 1:
        return parts[0]
    columns = [np.concatenate(column) for column in list(zip(*parts, strict=True))[:4]]
    return Found(
        *columns, sum(part.probes for part in parts), sum(part.compared for part in parts)
    )


class _Slice:
    """Some queries of a batch, that one thread looks up."""

    def __init__(
        self, table: Table, queries: U64, weights: F32, order: _native.CheckedVosh, h: int
    ) -> None:
        self._table, self._queries, self._weights = table, queries, weights
        self._order, self._h = order, h

    def all(self) -> Found:
        return self._sweep(self._flipped(None, own=True))

    def first(self, header_bits: int) -> Found:
        checked, queries = self._table.checked, self._queries
        found = self._sweep(_native.partition_headers(checked, header_bits, queries, None))
        left = np.ones(len(queries), np.bool_)
        left[found.query] = False
        numbers = np.flatnonzero(left).astype(np.uint32)
        return joined([found, self._sweep(self._flipped(numbers, own=False))])

    def _flipped(self, numbers: Numbers | None, *, own: bool) -> _native.CheckedProbes:
        return _native.partition_psm(
            self._table.checked, self._order, self._queries, self._weights, numbers, own
        )

    def _sweep(self, probes: _native.CheckedProbes) -> Found:
        return Found(*_native.sweep(self._table.checked, probes, self._h, 0, probes.partitions))
