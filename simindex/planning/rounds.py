"""Times the steps of a measurement in rounds, seconds apart.

What disturbs a step in one round seldom disturbs the same step in another. So the least time of
each step counts, and steps whose times differ show that the machine was busy.
"""

from __future__ import annotations

import time
from collections.abc import Callable

REPEATED = 3
"""Calls of a step that are timed in a round, after one that is not."""
STEADY = 1.25
"""The two least times of a step are within this factor of each other, or it is not steady."""
BUSY_SHARE = 0.1
"""Share of the steps that are not steady, from which the machine counts as busy."""


class Rounds:
    """The least time of each step, over some rounds."""

    def __init__(self, clock: Callable[[], float] = time.thread_time) -> None:
        self._clock = clock
        self._times: dict[str, list[float]] = {}
        """Of each step, the least of each round."""

    def seconds(self, step: str, call: Callable[[], object]) -> float:
        """Times a step, and tells its least time in this round and those before."""
        times = []
        for _ in range(REPEATED + 1):
            start = self._clock()
            call()
            times.append(self._clock() - start)
        found = self._times.setdefault(step, [])
        found.append(min(times[1:]))
        return min(found)

    def __len__(self) -> int:
        """Steps that were timed."""
        return len(self._times)

    @property
    def unsteady(self) -> list[str]:
        """Steps of which no two rounds agree on the least time."""
        return [
            step for step, times in self._times.items()
            if len(times) > 1 and sorted(times)[1] > STEADY * min(times)
        ]

    @property
    def busy(self) -> bool:
        """Whether the steps vary so much that the machine must have had other work."""
        return len(self.unsteady) > BUSY_SHARE * len(self._times)
