"""Chooses how each table is searched: the cheapest way that keeps the promise.

A plan is data: making one reads no row and runs no search. What was measured before (how bits flip,
how long slice lists are, what a step takes on this machine) is given.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from simindex.bits.design import BlockDesign
from simindex.errors import InvalidOption
from simindex.methods import bphs, psm
from simindex.methods.base import QueryPlan, TablePlan
from simindex.planning.calibration import Calibration
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
from simindex.planning.question import Question, names_design
from simindex.storage.snapshot import Snapshot
from simindex.storage.tables.table import Table

log = logging.getLogger("simindex")

Counted = tuple[int, float]
"""Slice lists that a query looks into, and rows in them; see `issl.listed`."""

LEAST_BATCH, LEAST_STREAMED = 1 << 10, 1 << 16
"""Queries and rows from which tables over the queries are thought of."""

NARROWEST = 10
"""How many bits narrower than a table's directory a header may be chosen."""


def asked_designs(method: str, h: int, designs: Sequence[BlockDesign]) -> list[BlockDesign]:
    """Of an index's designs, those that a call may use: exact for h, and what `method` names.

    Raises
    ------
    InvalidOption
        If `method` asks for permuted tables and none will do; names designs that would.
    """
    explicit = method == "bphs" or names_design(method)
    named = [d for d in designs if method in ("auto", "bphs", d.structure)]
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


def check_lists(snapshot: Snapshot) -> None:
    """Refuses method="issl" for an index without slice lists with InvalidOption."""
    if snapshot.slices is None and snapshot.slice_bits is None:
        raise InvalidOption(
            'method="issl" needs slice lists, and the index has none: add "issl" to the '
            "structures with `simindex compact --structures` or Index.compact(structures=...), or "
            'use method="auto"',
            option="method", found="issl",
        )


def within_memory(
    tables: Sequence[Table], method: str, designs: Sequence[BlockDesign], memory: int
) -> tuple[str, list[BlockDesign]]:
    """What is left of a method and its designs where tables and directories may take so much.

    Raises
    ------
    InvalidOption
        If nothing fits, or not what `method` asks for; says the least that would do.
    """
    scanned = sum(table.fingerprints.nbytes for table in tables)
    probed = sum(
        table_bytes(len(table), table.fingerprints.shape[1], table.header_bits) for table in tables
    )
    permuted = {
        design: probed + sum(
            table_bytes(len(table), table.fingerprints.shape[1], width)
            for table in tables if design.structure in table.structures
            for width in table.structures[design.structure].record.header_bits
        )
        for design in designs
    }
    fitting = [design for design in designs if permuted[design] <= memory]
    explicit = method == "bphs" or names_design(method)
    least = {
        "auto": scanned, "scan": scanned, "psm": probed, "issl": listed_bytes(tables),
    }.get(method)
    if explicit:
        least = min(permuted.values(), default=probed)
    if least is not None and memory < least:
        raise InvalidOption(
            f"memory={memory} does not hold what method={method!r} needs: the least is {least} "
            "bytes" + ("" if method in ("auto", "scan") else ', or use method="auto"'),
            option="memory", found=memory, expected=least,
        )
    return ("scan" if method == "auto" and memory < probed else method), fitting


def listed_bytes(tables: Sequence[Table]) -> int:
    """Memory of all tables and their slice lists, and of header directories where they have none.
    """
    return sum(
        table_bytes(len(table), table.fingerprints.shape[1], table.header_bits)
        if table.slices is None else table.fingerprints.nbytes + table.slices.record.file_bytes
        for table in tables
    )


def plan(
    tables: Sequence[Table],
    question: Question,
    *,
    queries: int,
    calibration: Calibration | None = None,
    designs: Sequence[BlockDesign] = (),
    machine: Machine = USUAL,
    lists: Sequence[Counted | None] | None = None,
) -> QueryPlan:
    """A plan for each table.

    Parameters
    ----------
    designs : sequence of BlockDesign
        Those that may be used, see `asked_designs`; a table that has none of them is searched
        exactly without.
    calibration : Calibration, or None
        Says how many flips a recall takes; None where the queries have no weights, so that only
        exact plans remain.
    machine : Machine
        Its constants say which way is the cheapest.
    lists : sequence, optional
        What was counted of each table's slice lists; None where they may not be used.
    """
    flips = None if calibration is None else calibration.flips
    plans = [
        _plan_table(
            table, question, queries=queries, flips=flips, designs=designs, machine=machine,
            lists=None if lists is None else lists[number],
        )
        for number, table in enumerate(tables)
    ]
    guarantee = "exact"
    if calibration is not None and not all(plan.exact for plan in plans):
        guarantee = f"expected recall >= {question.recall:g}, learned from {calibration.source}"
    elif question.recall < 1 and calibration is None and question.method in ("auto", "psm"):
        guarantee = "exact, since the queries have no weights"
    if calibration is None:
        return QueryPlan.of(plans, guarantee)
    return QueryPlan.of(plans, guarantee, calibration.volatility, calibration.source)


