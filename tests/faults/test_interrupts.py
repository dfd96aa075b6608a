"""Calls that Ctrl-C or an error of a signal handler ends; the long form is `make torture`."""

from __future__ import annotations

from reliability import interrupts, report

SEED = 20_261_123

GOAL = 500


def test_interrupted_calls_lose_nothing_and_hold_nothing() -> None:
    outcomes = interrupts.run(GOAL, SEED, jobs=2)
    print(report.table(outcomes))
    for outcome in outcomes:
        outcome.require()
