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

Shares and interval are those of an audit (`auditing`): equal texts are left out.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from threading import Lock

import numpy as np

from simindex.costs import CALL_NS, SEGMENT_NS
from simindex.errors import SimindexError
from simindex.methods.base import QueryPlan
from simindex.methods.recall import wilson
from simindex.records import U64, Matches, SpotCheck

SHARE = 0.02
"""Of the time that calls below recall 1 take, what repeats may take beside it."""

REPEATS_OF_A_CALL = 256

LONGEST_S = 0.01
"""A call waits so long for repeats, or SHARE of its own time if that is more."""

MATCHES_OF_A_CALL = 1 << 18
"""Matches that the repeats of a call should bring; a hot text then comes alone."""

MOST_KINDS = 64
"""Different (h, recall, first) that are told apart; calls of others are not watched."""

log = logging.getLogger("simindex")


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
        self._saved_s = 0.0
        self._broken = self._repeating = False
        self._random = Random(0)
        self._lock = Lock()

    def watch(
        self,
        rows: U64,
        answer: Matches,
        plan: Callable[[int], QueryPlan],
        repeat: Callable[[QueryPlan, U64], Matches],
        *,
        h: int,
        recall: float,
        first: bool,
    ) -> None:
        """Counts a call that was not answered exactly, and repeats some of its queries.

        Parameters
        ----------
        rows : uint64 (m, W), m >= 1
        answer : Matches
            Of all of them.
        plan, repeat :
            How so many queries are answered exactly; and their matches, by that plan.
        """
        size, earned_s = len(rows), SHARE * answer.stats.seconds
        kind = (h, recall, first)
        with self._lock:
            tally = self._tallies.get(kind)
            if tally is None:
                if len(self._tallies) >= MOST_KINDS:
                    return
                tally = self._tallies[kind] = _Tally()
            tally.queries += size
            own_s = earned_s if size >= REPEATS_OF_A_CALL else 0.0
            saved_s = self._saved_s + own_s
            self._saved_s += earned_s
            if saved_s < tally.needed_s or self._broken or self._repeating:
                return
            self._repeating = True
        started = time.perf_counter()
        try:
            exact = plan(min(size, REPEATS_OF_A_CALL))
            base_s = (CALL_NS + SEGMENT_NS * len(exact.tables)) * 1e-9
            query_s = sum(one.nanoseconds for one in exact.tables) * 1e-9
            most_s = min(saved_s, max(LONGEST_S, earned_s))
            if base_s + query_s > most_s:
                tally.needed_s = (0.0 if most_s == saved_s else saved_s) + base_s + query_s
                return
            tally.needed_s = base_s + query_s
            paid = int((most_s - base_s) / max(query_s, 1e-9))
            some = min(paid, REPEATS_OF_A_CALL, MATCHES_OF_A_CALL * size // (size + len(answer)))
            places = self._places(size, max(1, some))
            truth = repeat(exact, rows[places])
        except (SimindexError, OSError, MemoryError) as error:
            # Such as a damaged table that only exact queries read: `check` names it, the call that
            # was answered is not the one to fail.
            log.warning("queries are no longer repeated to measure their recall: %s", error)
            self._broken = True
        else:
            with self._lock:
                _count(tally, answer, truth, places, first)
        finally:
            with self._lock:
                self._saved_s -= time.perf_counter() - started
                self._repeating = False

    def _places(self, size: int, some: int) -> list[int]:
        if some >= size:
            return list(range(size))
        return sorted({self._random.randrange(size) for _ in range(some)})

    def measured(self) -> list[SpotCheck]:
        """What was counted so far, ordered by h and recall."""
        with self._lock:
            return [
                _told(kind, tally) for kind, tally in sorted(self._tallies.items())
            ]


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
        if first and not (there.all() and got.all()):
            continue  # an equal row answers it
        matches, found = int(np.count_nonzero(there)), int(np.count_nonzero(got))
        if matches:
            tally.with_match += 1
            tally.shares += found / matches
            tally.matches += matches
            tally.found += found


def _told(kind: tuple[int, float, bool], tally: _Tally) -> SpotCheck:
    h, recall, first = kind
    trials = tally.with_match
    mean = tally.shares / trials if trials else None
    low, high = (0.0, 1.0) if mean is None else wilson(mean, trials)
    return SpotCheck(
        h=h, asked=float(recall), first=first, recall=mean, recall_low=low, recall_high=high,
        queries=tally.queries, repeated=tally.repeated, with_match=trials, matches=tally.matches,
        found=tally.found,
    )
