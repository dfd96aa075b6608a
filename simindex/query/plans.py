"""The plans of one handle, and what they rest on: measured before a plan is made, then remembered.

    how bits flip    learned by searches (`learning`), for a recall below 1 of queries with weights
    slice lists      counted in each table (`issl.listed`)
    the machine      whose constants costs go by

A plan is kept for the snapshot that it was made for, by question and size of the call.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from threading import Lock
from typing import Any

from simindex.arrays import F32
from simindex.errors import CorruptFile
from simindex.methods import issl
from simindex.methods.base import QueryPlan
from simindex.planning.calibration import Calibration
from simindex.planning.machine import USUAL, Machine
from simindex.planning.planner import (
    Counted,
    asked_designs,
    check_lists,
    listed_bytes,
    plan,
    within_memory,
)
from simindex.planning.question import Question
from simindex.query.learning import calibrate
from simindex.storage.snapshot import Snapshot
from simindex.storage.tables.slicelist import SliceLists
from simindex.storage.tables.table import Table

log = logging.getLogger("simindex")

CALIBRATION_BUDGET_S = 0.4
"""Expected seconds a first query may spend on learning flips; `Index.tune` takes longer."""

UNLEARNED_GROWTH = 1.25
"""An index that has grown by so much is looked through anew for near-duplicates while too few are
known; one that was learned from, at twice the rows."""


def counted(
    tables: Sequence[Table], max_error: Callable[[SliceLists], int], *, needed: bool
) -> list[Counted | None]:
    """What a query looks into of each table's slice lists; None where there are none.

    Damaged lists are left with a warning, unless they are `needed`: then CorruptFile is raised.
    """
    found: list[Counted | None] = []
    for table in tables:
        lists = None
        if table.slices is not None:
            try:
                table.slices.check()
                lists = issl.listed(table, max_error(table.slices))
            except CorruptFile as error:
                if needed:
                    raise
                log.warning("other methods answer in place of slice lists: %s", error)
        found.append(lists)
    return found


class Plans:
    """Of one handle; safe from many threads."""

    def __init__(self) -> None:
        self._machine = USUAL
        self._calibrations: dict[int, Calibration] = {}
        self._known: tuple[Snapshot | None, dict[tuple[Any, ...], QueryPlan]] = (None, {})
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
        self, snapshot: Snapshot, question: Question, queries: int, weights: F32 | None
    ) -> QueryPlan:
        """How a call of so many queries is answered."""
        h, recall, method, memory = (
            question.h, question.recall, question.method, question.memory
        )
        # Plans change with the size of a call where slabs and sweeps are shared by its queries.
        asked = (h, recall, method, queries.bit_length(), weights is None, memory)
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
        tables, lists = snapshot.tables, None
        fitting = memory is None or listed_bytes(tables) <= memory
        if fitting and method in ("auto", "issl"):
            lists = counted(tables, lambda one: h // one.slices, needed=method == "issl")
        if memory is not None:
            method, designs = within_memory(tables, method, designs, memory)
            question = replace(question, method=method)
        calibration = None
        if recall < 1 and weights is not None and method in ("auto", "psm"):
            calibration = self._calibrated(snapshot, h, weights)
        planned = plan(
            tables, question, queries=1 << queries.bit_length() >> 1, calibration=calibration,
            designs=designs, machine=self._machine, lists=lists,
        )
        if calibration is None or not calibration.provisional:
            plans[asked] = planned
        return planned

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
