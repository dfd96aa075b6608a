"""Mutations from a seed, without coverage: `python quick.py TARGET EXECUTIONS SEED`, as JSON.

A process of its own, so that a signal ends it and not the tests; its memory is measured, and an
execution that takes too long ends it, too.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from reliability import report

from fuzzing.mutation import mutated
from fuzzing.target import attempt
from fuzzing.targets import TARGETS

MOST_MEMORY_KB = 256 << 10
"""Memory that executions may take in addition to what the process took before."""

MOST_SECONDS = 30
"""Of one execution, on a machine that has other things to do."""


def fuzz(name: str, goal: int, seed: int, kept: Path | None = None) -> dict[str, int]:
    """Executes at least `goal` times; counts of what was done, and of what was at fault.

    Inputs that are at fault are written to the directory `kept`.
    """
    target, rng = TARGETS[name], Random(f"{name} {seed}")
    inputs = target.seeds()
    for data in inputs:
        attempt(target, data)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    done = faults = 0
    while done < goal:
        data = mutated(rng, inputs)
        signal.alarm(MOST_SECONDS)
        try:
            done += attempt(target, data)[0]
        except Exception as error:
            done += 1
            faults += 1
            print(f"{name}: {error!r} after {done} executions, seed {seed}", file=sys.stderr)
            if kept is not None:
                (kept / f"found-{name}-{seed}-{done}").write_bytes(data)
        signal.alarm(0)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return {"done": done, "faults": faults, "grown_kb": grown}


def run(names: Sequence[str], goal: int, seed: int) -> list[report.Outcome]:
    """Each target in a process of its own."""
    return [_run(name, goal, seed) for name in names]


def _run(name: str, goal: int, seed: int) -> report.Outcome:
    started = time.monotonic()
    ended = subprocess.run(
        [sys.executable, __file__, name, str(goal), str(seed)], capture_output=True, text=True,
        check=False, env={**os.environ, "PYTHONSAFEPATH": "1"},
    )
    sys.stderr.write(ended.stderr)
    seconds = time.monotonic() - started
    hung = ended.returncode == -signal.SIGALRM
    if ended.returncode:
        return report.Outcome(
            f"fuzz {name}", goal, 0, seconds, seed, signals=int(not hung), hangs=int(hung)
        )
    counts = json.loads(ended.stdout)
    too_much = counts["grown_kb"] > MOST_MEMORY_KB
    return report.Outcome(
        f"fuzz {name}", goal, counts["done"], seconds, seed,
        signals=counts["faults"] + int(too_much),
    )


if __name__ == "__main__":
    print(json.dumps(fuzz(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))
