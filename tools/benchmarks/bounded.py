"""What answers take where they may be large: a limit of memory, first matches, and the shell."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import simindex
from benchmarks import machine
from benchmarks.building import plain_file, remove
from benchmarks.report import Measurement
from benchmarks.stopwatch import Stopwatch, in_fresh_process, say

HOT_SHARE = 2
"""One row in so many is one fingerprint, where rows are skewed."""

LIMITS = (None, 256 << 20, 32 << 20, 20 << 20)
"""Memory of a call: no limit; far more than the table takes at 1 M rows; less than twice of it, so
that it is read in order; and hardly more than the table."""

DOCUMENTS, SHELL_S = 300_000, 20.0
"""Lines of the shell's input, half of them equal, and for how long it may print."""


def limited(options: Namespace, directory: Path, watch: Stopwatch) -> list[Measurement]:
    """Queries with `memory_limit` and without, on a fifth of --rows rows in one sorted table.

    Uniform rows, all matches and the first; then rows of which half are one fingerprint, as are all
    queries: the first. Each call in a process of its own.
    """
    rows = max(1, options.rows // 5)
    source, path = plain_file(rows, options.seed, directory), directory / "limited.sim"
    measured: list[Measurement] = []
    for skewed in (False, True):
        words = np.fromfile(source, dtype="<u8")
        if skewed:
            words[::HOT_SHARE] = words[0]
        remove(path)
        with simindex.open(path, "n", options=simindex.IndexOptions(structures=("psm",))) as index:
            index.append(words)
            index.commit()
            index.compact(full=True)
        stored = machine.disk_bytes(path) / 2**20
        for first in ((True,) if skewed else (False, True)):
            for limit in LIMITS:
                say(f"  {'skewed' if skewed else 'uniform'}, first={first}, limit={limit}")
                told = in_fresh_process(
                    "limited", path=str(path), fingerprints=str(source), skewed=skewed,
                    queries=min(100_000, options.queries), first=first, limit=limit,
                    repeat=watch.repeat, clock=watch.clock,
                )
                name = "no limit" if limit is None else f"limit {limit >> 20} MiB"
                measured.append(
                    Measurement(
                        f"{'half of the rows equal' if skewed else 'uniform'}, "
                        f"{'first' if first else 'all'} matches: {name}",
                        "simindex", rows, tuple(told["seconds"]), "s",
                        notes=f"peak {told['peak_bytes'] / 2**20:,.0f} MiB, pages of the index of "
                        f"{stored:,.0f} MiB included; {told['matches']:,} matches of "
                        f"{told['queries']:,} queries",
                    )
                )
    remove(path)
    return measured


def shell(options: Namespace, directory: Path, watch: Stopwatch) -> list[Measurement]:
    """`simindex query` of 300,000 documents, half of them equal, on an index of the same."""
    source, path = directory / "documents.jsonl", directory / "documents.sim"
    source.write_text("".join(_lines(options.seed)), encoding="utf-8")
    remove(path)
    command = [sys.executable, "-P", "-m", "simindex"]
    subprocess.run([*command, "build", str(path), str(source), "--quiet"], check=True)
    times: list[float] = []
    peak = lines = 0
    for _ in range(watch.repeat):
        first, lines, peak_bytes = _printed([*command, "query", str(path), str(source)], watch)
        times.append(first)
        peak = max(peak, peak_bytes)
        say(f"  first line after {first:.2f} s, {lines:,} lines, peak {peak_bytes >> 20} MiB")
    remove(path)
    return [
        Measurement(
            "simindex query, half of the documents equal: first line", "simindex", DOCUMENTS,
            tuple(times), "s",
            notes=f"start of the process included; peak {peak / 2**20:,.0f} MiB in {SHELL_S:g} s, "
            f"in which it printed {lines:,} lines; {source.stat().st_size / 1e6:.0f} MB of text",
        )
    ]


def _printed(command: list[str], watch: Stopwatch) -> tuple[float, int, int]:
    """When a command prints its first byte, in seconds; lines in SHELL_S; its peak memory."""
    started = time.perf_counter()
    with subprocess.Popen([*command, "--quiet"], stdout=subprocess.PIPE, bufsize=0) as process:

        def spent() -> float:
            if watch.clock == "cpu":
                return machine.processor_seconds(process.pid)
            return time.perf_counter() - started

        assert process.stdout is not None
        if not process.stdout.read(1):
            raise SystemExit("simindex query printed nothing")
        first, lines = spent(), 0
        while spent() < SHELL_S:
            lines += process.stdout.read(1 << 20).count(b"\n")
        peak_bytes = machine.peak_bytes(process.pid)
        process.send_signal(signal.SIGTERM)
        process.stdout.close()
    return first, lines, peak_bytes


def _lines(seed: int) -> Iterator[str]:
    """Documents of 40 words, every other one the same."""
    rng = np.random.default_rng(seed)
    for number in range(DOCUMENTS):
        words = [0] * 40 if number % HOT_SHARE == 0 else rng.integers(0, 50_000, 40).tolist()
        text = " ".join(f"word{word + place}" for place, word in enumerate(words))
        yield json.dumps({"id": str(number), "text": text}) + "\n"
