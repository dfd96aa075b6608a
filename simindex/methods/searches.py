"""How each method is run by a plan: on some of a call's queries, or in a pass over a table."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from simindex.arrays import F32, U64
from simindex.bits.design import BlockDesign
from simindex.bits.volatility import Volatility
from simindex.methods import bphs, issl, psm, psm_batch, query_tables, scan
from simindex.methods.base import Found, TablePlan
from simindex.methods.query_tables import QueryTables
from simindex.methods.stream import Stream
from simindex.storage.tables.table import Table
from simindex.storage.tables.tombstones import Tombstones


class Asked(NamedTuple):
    """What is asked of a table."""

    queries: U64
    weights: F32 | None
    volatility: Volatility | None
    h: int
    first: bool
    threads: int
    stream: Stream | None = None
    tombstones: Tombstones | None = None
    built: dict[str, QueryTables] | None = None
    """Tables over these queries, by their design, that tables asked before have needed."""

    def tables(self, design: BlockDesign) -> QueryTables:
        """The tables over the queries of a design."""
        built = {} if self.built is None else self.built
        if design.structure not in built:
            built[design.structure] = query_tables.build(
                self.queries, design, h=self.h, threads=self.threads
            )
        return built[design.structure]

    def of(self, numbers: NDArray[np.int64]) -> Asked:
        """All matches of some of the queries."""
        weights = None if self.weights is None else self.weights[numbers]
        return self._replace(
            queries=self.queries[numbers], weights=weights, first=False, built=None
        )

    def slice(self, start: int, stop: int) -> Asked:
        """Some of the queries, for one thread."""
        weights = None if self.weights is None else self.weights[start:stop]
        return self._replace(queries=self.queries[start:stop], weights=weights, threads=1)

    @property
    def reading(self) -> Stream:
        """How a pass reads rows."""
        return self.stream or Stream(threads=self.threads)


def by_headers(table: Table, plan: TablePlan, asked: Asked) -> Found:
    """PSM, query by query."""
    return psm.search(
        table, asked.queries, asked.weights, plan, asked.volatility, h=asked.h, first=asked.first
    )


def by_swept_headers(table: Table, plan: TablePlan, asked: Asked) -> Found:
    """PSM in a sweep, or in chunks if rows are streamed."""
    assert asked.weights is not None and asked.volatility is not None
    order = psm.checked_order(
        asked.volatility, asked.weights.shape[1], plan.header_bits, asked.h, plan.flips
    )
    if asked.stream is None:
        return psm_batch.search(
            table, asked.queries, asked.weights, order, h=asked.h, flips=plan.flips,
            header_bits=plan.header_bits, first=asked.first, threads=asked.threads,
        )
    return psm_batch.search_within(
        table, asked.queries, asked.weights, order, h=asked.h, header_bits=plan.header_bits,
        first=asked.first, stream=asked.stream,
    )


def by_permuted_tables(table: Table, plan: TablePlan, asked: Asked) -> Found:
    """BPHS, query by query."""
    assert plan.design is not None
    return bphs.search(
        table, asked.queries, plan.design, h=asked.h, first=asked.first,
        swept_from=plan.swept_from,
    )


def by_query_tables(table: Table, plan: TablePlan, asked: Asked) -> Found:
    """BPHS by tables over the queries, which rows are streamed past."""
    assert plan.design is not None
    return query_tables.search(
        asked.tables(plan.design), table, first=asked.first, stream=asked.reading,
        tombstones=asked.tombstones,
    )


def by_slice_lists(table: Table, plan: TablePlan, asked: Asked) -> Found:
    """ISSL, query by query."""
    return issl.within(table, asked.queries, asked.h, plan.max_error, asked.first)


def by_all_rows(table: Table, plan: TablePlan, asked: Asked) -> Found:
    """A scan in slabs."""
    return scan.search(table, asked.queries, h=asked.h, first=asked.first)


def by_streamed_rows(table: Table, plan: TablePlan, asked: Asked) -> Found:
    """A scan in chunks."""
    return scan.streamed(
        table, asked.queries, h=asked.h, first=asked.first, stream=asked.reading,
        tombstones=asked.tombstones,
    )
