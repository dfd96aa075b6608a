"""Rows that share bits: queries where headers are crowded, and groups of many near rows."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Sized
from functools import partial
from pathlib import Path

import numpy as np

import simindex
from benchmarks.building import remove
from benchmarks.report import Measurement
from benchmarks.stopwatch import Stopwatch

SHARED_BITS, RADII = 24, (3, 7)
"""7 is what the default recipes recommend."""

TEMPLATES, TEMPLATE_BITS = 100, 3


def shared_bits(options: Namespace, directory: Path, watch: Stopwatch) -> list[Measurement]:
    """Exact queries on a fifth of --rows rows that share their first 24 bits, with the default
    structures, and on uniform rows. Each query is a row with two other bits flipped."""
    rows, path = max(1, options.rows // 5), directory / "shared.sim"
    found = []
    for shared in (0, SHARED_BITS):
        rng = np.random.default_rng(options.seed)
        made = rng.integers(0, 2**64, rows, dtype=np.uint64)
        if shared:
            made = (made >> np.uint64(shared)) | np.uint64(0xABCDEF << (64 - shared))
        asked = made[rng.integers(0, rows, min(100_000, options.queries))]
        for _ in range(2):
            asked = asked ^ np.uint64(1) << rng.integers(0, 64 - shared, len(asked), np.uint64)
        remove(path)
        with simindex.open(path, "c") as index:
            index.append(made)
            index.commit()
            index.compact(full=True)
        with simindex.open(path) as reader:
            for h in RADII:
                rates, answer = watch.rates(
                    len(asked), partial(reader.query, asked, h=h, threads=1)
                )
                notes = f"h = {h}; {answer.stats.rows_compared / len(asked):,.0f} rows compared"
                found.append(
                    Measurement(
                        f"{shared} shared bits", f"simindex {answer.stats.method}", rows, rates,
                        "queries/s", notes=f"{notes} and {len(answer) / len(asked):.1f} matches",
                    )
                )
        remove(path)
    return found


def templates(options: Namespace, directory: Path, watch: Stopwatch) -> list[Measurement]:
    """A fifth of --rows rows, each one of 100 templates with 0 to 3 bits flipped."""
    rows = max(1, options.rows // 5)
    rng = np.random.default_rng(options.seed)
    made = rng.integers(0, 2**64, TEMPLATES, dtype=np.uint64)[rng.integers(0, TEMPLATES, rows)]
    flips = rng.integers(0, TEMPLATE_BITS + 1, rows)
    for number in range(TEMPLATE_BITS):  # a bit that is flipped twice is not flipped
        bit = np.uint64(1) << rng.integers(0, 64, rows, np.uint64)
        made = np.where(flips > number, made ^ bit, made)
    calls: dict[str, Callable[[], Sized]] = {
        "find_all, collapse_equal": lambda: simindex.find_all(
            made, h=3, collapse_equal=True, threads=1
        ),
        "find_clusters": lambda: simindex.find_clusters(made, h=3, threads=1),
    }
    found = []
    for name, call in calls.items():
        times, answer = watch.seconds(call)
        found.append(
            Measurement(
                f"{TEMPLATES} templates: {name}", "simindex", rows, tuple(times), "s",
                notes=f"{len(answer):,} rows of the result",
            )
        )
    return found
