"""The plans of one handle, and what they rest on: measured before a plan is made, then remembered.

    how bits flip    learned by searches (`learning`), for a recall below 1 of queries with weights
    surveys          what sizes do not tell: how long slice lists are
    the machine      whose constants costs go by

A plan is kept for the snapshot that it was made for, by question and size of the call.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from typing import Any

from simindex.arrays import F32
from simindex.errors import CorruptFile
from simindex.methods.base import QueryPlan
from simindex.planning import registry
from simindex.planning.calibration import Calibration
from simindex.planning.machine import USUAL, Machine
from simindex.planning.planner import Surveys, plan, within_memory
from simindex.planning.question import Question
from simindex.query.learning import calibrate
from simindex.storage.snapshot import Snapshot
from simindex.storage.tables.table import Table

log = logging.getLogger("simindex")

CALIBRATION_BUDGET_S = 0.4
"""Expected seconds a first query may spend on learning flips; `Index.tune` takes longer."""

UNLEARNED_GROWTH = 1.25
"""An index that has grown by so much is looked through anew for near-duplicates while too few are
known; one that was learned from, at twice the rows."""


Survey = Callable[[Table, int], Any]
"""What a table holds for a radius, or a max_error; see `Method.survey`."""


def surveyed(
    tables: Sequence[Table], surveys: Mapping[str, Survey], bits: int, *, needed: bool
) -> Surveys:
    """What methods find in each table; None where they find nothing.

    Damage is left with a warning, unless what is damaged is `needed`: then CorruptFile is raised.
    """

    def found(survey: Survey, table: Table) -> Any:
        try:
            return survey(table, bits)
        except CorruptFile as error:
            if needed:
                raise
            log.warning("other methods answer in place of a damaged structure: %s", error)
            return None

    return {name: [found(survey, table) for table in tables] for name, survey in surveys.items()}


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
        tables, methods = snapshot.tables, registry.asked(method)
        designs = [
            design for row in methods for design in row.available(snapshot, method, h)
        ]
        methods, designs = within_memory(tables, question, designs)
        surveys = {row.name: row.survey for row in methods if row.survey is not None}
        calibration = None
        if recall < 1 and weights is not None and any(row.lossy for row in methods):
            calibration = self._calibrated(snapshot, h, weights)
        planned = plan(
            tables, question, queries=1 << queries.bit_length() >> 1, calibration=calibration,
            designs=designs, machine=self._machine, methods=methods,
            surveys=surveyed(tables, surveys, h, needed=method != "auto"),
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
