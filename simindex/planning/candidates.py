"""The ways through a table that each method offers, what they are expected to take, and hold.

Sizes, and what was surveyed, decide: nothing is read here.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from simindex.bits.design import BlockDesign, designs_for
from simindex.bits.vosh import set_count
from simindex.errors import InvalidOption
from simindex.methods import bphs, issl, psm, query_tables, scan
from simindex.methods.base import TablePlan, TopTablePlan, reaches
from simindex.methods.crowding import MOST_FLIPS, Crowding, RowsNear
from simindex.methods.stream import Stream
from simindex.planning.costs import (
    issl_ns,
    issl_within_ns,
    permuted_ns,
    probing_ns,
    query_design,
    query_tables_ns,
    scanning_ns,
    table_bytes,
    top_scanning_ns,
    uniformly_compared,
)
from simindex.planning.machine import USUAL, Machine
from simindex.storage.tables.table import Table

log = logging.getLogger("simindex")

LEAST_BATCH, LEAST_STREAMED = 1 << 10, 1 << 16
"""Queries and rows from which tables over the queries are thought of."""

NARROWEST = 10
"""How many bits narrower than a table's directory a header may be chosen."""


@dataclass(frozen=True, slots=True)
class Carried:
    """What an index has in addition to its rows. It decides whether a method is refused."""

    designs: Sequence[BlockDesign] = ()
    sliced: bool = False
    """Whether segments to come get slice lists."""
    segments: int = 0
    unlisted: tuple[str, ...] = ()
    """Names of the segments that have none."""


@dataclass(frozen=True, slots=True)
class Conditions:
    """What the plans of a table depend on in addition to its size."""

    h: int
    queries: int
    """Of a call, rounded down to a power of two."""
    method: str = "auto"
    """As asked for."""
    first: bool = False
    """Whether one match of a query is enough: permuted tables are then looked into one by one."""
    flips: Mapping[int, int] | None = None
    """Flip sets that reach the recall, by header width; None where only exact plans do."""
    designs: Sequence[BlockDesign] = ()
    """Block designs that may be used."""
    machine: Machine = USUAL
    found: Any = None
    """What the method's `survey` found in the table; see `query.surveys`."""

    @property
    def named(self) -> bool:
        """Whether the method was asked for, and not chosen among others."""
        return self.method != "auto"


@dataclass(frozen=True, slots=True)
class TopConditions:
    """What the plan of a table for the nearest documents depends on."""

    k: int
    max_error: int
    rerank: int | None
    queries: int
    machine: Machine
    found: Any = None
    """What the method's `survey` found in the table."""


# -- scan ------------------------------------------------------------------------------------------


def scans(table: Table, asked: Conditions) -> Iterator[TablePlan]:
    """All rows are compared."""
    rows, words = table.fingerprints.shape
    cost = scanning_ns(asked.machine, rows, words, asked.queries, asked.h)
    yield TablePlan(scan.NAME, 0, 0, True, cost, compared=float(rows))


def scan_passes(
    table: Table, usual: TablePlan, asked: Conditions, stream: Stream
) -> Iterator[tuple[TablePlan, int]]:
    """The same in chunks, which takes next to no memory."""
    for plan in scans(table, asked):
        yield replace(plan, pass_from=0), stream.resident_bytes(table.fingerprints.shape[1])


# -- PSM -------------------------------------------------------------------------------------------


def probed(table: Table, asked: Conditions) -> Iterator[TablePlan]:
    """The sorted table, by headers as wide as its directory's and narrower ones."""
    tried = set()
    if not asked.named:
        for plan in exhaustive(table, asked):
            tried.add(plan.header_bits)
            yield plan
    for header_bits in narrower(table.header_bits):
        every = set_count(header_bits, asked.h)
        k = every if asked.flips is None else min(every, asked.flips[header_bits])
        if k != every or header_bits not in tried:
            yield _probed_plan(table, header_bits, k, asked, exact=k == every)


def narrower(header_bits: int) -> range:
    """Widths of headers that are looked up where a directory has so wide ones."""
    return range(header_bits, max(0, header_bits - NARROWEST) - 1, -1)


def exhaustive(table: Table, asked: Conditions) -> Iterator[TablePlan]:
    """The sorted table, with all flip sets of at most h bits."""
    for header_bits in range(table.header_bits, max(0, table.header_bits - 12), -1):
        flips = set_count(header_bits, asked.h)
        if flips < 1 << 21:
            yield _probed_plan(table, header_bits, flips, asked, exact=True)


