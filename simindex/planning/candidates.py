"""The ways through a table that each method offers, what they are expected to take, and hold.

Sizes, and what was surveyed, decide: nothing is read here but what `counted` reads before planning.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from simindex.bits.design import BlockDesign, designs_for
from simindex.bits.vosh import set_count
from simindex.errors import InvalidOption
from simindex.methods import bphs, issl, psm, psm_batch, query_tables, scan
from simindex.methods.base import TablePlan
from simindex.methods.stream import Stream
from simindex.planning.costs import (
    issl_within_ns,
    permuted_ns,
    probing_ns,
    query_design,
    query_tables_ns,
    scanning_ns,
    table_bytes,
)
from simindex.planning.machine import USUAL, Machine
from simindex.planning.method import Conditions
from simindex.storage.snapshot import Snapshot
from simindex.storage.tables.table import Table

log = logging.getLogger("simindex")

Counted = tuple[int, float]
"""Slice lists that a query looks into, and rows in them; see `issl.listed`."""

LEAST_BATCH, LEAST_STREAMED = 1 << 10, 1 << 16
"""Queries and rows from which tables over the queries are thought of."""

NARROWEST = 10
"""How many bits narrower than a table's directory a header may be chosen."""

# -- scan ------------------------------------------------------------------------------------------


def scans(table: Table, asked: Conditions) -> Iterator[TablePlan]:
    """All rows are compared."""
    yield scan_plan(table, h=asked.h, queries=asked.queries, machine=asked.machine)


def scan_plan(table: Table, *, h: int, queries: int, machine: Machine) -> TablePlan:
    """How all rows are compared."""
    rows, words = table.fingerprints.shape
    cost = scanning_ns(machine, rows, words, queries, h)
    return TablePlan(scan.NAME, 0, 0, True, cost, compared=float(rows))


def scan_passes(
    table: Table, usual: TablePlan, asked: Conditions, stream: Stream
) -> Iterator[tuple[TablePlan, int]]:
    """The same in chunks, which takes next to no memory."""
    for plan in scans(table, asked):
        yield replace(plan, pass_from=0), stream.resident_bytes(table.fingerprints.shape[1])


# -- PSM -------------------------------------------------------------------------------------------


def probed(table: Table, asked: Conditions) -> Iterator[TablePlan]:
    """The sorted table, by headers as wide as its directory's and narrower ones."""
    h, recall, flips = asked.h, asked.recall, asked.flips
    if not asked.named:
        yield from exhaustive(table, h=h, queries=asked.queries, machine=asked.machine)
    narrowest = max(0, table.header_bits - NARROWEST)
    for header_bits in range(table.header_bits, narrowest - 1, -1):
        every = set_count(header_bits, h)
        k = every if recall == 1 or flips is None else min(every, flips(header_bits, h, recall))
        yield probed_plan(
            table, header_bits, k, exact=k == every, h=h, queries=asked.queries,
            machine=asked.machine,
        )


def exhaustive(
    table: Table, *, h: int, queries: int, machine: Machine
) -> Iterator[TablePlan]:
    """The sorted table, with all flip sets of at most h bits."""
    for header_bits in range(table.header_bits, max(0, table.header_bits - 12), -1):
        flips = set_count(header_bits, h)
        if flips < 1 << 21:
            yield probed_plan(
                table, header_bits, flips, exact=True, h=h, queries=queries, machine=machine
            )


def exact_plan(table: Table, *, h: int, queries: int, machine: Machine = USUAL) -> TablePlan:
    """The cheaper of the two exact ways through any table: all flip sets, or all rows."""
    best = scan_plan(table, h=h, queries=queries, machine=machine)
    every = exhaustive(table, h=h, queries=queries, machine=machine)
    return min((best, *every), key=lambda one: one.nanoseconds)


