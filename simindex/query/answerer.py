"""What a handle answers by: its plans, the machine they suppose, and the recall it has measured.

    query      plan, search; of what is not exact a few queries are repeated (`spotchecks`)
    top        plan, and what its recall is measured on; nearest
    audit      rows of the index asked twice (`auditing`)
    machine    the stored constants, followed when a writer's `tune` has committed others
"""

from __future__ import annotations

import logging
from functools import partial
from threading import Lock
from typing import Any

from simindex.arrays import F32, U64
from simindex.errors import CorruptFile
from simindex.methods.base import QueryPlan
from simindex.options import IndexOptions, as_flag
from simindex.planning.bounded import plan_within
from simindex.planning.costs import table_bytes
from simindex.planning.machine import Machine
from simindex.planning.planner import Planner, check_memory
from simindex.planning.top_planner import TopPlanner
from simindex.query import audit as auditing
from simindex.query import top_recall
from simindex.query.explanation import Explanation, TopExplanation, explain, explain_top
from simindex.query.nearest import nearest
from simindex.query.search import THREADED_QUERIES, search
from simindex.query.spotchecks import SpotChecks
from simindex.records.batch import Batch
from simindex.records.matches import Matches, TopMatches
from simindex.records.reports import Audit
from simindex.storage.catalog.catalog import Catalog
from simindex.storage.catalog.values import unpack
from simindex.storage.snapshot import Snapshot
from simindex.threads import thread_count

log = logging.getLogger("simindex")

NOTHING_LEFT: frozenset[str] = frozenset()

SELF_AUDIT_ROWS = 1 << 20
"""Rows from which `tune` and `compact` measure the recall by themselves."""

SELF_AUDIT_S = 0.5
"""About how long that may take, once it is known how bits flip."""

AUDITED_QUERIES = 1024
"""What is audited is how calls of so many queries are answered, if that is not exactly."""


