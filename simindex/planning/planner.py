"""Chooses how each table is searched, from sizes alone; the cheapest way that keeps the promise."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from threading import Lock
from typing import Any

from simindex.arrays import F32
from simindex.bits.design import BlockDesign
from simindex.errors import CorruptFile, InvalidOption
from simindex.methods import bphs, psm
from simindex.methods.base import QueryPlan, TablePlan
from simindex.planning.calibration import USUAL, Calibration, calibrate, exact_plan
from simindex.planning.costs import (
    issl_within_ns,
    permuted_ns,
    probing_ns,
    query_design,
    query_tables_ns,
    scanning_ns,
    table_bytes,
)
from simindex.planning.machine import Machine
from simindex.planning.question import Question, names_design
from simindex.storage.snapshot import Snapshot
from simindex.storage.tables.table import Table

log = logging.getLogger("simindex")

CALIBRATION_BUDGET_S = 0.4
"""Expected seconds a first query may spend on learning flips; `Index.tune` takes longer."""

Planned = tuple[QueryPlan, Calibration | None]
"""How a call is answered, and what its recall rests on."""

UNLEARNED_GROWTH = 1.25
"""An index that has grown by so much is looked through anew for near-duplicates while too few are
known; one that was learned from, at twice the rows."""

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
    *,
    h: int,
    recall: float,
    method: str,
    queries: int,
    calibration: Calibration | None,
    designs: Sequence[BlockDesign] = (),
    machine: Machine = USUAL,
    lists: bool = True,
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
    lists : bool
        Whether slice lists may be used.
    """
    flips = None if calibration is None else calibration.flips
    plans = [
        _plan_table(
            table, h=h, recall=recall, method=method, queries=queries, flips=flips,
            designs=designs, machine=machine, lists=lists,
        )
        for table in tables
    ]
    guarantee = "exact"
    if calibration is not None and not all(plan.exact for plan in plans):
        guarantee = f"expected recall >= {recall:g}, learned from {calibration.source}"
    elif recall < 1 and calibration is None and method in ("auto", "psm"):
        guarantee = "exact, since the queries have no weights"
    return QueryPlan.of(plans, guarantee)


def _plan_table(
    table: Table,
    *,
    h: int,
    recall: float,
    method: str,
    queries: int,
    flips: Callable[[int, int, float], int] | None,
    designs: Sequence[BlockDesign],
    machine: Machine,
    lists: bool,
) -> TablePlan:
    rows, words = len(table), table.fingerprints.shape[1]
    scan = TablePlan("scan", 0, 0, True, scanning_ns(machine, rows, words, queries, h))
    if method == "scan":
        return scan
    permuted = [
        permuted_plan(table, design, h=h, queries=queries, machine=machine) for design in designs
        if _has_tables(table, design, needed=method != "auto")
    ]
    listed = _listed_plans(table, h=h, machine=machine, needed=method == "issl") if lists else []
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
        exact = k == every
        cost = probing_ns(
            machine, rows, header_bits, k, ordered=not exact, h=h, words=words, queries=queries
        )
        candidates.append(TablePlan("psm", header_bits, k, exact, cost))
    return min(candidates, key=lambda candidate: candidate.nanoseconds)


def _has_tables(table: Table, design: BlockDesign, *, needed: bool) -> bool:
    """Whether a table has those of a design; damaged ones only if they are needed."""
    tables = table.structures.get(design.structure)
    if tables is None or tables.damage is None or needed:
        return tables is not None
    log.warning("other methods answer in place of permuted tables: %s", tables.damage)
    return False


def _listed_plans(
    table: Table, *, h: int, machine: Machine, needed: bool
) -> list[TablePlan]:
    """A plan by slice lists; none where the table has none, or damaged ones that are not needed."""
    if table.slices is None:
        return []
    try:
        table.slices.check()
        return [listed_plan(table, h=h, machine=machine)]
    except CorruptFile as error:
        if needed:
            raise
        log.warning("other methods answer in place of slice lists: %s", error)
        return []


def over_queries(
    rows: int, words: int, *, h: int, queries: int, machine: Machine
) -> Iterator[TablePlan]:
    """How a large batch is answered by tables over its queries, the rows streamed past."""
    if queries < LEAST_BATCH or rows < LEAST_STREAMED:
        return
    design = query_design(machine, rows, h=h, words=words, queries=queries)
    if design is not None:
        cost = query_tables_ns(machine, rows, design, h=h, words=words, queries=queries)
        yield TablePlan.over_queries(design, cost)


