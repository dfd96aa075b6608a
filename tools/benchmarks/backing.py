"""A backup of a large index, new and brought up to date, next to the links that it makes."""

from __future__ import annotations

import subprocess
import time
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path

import numpy as np

import simindex
from benchmarks.building import remove
from benchmarks.report import Measurement
from benchmarks.stopwatch import Stopwatch, say

APPENDED = 1 << 20
"""Rows of a batch while the index is filled."""

ADDED = 100_000
"""Rows of the commits between two backups."""


def backup(options: Namespace, directory: Path, watch: Stopwatch) -> list[Measurement]:
    """New backups, backups after a commit and, as a bound, links of all files with a durable copy
    of the catalog. All on one file system."""
    path, to = directory / f"backed-{options.rows}.sim", directory / "backup"
    rng = np.random.default_rng(options.seed)
    if not path.exists():
        with simindex.open(path, "c") as index:
            for start in range(0, options.rows, APPENDED):
                count = min(APPENDED, options.rows - start)
                index.append(rng.integers(0, 2**63, count, dtype=np.uint64))
                index.commit()
    new, again, linked = [], [], []
    with simindex.open(path, "w") as index:
        for _ in range(watch.repeat + 1):
            remove(to)
            new.append(_timed(lambda: index.backup(to)))
            index.append(rng.integers(0, 2**63, ADDED, dtype=np.uint64))
            index.commit()
            again.append(_timed(lambda: index.backup(to)))
            remove(to)
            linked.append(_timed(lambda: _linked(path, to)))
        remove(to)
        report = index.backup(to)
        stats = index.stats()
    size = f"{stats.bytes_segments / 1e9:.2f} GB in {len([*(path / 'segments').iterdir()])} files"
    notes = f"{size}, catalog {report.bytes_copied / 1e6:.0f} MB"
    say(f"  {notes}")
    remove(to)
    if not options.keep:
        remove(path)
    return [
        Measurement("backup", "simindex, new", options.rows, tuple(new[1:]), "s", notes=notes),
        Measurement("backup", "simindex, after a commit", options.rows, tuple(again[1:]), "s"),
        Measurement("backup", "cp --link", options.rows, tuple(linked[1:]), "s",
                    notes="all files; data.mdb copied and synced"),
    ]


def _linked(path: Path, to: Path) -> None:
    """What a backup cannot do without, by `cp` and `sync`: no check, and of no certain commit."""
    (to / "catalog").mkdir(parents=True)
    for command in (
        ["cp", "-r", "--link", str(path / "segments"), str(to)],
        ["cp", str(path / "FORMAT"), str(to)],
        ["cp", str(path / "catalog" / "data.mdb"), str(to / "catalog")],
        ["sync", str(to / "catalog" / "data.mdb"), str(to / "segments"), str(to)],
    ):
        subprocess.run(command, check=True)


def _timed(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started
