"""Fuzzers of kernels and of everything that reads bytes: `python tools/fuzz.py [TARGET ...]`.

Native targets are built by clang with libFuzzer, AddressSanitizer and UndefinedBehaviorSanitizer;
Python targets run under atheris (`pip install 'simindex[fuzz]'`). Both go on from the corpus of the
last run, in build/fuzz. What is found at fault is kept there, and belongs into tests/regressions.

An execution is one input read to its end. Python targets execute an input once more with its
checksums made right, where that makes another one; kernels have none before them.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from fuzzing import compiled, libfuzzer
from reliability import report

BUILD = Path(__file__).resolve().parents[1] / "build" / "fuzz"

SHARES: dict[str, float] = {
    "probe": 7, "sweep": 3, "bphs": 5, "top": 2, "columns": 2, "issl": 0.8, "pairs": 0.4,
    "text": 1, "inputs": 1, "lmdb": 2.5, "segments": 0.1, "catalog": 0.1, "values": 0.3,
    "documents": 0.2, "arguments": 0.1, "wrecks": 0.002, "warc": 0.1, "arc": 0.1, "html": 0.1,
    "cells": 0.05, "arrays": 0.1, "tables": 0.1, "compressed": 0.1, "numpy": 0.1,
}
"""Executions of each target, in proportion: more of the faster ones."""

PYTHON = (
    "segments", "catalog", "values", "documents", "arguments", "wrecks", "warc", "arc", "html",
    "cells", "arrays", "tables", "compressed", "numpy",
)
"""Targets of `fuzzing.targets`."""

GOAL = 20_000_000

OWN_MB = {"python": 600, "native": 600}
"""What a process takes by itself: interpreter, instrumentation, shadow memory, and the corpus."""

WHY = (
    "fuzzing needs clang with libFuzzer and its runtime (Debian: apt install clang "
    "libclang-rt-dev) for the native targets, and atheris (pip install 'simindex[fuzz]') for the "
    "Python ones; missing here: {}"
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Builds, fuzzes, and prints the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    shares = {name: SHARES.get(name, 0.5) for name in (*compiled.names(), *PYTHON)}
    parser.add_argument(
        "targets", nargs="*", choices=[*shares, "all"], default="all", metavar="TARGET",
        help=", ".join(shares),
    )
    parser.add_argument("--goal", type=int, default=GOAL, help="executions of all targets")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="default: the time")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    asked = parser.parse_args(arguments)
    names = list(shares) if "all" in asked.targets else asked.targets
    clang = compiled.compiler()
    missing = ["clang with libFuzzer"] * (clang is None and bool(set(names) - {*PYTHON}))
    missing += ["atheris"] * (
        importlib.util.find_spec("atheris") is None and bool(set(names) & {*PYTHON})
    )
    if missing:
        print(WHY.format(" and ".join(missing)), file=sys.stderr)
        return 2
    programs: dict[str, Path] = {}
    if clang is not None and set(names) - {*PYTHON}:
        programs = compiled.build(clang, BUILD, asked.jobs)
    whole = sum(shares[name] for name in names)
    goals = {name: round(asked.goal * shares[name] / whole) for name in names}

    def one(name: str) -> libfuzzer.Run:
        print(f"{name}: goal {goals[name]:,}, seed {asked.seed}", file=sys.stderr, flush=True)
        if name in PYTHON:
            command = [sys.executable, str(Path(__file__).parent / "fuzzing/guided.py"), name]
            return libfuzzer.run(
                name, command, runs=goals[name], seed=asked.seed, work=BUILD,
                own_mb=OWN_MB["python"], environment={},
            )
        return libfuzzer.run(
            name, [str(programs[name])], runs=goals[name], seed=asked.seed, work=BUILD,
            own_mb=OWN_MB["native"], environment=compiled.ENVIRONMENT, seeds=compiled.seeds(name),
            most_bytes=compiled.most_bytes(name),
        )

    with ThreadPoolExecutor(asked.jobs) as pool:
        runs = list(pool.map(one, names))
    outcomes = [outcome_of(run, goals[run.name], asked.seed) for run in runs]
    print(report.table(outcomes))
    print()
    print(speeds(runs))
    return 0 if all(outcome.passed for outcome in outcomes) else 1


def outcome_of(run: libfuzzer.Run, goal: int, seed: int) -> report.Outcome:
    """A run as a trial."""
    return report.Outcome(
        f"fuzz {run.name}", goal, run.executions, run.seconds, seed, signals=run.faults,
        hangs=run.hangs,
    )


def speeds(runs: Sequence[libfuzzer.Run]) -> str:
    """Markdown: how fast each target was, and how much of the code was reached."""
    columns: tuple[tuple[str, Callable[[libfuzzer.Run], object]], ...] = (
        ("target", lambda run: run.name),
        ("executions", lambda run: f"{run.executions:,}"),
        ("behind checksums", lambda run: f"{run.behind:,}"),
        ("a CPU second", lambda run: f"{run.executions / max(run.cpu_s, 0.1):,.0f}"),
        ("edges", lambda run: f"{run.coverage:,}"),
        ("features", lambda run: f"{run.features:,}"),
        ("corpus", lambda run: f"{run.corpus:,}"),
    )
    lines = [
        "| " + " | ".join(name for name, _ in columns) + " |", "|---" + "|---:" * 6 + "|",
        *("| " + " | ".join(str(of(run)) for _, of in columns) + " |" for run in runs),
    ]
    done, behind = sum(run.executions for run in runs), sum(run.behind for run in runs)
    cpu_s = sum(run.cpu_s for run in runs)
    lines.append(f"| all | {done:,} | {behind:,} | {done / max(cpu_s, 0.1):,.0f} | | | |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
