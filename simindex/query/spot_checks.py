"""The recall of a handle's own queries: a few of them are repeated exactly, and counted.

    a call below recall 1   earns SHARE of the time it took
    repeats                 spend it: some of the call's queries, chosen by chance, asked at 1.0
    SpotCheck               found / there, for each (h, recall, first) that was asked

1. What is earned is spent, never more: a repeat is begun if the model says that it is paid for, and
   what it really took is charged. One that took longer is paid for by the calls that follow.
2. Whether a lone query is repeated does not depend on itself: what it earns counts from the next
   call on, or slow ones would be measured more often. Of a large call, chance chooses.
3. The call's answer is there before, and stays as it is, whatever becomes of the repeats.

4. One thread repeats at a time, so that what is saved is not spent twice.

Shares and interval are those of an audit (`audit`): equal texts are left out. With `first`
a query has found all if it got a match, equal texts included.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from random import Random
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np

from simindex.errors import SimindexError
from simindex.planning.costs import CALL_NS, SEGMENT_NS
from simindex.query.audit import wilson
from simindex.values import dataclass

if TYPE_CHECKING:
    from simindex.arrays import U64
    from simindex.methods.base import QueryPlan
    from simindex.planning.question import Question
    from simindex.records.matches import Matches
    from simindex.records.reports import SpotCheck

SHARE = 0.02
"""Time of repeats, as a share of the time of calls below recall 1."""

REPEATS_OF_A_CALL = 256

LONGEST_S = 0.01
"""A call waits so long for repeats, or SHARE of its own time if that is more."""

MATCHES_OF_A_CALL = 1 << 18
"""Matches that the repeats of a call should bring; a hot text then comes alone."""

MOST_KINDS = 64
"""Different (h, recall, first) that are told apart; calls of others are not watched."""

log: logging.Logger = logging.getLogger(__package__)


@dataclass(slots=True)
class _Tally:
    queries: int = 0
    repeated: int = 0
    with_match: int = 0
    shares: float = 0.0
    matches: int = 0
    found: int = 0
    needed_s: float = 0.0
    """What must have been saved before it is worth asking what a repeat costs."""


class SpotChecks:
    """Of one handle; safe from many threads."""

    def __init__(self) -> None:
        self._tallies: dict[tuple[int, float, bool], _Tally] = {}
        self._earned_s = self._spent_s = 0.0
        self._busy = False
        self._random = Random(0)
        self._lock = Lock()

    def due(self, h: int, recall: float, first: bool, queries: int, seconds: float) -> float | None:
        """Counts a call that was not answered exactly; the seconds that its repeats may take.

        None, nearly always, where nothing is to be repeated; else `repeat` has to follow.
        """
        # Without the lock, which would take half of the time that this adds to a single query. If
        # two threads meet here, a call may count or earn nothing; what is spent is never lost.
        tally = self._tallies.get((h, recall, first)) or self._new_tally(h, recall, first)
        earned_s = self._earned_s
        tally.queries += queries
        self._earned_s = earned_s + SHARE * seconds
        if queries >= REPEATS_OF_A_CALL:
            earned_s += SHARE * seconds
        saved_s = earned_s - self._spent_s
        if saved_s < tally.needed_s:
            return None
        with self._lock:
            if self._busy:
                return None
            self._busy = True
        return saved_s

    def _new_tally(self, h: int, recall: float, first: bool) -> _Tally:
        with self._lock:
            if len(self._tallies) >= MOST_KINDS:
                return _Tally(needed_s=float("inf"))
            return self._tallies.setdefault((h, recall, first), _Tally())

    def repeat(
        self,
        rows: U64,
        answer: Matches,
        plan: Callable[[int], QueryPlan],
        ask: Callable[[QueryPlan, U64], Matches],
        question: Question,
        *,
        saved_s: float,
    ) -> None:
        """Repeats some queries of a call that is due, and counts what was found of what is there.

        Parameters
        ----------
        rows : uint64 (m, W), m >= 1
        answer : Matches
            Of all of them.
        plan, ask :
            How this many queries are answered exactly; and their matches, by that plan.
        saved_s : float
            As `due` said.
        """
        started = time.perf_counter()
        tally = self._tallies[question.h, question.recall, question.first]
        broken = False
        try:
            exact = plan(min(len(rows), REPEATS_OF_A_CALL))
            some = _repeats(tally, len(rows), answer, exact, saved_s)
            if some:
                places = sorted(self._random.sample(range(len(rows)), some))
                truth = ask(exact, rows[places])
                with self._lock:
                    _count(tally, answer, truth, places, question.first)
        except (SimindexError, OSError, MemoryError) as error:
            # `check` names what is damaged; the call that was answered is not the one to fail.
            log.warning("queries are no longer repeated to measure their recall: %s", error)
            broken = True
        finally:
            with self._lock:
                self._spent_s += time.perf_counter() - started
                self._busy = broken

    def measured(self) -> list[SpotCheck]:
        """What was counted so far, ordered by h and recall."""
        with self._lock:
            return [
                _told(kind, tally) for kind, tally in sorted(self._tallies.items())
            ]


def _repeats(
    tally: _Tally, size: int, answer: Matches, exact: QueryPlan, saved_s: float
) -> int:
    """How many of a call's queries to repeat; none, if not one is paid for."""
    base_s = (CALL_NS + SEGMENT_NS * len(exact.tables)) * 1e-9
    query_s = sum(one.nanoseconds for one in exact.tables) * 1e-9
    most_s = min(saved_s, max(LONGEST_S, SHARE * answer.stats.seconds))
    tally.needed_s = base_s + query_s
    if tally.needed_s > most_s:
        if most_s < saved_s:  # too long for such a call: no use in asking again at the next one
            tally.needed_s += saved_s
        return 0
    paid = int((most_s - base_s) / max(query_s, 1e-9))
    few = MATCHES_OF_A_CALL * size // (size + len(answer))
    return min(size, max(1, min(paid, REPEATS_OF_A_CALL, few)))


def _count(
    tally: _Tally, answer: Matches, truth: Matches, places: list[int], first: bool
) -> None:
    """Adds what was found for each repeated query, and what there is."""
    starts = np.searchsorted(answer.query, places).tolist()
    stops = np.searchsorted(answer.query, places, side="right").tolist()
    bounds = np.searchsorted(truth.query, np.arange(len(places) + 1)).tolist()
    tally.repeated += len(places)
    for number, (start, stop) in enumerate(zip(starts, stops, strict=True)):
        there = truth.distance[bounds[number] : bounds[number + 1]]
        got = answer.distance[start:stop]
        if not first:  # the first of several may be the equal one or not: then any will do
            there, got = there[there > 0], got[got > 0]
        matches, found = len(there), len(got)
        if matches:
            tally.with_match += 1
            tally.shares += found / matches
            tally.matches += matches
            tally.found += found


def _told(kind: tuple[int, float, bool], tally: _Tally) -> SpotCheck:
    from simindex.records.reports import SpotCheck

    h, recall, first = kind
    trials = tally.with_match
    mean = tally.shares / trials if trials else None
    low, high = (0.0, 1.0) if mean is None else wilson(mean, trials)
    return SpotCheck(
        h=h, asked=float(recall), first=first, recall=mean, recall_low=low, recall_high=high,
        queries=tally.queries, repeated=tally.repeated, with_match=trials, matches=tally.matches,
        found=tally.found,
    )
