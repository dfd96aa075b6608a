"""What a trial did and its goal, and the Markdown table of several trials."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True)
class Outcome:
    """Counts of one trial. All but `goal`, `done` and `skipped` must be 0."""

    what: str
    goal: int
    done: int
    """Distinct states, kills, errors, files, executions or steps that were tried and judged."""
    seconds: float
    seed: int | None = None
    lost: int = 0
    """Acknowledged commits, rows or deletions that were not there afterwards."""
    wrong: int = 0
    """Answers other than the oracle's."""
    signals: int = 0
    """Processes ended by a signal that nobody sent, or by an error that is not a typed one."""
    hangs: int = 0
    leaked: int = 0
    """Files, descriptors or maps left behind."""
    skipped: str = ""
    """What could not be tried here, how often, and why."""

    @property
    def passed(self) -> bool:
        """Whether all of the goal was done and nothing went wrong."""
        faults = (self.lost, self.wrong, self.signals, self.hangs, self.leaked)
        return self.done >= self.goal and not any(faults)

    def require(self) -> None:
        """Raises AssertionError with all counts unless the trial passed."""
        assert self.passed, self


class Pace:
    """Says on the standard error, every half minute, how far a trial is."""

    EVERY_S = 30.0

    def __init__(self, what: str, goal: int) -> None:
        self._what, self._goal = what, goal
        self._began = self._said = time.monotonic()

    def at(self, done: int) -> None:
        """So many of the goal are done."""
        now = time.monotonic()
        if now - self._said >= self.EVERY_S:
            self._said = now
            seconds = now - self._began
            print(f"{self._what}: {done:,} of {self._goal:,}, {seconds:,.0f} s",
                  file=sys.stderr, flush=True)


COLUMNS = (
    "what", "goal", "done", "lost", "wrong", "signals", "hangs", "leaked", "seconds", "seed",
    "skipped",
)


def table(outcomes: Sequence[Outcome]) -> str:
    """Markdown, a line each."""
    lines = ["| " + " | ".join(COLUMNS) + " |", "|---" + "|---:" * (len(COLUMNS) - 2) + "|---|"]
    for outcome in outcomes:
        values = asdict(outcome)
        values["seed"] = str(outcome.seed or "")  # without commas, as it is given to a command
        lines.append("| " + " | ".join(_cell(values[name]) for name in COLUMNS) + " |")
    return "\n".join(lines)


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
