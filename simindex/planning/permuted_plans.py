"""The ways through permuted tables, and through tables over the queries of a large batch."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence

from simindex.bits.design import BlockDesign, designs_for
from simindex.bits.vosh import set_count
from simindex.errors import InvalidOption
from simindex.methods import bphs, psm, psm_tables, query_tables
from simindex.methods.base import TablePlan, reaches
from simindex.methods.crowding import MOST_FLIPS, Crowding, RowsNear
from simindex.methods.stream import Stream
from simindex.planning.conditions import Carried, Conditions
from simindex.planning.costs import (
    permuted_ns,
    query_design,
    query_tables_ns,
    table_bytes,
    uniformly_compared,
    vosh_ns,
)
from simindex.planning.table_plans import probed_bytes
from simindex.storage.tables.table import Table

log: logging.Logger = logging.getLogger(__package__)

LEAST_BATCH, LEAST_STREAMED = 1 << 10, 1 << 16
"""Queries and rows from which tables over the queries are thought of."""



def permuted(table: Table, asked: Conditions) -> Iterator[TablePlan]:
    """The tables of each design, and tables over the queries of a large batch."""
    for design in asked.designs:
        if design.exact_for >= asked.h and _has_tables(table, design, needed=asked.named):
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


NARROWEST_EACH = 3
"""How many bits narrower than a design's a header may be chosen for flips by weight."""


def flipped(table: Table, asked: Conditions) -> Iterator[TablePlan]:
    """The likeliest flips of the header of each table of a design, if the table has them."""
    if asked.each is None or table.fingerprints.shape[1] != 1:
        return
    for design in asked.designs:
        if not _has_tables(table, design, needed=False):
            continue
        narrowest = min(
            min(pair) for pair in zip(
                _directory_bits(table, design), design.header_bits, strict=True
            )
        )
        narrowest = min(narrowest, psm.MAX_HEADER_BITS)
        for header_bits in range(narrowest, max(0, narrowest - NARROWEST_EACH), -1):
            flips = asked.each.flips_each(design, header_bits, asked.h, asked.recall)
            if flips is not None:
                yield _flipped_plan(table, design, header_bits, flips, asked)


def _flipped_plan(
    table: Table, design: BlockDesign, header_bits: int, flips: int, asked: Conditions
) -> TablePlan:
    rows, tables = len(table), design.tables
    looked_up = [(flips + 1, header_bits)] * tables
    compared = [
        uniformly_compared(rows, flips + 1, header_bits) if near is None
        else (flips + 1) * near[-1] / (1 + set_count(width, len(near) - 1))
        for near, width in zip(_crowded(design, asked), design.header_bits, strict=True)
    ]
    swept_from = None if asked.first else bphs.sweep_queries(rows, 1, looked_up)
    cost = permuted_ns(
        asked.machine, rows, looked_up, compared=compared, h=asked.h, queries=asked.queries,
        swept=reaches(asked.queries, swept_from),
    )
    cost += tables * vosh_ns(asked.machine, flips, asked.h, asked.queries)
    return TablePlan(
        psm_tables.method_of(design), 0, flips, False, cost, design, swept_from=swept_from,
        widths=(header_bits,) * tables, probes=tables * (flips + 1), compared=sum(compared),
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


def _crowded_share(table: Table, asked: Conditions) -> float:
    """Of the rows, those under the header of one of them, if that is more than of uniform rows."""
    found: Crowding | None = asked.found
    return 0.0 if found is None or found.own is None else found.own[0] / len(table)


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
        'use method="auto"', option="method", found=method, lacks="structures",
        designs=tuple(design.structure for design in designs),
    )


def designs_available(carried: Carried, method: str, h: int) -> list[BlockDesign]:
    """`asked_designs` of an index."""
    return asked_designs(method, h, carried.designs)


def flipped_available(carried: Carried, method: str, h: int) -> Sequence[BlockDesign]:
    """All designs of an index, whatever they are exact for: likely flips need not be."""
    return carried.designs if method == "auto" else ()


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
