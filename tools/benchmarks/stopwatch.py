"""Repeated timing, and runs in a fresh process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

Result = TypeVar("Result")
Clock = Literal["wall", "cpu"]

CLOCKS: dict[Clock, Callable[[], float]] = {"wall": time.perf_counter, "cpu": time.process_time}
"""Seconds as they pass, or as this process uses them; the latter on a machine others use too."""


@dataclass(frozen=True, slots=True)
class Stopwatch:
    """Times calls; the clock and the number of repetitions are the run's."""

    repeat: int = 3
    clock: Clock = "wall"

    def seconds(self, call: Callable[[], Result]) -> tuple[list[float], Result]:
        """Seconds of each repetition, after one that is not counted, and the last result."""
        result = call()
        times = []
        for _ in range(self.repeat):
            start = CLOCKS[self.clock]()
            result = call()
            times.append(CLOCKS[self.clock]() - start)
        return times, result

    def in_turn(self, calls: Mapping[str, Callable[[], object]]) -> dict[str, list[float]]:
        """Seconds of each repetition of several calls, one after the other in every round.

        Whatever slows the machine down for a while then slows all of them.
        """
        times: dict[str, list[float]] = {name: [] for name in calls}
        for round_ in range(self.repeat + 1):
            for name, call in calls.items():
                start = CLOCKS[self.clock]()
                call()
                if round_ > 0:
                    times[name].append(max(CLOCKS[self.clock]() - start, 1e-9))
        return times

    def rates(self, work: int, call: Callable[[], Result]) -> tuple[tuple[float, ...], Result]:
        """Units of work a second of each repetition, and the last result."""
        times, result = self.seconds(call)
        return tuple(work / max(seconds, 1e-9) for seconds in times), result


def in_fresh_process(
    task: str, *, environment: Mapping[str, str] | None = None, **arguments: Any
) -> dict[str, Any]:
    """What a task of `child.py` measures in an interpreter of its own."""
    script = Path(__file__).with_name("child.py")
    finished = subprocess.run(
        [sys.executable, str(script), task, json.dumps(arguments)],
        stdout=subprocess.PIPE, text=True, check=True, env={**os.environ, **(environment or {})},
    )
    answer: dict[str, Any] = json.loads(finished.stdout.splitlines()[-1])
    return answer


def say(text: str) -> None:
    """Progress, for people."""
    print(text, file=sys.stderr, flush=True)