class Answerer:
    """Of one handle; safe from many threads."""

    def __init__(self, catalog: Catalog, options: IndexOptions) -> None:
        self.planner = Planner()
        self.top_planner = TopPlanner(partial(top_recall.measure, options=options))
        self.spot_checks = SpotChecks()
        self._catalog, self._options = catalog, options
        self._audit: Audit | None = None
        self._machine_crc: int | None = None
        self._lock = Lock()

    # -- queries -----------------------------------------------------------------------------------

    def search(
        self,
        snapshot: Snapshot,
        rows: U64,
        weights: F32 | None,
        *,
        h: int,
        first: bool,
        recall: float,
        method: str,
        memory: int | None,
        threads: int | None,
        memory_limit: int | None = None,
    ) -> Matches:
        """Matches of checked queries; see `Index.query`."""
        first = as_flag(first, "first")
        threads = thread_count(threads, len(rows), worth=THREADED_QUERIES)
        self._follow_machine(snapshot)
        if memory_limit is not None:
            return self._bounded(
                snapshot, rows, weights, h=h, first=first, recall=recall, method=method,
                limit_bytes=memory_limit, threads=threads,
            )
        left = NOTHING_LEFT
        while True:
            try:
                plan, calibration = self.planner.plan(
                    snapshot, h=h, recall=recall, method=method, queries=len(rows),
                    weights=weights, memory=memory,
                )
                found = search(
                    snapshot, plan, rows, weights,
                    None if calibration is None else calibration.volatility,
                    h=h, first=first, threads=threads, options=self._options,
                )
                break
            except CorruptFile as error:
                left = self._leave(snapshot, method, error, left)
        if not plan.exact and len(rows):
            saved_s = self.spot_checks.due(h, recall, first, len(rows), found.stats.seconds)
            if saved_s is not None:
                self._repeat(snapshot, rows, found, h, recall, first, memory, saved_s)
        return found

    def _leave(
        self, snapshot: Snapshot, method: str, error: CorruptFile, left: frozenset[str]
    ) -> frozenset[str]:
        """Has calls planned without the structure that an error is of, if they may be.

        Returns the paths of those that this call has left. Raises the error where the damage is in
        the rows, or `method` asks for the structure.
        """
        path = error.data.get("path")
        if method != "auto" or path in left or not snapshot.leave(error):
            raise error
        log.warning("other methods answer in place of a damaged structure: %s", error)
        self.planner.forget()
        self.top_planner.forget()
        return left | {str(path)}

    def _bounded(
        self, snapshot: Snapshot, rows: U64, weights: F32 | None, *, h: int, first: bool,
        recall: float, method: str, limit_bytes: int, threads: int,
    ) -> Matches:
        """The same in a pass over each table, in so much memory."""
        check_memory(limit_bytes, "memory_limit")
        if method == "issl":  # lists are read in no order, so the rows are compared in theirs
            method = "scan"
        # What the recall rests on is asked without a limit: it takes a sample's few queries.
        if method not in ("auto", "psm", "scan"):  # by tables over the queries, which are exact
            weights, recall = None, 1.0
        plans, calibration = self.planner.plan(
            snapshot, h=h, recall=recall, method="auto" if weights is None else method,
            queries=len(rows), weights=weights,
        )
        plans, stream = plan_within(
            snapshot.tables, plans, limit_bytes=limit_bytes, h=h, method=method,
            queries=len(rows), threads=threads, machine=self.planner.machine,
        )
        return search(
            snapshot, plans, rows, weights,
            None if calibration is None else calibration.volatility,
            h=h, first=first, threads=threads, options=self._options, stream=stream,
        )

    def _repeat(
        self, snapshot: Snapshot, rows: U64, found: Matches, h: int, recall: float, first: bool,
        memory: int | None, saved_s: float,
    ) -> None:
        """Has a few of the queries repeated exactly, on the same snapshot."""

        def plan(queries: int) -> QueryPlan:
            # By the sorted tables alone: headers of permuted ones, which a call that has weights
            # may never need, would be copied into memory.
            held = sum(
                table_bytes(len(table), table.fingerprints.shape[1], table.header_bits)
                for table in snapshot.tables
            )
            return self.planner.plan(
                snapshot, h=h, recall=1.0, method="auto", queries=queries, weights=None,
                memory=held if memory is None else min(memory, held),
            )[0]

        def ask(exact: QueryPlan, some: U64) -> Matches:
            return search(
                snapshot, exact, some, None, None, h=h, first=first, threads=1,
                options=self._options,
            )

        self.spot_checks.repeat(
            rows, found, plan, ask, h=h, recall=recall, first=first, saved_s=saved_s
        )

    def explain(
        self,
        snapshot: Snapshot,
        rows: U64,
        weights: F32 | None,
        *,
        h: int,
        recall: float,
        method: str,
        memory: int | None,
    ) -> Explanation:
        """How checked queries are answered; see `Index.explain`."""
        self._follow_machine(snapshot)
        plan, calibration = self.planner.plan(
            snapshot, h=h, recall=recall, method=method, queries=len(rows), weights=weights,
            memory=memory,
        )
        return explain(
            snapshot, plan, rows, weights,
            None if calibration is None else calibration.volatility,
            h=h, recall=recall, method=method, measured=self.planner.machine.measured,
            flips_from=None if calibration is None else calibration.source,
        )

    # -- nearest documents -------------------------------------------------------------------------

    def top(
        self, snapshot: Snapshot, rows: U64, *, k: Any, max_error: Any, rerank: Any, method: Any,
        recall: Any, threads: int | None,
    ) -> TopMatches:
        """The nearest documents; see `Index.top`."""
        self._follow_machine(snapshot)
        left = NOTHING_LEFT
        while True:
            try:
                plan, question = self.top_planner.plan(
                    snapshot, k=k, max_error=max_error, rerank=rerank, method=method,
                    recall=recall, queries=len(rows), bits=self._options.bits,
                    machine=self.planner.machine,
                )
                return nearest(
                    snapshot, plan, rows, k=question.k, threads=threads, options=self._options
                )
            except CorruptFile as error:
                left = self._leave(snapshot, method, error, left)

    def explain_top(
        self, snapshot: Snapshot, rows: U64, *, k: Any, max_error: Any, rerank: Any, method: Any,
        recall: Any,
    ) -> TopExplanation:
        """How checked queries are answered; see `Index.explain_top`."""
        self._follow_machine(snapshot)
        machine = self.planner.machine
        plan, question = self.top_planner.plan(
            snapshot, k=k, max_error=max_error, rerank=rerank, method=method, recall=recall,
            queries=len(rows), bits=self._options.bits, machine=machine,
        )
        return explain_top(snapshot, plan, question, rows, measured=machine.measured)

    # -- the machine -------------------------------------------------------------------------------

    def machine(self, snapshot: Snapshot) -> Machine:
        """The constants that plans go by."""
        self._follow_machine(snapshot)
        return self.planner.machine

    def go_by(self, machine: Machine, snapshot: Snapshot) -> None:
        """Plans by these constants, until others are committed."""
        with self._lock:
            self._machine_crc = snapshot.head.values.get("machine")  # not read: may be damaged
            self.planner.machine = machine

    def _follow_machine(self, snapshot: Snapshot) -> None:
        if snapshot.head.values.get("machine") == self._machine_crc:
            return
        with self._lock, self._catalog.reading() as reading:
            _, head = reading.head()
            stored = reading.value(head, "machine")
            if stored is not None:
                self.planner.machine = Machine.from_dict(unpack("machine", stored))
            self._machine_crc = snapshot.head.values.get("machine")

    # -- recall ------------------------------------------------------------------------------------

    def audit(
        self,
        snapshot: Snapshot,
        *,
        h: int,
        recall: float,
        method: str = "auto",
        sample: int = auditing.SAMPLE_ROWS,
        threads: int | None = None,
        budget_s: float = float("inf"),
    ) -> Audit:
        """Measures the recall on rows of the index; see `Index.audit`."""
        self._follow_machine(snapshot)

        def ask(batch: Batch, recall: float) -> Matches:
            by, left = "auto" if recall == 1.0 else method, NOTHING_LEFT
            while True:
                try:
                    plan, calibration = self.planner.plan(
                        snapshot, h=h, recall=recall, method=by, queries=len(batch),
                        weights=batch.weights,
                    )
                    return search(
                        snapshot, plan, batch.rows, batch.weights,
                        None if calibration is None else calibration.volatility,
                        h=h, first=False, options=self._options,
                        threads=thread_count(threads, len(batch), worth=THREADED_QUERIES),
                    )
                except CorruptFile as error:
                    left = self._leave(snapshot, by, error, left)

        self._audit = auditing.audit(
            snapshot.reservoir, ask, h=h, recall=recall, sample=sample, budget_s=budget_s,
            generation=snapshot.head.generation, index_rows=snapshot.stored_rows,
        )
        return self._audit

    def last_audit(self) -> Audit | None:
        """This handle's, or the stored one if that is newer."""
        with self._catalog.reading() as reading:
            _, head = reading.head()
            payload = reading.value(head, "audit")
        stored = None if payload is None else auditing.decode(payload)
        if self._audit is None or (
            stored is not None and stored.generation > self._audit.generation
        ):
            return stored
        return self._audit

    def self_audit(self, snapshot: Snapshot, *, h: int | None = None) -> Audit | None:
        """Measures anew, for about `SELF_AUDIT_S`, where the last audit tells of another index.

        That is one of less than half or over twice the rows. Asks for the recall and the radius
        of that audit, or the usual ones; `h` overrules. None where nothing has to be measured: the
        index is small, knows no weights, or its plan is exact.
        """
        rows = snapshot.stored_rows
        if rows < SELF_AUDIT_ROWS:
            return None
        last = self.last_audit()
        if last is not None and rows <= 2 * last.index_rows and last.index_rows <= 2 * rows:
            return None
        if not len(snapshot.reservoir):
            return None
        recall = auditing.USUAL_RECALL if last is None else last.asked
        if h is None:
            h = auditing.USUAL_H if last is None else last.h
        self._follow_machine(snapshot)
        weights = snapshot.reservoir.weights[:1].astype("f4")
        plan, _ = self.planner.plan(
            snapshot, h=h, recall=recall, method="auto", queries=AUDITED_QUERIES, weights=weights
        )
        if plan.exact:
            return None
        return self.audit(snapshot, h=h, recall=recall, budget_s=SELF_AUDIT_S)
