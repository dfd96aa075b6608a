"""The faster of two ways to call is found by trials, and found again when it changes."""

from __future__ import annotations

import pytest

from simindex.index.pace import CALLS, FEWEST, MOST, TRIED, WARM, Pace


class Calls:
    """Calls that follow what the pace says, as threads do."""

    def __init__(self, paired_s: float, turns_s: float) -> None:
        self.pace, self.now = Pace(), 0.0
        self.took = {True: paired_s, False: turns_s}
        self.made = {True: 0, False: 0}

    def make(self, count: int) -> None:
        for _ in range(count):
            paired = self.pace.paired
            self.now += self.took[paired]
            self.made[paired] += 1
            self.pace.count(self.now, paired=paired)


TRIAL = WARM + TRIED * (CALLS + 1)
"""Calls of one way in a trial, at most."""


def test_the_faster_way_is_found_after_some_stretches_of_each() -> None:
    for paired_s, turns_s in ((1e-5, 2e-5), (2e-5, 1e-5)):
        calls = Calls(paired_s, turns_s)
        calls.make(2 * TRIAL)
        assert calls.pace.paired == (paired_s < turns_s)


@pytest.mark.parametrize(("paired_s", "stretches"), [(3e-5, 1), (1.2e-5, TRIED)])
def test_the_slower_way_is_tried_for_few_calls(paired_s: float, stretches: int) -> None:
    """For as few as a stretch where it takes far longer."""
    calls = Calls(paired_s, 1e-5)
    calls.make(20 * MOST * CALLS)
    most = WARM + stretches * (CALLS + 1)
    assert 19 * stretches * CALLS <= calls.made[True] <= 26 * most + TRIAL


def test_a_first_trial_that_was_disturbed_is_soon_mended() -> None:
    calls = Calls(1e-5, 2e-5)
    calls.make(WARM)
    for _ in range(TRIED):
        calls.make(CALLS // 2)
        calls.now += 1.0
        calls.make(CALLS // 2 + 1)
    calls.make(TRIAL)
    assert not calls.pace.paired
    calls.make((FEWEST + 1) * (CALLS + 1) + TRIAL)
    assert calls.pace.paired


def test_one_stretch_that_was_not_disturbed_suffices() -> None:
    calls = Calls(1.2e-5, 1e-5)
    calls.make(TRIAL)
    assert not calls.pace.paired
    calls.make(WARM)
    for _ in range(TRIED - 1):
        calls.make(CALLS // 2)
        calls.now += 5e-4  # a third of a stretch
        calls.make(CALLS // 2 + 1)
    calls.make(CALLS + 1 + (FEWEST - TRIED) * (CALLS + 1))
    assert not calls.pace.paired


def test_the_first_calls_after_a_change_do_not_count() -> None:
    """Caches are cold then."""
    calls = Calls(1e-5, 1.1e-5)
    for _ in range(2):
        calls.now += 1.0
        calls.make(WARM)
        calls.now += 1.0
        calls.make(TRIED * (CALLS + 1))
    assert calls.pace.paired


def test_the_way_that_becomes_faster_is_taken() -> None:
    calls = Calls(3e-5, 1e-5)
    calls.make(10 * CALLS)
    assert not calls.pace.paired
    calls.took[True] = 5e-6
    calls.make((MOST + 5) * (CALLS + 1) + TRIAL)
    assert calls.pace.paired


def test_the_way_that_becomes_slower_is_left() -> None:
    """However fast it was once."""
    calls = Calls(5e-6, 1e-5)
    calls.make(4 * FEWEST * CALLS)
    assert calls.pace.paired
    calls.took[True] = 3e-5
    calls.make((MOST + 5) * (CALLS + 1) + TRIAL)
    assert not calls.pace.paired


def test_calls_before_threads_have_changed_do_not_count() -> None:
    pace, now = Pace(), 0.0
    for _ in range(10 * CALLS):
        now += 1.0
        pace.count(now, paired=False)
    for _ in range(TRIAL - 1):
        now += 1e-5
        pace.count(now, paired=True)
    assert pace.paired
    pace.count(now, paired=True)
    assert not pace.paired, "the other way is tried"


def test_a_pause_begins_a_stretch_anew() -> None:
    calls = Calls(1e-5, 2e-5)
    calls.make(CALLS)
    calls.pace.pause()
    calls.now += 100.0
    calls.make(2 * TRIAL)
    assert calls.pace.paired