def exact_plan(table: Table, asked: Conditions) -> TablePlan:
    """The cheaper of the two exact ways through any table: all flip sets, or all rows."""
    return min(
        (*scans(table, asked), *exhaustive(table, asked)), key=lambda one: one.nanoseconds
    )


def _probed_plan(
    table: Table, header_bits: int, flips: int, asked: Conditions, *, exact: bool
) -> TablePlan:
    rows, words = table.fingerprints.shape
    pass_from = psm.pass_from(rows, words, header_bits, flips, exact=exact)
    compared = (flips + 1) * max(rows / (1 << header_bits), _crowded_bucket(table, asked))
    cost = probing_ns(
        asked.machine, rows, header_bits, flips, ordered=not exact, compared=compared, h=asked.h,
        words=words, queries=asked.queries, swept=reaches(asked.queries, pass_from),
    )
    return TablePlan(
        psm.NAME, header_bits, flips, exact, cost, widths=(header_bits,), probes=flips + 1,
        compared=compared,
        pass_from=pass_from,
    )


def _crowded_bucket(table: Table, asked: Conditions) -> float:
    """Rows under a header of the directory within h of a row's, on average: under a narrower one
    there are no fewer."""
    found: Crowding | None = asked.found
    if found is None or found.own is None:
        return 0.0
    flips = min(asked.h, MOST_FLIPS)
    return found.own[flips] / (1 + set_count(table.header_bits, flips))


def _crowded_share(table: Table, asked: Conditions) -> float:
    """Of the rows, those under the header of one of them, if that is more than of uniform rows."""
    found: Crowding | None = asked.found
    return 0.0 if found is None or found.own is None else found.own[0] / len(table)


def probed_bytes(tables: Sequence[Table], design: BlockDesign | None) -> int:
    """Memory of all tables and their header directories."""
    return sum(
        table_bytes(len(table), table.fingerprints.shape[1], table.header_bits) for table in tables
    )


def probed_passes(
    table: Table, usual: TablePlan, asked: Conditions, stream: Stream
) -> Iterator[tuple[TablePlan, int]]:
    """The plan of a call without a limit, if its probes can be partitioned: by no other headers, so
    that a limit changes no answer."""
    if psm.can_sweep(usual):
        needed = psm.bytes_needed(table, usual.flips, asked.queries, stream)
        yield replace(usual, pass_from=0), needed


# -- BPHS ------------------------------------------------------------------------------------------


def permuted(table: Table, asked: Conditions) -> Iterator[TablePlan]:
    """The tables of each design, and tables over the queries of a large batch."""
    for design in asked.designs:
        if _has_tables(table, design, needed=asked.named):
            yield permuted_plan(table, design, asked)
    if not asked.named:
        yield from over_queries(table, asked)


def _has_tables(table: Table, design: BlockDesign, *, needed: bool) -> bool:
    """Whether a table has those of a design; damaged ones only if they are needed."""
    tables = table.structures.get(design.structure)
    if tables is None or tables.damage is None or needed:
        return tables is not None
    log.warning("other methods answer instead of permuted tables: %s", tables.damage)
    return False


def permuted_plan(table: Table, design: BlockDesign, asked: Conditions) -> TablePlan:
    """How a design's tables are searched, if the table has them."""
    usual = _permuted_plan(table, design, design.table_flips(asked.h), asked)
    other = _flips_by_crowding(table, design, asked)
    if other is None:
        return usual
    return min(usual, _permuted_plan(table, design, other, asked), key=lambda one: one.nanoseconds)


def _permuted_plan(
    table: Table, design: BlockDesign, table_flips: tuple[int, ...], asked: Conditions
) -> TablePlan:
    rows, words = len(table), table.fingerprints.shape[1]
    widths = _directory_bits(table, design)
    looked_up = bphs.looked_up(design, table_flips, widths)
    crowded = _crowded(design, asked)
    compared = [
        _compared(len(table), min(width, bits), flips, near)
        for flips, width, bits, near in zip(
            table_flips, widths, design.header_bits, crowded, strict=True
        )
        if flips >= 0
    ]
    swept_from = None if asked.first else bphs.sweep_queries(rows, words, looked_up)
    return TablePlan(
        design.structure, 0, max(probes for probes, _ in looked_up) - 1, True,
        permuted_ns(
            asked.machine, rows, looked_up, compared=compared, h=asked.h, words=words,
            queries=asked.queries, swept=reaches(asked.queries, swept_from),
        ),
        design, swept_from=swept_from, table_flips=table_flips,
        widths=tuple(width for _, width in looked_up),
        probes=sum(probes for probes, _ in looked_up),
        compared=sum(compared),
    )


