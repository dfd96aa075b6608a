"""Batch mode: millions of queries in a call, against tables in memory."""

from __future__ import annotations

import os
from argparse import Namespace
from functools import partial
from pathlib import Path

import simindex
from benchmarks.corpora import Corpus, H
from benchmarks.machine import disk_bytes
from benchmarks.online import RECALL, exact_pairs, pairs_of
from benchmarks.report import Measurement
from benchmarks.stopwatch import Stopwatch, say
from benchmarks.stored import Stored, prepare
from simindex import Batch

SMALLER = (100, 10, 1)
"""Batches of so many times fewer queries than asked for."""


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
