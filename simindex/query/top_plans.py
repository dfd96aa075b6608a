"""The plans of one handle for the nearest documents, and what their recall was measured to be.

    asked       options checked once                          `top_question`
    measured    the least max_error that reaches a recall     `top_recall`, once for the segments
    counted     slice lists                                   `top_recall.surveyed_at`
    planned     and kept for the commit
"""

from __future__ import annotations

from functools import partial
from threading import Lock
from typing import Any

from simindex.planning import registry
from simindex.planning.machine import Machine
from simindex.planning.top_planner import (
    Measured,
    TopPlan,
    check_count,
    plan,
    scanned,
)
from simindex.planning.top_question import TopQuestion, checked_options
from simindex.query import top_recall
from simindex.storage.snapshot import Snapshot
from simindex.storage.tables.slicelist import SliceDesign
from simindex.storage.view import View

REMEMBERED = 256
"""Plans that are kept for one commit, at most."""


class TopPlans:
    """Of one handle; safe from many threads."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._known: tuple[Any, Any, dict[tuple[Any, ...], TopPlan]] = (None, None, {})
        self._checked: dict[tuple[Any, ...], TopQuestion] = {}
        self._measured: dict[tuple[Any, ...], Measured | None] = {}
        self._lock = Lock()

    def forget(self) -> None:
        """Plans anew, since something that plans went by has changed."""
        self._known = (None, None, {})

    def plan(
        self, snapshot: Snapshot, *, k: Any, max_error: Any, rerank: Any, method: Any, recall: Any,
        queries: int, machine: Machine,
    ) -> tuple[TopPlan, TopQuestion]:
        """How a call is answered.

        Raises
        ------
        InvalidOption
            If an option is out of range, or method="issl" has segments without lists.
        """
        width, design = snapshot.slice_bits, snapshot.slices
        if width is None:
            width = (design or SliceDesign.parse("issl", self._view.options.bits)).width
        question = self._question(k, max_error, rerank, method, recall, width)
        known_for, machine_for, plans = self._known
        if known_for is not snapshot or machine_for is not machine:
            plans = {}
            self._known = (snapshot, machine, plans)
        asked = (question, queries.bit_length())
        found = plans.get(asked)
        if found is not None:
            return found, question
        if queries:
            check_count(question.k, snapshot)
        if question.method != "auto":
            registry.top_of(question.method).available(snapshot)
        found = self._planned(snapshot, question, 1 << queries.bit_length() >> 1, machine)
        if len(plans) >= REMEMBERED:
            plans.clear()
        plans[asked] = found
        return found, question

    def _question(
        self, k: Any, max_error: Any, rerank: Any, method: Any, recall: Any, width: int
    ) -> TopQuestion:
        given = (k, max_error, rerank, method, recall, width)
        check = partial(
            checked_options, k=k, max_error=max_error, rerank=rerank, method=method, recall=recall,
            width=width,
        )
        # Equal values of other types, such as True, are no whole numbers.
        key = (*given, *map(type, given))
        try:
            found = self._checked.get(key)
        except TypeError:  # arrays of one number, which have no hash, or what cannot be right
            return check()
        if found is None:
            found = check()
            if len(self._checked) >= REMEMBERED:
                self._checked.clear()
            self._checked[key] = found
        return found

    def _planned(
        self, snapshot: Snapshot, question: TopQuestion, queries: int, machine: Machine
    ) -> TopPlan:
        tables = snapshot.tables
        if question.recall == 1.0 or not queries or question.exact:
            return scanned(tables, queries=queries, machine=machine)
        max_error, rerank, measured = question.max_error, question.rerank, None
        if max_error is None:
            measured = self._reached(snapshot, question, machine)
            if measured is None:
                return scanned(tables, queries=queries, machine=machine)
            max_error, rerank = measured.max_error, measured.rerank
        surveys = top_recall.surveyed_at(tables, question, max_error)
        return plan(
            tables, question, max_error=max_error, rerank=rerank, queries=queries,
            machine=machine, surveys=surveys, measured=measured,
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
