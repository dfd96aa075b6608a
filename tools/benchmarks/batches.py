"""Batch mode: millions of queries in a call, against tables in memory and on a cold disk."""

from __future__ import annotations

import os
import time
from argparse import Namespace
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

import simindex
from benchmarks.corpora import Corpus, H
from benchmarks.machine import disk_bytes
from benchmarks.online import RECALL, exact_pairs, pairs_of
from benchmarks.report import Measurement
from benchmarks.stopwatch import Stopwatch, say
from benchmarks.stored import Stored, prepare
from simindex import Batch
from simindex.planning.measurement import read_bytes_s
from simindex.planning.model import disk_s, rate
from simindex.storage.files import readahead

SMALLER = (100, 10, 1)
"""Batches of so many times fewer queries than asked for."""

BATCHES = (10_000, 100_000, 1_000_000, 10_000_000)
"""[PSM] section 6 gives its rates for batches of such sizes."""


def batch_psm(options: Namespace, directory: Path, watch: Stopwatch) -> list[Measurement]:
    """All matches (A) and the first ones (F) of batches of several sizes; one thread and two."""
    stored = prepare(Corpus(options.rows, options.queries, options.seed), directory)
    measured = []
    with simindex.open(stored.path) as index:
        truth, sample = exact_pairs(index, stored)
        answered = {query for query, _ in truth}
        for fewer in SMALLER:
            batch = _batch(stored, options.queries // fewer)
            for first in (False, True):
                ask = partial(index.query, batch, h=H, recall=RECALL, first=first, threads=1)
                rates, found = watch.rates(len(batch), ask)
                below = min(sample, len(batch))
                got = pairs_of(found, below)
                if not got <= truth:
                    raise SystemExit("a match is none: precision is below 1")
                if first:
                    wanted = {query for query in answered if query < below}
                    recall = len({query for query, _ in got}) / len(wanted)
                else:
                    recall = len(got) / len({pair for pair in truth if pair[0] < below})
                one = Measurement(
                    f"batch-psm, m = {len(batch):,}", f"PSM{'F' if first else 'A'}",
                    options.rows, rates, "queries/s",
                    bytes_per_row=disk_bytes(stored.path) / options.rows, recall=recall,
                    notes=(
                        f"k = {found.stats.flips}, {found.stats.probes / len(batch):.1f} "
                        "headers a query"
                    ),
                )
                say(f"  {one.workload} {one.engine}: {one.median:,.0f}/s")
                measured.append(one)
        measured += _threads(options, index, stored, watch)
    return measured


def _batch(stored: Stored, queries: int) -> Batch:
    return Batch(stored.queries[:queries], weights=stored.weights[:queries])


def _threads(
    options: Namespace, index: simindex.Index, stored: Stored, watch: Stopwatch
) -> list[Measurement]:
    """The largest batch by one thread and by two, in turn, by the wall clock."""
    batch = _batch(stored, options.queries)
    core = os.sched_getaffinity(0)
    os.sched_setaffinity(0, range(os.cpu_count() or 1))
    wall = Stopwatch(watch.repeat, "wall")
    measured = []
    try:
        for first in (False, True):
            ask = partial(index.query, batch, h=H, recall=RECALL, first=first)
            times = wall.in_turn(
                {str(threads): partial(ask, threads=threads) for threads in (1, 2)}
            )
            ratios = sorted(
                one / two for one, two in zip(times["1"], times["2"], strict=True)
            )
            measured += [
                Measurement(
                    f"batch-psm, m = {len(batch):,}, wall",
                    f"PSM{'F' if first else 'A'}, {threads} threads", options.rows,
                    tuple(len(batch) / seconds for seconds in times[threads]), "queries/s",
                    notes="" if threads == "1" else (
                        f"{ratios[len(ratios) // 2]:.2f} times one thread, "
                        f"{ratios[0]:.2f} - {ratios[-1]:.2f}"
                    ),
                )
                for threads in ("1", "2")
            ]
    finally:
        os.sched_setaffinity(0, core)
    return measured


def batch_model(options: Namespace, directory: Path, watch: Stopwatch) -> list[Measurement]:
    """[PSM] (18) beside what is measured, from a file that is on the disk only."""
    stored = prepare(Corpus(options.rows, options.queries, options.seed), directory)
    os.sched_setaffinity(0, range(os.cpu_count() or 1))
    with simindex.open(stored.path, "w") as index:
        index.tune()
        return [
            _modelled(options, index, _batch(stored, m), watch)
            for m in BATCHES if m <= options.queries
        ]


def _modelled(
    options: Namespace, index: simindex.Index, batch: Batch, watch: Stopwatch
) -> Measurement:
    rates, models = [], []
    m = len(batch)
    for _ in range(watch.repeat + 1):
        found, seconds, model = _cold(options, index, batch)
        rates.append(m / seconds)
        models.append(model)
    ratio = float(np.median(np.array(rates[1:]) / np.array(models[1:])))
    one = Measurement(
        f"batch-model, m = {m:,}", "PSMA from a cold file", options.rows, tuple(rates[1:]),
        "queries/s",
        notes=(
            f"model {np.median(models[1:]):,.0f}, measured {ratio:.2f} of it; "
            f"k = {found.stats.flips}"
        ),
    )
    say(f"  m = {m:,}: {one.median:,.0f}/s, {one.notes}")
    return one


def _cold(
    options: Namespace, index: simindex.Index, batch: Batch
) -> tuple[simindex.Matches, float, float]:
    """A call on files that are not in memory, its seconds, and the model's rate."""
    snapshot = index._current()
    plan = index._answerer.plans.plan(
        snapshot, index._answerer.question(h=H, recall=RECALL), len(batch), batch.weights
    )
    speed = _drop(index)
    start = time.perf_counter()
    found = index.query(batch, h=H, recall=RECALL, threads=1)
    seconds = time.perf_counter() - start
    # Ids stand beside the rows, and a batch reads them all for its matches.
    read = disk_s(replace(index.machine, disk_bytes_s=speed), options.rows, 64 + 64)
    computed = len(batch) * plan.tables[0].nanoseconds * 1e-9
    return found, seconds, rate(len(batch), read, computed)


def _drop(index: simindex.Index) -> float:
    """Takes the segments out of memory; returns the disk's bytes a second, measured so."""
    speed = 0.0
    for table in index._current().segments:
        readahead.give_back(table.fingerprints)
        readahead.give_back(table.ids)
        path = index.path / "segments" / table.name
        speed = read_bytes_s(path) or speed
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    return speed
