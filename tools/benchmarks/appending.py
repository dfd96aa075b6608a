"""Appending by batches to an index that grows: does a batch take as long as the first did?"""

from __future__ import annotations

import os
import time
from argparse import Namespace
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import simindex
from benchmarks import machine
from benchmarks.building import remove
from benchmarks.report import Measurement
from benchmarks.stopwatch import Stopwatch, say

BATCH_ROWS = 100_000


@dataclass(slots=True)
class Run:
    """One index from its first batch to its last; times in ms, one a batch."""

    wall: list[float] = field(default_factory=list)
    own: list[float] = field(default_factory=list)
    """Of the processor, in the thread that appends."""
    cpu: list[float] = field(default_factory=list)
    """In all threads."""
    segments: list[int] = field(default_factory=list)
    rest_s: float = 0.0
    """Until the merges that ran at the end, and those due then, were installed."""
    left: int = 0
    """Segments after that."""
    others: float = 0.0
    """Cores that other processes took meanwhile, in the mean: by wall time they make a run slow."""

    def verdict(self) -> list[str]:
        """Whether all batches are within twice the first, by each clock; and what first is.

        The first batch is the very first. The median of the first five is printed, too, because one
        batch may be slow by chance.
        """
        told = []
        for clock, times in (("wall", self.wall), ("processor, own thread", self.own)):
            first, few = times[0], float(np.median(times[:5]))
            above = [sum(ms > 2 * base for ms in times) for base in (first, few)]
            told.append(
                f"{clock}: {'FLAT' if above[0] == 0 else 'NOT FLAT'}, {above[0]} of {len(times)} "
                f"batches above 2 x the first; first {first:.1f} ms, median of the first five "
                f"{few:.1f} ({above[1]} above 2 x that), median {np.median(times):.1f}, p95 "
                f"{np.percentile(times, 95):.1f}, slowest {max(times):.1f} = "
                f"{max(times) / first:.2f} x the first, batch {int(np.argmax(times)) + 1}"
            )
        return [*told, f"other processes took {self.others:.2f} cores meanwhile"]

    def to_dict(self) -> dict[str, Any]:
        """Notes on the measurement, below the table."""
        share = 100 * float(np.mean(np.array(self.wall) <= 2 * self.wall[0]))
        return {
            "first": round(self.wall[0], 1), "median": round(float(np.median(self.wall)), 1),
            "p95": round(float(np.percentile(self.wall, 95)), 1),
            "max": round(max(self.wall), 1), "within 2x of the first": f"{share:.1f}%",
            "own cpu first / median / max": " / ".join(
                f"{ms:.1f}" for ms in (self.own[0], float(np.median(self.own)), max(self.own))
            ),
            "cpu of all threads, mean": round(float(np.mean(self.cpu)), 1),
            "segments mean / most / at the end": (
                f"{np.mean(self.segments):.1f} / {max(self.segments)} / {self.left}"
            ),
            "total s": round(sum(self.wall) / 1e3 + self.rest_s, 2),
            "of that merges at the end s": round(self.rest_s, 2),
        }


