"""What a method is: it decides where to look; a kernel decides what matches, by exact distance.

So precision is always 1, and methods differ in recall, memory and time only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from simindex._kernels import _native
from simindex.arrays import F32, I64, U16, U32, U64
from simindex.bits.design import BlockDesign
from simindex.bits.volatility import Volatility
from simindex.methods.stream import Stream
from simindex.storage.tables.deletions import Deletions
from simindex.storage.tables.table import Table
from simindex.values import dataclass


def reaches(queries: int, least: int | None) -> bool:
    """Whether there are queries enough to share a pass; `least` is None where there never are.

    A plan is made for a number of queries that is rounded down to a power of two, and carried out
    for others of that size. The answer is the same for all of them if `least` is a power of two.
    """
    return least is not None and queries >= least


@dataclass(frozen=True, slots=True)
class TablePlan:
    """How one table is searched: all that running it and explaining it need."""

    method: str
    """`"psm"`, `"scan"`, `"issl"`, the name of a block design, or that and `" over queries"`."""
    header_bits: int
    """Width t of the headers probed; 0 where none are, and for a design, whose tables differ."""
    flips: int
    """Flip sets that are looked up in addition to the query itself."""
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
    where each query is looked up on its own. A power of two, or 0: see `reaches`."""
    swept_from: int | None = None
    """Queries of a slice from which its permuted tables are swept; None for never. A power of two.
    """
    table_flips: tuple[int, ...] = ()
    """Header bits flipped in each table of the design, -1 where it is not looked into; empty for
    those that `BlockDesign.table_flips` gives."""
    widths: tuple[int, ...] = ()
    """Width of the headers looked up in each table."""
    probes: float = 0
    """Headers or slice lists that a query looks into, as expected."""
    compared: float = 0
    """Rows that a query is compared with, if it is like rows sampled or counted, or uniform."""

    def takes_a_pass(self, queries: int) -> bool:
        """Whether this many queries are answered in one pass over the table."""
        return reaches(queries, self.pass_from)


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
    stream: Stream | None = None
    """How tables are read in chunks, where memory is limited."""
    room_bytes: int = 0
    """What is left for matches then."""

    @classmethod
    def of(
        cls, tables: Sequence[TablePlan], guarantee: str, volatility: Volatility | None = None,
        flips_from: str | None = None, stream: Stream | None = None,
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
            stream,
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


class Asked(NamedTuple):
    """What is asked of a table."""

    queries: U64
    """(m, W)"""
    h: int
    first: bool = False
    """At most one row a query."""
    weights: F32 | None = None
    """(m, b); needed unless the plan is exact."""
    volatility: Volatility | None = None
    threads: int = 1
    stream: Stream | None = None
    tombstones: Deletions | None = None
    """Rows that they delete are not matches, if a pass over the table can see that."""
    built: dict[str, Any] | None = None
    """`QueryTables` over these queries, by their design, that tables asked before have needed."""
    room: _native.Room | None = None
    """For matches of the whole call, where they are bounded: what a method finds stays taken, and
    what it drops it gives back."""

    def of(self, numbers: I64) -> Asked:
        """All matches of some of the queries."""
        weights = None if self.weights is None else self.weights[numbers]
        return self._replace(
            queries=self.queries[numbers], weights=weights, first=False, built=None
        )

    def slice(self, start: int, stop: int) -> Asked:
        """Some of the queries, for one thread."""
        weights = None if self.weights is None else self.weights[start:stop]
        return self._replace(queries=self.queries[start:stop], weights=weights, threads=1)

    def make_room(self, matches: int, held: int) -> None:
        """Before so many matches are made of those held; raises NoRoom, then none are held."""
        if self.room is None:
            return
        self.room.give(held)
        self.room.take(matches)

    def dropped(self, matches: int) -> None:
        """So many of the matches found are held no longer."""
        if self.room is not None:
            self.room.give(matches)

    @property
    def reading(self) -> Stream:
        """How a pass reads rows."""
        return self.stream or Stream(threads=self.threads)


class Found(NamedTuple):
    """Rows of one table within h, by query; columns of one length."""

    query: I64
    row: U32
    distance: U16
    id: U64
    probes: int
    compared: int


class TopFound(NamedTuple):
    """The K nearest documents of one table for each query, by (distance, id).

    Missing places: id 2**64 - 1, distance b + 1, row 2**32 - 1.
    """

    id: U64
    """(m, k); each at most once, at its least distance."""
    distance: U16
    row: U32
    """The first row of the id at that distance."""
    lists: int
    """Slice lists read; 0 for a scan."""
    compared: int
    """Rows compared in full."""


def live(table: Table, found: Found, tombstones: Deletions) -> Found:
    """What is left of rows found when those are gone that tombstones kill."""
    dead = tombstones.dead(table, found.id, found.row.astype(np.int64))
    return take(found, np.flatnonzero(~dead)) if dead.any() else found


def take(found: Found, places: NDArray[np.intp]) -> Found:
    """Some of the rows found; the counts stay."""
    return Found(
        found.query[places], found.row[places], found.distance[places], found.id[places],
        found.probes, found.compared,
    )


def joined(parts: list[Found]) -> Found:
    """All rows found, part after part."""
    return Found(
        np.concatenate([np.empty(0, np.int64), *(part.query for part in parts)]),
        np.concatenate([np.empty(0, np.uint32), *(part.row for part in parts)]),
        np.concatenate([np.empty(0, np.uint16), *(part.distance for part in parts)]),
        np.concatenate([np.empty(0, np.uint64), *(part.id for part in parts)]),
        sum(part.probes for part in parts),
        sum(part.compared for part in parts),
    )


def firsts(group: I64, *less: NDArray[Any]) -> NDArray[np.intp]:
    """Of each group the place of what comes first by the last key, then by those before."""
    order = np.lexsort((*less, group))
    among = group[order]
    first = np.ones(len(order), np.bool_)
    first[1:] = among[1:] != among[:-1]
    return order[first]
