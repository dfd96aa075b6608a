"""What a handle answers by: its plans, the machine they suppose, and the recall it has measured.

    query      plan, search; of what is not exact a few queries are repeated (`spot_checks`)
    top        plan, and what its recall is measured on; nearest
    audit      rows of the index asked twice (`audit`)
    machine    the stored constants, followed when a writer's `tune` has committed others
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator
from dataclasses import replace
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any

from simindex._kernels._native import NoRoom, Room
from simindex.errors import CorruptFile, TooManyMatches
from simindex.methods import issl
from simindex.options import AUDITED_RECALL, AUDITED_ROWS, SLICE_LISTS
from simindex.planning import registry
from simindex.planning.costs import table_bytes
from simindex.planning.machine import Machine
from simindex.planning.question import Question, Questions, TopQuestion, TopQuestions
from simindex.query import surveys
from simindex.query.arrangement import joined
from simindex.query.call import Call
from simindex.query.nearest import nearest
from simindex.query.parts import KEPT_BYTES, PART_MATCHES, in_parts, too_many
from simindex.query.passages import Ways, ways
from simindex.query.plans import Plans, TopPlans
from simindex.query.search import THREADED_QUERIES, search
from simindex.query.spot_checks import SpotChecks
from simindex.resources.memory import ANSWER_SHARE, answer_bytes
from simindex.resources.threads import thread_count
from simindex.storage.catalog.sealed_values import unpack
from simindex.storage.segment_files import checked_designs
from simindex.storage.tables.slice_lists import SliceDesign

if TYPE_CHECKING:
    from simindex.arrays import F32, U8, U64
    from simindex.methods.base import QueryPlan
    from simindex.query.explanation import Explanation, TopExplanation
    from simindex.records.batch import Batch
    from simindex.records.matches import Matches, TopMatches
    from simindex.records.reports import Audit, Compaction
    from simindex.storage.snapshot import Snapshot
    from simindex.storage.view import View

log: logging.Logger = logging.getLogger(__package__)

NOTHING_LEFT: frozenset[str] = frozenset()

SELF_AUDIT_S = 0.5
"""About how long that may take, once it is known how bits flip."""

PLACE_BYTES = 40
"""Of a place of `top` while the answers of tables are joined."""

AUDITED_QUERIES = 1024
"""An audit asks in calls of this many queries, if these are not answered exactly."""


class Answerer:
    """Of one handle; safe from many threads."""

    def __init__(self, view: View) -> None:
        self.question: Callable[..., Question] = Questions(view.options.bits).asked
        self._top_questions = TopQuestions()
        self.plans: Plans = Plans()
        self.top_plans: TopPlans = TopPlans(view)
        self.spot_checks: SpotChecks = SpotChecks()
        self._usual_slices = SliceDesign.parse(SLICE_LISTS, view.options.bits)
        self._view = view
        self._audit: Audit | None = None
        self._machine_crc: int | None = None
        self._lock = Lock()

    # -- queries -----------------------------------------------------------------------------------

    def search(
        self, snapshot: Snapshot, rows: U64, weights: F32 | None, question: Question, *,
        taken: int = 0, sketches: U8 | None = None,
    ) -> Matches:
        """Matches of checked queries; see `Index.query`. Others have `taken` so many bytes.

        `sketches` are those of the queries, for a similarity.
        """
        self._follow_machine(snapshot)
        given = question.memory_limit
        limit_bytes = answer_bytes() if given is None else given
        if question.limit is None and (given is None or not question.first):
            call = Call(
                self.plans, snapshot, rows, weights, question, self._view.options, taken=taken,
                sketches=sketches,
            )
            try:
                return self._searched(call, 0, len(rows))
            except NoRoom:
                if not question.first:
                    raise too_many(len(rows), limit_bytes, given=given is not None) from None
        return self._collected(snapshot, rows, weights, question, limit_bytes, taken, sketches)

    def ways(self, snapshot: Snapshot, question: Question) -> Ways | None:
        """What one query by itself looks into for the nearest row within h; None where `search` has
        to be asked. It holds as long as the snapshot, and the version of `plans`.

        Raises CorruptFile where a structure of the plan cannot be opened; `search` leaves it.
        """
        self._follow_machine(snapshot)
        return ways(snapshot, self.plans.plan(snapshot, question, 1, None), question)

    def stream(
        self, snapshot: Snapshot, rows: U64, weights: F32 | None, question: Question,
        sketches: U8 | None = None,
    ) -> Generator[Matches, None, None]:
        """The same in parts; see `Index.query_stream`."""
        self._follow_machine(snapshot)
        call = Call(
            self.plans, snapshot, rows, weights, question, self._view.options, in_parts=True,
            sketches=sketches,
        )
        return self._parts(call, call.first_size())

    def _collected(
        self, snapshot: Snapshot, rows: U64, weights: F32 | None, question: Question,
        limit_bytes: int, taken: int, sketches: U8 | None,
    ) -> Matches:
        """Matches of parts that hold less than is found meanwhile. Within a limit that is given the
        answer has its own share of it."""
        most_bytes, given = limit_bytes - taken, question.memory_limit is not None
        if given:
            each = 1 if question.first or question.limit is None else question.limit
            most_bytes //= 2
            taken += min(most_bytes, KEPT_BYTES * each * len(rows))
        call = Call(
            self.plans, snapshot, rows, weights, question, self._view.options, in_parts=True,
            taken=taken if given else 0, sketches=sketches,
        )
        parts, held = [], 0
        for part in self._parts(call, call.most_queries()):
            held += len(part)
            if held * KEPT_BYTES > most_bytes and (given or not question.first):
                raise too_many(len(rows), limit_bytes, given=given, first=question.first)
            parts.append(part)
        return joined(parts)

    def _parts(self, call: Call, size: int) -> Generator[Matches, None, None]:
        return in_parts(
            len(call.rows), partial(self._searched, call), call.alone, size=size,
            most=call.most_queries(), matches=lambda: call.room_matches,
        )

    def _searched(self, call: Call, start: int, stop: int) -> Matches:
        """Matches of some queries of a call. Raises NoRoom where there are too many."""
        left = NOTHING_LEFT
        while True:
            try:
                part = call.part(start, stop)
                found = search(
                    call.snapshot, part.plan, part.rows, part.weights, call.question,
                    threads=part.threads, options=self._view.options, room=part.room,
                    sketched=part.sketched,
                )
                break
            except CorruptFile as error:
                left = self._leave(call.snapshot, call.question.method, error, left)
                call.forget()
        question = call.question
        if (
            not part.plan.exact and stop > start and question.memory_limit is None
            and question.similar is None
        ):
            saved_s = self.spot_checks.due(
                question.h, question.recall, question.first, stop - start, found.stats.seconds
            )
            if saved_s is not None:
                self._repeat(call.snapshot, call.rows[start:stop], found, question, saved_s)
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
        log.warning("other methods answer instead of a damaged structure: %s", error)
        self.plans.forget()
        self.top_plans.forget()
        return left | {str(path)}

    def _repeat(
        self, snapshot: Snapshot, rows: U64, found: Matches, question: Question, saved_s: float
    ) -> None:
        """Has a few of the queries repeated exactly, on the same snapshot."""
        # By the sorted tables alone: headers of permuted ones, which a call that has weights may
        # never need, would be copied into memory.
        held = sum(
            table_bytes(len(table), table.fingerprints.shape[1], table.header_bits)
            for table in snapshot.tables
        )
        if question.memory is not None:
            held = min(question.memory, held)
        exactly = replace(question, recall=1.0, method="auto", memory=held, limit=None)

        def plan(queries: int) -> QueryPlan:
            return self.plans.plan(snapshot, exactly, queries, None)

        def ask(exact: QueryPlan, some: U64) -> Matches:
            return search(
                snapshot, exact, some, None, exactly, threads=1, options=self._view.options,
                room=Room(PART_MATCHES),
            )

        self.spot_checks.repeat(rows, found, plan, ask, question, saved_s=saved_s)

    def explain(
        self, snapshot: Snapshot, rows: U64, weights: F32 | None, question: Question
    ) -> Explanation:
        """How checked queries are answered; see `Index.explain`."""
        from simindex.query.explanation import explain

        self._follow_machine(snapshot)
        plan = self.plans.plan(snapshot, question, len(rows), weights)
        return explain(
            snapshot, plan, rows, weights, question, measured=self.plans.machine.measured,
            compaction=self.compaction(snapshot, snapshot.stored_rows, h=question.h),
        )

    def compaction(self, snapshot: Snapshot, rows: int, *, h: int) -> Compaction | None:
        """What a full compaction to so many rows would bring; see `Compaction`."""
        from simindex.planning.segment_costs import compaction

        tables = snapshot.tables
        if len(tables) < 2:
            return None  # before lists are read
        self._follow_machine(snapshot)
        listed = surveys.within(tables, [registry.of(issl.NAME)], h, needed=False)[issl.NAME]
        return compaction(
            tables, rows, self.question(h=h), designs=checked_designs(self._view.options),
            listed=listed, machine=self.plans.machine,
        )

    # -- nearest documents -------------------------------------------------------------------------

    def top_question(
        self, snapshot: Snapshot, *, k: Any, max_error: Any, rerank: Any, method: Any, recall: Any,
        threads: Any = None,
    ) -> TopQuestion:
        """The question of these options; InvalidOption names one that is out of range."""
        width = snapshot.slice_bits
        if width is None:  # then of the lists that it might get
            width = (snapshot.slices or self._usual_slices).width
        return self._top_questions.asked(
            k=k, max_error=max_error, rerank=rerank, method=method, recall=recall,
            threads=threads, width=width,
        )

    def top(self, snapshot: Snapshot, rows: U64, question: TopQuestion) -> TopMatches:
        """The nearest documents; see `Index.top`."""
        self._follow_machine(snapshot)
        left = NOTHING_LEFT
        while True:
            try:
                plan = self.top_plans.plan(snapshot, question, len(rows), self.plans.machine)
                _check_places(len(rows), question.k)
                return nearest(snapshot, plan, rows, question, options=self._view.options)
            except CorruptFile as error:
                left = self._leave(snapshot, question.method, error, left)

    def explain_top(
        self, snapshot: Snapshot, rows: U64, question: TopQuestion
    ) -> TopExplanation:
        """How checked queries are answered; see `Index.explain_top`."""
        from simindex.query.explanation import explain_top

        self._follow_machine(snapshot)
        machine = self.plans.machine
        plan = self.top_plans.plan(snapshot, question, len(rows), machine)
        return explain_top(snapshot, plan, question, rows, measured=machine.measured)

    # -- the machine -------------------------------------------------------------------------------

    def machine(self, snapshot: Snapshot) -> Machine:
        """The constants that plans go by."""
        self._follow_machine(snapshot)
        return self.plans.machine

    def go_by(self, machine: Machine, snapshot: Snapshot) -> None:
        """Plans by these constants, until others are committed."""
        with self._lock:
            self._machine_crc = snapshot.head.values.get("machine")  # not read: may be damaged
            self.plans.machine = machine

    def _follow_machine(self, snapshot: Snapshot) -> None:
        if snapshot.head.values.get("machine") == self._machine_crc:
            return
        with self._lock, self._view.catalog.reading() as reading:
            _, head = reading.head()
            stored = reading.value(head, "machine")
            if stored is not None:
                self.plans.machine = Machine.from_dict(unpack("machine", stored))
            self._machine_crc = snapshot.head.values.get("machine")

    # -- recall ------------------------------------------------------------------------------------

    def audit(
        self,
        snapshot: Snapshot,
        question: Question,
        *,
        sample: int = AUDITED_ROWS,
        budget_s: float = float("inf"),
    ) -> Audit:
        """Measures the recall on rows of the index; see `Index.audit`."""
        from simindex.query import audit as auditing

        thread_count(question.threads, 1, worth=1)  # refused where no row is asked, too
        self._follow_machine(snapshot)
        exactly = replace(question, recall=1.0, method="auto")

        def ask(batch: Batch, recall: float) -> Matches:
            asked, left = exactly if recall == 1.0 else question, NOTHING_LEFT
            while True:
                try:
                    plan = self.plans.plan(snapshot, asked, len(batch), batch.weights)
                    return search(
                        snapshot, plan, batch.rows, batch.weights, asked,
                        options=self._view.options,
                        threads=thread_count(asked.threads, len(batch), worth=THREADED_QUERIES),
                    )
                except CorruptFile as error:
                    left = self._leave(snapshot, asked.method, error, left)

        self._audit = auditing.audit(
            snapshot.reservoir, ask, h=question.h, recall=question.recall, sample=sample,
            budget_s=budget_s, generation=snapshot.head.generation,
            index_rows=snapshot.stored_rows,
        )
        return self._audit

    def last_audit(self, snapshot: Snapshot) -> Audit | None:
        """This handle's, or the stored one if that is newer, and not of a later commit."""
        from simindex.query import audit as auditing

        with self._view.catalog.reading() as reading:
            _, head = reading.head()
            payload = reading.value(head, "audit")
        stored = None if payload is None else auditing.decode(payload)
        if stored is not None and stored.generation > snapshot.head.generation:
            stored = None
        own = self._audit
        return own if own and (stored is None or own.generation >= stored.generation) else stored

    def self_audit(
        self, snapshot: Snapshot, *, h: int | None = None, usual_h: int
    ) -> Audit | None:
        """Measures again, for about `SELF_AUDIT_S`, if the index has changed much since the last
        audit.

        That is one of less than half or over twice the rows. Asks for the recall and the radius
        of that audit, or the usual ones; `h` overrules. The reservoir has rows. None where nothing
        has to be measured: the last audit is good still, or the plan is exact.
        """
        rows, last = snapshot.stored_rows, self.last_audit(snapshot)
        if last is not None and rows <= 2 * last.index_rows and last.index_rows <= 2 * rows:
            return None
        recall = AUDITED_RECALL if last is None else last.asked
        if h is None:
            h = usual_h if last is None else last.h
        self._follow_machine(snapshot)
        weights = snapshot.reservoir.weights[:1].astype("f4")
        question = self.question(h=h, recall=recall)
        if self.plans.plan(snapshot, question, AUDITED_QUERIES, weights).exact:
            return None
        return self.audit(snapshot, question, budget_s=SELF_AUDIT_S)


def _check_places(queries: int, k: int) -> None:
    """Raises TooManyMatches if an answer of k places for each query is too large."""
    limit_bytes = answer_bytes()
    if queries * k * PLACE_BYTES > limit_bytes:
        raise TooManyMatches(
            f"the {k:,} nearest of {queries:,} queries do not fit into {limit_bytes >> 20:,} MiB, "
            f"1/{ANSWER_SHARE} of the memory",
            remedy="ask fewer queries at a time, or give a smaller k", found=queries * k,
            expected=limit_bytes // PLACE_BYTES, memory_limit=limit_bytes,
        )