def append_batches(options: Namespace, directory: Path, watch: Stopwatch) -> list[Measurement]:
    """Random rows with ids, appended and committed 100,000 at a time, with default options.

    On all cores, where merges run during commits, and on one core, where they delay them.
    """
    measured: list[Measurement] = []
    drawn: dict[str, Run] = {}
    for name, cores in (("simindex", machine.on_every_core()), ("simindex, one core", None)):
        runs = []
        with cores or nullcontext():
            for repetition in range(watch.repeat):
                runs.append(filled(directory / "append.sim", options.rows, options.seed))
                say(f"  {name} {repetition + 1}: {runs[-1].to_dict()}")
                for line in runs[-1].verdict():
                    say(f"    {line}")
        middle = sorted(runs, key=lambda run: sum(run.wall))[len(runs) // 2]
        drawn[name] = middle
        measured += table(name, options.rows, runs, middle)
        for line in middle.verdict():
            say(f"  {name}, middle run: {line}")
    if options.plot is not None:
        plot(drawn, options.rows, options.plot)
    return measured


def filled(path: Path, rows: int, seed: int) -> Run:
    """Makes the index and removes it again."""
    remove(path)
    rng = np.random.default_rng(seed)
    run = Run()
    index = simindex.open(path, "n")
    busy = busy_s()
    for first in range(0, rows, BATCH_ROWS):
        count = min(BATCH_ROWS, rows - first)
        words = rng.integers(0, 2**64, count, dtype=np.uint64)
        ids = np.arange(first, first + count, dtype=np.uint64)
        wall, own, cpu = time.perf_counter(), time.thread_time(), time.process_time()
        index.append(words, ids=ids)
        index.commit()
        run.wall.append(1e3 * (time.perf_counter() - wall))
        run.own.append(1e3 * (time.thread_time() - own))
        run.cpu.append(1e3 * (time.process_time() - cpu))
        run.segments.append(index.stats().segments)
    run.others = (busy_s() - busy) / (sum(run.wall) / 1e3 or 1.0)
    start = time.perf_counter()
    index.compact()
    run.rest_s = time.perf_counter() - start
    run.left = index.stats().segments
    if len(index) != rows:
        raise SystemExit("the index does not hold every row")
    index.close()
    remove(path)
    return run


def busy_s() -> float:
    """Processor seconds that other processes have used so far; 0 where that is not known."""
    try:
        line = Path("/proc/stat").read_text("ascii").splitlines()[0].split()
    except OSError:
        return 0.0
    ticks = sum(int(line[place]) for place in (1, 2, 3, 6, 7, 8))
    return ticks / os.sysconf("SC_CLK_TCK") - time.process_time()


def table(name: str, rows: int, runs: Sequence[Run], middle: Run) -> list[Measurement]:
    """First batch, median, 95th percentile and slowest, of each run; and the rate of all."""
    about = middle.to_dict()
    notes = {
        "first": f"own cpu first / median / max {about['own cpu first / median / max']} ms",
        "median": f"{about['within 2x of the first']} of batches within 2x of the first",
        "p95": f"cpu of all threads {about['cpu of all threads, mean']} ms a batch",
        "max": f"segments mean / most / at the end {about['segments mean / most / at the end']}",
    }
    takes: dict[str, Callable[[Run], float]] = {
        "first": lambda run: run.wall[0], "median": lambda run: float(np.median(run.wall)),
        "p95": lambda run: float(np.percentile(run.wall, 95)), "max": lambda run: max(run.wall),
    }
    measured = []
    for what, take in takes.items():
        ratio = "" if what == "first" else f"{take(middle) / middle.wall[0]:.2f} x the first; "
        measured.append(
            Measurement(
                f"append-batches {what}", name, rows, tuple(take(run) for run in runs), "ms",
                notes=ratio + notes[what],
            )
        )
    rates = tuple(rows / (sum(run.wall) / 1e3 + run.rest_s) for run in runs)
    rest = f"merges that remained included, {middle.rest_s:.2f} s"
    return [*measured, Measurement("append-batches", name, rows, rates, "rows/s", notes=rest)]


def plot(runs: dict[str, Run], rows: int, path: Path) -> None:
    """Time of each batch, and a line at twice the time of the first."""
    from reproduce.plots import COLOURS, _figure, _save

    figure, axes = _figure(1, len(runs), 10, 3.1, sharey=True)
    for axis, (name, run) in zip(axes[0], runs.items(), strict=True):
        axis.axhline(2 * run.wall[0], color=COLOURS[5], linewidth=0.8, linestyle="--",
                     label="twice the first batch")
        axis.plot(run.wall, color=COLOURS[0], linewidth=1.0, label="append and commit")
        axis.plot(run.own, color=COLOURS[1], linewidth=0.8, label="processor time of its thread")
        axis.set_title(name, fontsize=9)
        axis.set_xlabel(f"batch of {BATCH_ROWS:,} rows, {rows:,} in all")
    axes[0][0].set_ylabel("ms a batch")
    axes[0][0].set_ylim(0)
    figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    _save(figure, path)
