"""The long trials of an index: `python tools/torture.py WHAT [WHAT ...]`, or `all`.

Each prints what it did and its goal; the exit code is 1 if one did less than its goal or
anything was lost, wrong, ended by a signal, hung or left behind.
docs/explanation/reliability.md holds what was seen, with the command that made it.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from importlib import import_module

from reliability import report

TRIALS: dict[str, tuple[int, str]] = {
    # name: (goal, what it is); module tools/reliability/<name, - as _>.py has
    # run(goal: int, seed: int, jobs: int) -> list[report.Outcome]
    "power-loss": (100_000, "distinct states that a power cut may leave, recoveries included"),
    "shutdowns": (300, "crashes of a real ext4; needs root and loop devices"),
    "kills": (2_000, "writers killed at random moments, while readers read"),
    "syscalls": (40, "commits of a script that is killed at each of its system calls"),
    "errors": (9_000, "errors, at least: each fallible call at each use, once and for good"),
    "full-disk": (4_000, "operations on a disk with so many kilobytes left"),
    "damage": (20_000, "every kind of file damaged in every kind of way"),
    "bits": (800_000, "every single-bit error in live bytes is found by check"),
    "model": (100_000, "steps of random use, compared with a list of rows"),
    "backups": (2_000, "stops of a backup, and power cuts; a tenth as many beside a writer"),
    "interrupts": (150_000, "lines of each public call at which Ctrl-C or an alarm ends it"),
    "recovery": (20, "opens of 1,000 segments after a kill, in a second each"),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the trials named and prints their table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="\n".join(f"{name:12} {goal:>9,}  {what}" for name, (goal, what) in TRIALS.items()),
    )
    parser.add_argument("what", nargs="+", choices=[*TRIALS, "all"], metavar="WHAT")
    parser.add_argument("--goal", type=int, help="instead of the goal of each trial")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="default: the time")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    asked = parser.parse_args(arguments)
    if asked.goal is not None and asked.goal < 1:
        parser.error(f"--goal {asked.goal}: give 1 or more")
    names = list(TRIALS) if "all" in asked.what else asked.what
    outcomes: list[report.Outcome] = []
    for name in names:
        module = import_module("reliability." + name.replace("-", "_"))
        goal = TRIALS[name][0] if asked.goal is None else asked.goal
        print(f"{name}: goal {goal:,}, seed {asked.seed}", file=sys.stderr, flush=True)
        outcomes += module.run(goal, asked.seed, asked.jobs)
    print(report.table(outcomes))
    return 0 if all(outcome.passed for outcome in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