def probed_plan(
    table: Table, header_bits: int, flips: int, *, exact: bool, h: int, queries: int,
    machine: Machine,
) -> TablePlan:
    """How the sorted table is looked up under so many headers."""
    rows, words = table.fingerprints.shape
    cost = probing_ns(
        machine, rows, header_bits, flips, ordered=not exact, h=h, words=words, queries=queries
    )
    plan = TablePlan(
        psm.NAME, header_bits, flips, exact, cost, widths=(header_bits,), probes=flips + 1,
        compared=(flips + 1) * rows / (1 << header_bits),
    )
    return replace(plan, pass_from=psm.pass_from(rows, words, plan))


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
        needed = psm_batch.bytes_needed(table, usual.flips, asked.queries, stream)
        yield replace(usual, pass_from=0), needed


# -- BPHS ------------------------------------------------------------------------------------------


def permuted(table: Table, asked: Conditions) -> Iterator[TablePlan]:
    """The tables of each design, and tables over the queries of a large batch."""
    for design in asked.designs:
        if _has_tables(table, design, needed=asked.named):
            yield permuted_plan(
                table, design, h=asked.h, queries=asked.queries, machine=asked.machine
            )
    if not asked.named:
        yield from over_queries(table, asked)


def _has_tables(table: Table, design: BlockDesign, *, needed: bool) -> bool:
    """Whether a table has those of a design; damaged ones only if they are needed."""
    tables = table.structures.get(design.structure)
    if tables is None or tables.damage is None or needed:
        return tables is not None
    log.warning("other methods answer in place of permuted tables: %s", tables.damage)
    return False


def permuted_plan(
    table: Table, design: BlockDesign, *, h: int, queries: int = 1, machine: Machine = USUAL
) -> TablePlan:
    """How a design's tables are searched, if the table has them."""
    rows, words = len(table), table.fingerprints.shape[1]
    widths = (table.header_bits, *table.structures[design.structure].record.header_bits)
    looked_up = bphs.looked_up(design, h, widths)
    return TablePlan(
        design.structure, 0, max(probes for probes, _ in looked_up) - 1, True,
        permuted_ns(machine, rows, looked_up, h=h, words=words, queries=queries), design,
        swept_from=bphs.sweep_queries(rows, words),
        widths=tuple(width for _, width in looked_up),
        probes=sum(probes for probes, _ in looked_up),
        compared=sum(probes * rows / (1 << width) for probes, width in looked_up),
    )


def over_queries(table: Table, asked: Conditions) -> Iterator[TablePlan]:
    """How a large batch is answered by tables over its queries, the rows streamed past."""
    rows, words = table.fingerprints.shape
    h, queries, machine = asked.h, asked.queries, asked.machine
    if queries < LEAST_BATCH or rows < LEAST_STREAMED:
        return
    design = query_design(machine, rows, h=h, words=words, queries=queries)
    if design is not None:
        cost = query_tables_ns(machine, rows, design, h=h, words=words, queries=queries)
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
        f"method={method!r} needs permuted tables, and the index has {have}: add some with "
        '`simindex compact --structures` or Index.compact(structures=...), or use method="auto"',
        option="method", found=method, designs=tuple(design.structure for design in designs),
    )


def designs_available(snapshot: Snapshot, method: str, h: int) -> list[BlockDesign]:
    """`asked_designs` of an index."""
    return asked_designs(method, h, snapshot.designs)


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


def counted(table: Table, h: int) -> Counted | None:
    """What a query within h looks into of a table's slice lists, which are read; None without."""
    return None if table.slices is None else counted_top(table, h // table.slices.slices)


def counted_top(table: Table, max_error: int) -> Counted | None:
    """The same within so many bits of each slice."""
    if table.slices is None:
        return None
    table.slices.check()
    return issl.listed(table, max_error)


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


def lists_available(snapshot: Snapshot, method: str, h: int) -> Sequence[BlockDesign]:
    """Refuses an index without slice lists, if they are asked for, with InvalidOption."""
    if method == issl.NAME and snapshot.slices is None and snapshot.slice_bits is None:
        raise InvalidOption(
            'method="issl" needs slice lists, and the index has none: add "issl" to the '
            "structures with `simindex compact --structures` or Index.compact(structures=...), or "
            'use method="auto"',
            option="method", found=method,
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
