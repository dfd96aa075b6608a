"""Batches as `simindex plan` predicts them and as measured, from memory and from a cold file.

A prediction is compared with the fastest repetition, since the machine's constants are least times,
too: on a machine that others use, the others were disturbed. Of a cold file the disk is measured
before each repetition, and each has a prediction of its own.

Each repetition asks other queries, as far as there are enough: the rows near queries that were
asked before are in a cache, and a batch of 10,000 in 60 M rows then takes half as long.
"""

from __future__ import annotations

import os
import time
from argparse import Namespace
from dataclasses import dataclass, replace
from itertools import cycle, islice
from pathlib import Path

import simindex
from benchmarks.corpora import Corpus, H
from benchmarks.online import RECALL
from benchmarks.report import Measurement
from benchmarks.stopwatch import Stopwatch, say
from benchmarks.stored import Stored, prepare
from simindex import Batch, IndexOptions
from simindex.planning.disk_speed import read_bytes_s
from simindex.planning.forecast import Forecast, forecast
from simindex.planning.machine import Machine
from simindex.storage.files import readahead

BATCHES = (10_000, 100_000, 1_000_000)

SORTED_ONLY = ("psm",)

LEAST_S = 0.5
"""Short calls are repeated for so long, as others disturb more of them."""

Measured = list[Measurement]


@dataclass(frozen=True, slots=True)
class Case:
    """A line of a forecast: what an index has, and the recall asked for."""

    structures: tuple[str, ...]
    recall: float

    @property
    def method(self) -> str:
        """The line's first column."""
        return self.structures[-1]

    def predicted(self, rows: int, machine: Machine) -> Forecast:
        """The line."""
        lines = forecast(rows, h=H, recall=self.recall, machine=machine)
        found = [one for one in lines if one.method == self.method and one.recall == self.recall]
        if not found:
            told = ", ".join(one.method for one in lines)
            raise SystemExit(f"plan does not list {self.method} within {H} bits, but {told}")
        return found[0]


def plan(options: Namespace, directory: Path, watch: Stopwatch) -> Measured:
    """Tunes first, on the core and at the time of the measurements."""
    stored = prepare(Corpus(options.rows, options.queries, options.seed), directory)
    designs = options.structure or [IndexOptions().structures[-1]]
    cases = [Case(SORTED_ONLY, RECALL), Case(SORTED_ONLY, 1.0)]
    cases += [Case((*SORTED_ONLY, design), 1.0) for design in designs]
    for case in cases:
        case.predicted(options.rows, Machine())
    measured: Measured = []
    with simindex.open(stored.path, "w") as index:
        index.tune()
    for case in cases:
        with simindex.open(stored.path, "w") as index:
            if index.options.structures != case.structures:
                index.compact(full=True, structures=case.structures)
        for m in BATCHES:
            if m <= len(stored.queries):
                batches = _batches(stored, m)
                with simindex.open(stored.path) as index:
                    measured += _in_memory(options, index, case, batches, watch)
                    measured += _cold(options, index, case, batches, watch)
    return measured


def _batches(stored: Stored, m: int) -> list[Batch]:
    """The queries in batches of m."""
    return [
        Batch(stored.queries[start : start + m], weights=stored.weights[start : start + m])
        for start in range(0, len(stored.queries) - m + 1, m)
    ]


def _in_memory(
    options: Namespace, index: simindex.Index, case: Case, batches: list[Batch], watch: Stopwatch
) -> Measured:
    m, fresh = len(batches[0]), cycle(batches)
    predicted = case.predicted(options.rows, index.machine).batch_queries_s[m]

    def ask() -> simindex.Matches:
        return index.query(next(fresh), h=H, recall=case.recall, threads=1)

    (first_s, *_), _ = replace(watch, repeat=1).seconds(ask)
    often = min(len(batches), int(LEAST_S / first_s))
    rates, found = replace(watch, repeat=max(watch.repeat, often)).rates(m, ask)
    off = predicted / max(rates) - 1
    return [_line(options, case, m, "memory", rates, predicted, off, found)]


def _cold(
    options: Namespace, index: simindex.Index, case: Case, batches: list[Batch], watch: Stopwatch
) -> Measured:
    """By the clock on the wall, with every core; the disk is measured before each call."""
    core, machine, m = os.sched_getaffinity(0), index.machine, len(batches[0])
    rates, predicted = [], []
    os.sched_setaffinity(0, range(os.cpu_count() or 1))
    try:
        for batch in islice(cycle(batches), watch.repeat):
            speed = _drop(index)
            start = time.perf_counter()
            found = index.query(batch, h=H, recall=case.recall, threads=1)
            rates.append(m / (time.perf_counter() - start))
            now = replace(machine, disk_bytes_s=speed or machine.disk_bytes_s)
            predicted.append(case.predicted(options.rows, now).cold_queries_s[m])
    finally:
        os.sched_setaffinity(0, core)
    fastest = max(range(len(rates)), key=rates.__getitem__)
    off = predicted[fastest] / rates[fastest] - 1
    return [
        _line(options, case, m, "cold file", tuple(rates), predicted[fastest], off, found)
    ]


def _line(
    options: Namespace, case: Case, m: int, where: str, rates: tuple[float, ...],
    predicted: float, off: float, found: simindex.Matches,
) -> Measurement:
    one = Measurement(
        f"plan, m = {m:,}, {where}", f"{case.method}, recall {case.recall:g}",
        options.rows, rates, "queries/s",
        notes=f"predicted {predicted:,.0f}/s, {off:+.0%}; by {found.stats.method}, "
        f"k = {found.stats.flips}",
    )
    say(f"  {one.engine}, {one.workload}: {max(one.rates):,.0f}/s, {one.notes}")
    return one


def _drop(index: simindex.Index) -> float:
    """Takes the segments out of memory; returns the disk's bytes a second, measured so, or 0."""
    speed = 0.0
    for table in index._current().segments:
        files = [index.path / "segments" / table.name]
        held = [table.fingerprints, table.ids]
        for structure in table.structures.values():
            held += [one.fingerprints for one in structure.tables]
            files.append(index.path / "segments" / structure.record.name)
        for rows in held:
            readahead.give_back(rows)
        for path in files:
            speed = read_bytes_s(path) or speed
            with path.open("rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    return speed
