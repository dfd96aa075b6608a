"""Rows appended in batches: at once after the last commit, once the writer was idle, compacted."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import numpy as np

import simindex
from benchmarks.corpora import U64
from benchmarks.report import Measurement
from benchmarks.stopwatch import CLOCKS, Stopwatch, say

BATCH_ROWS = 1_000_000

CALL_QUERIES = 100_000
"""Or a tenth of the rows, if those are fewer: small indexes are scanned for a while."""

SINGLE_CALLS, WARM_CALLS = 2_000, 100

FLIPPED = 2
"""Bits in which a query differs from a stored row."""

RADII = (3, 6)

PATIENCE_S = 600.0


def settled(options: Namespace, directory: Path, watch: Stopwatch) -> list[Measurement]:
    """Rates of large calls, and times of single queries, in three states of one index.

    Each state is kept open by a reader, and all are asked in turn once nothing is merged any more.
    """
    path = directory / "settled.sim"
    rng = np.random.default_rng(options.seed)
    with simindex.open(path, "n") as index:
        sample = []
        for first in range(0, options.rows, BATCH_ROWS):
            rows = rng.integers(0, 2**64, min(BATCH_ROWS, options.rows - first), dtype=np.uint64)
            sample.append(rows[: CALL_QUERIES // 10])
            index.append(rows)
            index.commit()
            say(f"  {first + len(rows):,} rows")
        states = {"at once": (simindex.open(path, refresh=False), 0.0)}
        began = time.monotonic()
        while not _is_settled(index) and time.monotonic() - began < PATIENCE_S:
            time.sleep(0.1)
        states["settled"] = simindex.open(path, refresh=False), time.monotonic() - began
        began = time.monotonic()
        index.compact(full=True)
        states["compacted"] = simindex.open(path, refresh=False), time.monotonic() - began
    count = min(CALL_QUERIES, max(1, options.rows // 10))
    queries = _flipped(rng, np.concatenate(sample), count)
    with ExitStack() as opened:
        for reader, _ in states.values():
            opened.enter_context(reader)
        return _asked(states, queries, options.rows, watch)


def _is_settled(index: simindex.Index) -> bool:
    writer = index._handle.writer
    with index._handle.lock:
        return writer is None or writer.is_settled


def _flipped(rng: np.random.Generator, rows: U64, count: int) -> U64:
    chosen = rng.choice(rows, count)
    for bit in rng.integers(0, 64, (FLIPPED, count), dtype=np.uint64):
        chosen ^= np.uint64(1) << bit
    return chosen


def _asked(
    states: Mapping[str, tuple[simindex.Index, float]], queries: U64, rows: int, watch: Stopwatch
) -> list[Measurement]:
    notes = {name: _notes(reader, seconds) for name, (reader, seconds) in states.items()}
    found = []
    for h in RADII:
        calls = {
            name: partial(reader.query, queries, h=h, threads=1)
            for name, (reader, _) in states.items()
        }
        for name, times in watch.in_turn(calls).items():
            rates = tuple(len(queries) / seconds for seconds in times)
            found.append(
                Measurement(f"segments h={h}", f"simindex, {name}", rows, rates, "queries/s",
                            notes=notes[name])
            )
    for name, (reader, _) in states.items():
        singles: list[float] = []
        for query in queries[: SINGLE_CALLS + WARM_CALLS]:
            start = CLOCKS[watch.clock]()
            reader.query(query, h=RADII[0])
            singles.append((CLOCKS[watch.clock]() - start) * 1e6)
        low, middle, high = np.percentile(singles[WARM_CALLS:], [25, 50, 75]).tolist()
        found.append(
            Measurement(f"segments, one query h={RADII[0]}", f"simindex, {name}", rows,
                        (low, middle, high), "µs", notes="quartiles of single calls")
        )
    return [*found, *_ratios(found, rows)]


def _ratios(found: list[Measurement], rows: int) -> list[Measurement]:
    """Of each state to the compacted one: rates, and how many times a query takes."""
    whole = {one.workload: one.median for one in found if one.engine.endswith("compacted")}
    return [
        Measurement(f"{one.workload}, to compacted", one.engine, rows,
                    (one.median / whole[one.workload],), "times")
        for one in found if not one.engine.endswith("compacted")
    ]


def _notes(index: simindex.Index, seconds: float) -> str:
    stats = index.stats()
    sizes = " + ".join(f"{one['rows'] / 1e6:.1f}" for one in stats.segment_list)
    told = "" if stats.compaction is None else (
        f"; predicted: one query {stats.compaction.query_time_ratio:.2f} times, calls at "
        f"{stats.compaction.batch_rate_ratio:.2f} of the rate"
    )
    return f"{sizes} M rows, after {seconds:.1f} s{told}"
