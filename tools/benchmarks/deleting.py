"""What deletions and commits cost as they add up: a function for each cliff of `limits`."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

import simindex
from benchmarks.building import remove
from benchmarks.report import Measurement
from benchmarks.stopwatch import Stopwatch, say

APPENDED = 1 << 20
"""Rows of a batch while an index is filled."""

DELETED = 500_000
"""Ids of a commit meanwhile."""

LOOKED = 40
"""Commits that are timed; the reader asks after each."""

REPLACED_ROUNDS = 10


def one_deletion(options: Namespace, directory: Path, watch: Stopwatch) -> list[Measurement]:
    """A commit of one deletion, and a reader's next query, with --rows dead rows in an index of
    3.2 times as many: too few for a segment to be written again."""
    clock, dead = _clock(watch), options.rows
    rows, path = 16 * dead // 5, directory / "deleted.sim"
    rng = np.random.default_rng(options.seed)
    remove(path)
    with simindex.open(path, "c") as index:
        for start in range(0, rows, APPENDED):
            count = min(APPENDED, rows - start)
            index.append(rng.integers(0, 2**63, count, dtype=np.uint64))
            index.commit()
    ids = rng.permutation(rows).astype(np.uint64)
    with simindex.open(path, "w") as index, simindex.open(path) as reader:
        for start in range(0, dead, DELETED):
            index.delete(ids=ids[start : min(start + DELETED, dead)])
            index.commit()
        say(f"  {index.stats().dead_rows:,} of {rows:,} rows are deleted")
        query = rng.integers(0, 2**63, 1, dtype=np.uint64)
        reader.query(query, h=3)
        commits, asked = [], []
        for doomed in ids[dead : dead + LOOKED]:
            index.delete(ids=[int(doomed)])
            commits.append(_timed(clock, index.commit))
            asked.append(_timed(clock, lambda: reader.query(query, h=3)))
    remove(path)
    return [
        Measurement("commit of one deletion", "simindex", dead, _ms(commits), "ms"),
        Measurement("a reader's next query", "simindex", dead, _ms(asked), "ms"),
    ]


def replaced(options: Namespace, directory: Path, watch: Stopwatch) -> list[Measurement]:
    """A fifth of --rows keys, replaced ten times in ten batches each; and the disk after that."""
    clock, keys, path = _clock(watch), options.rows // 5, directory / "replaced.sim"
    rng = np.random.default_rng(options.seed)
    names = [f"http://site{number % 997}.example/page/{number}" for number in range(keys)]
    remove(path)
    rates: list[float] = []
    with simindex.open(path, "c", options=simindex.IndexOptions(keys=True)) as index:
        for _ in range(1 + REPLACED_ROUNDS):
            fingerprints = rng.integers(0, 2**63, keys, dtype=np.uint64)
            batches = [
                simindex.Batch(fingerprints[some], keys=[names[place] for place in some])
                for some in np.array_split(rng.permutation(keys), 10)
            ]
            seconds = 0.0
            for batch in batches:
                seconds += _timed(clock, partial(index.replace, batch))
                seconds += _timed(clock, index.commit)
            rates.append(keys / seconds / 1e3)
            say(f"  {rates[-1]:.0f} k/s, {_told(path)}")
    left = _told(path)
    with simindex.open(path, "w") as index:
        index.compact()
    compacted = _told(path)
    remove(path)
    return [
        Measurement("the first batches of keys", "simindex", keys, tuple(rates[:1]), "k/s"),
        Measurement(
            "replacing them again", "simindex", keys, tuple(rates[1:]), "k/s",
            notes=f"{left}; after compact {compacted}",
        ),
    ]


def followed(options: Namespace, directory: Path, watch: Stopwatch) -> list[Measurement]:
    """A reader's first query after a commit of one row, and others; six segments in a fifth of
    --rows rows. A query after a commit of another index has as little of its own in the processor's
    caches as the first one has, but nothing to follow; the query at once has all of it."""
    clock, rows, path = _clock(watch), options.rows // 5, directory / "followed.sim"
    apart = directory / "apart.sim"
    rng = np.random.default_rng(options.seed)
    remove(path)
    remove(apart)
    plain = simindex.IndexOptions(min_merge=0)
    with (
        simindex.open(path, "c", options=plain) as index, simindex.open(path) as reader,
        simindex.open(apart, "c", options=plain) as other_index,
    ):
        for _ in range(6):
            index.append(rng.integers(0, 2**63, rows // 6, dtype=np.uint64))
            index.commit()
        query = rng.integers(0, 2**63, 1, dtype=np.uint64)
        first: list[float] = []
        unmoved: list[float] = []
        other: list[float] = []
        for _ in range(10 * LOOKED):
            for changed, taken in ((index, first), (other_index, unmoved)):
                changed.append(rng.integers(0, 2**63, 1, dtype=np.uint64))
                changed.commit()
                taken.append(_timed(clock, lambda: reader.query(query, h=3)))
                for _ in range(3):
                    again = _timed(clock, lambda: reader.query(query, h=3))
            other.append(again)
    remove(path)
    remove(apart)
    return [
        Measurement("first query after a commit", "simindex", rows, _us(first), "µs"),
        Measurement("another, after a commit elsewhere", "simindex", rows, _us(unmoved), "µs"),
        Measurement("another, at once", "simindex", rows, _us(other), "µs"),
    ]


def _clock(watch: Stopwatch) -> Callable[[], float]:
    """Of the calling thread where processor time is asked for: merges run in others."""
    return time.thread_time if watch.clock == "cpu" else time.perf_counter


def _timed(clock: Callable[[], float], call: Callable[[], object]) -> float:
    start = clock()
    call()
    return clock() - start


def _ms(seconds: list[float]) -> tuple[float, ...]:
    return tuple(1e3 * one for one in seconds)


def _us(seconds: list[float]) -> tuple[float, ...]:
    return tuple(1e6 * one for one in seconds)


def _told(path: Path) -> str:
    """What files take, in MB."""
    sizes = [
        sum(file.stat().st_blocks * 512 for file in (path / part).iterdir()) / 1e6
        for part in ("segments", "catalog")
    ]
    return f"segments {sizes[0]:.0f} MB, catalog {sizes[1]:.0f}"