def _directory_bits(table: Table, design: BlockDesign) -> tuple[int, ...]:
    return table.header_bits, *table.structures[design.structure].record.header_bits


def _crowded(design: BlockDesign, asked: Conditions) -> tuple[RowsNear | None, ...]:
    """What is known of the rows under the headers of a design's tables."""
    found: Crowding | None = asked.found
    none = (None,) * design.tables
    return none if found is None else found.designs.get(design.structure, none)


def _compared(rows: int, header_bits: int, flips: int, near: RowsNear | None) -> float:
    """Rows that a query is compared with under all headers within so many flips."""
    if near is None:
        return uniformly_compared(rows, 1 + set_count(header_bits, flips), header_bits)
    return near[min(flips, len(near) - 1)]


def _flips_by_crowding(
    table: Table, design: BlockDesign, asked: Conditions
) -> tuple[int, ...] | None:
    """The cheapest flips of each table, if headers are crowded: more flips in a table where they
    are not may let another be left out. None if no headers are crowded."""
    crowded = _crowded(design, asked)
    if all(near is None for near in crowded):
        return None
    rows, words = len(table), table.fingerprints.shape[1]
    costs = []
    for width, bits, near in zip(
        _directory_bits(table, design), design.header_bits, crowded, strict=True
    ):
        looked_up = min(width, bits)
        costs.append([
            permuted_ns(
                asked.machine, rows, [(1 + set_count(looked_up, flips), looked_up)],
                compared=[_compared(rows, looked_up, flips, near)], h=asked.h, words=words,
            )
            for flips in range(min(asked.h, MOST_FLIPS, looked_up) + 1)
        ])
    return design.cheapest_flips(asked.h, costs)


def over_queries(table: Table, asked: Conditions) -> Iterator[TablePlan]:
    """How a large batch is answered by tables over its queries, the rows streamed past."""
    rows, words = table.fingerprints.shape
    h, queries, machine = asked.h, asked.queries, asked.machine
    if queries < LEAST_BATCH or rows < LEAST_STREAMED:
        return
    crowded = _crowded_share(table, asked)
    design = query_design(machine, rows, h=h, words=words, queries=queries, crowded=crowded)
    if design is not None:
        cost = query_tables_ns(
            machine, rows, design, h=h, words=words, queries=queries, crowded=crowded
        )
        yield query_tables_plan(rows, design, cost)


def query_tables_plan(rows: int, design: BlockDesign, nanoseconds: float) -> TablePlan:
    """How tables of a design over the queries are searched."""
    name = f"{design.structure} over queries"
    return TablePlan(
        name, 0, 0, True, nanoseconds, design, pass_from=0, compared=float(rows)
    )


def asked_designs(method: str, h: int, designs: Sequence[BlockDesign]) -> list[BlockDesign]:
    """Of an index's designs, those that a call may use: exact for h, and what `method` names.

    Raises
    ------
    InvalidOption
        If `method` asks for permuted tables and none will do; names designs that would.
    """
    explicit = method.partition(":")[0] == bphs.NAME
    named = [d for d in designs if method in ("auto", bphs.NAME, d.structure)]
    exact = [design for design in named if h <= design.exact_for]
    if not explicit or exact:
        return exact
    if named:
        max(named, key=lambda design: design.exact_for).require_exact(h)
    have = ", ".join(design.structure for design in designs) or "no permuted tables"
    raise InvalidOption(
        f"method={method!r} needs permuted tables, but the index has {have}",
        remedy='add some with `simindex compact --structures` or Index.compact(structures=...), or '
        'use method="auto"', option="method", found=method,
        designs=tuple(design.structure for design in designs),
    )


def designs_available(carried: Carried, method: str, h: int) -> list[BlockDesign]:
    """`asked_designs` of an index."""
    return asked_designs(method, h, carried.designs)