def permuted_plan(
    table: Table, design: BlockDesign, *, h: int, queries: int = 1, machine: Machine = USUAL
) -> TablePlan:
    """How a design's tables are searched, if the table has them."""
    widths = (table.header_bits, *table.structures[design.structure].record.header_bits)
    looked_up = bphs.looked_up(design, h, widths)
    return TablePlan(
        design.structure, 0, max(probes for probes, _ in looked_up) - 1, True,
        permuted_ns(
            machine, len(table), looked_up, h=h, words=table.fingerprints.shape[1], queries=queries
        ),
        design,
    )


def listed_plan(table: Table, *, h: int, machine: Machine = USUAL) -> TablePlan:
    """How a table's slice lists are searched, if it has them; exact by the pigeonhole principle.

    Of s slices of two fingerprints within h, one differs in at most h // s bits.
    """
    assert table.slices is not None
    return TablePlan(
        "issl", 0, 0, True, issl_within_ns(machine, table, h),
        max_error=h // table.slices.slices,
    )


class Planner:
    """The plans of one handle and what it has learned, remembered; safe from many threads."""

    def __init__(self) -> None:
        self._machine = USUAL
        self._calibrations: dict[int, Calibration] = {}
        self._known: tuple[Snapshot | None, dict[tuple[Any, ...], Planned]] = (None, {})
        self._lock = Lock()

    @property
    def machine(self) -> Machine:
        """Whose constants the plans go by."""
        return self._machine

    @machine.setter
    def machine(self, machine: Machine) -> None:
        with self._lock:
            self._machine = machine
            self._known = (None, {})

    @property
    def sources(self) -> dict[int, str]:
        """What was learned how bits flip from, by h."""
        return {h: known.source for h, known in sorted(self._calibrations.copy().items())}

    def forget(self) -> None:
        """Plans anew, since something that plans went by has changed."""
        with self._lock:
            self._known = (None, {})

    def plan(
        self,
        snapshot: Snapshot,
        question: Question,
        *,
        queries: int,
        weights: F32 | None,
    ) -> Planned:
        """How a call is answered, and what its recall rests on, if it is below 1."""
        h, recall, method, memory = (
            question.h, question.recall, question.method, question.memory
        )
        # Plans change with the size of a call where slabs and sweeps are shared by its queries.
        asked = (h, recall, method, queries.bit_length(), weights is None, memory)
        queries = 1 << queries.bit_length() >> 1
        planned_for, plans = self._known
        if planned_for is not snapshot:
            plans = {}
            self._known = (snapshot, plans)
        known = plans.get(asked)
        if known is not None:
            return known
        designs = asked_designs(method, h, snapshot.designs)
        if method == "issl":
            check_lists(snapshot)
        lists = True
        if memory is not None:
            lists = listed_bytes(snapshot.tables) <= memory
            method, designs = within_memory(snapshot.tables, method, designs, memory)
        calibration = None
        if recall < 1 and weights is not None and method in ("auto", "psm"):
            calibration = self._calibrated(snapshot, h, weights)
        planned = plan(
            snapshot.tables, h=h, recall=recall, method=method, queries=queries,
            calibration=calibration, designs=designs, machine=self._machine, lists=lists,
        )
        if calibration is None or not calibration.provisional:
            plans[asked] = (planned, calibration)
        return planned, calibration

    def _calibrated(self, snapshot: Snapshot, h: int, weights: F32) -> Calibration:
        known = self._calibrations.get(h)
        if known is not None:
            rows = snapshot.stored_rows
            growth = 2.0 if known.learned else UNLEARNED_GROWTH
            if known.stored_rows <= 2 * rows and rows <= growth * known.stored_rows:
                return known
        return self.learn(snapshot, h=h, budget_s=CALIBRATION_BUDGET_S, queries=weights)

    def learn(
        self, snapshot: Snapshot, *, h: int, budget_s: float, queries: F32 | None
    ) -> Calibration:
        """Learns how bits flip from the snapshot, for this and later calls; see `calibrate`."""
        with self._lock:
            learned = calibrate(
                snapshot, h=h, budget_s=budget_s, queries=queries, machine=self._machine
            )
            if not learned.provisional:
                self._calibrations[h] = learned
            self._known = (None, {})
        return learned
