"""Runs of programs that libFuzzer is part of: how often, how fast, and what was found."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

MOST_MEMORY_MB = 256
"""Memory that executions may take in addition to that of the process itself."""

MOST_SECONDS = 10
"""Of one execution; a slower one hangs."""


MOST_BYTES = 1 << 16
"""Of an input."""


@dataclass(frozen=True)
class Run:
    """What one program did."""

    name: str
    executions: int
    behind: int
    """Executions that no checksum stopped."""
    cpu_s: float
    seconds: float
    coverage: int
    """Edges reached."""
    features: int
    corpus: int
    """Inputs kept, each for something that no other reached."""
    hangs: int
    faults: int
    """Crashes, reports of sanitizers, answers that cannot be, and memory beyond its bound."""
    kept: tuple[Path, ...]
    """The inputs that did it."""


def run(
    name: str, command: Sequence[str], *, runs: int, seed: int, work: Path, own_mb: int,
    environment: dict[str, str], seeds: Sequence[bytes] = (), most_bytes: int = MOST_BYTES,
) -> Run:
    """Fuzzes until so many inputs were tried, or one is at fault.

    `work` holds the corpus, which later runs go on from, and the program's output. A program that
    executes inputs more than once counts that in the file that FUZZ_COUNTS names.
    """
    corpus = work / f"corpus-{name}"
    corpus.mkdir(parents=True, exist_ok=True)
    for number, seed_input in enumerate(seeds):
        (corpus / f"seed-{number}").write_bytes(seed_input)
    found = work / f"found-{name}-"
    for old in work.glob(f"found-{name}-*"):
        old.unlink()
    options = [
        f"-runs={runs}", f"-seed={seed % (1 << 32)}", f"-max_len={most_bytes}",
        "-use_value_profile=0", "-print_final_stats=1", "-reload=0", f"-timeout={MOST_SECONDS}",
        f"-rss_limit_mb={own_mb + MOST_MEMORY_MB}", f"-artifact_prefix={found}",
        f"-report_slow_units={MOST_SECONDS}", str(corpus),
    ]
    counts = work / f"counts-{name}"
    counts.write_bytes(bytes(16))
    started = time.monotonic()
    log = work / f"log-{name}"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*command, *options], stdout=output, stderr=output, cwd=work,
            env={**os.environ, **environment, "FUZZ_COUNTS": str(counts)},
        )
        _, status, used = os.wait4(process.pid, 0)
        code = process.returncode = os.waitstatus_to_exitcode(status)
    text = log.read_text("utf-8", "replace")
    # A slow unit is a note: an execution that hangs ends the program with a timeout.
    kept = tuple(
        path for path in sorted(work.glob(f"found-{name}-*")) if "-slow-unit-" not in path.name
    )
    hangs = sum("-timeout-" in path.name for path in kept)
    if code or kept:
        print(f"{name}: exit code {code}, see {log}", *kept, file=sys.stderr, flush=True)
    inputs = _last(r"stat::number_of_executed_units:\s*(\d+)", text)
    executions, behind = np.fromfile(counts, np.uint64).tolist()
    if not executions:
        executions = behind = inputs  # by a program that has no checksums to make right
    if not inputs:
        executions = behind = 0  # it ended early
    return Run(
        name, executions, behind, used.ru_utime + used.ru_stime,
        time.monotonic() - started, _last(r"cov: (\d+)", text), _last(r"ft: (\d+)", text),
        _last(r"corp: (\d+)", text), hangs, max(len(kept), int(code != 0)) - hangs, kept,
    )


def _last(pattern: str, text: str) -> int:
    found = re.findall(pattern, text)
    return int(found[-1]) if found else 0