def permuted_bytes(tables: Sequence[Table], design: BlockDesign | None) -> int:
    """Memory of all tables, the permuted ones of a design, and their directories."""
    held = probed_bytes(tables, None)
    if design is None:
        return held
    return held + sum(
        table_bytes(len(table), table.fingerprints.shape[1], width)
        for table in tables if design.structure in table.structures
        for width in table.structures[design.structure].record.header_bits
    )


def query_tables_passes(
    table: Table, usual: TablePlan, asked: Conditions, stream: Stream
) -> Iterator[tuple[TablePlan, int]]:
    """Tables over the queries, of any design that is exact for h, or of the one asked for."""
    rows, words = table.fingerprints.shape
    h, queries = asked.h, asked.queries
    for design in _designs(asked.method, h, 64 * words):
        cost = query_tables_ns(
            asked.machine, rows, design, h=h, words=words, queries=queries,
            chunk_rows=stream.chunk_rows(words),
        )
        needed = query_tables.bytes_needed(queries, words, design, h=h, stream=stream)
        yield query_tables_plan(rows, design, cost), needed


def _designs(method: str, h: int, bits: int) -> Sequence[BlockDesign]:
    if ":" not in method:
        return designs_for(h, bits)
    named = BlockDesign.parse(method, bits)
    named.require_exact(h)
    return (named,)


# -- ISSL ------------------------------------------------------------------------------------------


def by_lists(table: Table, asked: Conditions) -> Iterable[TablePlan]:
    """The table's slice lists, if they were counted; exact by the pigeonhole principle.

    Of s slices of two fingerprints within h, one differs in at most h // s bits.
    """
    if asked.found is None or table.slices is None:
        return
    slices, rows, (lists, listed) = table.slices.slices, len(table), asked.found
    cost = issl_within_ns(asked.machine, rows, lists, listed, slices=slices, h=asked.h)
    yield TablePlan(
        issl.NAME, 0, 0, True, cost, max_error=asked.h // slices, probes=lists,
        compared=min(listed, rows),
    )


def lists_available(carried: Carried, method: str, h: int) -> Sequence[BlockDesign]:
    """Refuses an index without slice lists, if they are asked for, with InvalidOption."""
    if method == issl.NAME and not carried.sliced and len(carried.unlisted) == carried.segments:
        raise InvalidOption(
            'method="issl" needs slice lists, but the index has none',
            remedy='add "issl" to the structures with `simindex compact --structures` or '
            'Index.compact(structures=...), or use method="auto"', option="method", found=method,
        )
    return ()


def listed_bytes(tables: Sequence[Table], design: BlockDesign | None) -> int:
    """Memory of all tables and their slice lists, and of header directories where they have none.
    """
    return sum(
        probed_bytes([table], design) if table.slices is None
        else table.fingerprints.nbytes + table.slices.record.file_bytes
        for table in tables
    )


# -- nearest documents ---------------------------------------------------------------------------


def top_scans(table: Table, asked: TopConditions) -> TopTablePlan:
    """All rows are compared."""
    rows, words = table.fingerprints.shape
    cost = top_scanning_ns(asked.machine, rows, words, asked.queries)
    return TopTablePlan(scan.NAME, True, cost, compared=rows)


def top_by_lists(table: Table, asked: TopConditions) -> TopTablePlan | None:
    """The rows of highest score by the table's slice lists, if they were counted."""
    rows, words = table.fingerprints.shape
    slices, rerank = table.slices, asked.rerank
    if slices is None or asked.found is None or rows == 0:
        return None
    if rerank is None:
        rerank = issl.default_rerank(
            rows, asked.k, asked.max_error, width=slices.width, slices=slices.slices
        )
    rerank = min(rerank, rows)
    lists, scored = asked.found
    cost = issl_ns(asked.machine, rows, words, lists, scored, rerank)
    return TopTablePlan(
        issl.NAME, rerank >= rows, cost, rerank, asked.max_error, lists, rerank, scored
    )


def check_lists(carried: Carried) -> None:
    """Refuses an index whose segments are not all listed with InvalidOption."""
    without, segments = len(carried.unlisted), carried.segments
    if not without and (segments or carried.sliced):
        return
    found = "the index has none"
    if 0 < without < segments:
        found = f"{without} of {segments} segments have none"
    raise InvalidOption(
        f'method="issl" needs slice lists, but {found}',
        remedy='add "issl" to the structures with `simindex compact --structures` or '
        'Index.compact(structures=...), or use method="auto"', option="method", found=issl.NAME,
        segments=carried.unlisted,
    )
