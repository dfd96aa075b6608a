"""Calls that Ctrl-C or an error of a signal handler ends; the long form is `make torture`."""

from __future__ import annotations

import pytest
from reliability import interrupts, planted, report

SEED = 20_261_123

GOAL = 60

COMPACTIONS = ["compact(full=True) [buffered]"]


def test_interrupted_calls_lose_nothing_and_hold_nothing() -> None:
    """Some public calls, at some of their lines, and random interrupts by real signals.

    `tools/torture.py interrupts` takes all calls and all lines.
    """
    outcomes = interrupts.run(GOAL, SEED, jobs=2)
    print(report.table(outcomes))
    for outcome in outcomes:
        outcome.require()


@pytest.mark.parametrize("fault", planted.FAULTS)
def test_fault_that_an_interrupt_leaves_is_found(fault: str) -> None:
    outcome, = interrupts.run(20, SEED, 1, COMPACTIONS, fault)
    print(report.table([outcome]))
    kind, _ = planted.FAULTS[fault]
    assert getattr(outcome, kind) >= outcome.done // 2
