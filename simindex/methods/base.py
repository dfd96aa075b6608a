"""What a method is: it decides where to look; a kernel decides what matches, by exact distance.

So precision is always 1, and methods differ in recall, memory and time only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from simindex.bits.design import BlockDesign
from simindex.bits.volatility import Volatility


@dataclass(frozen=True, slots=True)
class TablePlan:
    """How one table is searched: all that running it and explaining it need."""

    method: str
    """`"psm"`, `"scan"`, `"issl"`, the name of a block design, or that and `" over queries"`."""
    header_bits: int
    """Width t of the headers probed; 0 where none are, and for a design, whose tables differ."""
    flips: int
    """Flip sets tried beside the query itself."""
    exact: bool
    """Whether every row within h is found: all flip sets are tried, or all rows compared."""
    nanoseconds: float
    """Expected time of one query, by the model."""
    design: BlockDesign | None = None
    """Whose permuted tables are searched, or built over the queries, if `method` names one."""
    max_error: int = 0
    """Bits in which a slice may differ from the query's, where slice lists are searched."""
    pass_from: int | None = None
    """Queries of a call from which all threads pass over the table once, for all of them; None
    where each query is looked up on its own."""
    swept_from: int = 0
    """Queries of a slice from which its permuted tables are swept; 0 for never."""
    widths: tuple[int, ...] = ()
    """Width of the headers looked up in each table."""
    probes: float = 0
    """Headers or slice lists that a query looks into, as expected."""
    compared: float = 0
    """Rows that a query is compared with, if fingerprints are like those counted or uniform."""

    def takes_a_pass(self, queries: int) -> bool:
        """Whether so many queries are answered in one pass over the table."""
        return self.pass_from is not None and queries >= self.pass_from


@dataclass(frozen=True, slots=True)
class QueryPlan:
    """How every table of a snapshot is searched in one call, and what that promises."""

    tables: tuple[TablePlan, ...]
    guarantee: str
    """In words; see `QueryStats.guarantee`."""
    method: str
    exact: bool
    flips: int
    volatility: Volatility | None = None
    """How bits flip, if the number of flip sets rests on it."""
    flips_from: str | None = None
    """What that was learned from, in words."""

    @classmethod
    def of(
        cls, tables: Sequence[TablePlan], guarantee: str, volatility: Volatility | None = None,
        flips_from: str | None = None,
    ) -> QueryPlan:
        """The plans of all tables together."""
        return cls(
            tuple(tables),
            guarantee,
            "+".join(sorted({plan.method for plan in tables})) or "none",
            all(plan.exact for plan in tables),
            max((plan.flips for plan in tables), default=0),
            volatility,
            flips_from,
        )


@dataclass(frozen=True, slots=True)
class TopTablePlan:
    """How one table is searched."""

    method: str
    """`"scan"` or `"issl"`."""
    exact: bool
    nanoseconds: float
    """Expected time of one query, by the model."""
    rerank: int = 0
    """Rows compared of a query, at most, where slice lists are searched."""
    max_error: int = 0
    """Bits in which a slice may differ from the query's there."""
    lists: float = 0.0
    """Slice lists that a query looks into, as counted."""
    compared: float = 0.0
    """Rows that a query is compared with."""
    scored: float = 0.0
    """Rows in these lists together."""
    other: str | None = None
    """The other way that was open, if one was."""
    other_nanoseconds: float = 0.0


class Found(NamedTuple):
    """Rows of one table within h, by query; columns of one length."""

    query: NDArray[np.int64]
    row: NDArray[np.uint32]
    distance: NDArray[np.uint16]
    id: NDArray[np.uint64]
    probes: int
    compared: int


class TopFound(NamedTuple):
    """The K nearest documents of one table for each query, by (distance, id).

    Missing places: id 2**64 - 1, distance b + 1, row 2**32 - 1.
    """

    id: NDArray[np.uint64]
    """(m, k); each at most once, at its least distance."""
    distance: NDArray[np.uint16]
    row: NDArray[np.uint32]
    """The first row of the id at that distance."""
    lists: int
    """Slice lists read; 0 for a scan."""
    compared: int
    """Rows compared in full."""
