"""The plans of one handle, and what they rest on: measured before a plan is made, then remembered.

    how bits flip    learned by searches (`flip_statistics`), for a recall below 1 of queries that
                     have weights
    max_error        the least that reaches a recall (`top_recall`), once for the segments
    surveys          facts that sizes do not show: how long slice lists are
    the machine      whose constants costs go by

A plan is kept for the snapshot that it was made for, by question and size of the call. Of the next
snapshot only tables that are new are planned: most commits change one of a dozen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from threading import Lock
from typing import Any

from simindex.arrays import F32
from simindex.bits.design import BlockDesign
from simindex.methods.base import QueryPlan
from simindex.methods.crowding import LEAST_ROWS
from simindex.options import IndexOptions
from simindex.planning import registry
from simindex.planning.calibration import Calibration, by_cosine
from simindex.planning.machine import USUAL, Machine
from simindex.planning.memory_limit import plan_within, without_limit
from simindex.planning.planner import (
    Known,
    Measured,
    TopPlan,
    check_count,
    combined,
    facts_of,
    plan_tables,
    plan_top,
    scan_top,
    within_memory,
)
from simindex.planning.question import REMEMBERED, Question, TopQuestion
from simindex.planning.registry import Method
from simindex.query import surveys, top_recall
from simindex.query.flip_statistics import calibrate
from simindex.storage.snapshot import Snapshot
from simindex.storage.tables.segment import Segment
from simindex.storage.tables.table import Table
from simindex.storage.view import View

CALIBRATION_BUDGET_S = 0.4
"""Expected seconds a first query may spend on learning flips; `Index.tune` takes longer."""

UNLEARNED_GROWTH = 1.25
"""An index that has grown by so much is searched again for near-duplicates while too few are
known; one that was learned from, at twice the rows."""


MOST_KNOWN = 256
"""Questions, and tables of one, whose plans are kept from one commit to the next."""

MOST_COSINES = 64
"""Similarities for which it is kept how bits flip: half a megabyte each."""

Ways = tuple[tuple[Method, ...], tuple[BlockDesign, ...]]
"""Methods and block designs that may answer a question."""

MadeOf = tuple[tuple[Method, ...], tuple[BlockDesign, ...], Calibration | None]
"""What the plan of a table depends on in addition to question and table."""


class TablePlans:
    """Plans of single tables, by question: they outlast the snapshot while their tables are in the
    next one."""

    def __init__(self) -> None:
        self._known: dict[tuple[Any, ...], tuple[MadeOf, Known]] = {}

    def of(self, tables: Sequence[Table]) -> TablePlans:
        """Those of some tables, and of tables that have sizes alone. Others are not kept: that
        would keep their files."""
        kept, found = TablePlans(), set(tables)
        if len(self._known) > MOST_KNOWN:
            return kept
        for asked, (made_of, known) in list(self._known.items()):
            left = {
                facts: one for facts, one in known.copy().items()
                if isinstance(facts, tuple) or facts in found
            }
            if len(left) <= MOST_KNOWN:
                kept._known[asked] = made_of, left
        return kept

    def known(self, asked: tuple[Any, ...], made_of: MadeOf) -> Known:
        """Plans for a question; new ones are added by whoever makes them."""
        before, known = self._known.get(asked, (None, {}))
        if before is None or before[:2] != made_of[:2] or before[2] is not made_of[2]:
            known = {}
            self._known[asked] = made_of, known
        return known


def _is_known(table: Table, known: Known) -> bool:
    """Whether there is a plan of a table, or of its size, which it then has."""
    if table in known:
        return True
    # In so few rows no survey finds anything, so that the size is all the facts.
    found = known.get(facts_of(table, {})) if len(table) < LEAST_ROWS else None
    if found is not None:
        known[table] = found
    return found is not None


class Plans:
    """Of one handle, for rows within h; safe from many threads."""

    def __init__(self) -> None:
        self._machine = USUAL
        self._calibrations: dict[int, Calibration] = {}
        self._by_cosines: dict[float, Calibration] = {}
        self._known: tuple[Snapshot | None, dict[tuple[Any, ...], QueryPlan]] = (None, {})
        self._tables = TablePlans()
        self.version: int = 0
        """Another number once plans of the same snapshot may differ."""
        self._known_ways: tuple[tuple[Segment, ...], IndexOptions | None, dict[Any, Ways]]
        self._known_ways = (), None, {}
        self._lock = Lock()

    @property
    def machine(self) -> Machine:
        """Whose constants the plans go by."""
        return self._machine

    @machine.setter
    def machine(self, machine: Machine) -> None:
        with self._lock:
            self._machine = machine
            self._forget()

    @property
    def sources(self) -> dict[int, str]:
        """What was learned how bits flip from, by h."""
        return {h: known.source for h, known in sorted(self._calibrations.copy().items())}

    def forget(self) -> None:
        """Plans again, because a fact that plans use has changed."""
        with self._lock:
            self._forget()

    def _forget(self) -> None:
        self._known, self._tables = (None, {}), TablePlans()
        self.version += 1

    def plan(
        self, snapshot: Snapshot, question: Question, queries: int, weights: F32 | None
    ) -> QueryPlan:
        """How a call of this many queries is answered."""
        # Plans change with the size of a call where slabs and sweeps are shared by its queries.
        asked = (
            question.h, question.first, question.recall, question.method, queries.bit_length(),
            weights is None, question.memory,
            None if question.similar is None else question.similar.similarity,
        )
        planned_for, plans = self._known
        if planned_for is not snapshot:
            plans = {}
            self._known, self._tables = (snapshot, plans), self._tables.of(snapshot.tables)
        known = plans.get(asked)
        if known is not None:
            return known
        h, method, tables = question.h, question.method, snapshot.tables
        methods, designs = self._ways(snapshot, question)
        calibration = None
        if question.recall < 1 and weights is not None and any(row.lossy for row in methods):
            if question.similar is None:
                calibration = self._calibrated(snapshot, h, weights)
            else:
                calibration = self._by_cosine(snapshot, question.similar.similarity)
        known_plans = self._tables.known(asked, (methods, designs, calibration))
        fresh = [table for table in tables if not _is_known(table, known_plans)]
        if fresh:
            found = surveys.within(fresh, methods, h, needed=method != "auto")
            plan_tables(
                fresh, question, queries=1 << queries.bit_length() >> 1, calibration=calibration,
                designs=designs, machine=self._machine, methods=methods, surveys=found,
                known=known_plans,
            )
        planned = combined(
            [known_plans[table] for table in tables], question, calibration, methods
        )
        if calibration is None or not calibration.provisional:
            plans[asked] = planned
        return planned

    def _ways(self, snapshot: Snapshot, question: Question) -> Ways:
        """The methods and designs that may answer: of any memory, the same for all snapshots of
        the same segments and options."""
        asked = question.h, question.method, question.memory
        segments, options, known = self._known_ways
        if options is not snapshot.options or segments != snapshot.segments:
            known = {}
            self._known_ways = snapshot.segments, snapshot.options, known
        found = known.get(asked)
        if found is None:
            carried, methods = surveys.carried(snapshot), registry.asked(question.method)
            available = list(dict.fromkeys(
                design for row in methods
                for design in row.available(carried, question.method, question.h)
            ))
            methods, designs = within_memory(snapshot.tables, question, available)
            found = methods, tuple(designs)
            if question.memory is None and len(known) < MOST_KNOWN:
                known[asked] = found
        return found

    def plan_within(
        self, snapshot: Snapshot, question: Question, queries: int, weights: F32 | None, *,
        threads: int, among: int, match_bytes: int, taken: int,
    ) -> QueryPlan:
        """How this many queries `among` others are answered in a pass over each table, in this much
        memory, of which so many bytes are taken; each match takes `match_bytes`."""
        # What the recall rests on is asked without a limit: it takes a sample's few queries.
        usual = self.plan(snapshot, without_limit(question), among, weights)
        return plan_within(
            snapshot.tables, usual, question, queries=queries, threads=threads,
            machine=self._machine, match_bytes=match_bytes, taken=taken,
        )

    def _calibrated(self, snapshot: Snapshot, h: int, weights: F32) -> Calibration:
        known = self._calibrations.get(h)
        if known is not None:
            rows = snapshot.stored_rows
            growth = 2.0 if known.learned else UNLEARNED_GROWTH
            if known.stored_rows <= 2 * rows and rows <= growth * known.stored_rows:
                return known
        return self.learn(snapshot, h=h, budget_s=CALIBRATION_BUDGET_S, queries=weights)

    def _by_cosine(self, snapshot: Snapshot, cosine: float) -> Calibration:
        """Drawn for the rows whose weights the index knows, again once there are twice as many or
        half of them."""
        rows = snapshot.stored_rows
        known = self._by_cosines.get(cosine)
        if known is None or not known.stored_rows <= 2 * rows <= 4 * known.stored_rows:
            known = by_cosine(snapshot.reservoir.weights, cosine, stored_rows=rows)
            with self._lock:
                if len(self._by_cosines) >= MOST_COSINES:
                    self._by_cosines.clear()
                self._by_cosines[cosine] = known
        return known

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
            self._forget()
        return learned


class TopPlans:
    """Of one handle, for the nearest documents; safe from many threads."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._known: tuple[Any, Any, dict[tuple[Any, ...], TopPlan]] = (None, None, {})
        self._measured: dict[tuple[Any, ...], Measured | None] = {}
        self._lock = Lock()

    def forget(self) -> None:
        """Plans again, because a fact that plans use has changed."""
        self._known = (None, None, {})

    def plan(
        self, snapshot: Snapshot, question: TopQuestion, queries: int, machine: Machine
    ) -> TopPlan:
        """How a call of this many queries is answered.

        Raises
        ------
        InvalidOption
            If k is beyond the rows, or slice lists are asked for and segments have none.
        """
        known_for, machine_for, plans = self._known
        if known_for is not snapshot or machine_for is not machine:
            plans = {}
            self._known = (snapshot, machine, plans)
        asked = (question, queries.bit_length())
        found = plans.get(asked)
        if found is not None:
            return found
        if queries:
            check_count(question.k, snapshot.live_rows)
        if question.method != "auto":
            registry.top_of(question.method).available(surveys.carried(snapshot))
        found = self._planned(snapshot, question, 1 << queries.bit_length() >> 1, machine)
        if len(plans) >= REMEMBERED:
            plans.clear()
        plans[asked] = found
        return found

    def _planned(
        self, snapshot: Snapshot, question: TopQuestion, queries: int, machine: Machine
    ) -> TopPlan:
        tables = snapshot.tables
        if question.recall == 1.0 or not queries or question.exact:
            return scan_top(tables, queries=queries, machine=machine)
        measured = None
        if question.max_error is None:
            measured = self._reached(snapshot, question, machine)
            if measured is None:
                return scan_top(tables, queries=queries, machine=machine)
            question = replace(question, max_error=measured.max_error, rerank=measured.rerank)
        return plan_top(
            tables, question, queries=queries, machine=machine, measured=measured,
            surveys=surveys.top(tables, question),
        )

    def _reached(
        self, snapshot: Snapshot, question: TopQuestion, machine: Machine
    ) -> Measured | None:
        """Measured once for the segments at hand: pending rows are compared anyway."""
        listed = tuple(sorted(snapshot.head.segments.items()))
        key = (listed, question, machine)
        with self._lock:
            if key not in self._measured:
                found = top_recall.measure(snapshot, question, machine, self._view.options)
                others = [known for known in self._measured if known[0] != listed]
                for known in others:
                    del self._measured[known]
                self._measured[key] = found
            return self._measured[key]
