"""A sliding memory: each day a batch comes and the rows of the oldest day expire.

    filled   DAYS batches, a commit each, so that the window has --rows rows
    slid     SLID more days: append and commit, then expire and commit; nothing compacts

The clock of the index is set to the day. What merges have dropped by the end of a day is what the
disk holds then; the last lines compare this with an index that left its `with` block, and with one
that was compacted.
"""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

import simindex
from benchmarks.building import remove
from benchmarks.report import Measurement
from benchmarks.stopwatch import CLOCKS, Stopwatch, say
from simindex.storage.tables import times

DAYS = 60
"""Of the window."""

SLID = 90
"""Further days: the window is another one by then."""

DAY_S = 86_400


def expire(options: Namespace, directory: Path, watch: Stopwatch) -> list[Measurement]:
    """What `expire` and the commits take, and what the disk holds without an explicit compact."""
    path = directory / "sliding.sim"
    remove(path)
    rng = np.random.default_rng(options.seed)
    batch_rows = max(1, options.rows // DAYS)
    clock = time.thread_time if watch.clock == "cpu" else CLOCKS["wall"]
    filling: list[float] = []
    adding: list[float] = []
    expiring: list[float] = []
    committing: list[float] = []
    held: list[float] = []
    dead: list[float] = []

    def ms(call: Callable[[], object]) -> float:
        start = clock()
        call()
        return 1e3 * (clock() - start)

    def add() -> None:
        index.append(rng.integers(0, 2**63, batch_rows, dtype=np.uint64))
        index.commit()

    plain = simindex.IndexOptions(times=True)
    began = time.perf_counter()
    with mock.patch.object(times, "clock", return_value=0.0) as now:
        with simindex.open(path, "c", options=plain) as index:
            for day in range(1, DAYS + 1):
                now.return_value = float(day * DAY_S)
                filling.append(ms(add))
            say(f"  filled in {time.perf_counter() - began:.1f} s, {_told(index, path)}")
            for day in range(DAYS + 1, DAYS + SLID + 1):
                now.return_value = float(day * DAY_S)
                adding.append(ms(add))
                expiring.append(ms(lambda: index.expire(older_than=(DAYS - 1) * DAY_S)))
                committing.append(ms(index.commit))
                stats = index.stats()
                if len(index) != DAYS * batch_rows:
                    raise SystemExit(f"day {day}: {len(index):,} rows are left")
                dead.append(stats.dead_rows / len(index))
                held.append(_bytes(path) / len(index))
            say(f"  slid in {time.perf_counter() - began:.1f} s, {_told(index, path)}")
        with simindex.open(path, "w") as index:
            left = _told(index, path)
            say(f"  left, {left}")
            index.compact(full=True)
            compacted = _told(index, path)
    remove(path)
    rows = DAYS * batch_rows
    day_rows = f"{batch_rows:,} rows a day, {DAYS} days"

    def line(what: str, measured: list[float], unit: str, notes: str = "") -> Measurement:
        return Measurement(f"expire: {what}", "simindex", rows, tuple(measured), unit, notes=notes)

    return [
        line("append and commit, filling", filling, "ms", day_rows),
        line("append and commit, sliding", adding, "ms", f"{SLID} days"),
        line("expire", expiring, "ms"),
        line("commit of it", committing, "ms"),
        line("dead rows, of those alive", [100 * one for one in dead], "%"),
        line("disk", held, "bytes a row", f"after the with block {left}; compacted {compacted}"),
    ]


def _bytes(path: Path) -> int:
    """What the files take; a merge may remove some meanwhile."""
    total = 0
    for file in path.rglob("*"):
        try:
            total += 512 * file.stat().st_blocks
        except FileNotFoundError:
            continue
    return total


def _told(index: Any, path: Path) -> str:
    stats = index.stats()
    return (
        f"{stats.segments} segments, {stats.dead_rows:,} dead rows, "
        f"{_bytes(path) / max(1, len(index)):.1f} bytes a row"
    )
