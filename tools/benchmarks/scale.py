"""How every cost of an index grows with its rows: built, asked in batches and alone, opened."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.building import remove
from benchmarks.corpora import SLICE_ROWS, U64, fingerprints_only
from benchmarks.report import Measurement
from benchmarks.stopwatch import Stopwatch, in_fresh_process, say

SIZES = tuple(factor * 10**power for power in range(6, 9) for factor in (1, 3))
"""Rows of the indexes: those up to --rows."""

QUERIES, RADII = 100_000, (3, 6)
"""Of a call; half are rows with two bits flipped, the others resemble none."""

ASKED_SLICES = 8
"""Slices of a million rows that queries are taken from."""


def sizes(most: int) -> list[int]:
    """Rows of each index."""
    return [size for size in SIZES if size <= most] or [most]


def questions(rows: int, seed: int) -> U64:
    """uint64 (QUERIES,), in random order."""
    rng = np.random.default_rng([seed, rows])
    slices = -(-rows // SLICE_ROWS)
    chosen = sorted({slices * place // ASKED_SLICES for place in range(ASKED_SLICES)})
    each = QUERIES // 2 // len(chosen)
    found = [rng.integers(0, 2**64, QUERIES - each * len(chosen), dtype=np.uint64)]
    for number in chosen:
        first = number * SLICE_ROWS
        _, words = next(fingerprints_only(rows, seed, start=first))
        near = words[rng.integers(0, len(words), each)]
        for _ in range(2):
            near = near ^ np.uint64(1) << rng.integers(0, 64, each, np.uint64)
        found.append(near)
    asked: U64 = rng.permutation(np.concatenate(found))
    return asked


def scale(options: Namespace, directory: Path, watch: Stopwatch) -> list[Measurement]:
    """Indexes of 1, 3, 10, 30 and 100 million uniform rows up to --rows, with the default options.

    Each is built once, by batches of a million, in a process of its own, and asked as the writer
    left it in another. 100 M rows take 4.2 GB on the disk, at most three times that while they are
    merged, and 5 GB of memory, most of it pages of files; all sizes together take some ten minutes.
    """
    measured: list[Measurement] = []
    for rows in sizes(options.rows):
        path = directory / f"scale-{rows}.sim"
        remove(path)
        built = in_fresh_process(
            "scale-build", path=str(path), rows=rows, seed=options.seed, clock=watch.clock
        )
        say(f"  {built}")
        opened = [
            in_fresh_process("open", path=str(path), query=0) for _ in range(watch.repeat + 1)
        ][1:]
        asked = in_fresh_process(
            "scale-ask", path=str(path), rows=rows, seed=options.seed, calls=options.calls,
            repeat=watch.repeat, clock=watch.clock,
        )
        say(f"  {asked}")
        remove(path)
        measured += list(_measurements(rows, built, opened, asked))
    return measured


def _measurements(
    rows: int, built: dict[str, Any], opened: list[dict[str, Any]], asked: dict[str, Any]
) -> Iterator[Measurement]:
    disk = built["disk_bytes"] / rows
    yield Measurement(
        "scale build", "simindex", rows, (rows / built["seconds"],), "rows/s", bytes_per_row=disk,
        notes=f"{built['seconds']:.1f} s; leaving merges {built['before_leaving']} segments into "
        f"{built['segments']} in {built['left']:.1f} s; "
        f"peak memory {built['peak_bytes'] / 2**20:,.0f} MiB, "
        f"{built['own_bytes'] / 2**20:,.0f} MiB of it not of files",
    )
    for h in RADII:
        told = asked["batches"][str(h)]
        yield Measurement(
            f"scale {QUERIES:,} queries, h = {h}", "simindex", rows, tuple(told["rates"]),
            "queries/s",
            notes=f"{told['method']}; {told['compared']:,.0f} rows compared and "
            f"{told['matches']:.2f} matches a query",
        )
    for name, times in asked["calls"].items():
        yield Measurement(f"scale one query {name}", "simindex", rows, tuple(times), "µs")
    first_ms = 1e3 * float(np.median([one["first_query"] for one in opened]))
    yield Measurement(
        "scale open", "simindex", rows, tuple(1e3 * one["open"] for one in opened), "ms",
        notes=f"the first query {first_ms:.1f} ms; a reader's own memory after all calls "
        f"{asked['own_bytes'] / 2**20:,.0f} MiB, {asked['own_bytes'] / rows:.2f} bytes a row",
    )