def _plan_table(
    table: Table,
    question: Question,
    *,
    queries: int,
    flips: Callable[[int, int, float], int] | None,
    designs: Sequence[BlockDesign],
    machine: Machine,
    lists: Counted | None,
) -> TablePlan:
    h, recall, method = question.h, question.recall, question.method
    rows, words = len(table), table.fingerprints.shape[1]
    if method == "scan":
        return scan_plan(rows, words, h=h, queries=queries, machine=machine)
    permuted = [
        permuted_plan(table, design, h=h, queries=queries, machine=machine) for design in designs
        if _has_tables(table, design, needed=method != "auto")
    ]
    listed = [] if lists is None else [listed_plan(table, lists, h=h, machine=machine)]
    if method not in ("auto", "psm"):
        return min(
            (listed if method == "issl" else permuted)
            or [exact_plan(table, h=h, queries=queries, machine=machine)],
            key=lambda candidate: candidate.nanoseconds,
        )
    candidates = [] if method == "psm" else [
        exact_plan(table, h=h, queries=queries, machine=machine), *permuted, *listed,
        *over_queries(rows, words, h=h, queries=queries, machine=machine),
    ]
    narrowest = max(0, table.header_bits - NARROWEST)
    for header_bits in range(table.header_bits, narrowest - 1, -1):
        every = psm.flip_sets(header_bits, h)
        k = every if recall == 1 or flips is None else min(every, flips(header_bits, h, recall))
        candidates.append(
            probed_plan(
                rows, words, header_bits, k, exact=k == every, h=h, queries=queries,
                machine=machine,
            )
        )
    return min(candidates, key=lambda candidate: candidate.nanoseconds)


def _has_tables(table: Table, design: BlockDesign, *, needed: bool) -> bool:
    """Whether a table has those of a design; damaged ones only if they are needed."""
    tables = table.structures.get(design.structure)
    if tables is None or tables.damage is None or needed:
        return tables is not None
    log.warning("other methods answer in place of permuted tables: %s", tables.damage)
    return False


def scan_plan(rows: int, words: int, *, h: int, queries: int, machine: Machine) -> TablePlan:
    """How all rows are compared."""
    cost = scanning_ns(machine, rows, words, queries, h)
    return TablePlan("scan", 0, 0, True, cost, compared=float(rows))


def probed_plan(
    rows: int, words: int, header_bits: int, flips: int, *, exact: bool, h: int, queries: int,
    machine: Machine,
) -> TablePlan:
    """How the sorted table is looked up under so many headers."""
    cost = probing_ns(
        machine, rows, header_bits, flips, ordered=not exact, h=h, words=words, queries=queries
    )
    plan = TablePlan(
        "psm", header_bits, flips, exact, cost, widths=(header_bits,), probes=flips + 1,
        compared=(flips + 1) * rows / (1 << header_bits),
    )
    return replace(plan, pass_from=psm.pass_from(rows, words, plan))


def exact_plan(table: Table, *, h: int, queries: int, machine: Machine = USUAL) -> TablePlan:
    """The cheaper of the two exact ways through a table: all flip sets, or all rows."""
    rows, words = len(table), table.fingerprints.shape[1]
    best = scan_plan(rows, words, h=h, queries=queries, machine=machine)
    for header_bits in range(table.header_bits, max(0, table.header_bits - 12), -1):
        flips = psm.flip_sets(header_bits, h)
        if flips < 1 << 21:
            probed = probed_plan(
                rows, words, header_bits, flips, exact=True, h=h, queries=queries, machine=machine
            )
            best = min(best, probed, key=lambda one: one.nanoseconds)
    return best


def over_queries(
    rows: int, words: int, *, h: int, queries: int, machine: Machine
) -> Iterator[TablePlan]:
    """How a large batch is answered by tables over its queries, the rows streamed past."""
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
        name, 0, 0, True, nanoseconds, design, of_queries=True, pass_from=0, compared=float(rows)
    )


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


def listed_plan(
    table: Table, counted: Counted, *, h: int, machine: Machine = USUAL
) -> TablePlan:
    """How a table's slice lists are searched, if it has them; exact by the pigeonhole principle.

    Of s slices of two fingerprints within h, one differs in at most h // s bits.
    """
    assert table.slices is not None
    slices, rows, (lists, listed) = table.slices.slices, len(table), counted
    cost = issl_within_ns(machine, rows, lists, listed, slices=slices, h=h)
    return TablePlan(
        "issl", 0, 0, True, cost, max_error=h // slices, probes=lists, compared=min(listed, rows)
    )
