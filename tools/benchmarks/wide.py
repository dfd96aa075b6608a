"""Exact queries within a wide radius of wide fingerprints, by every structure they may have."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import numpy as np

import simindex
from benchmarks.building import remove
from benchmarks.report import Measurement
from benchmarks.stopwatch import Stopwatch

BITS, RADIUS = 256, 31

BATCH, SINGLE = 1000, 100
"""Queries of a call, and calls of one query."""


def wide_radius(options: Namespace, directory: Path, watch: Stopwatch) -> list[Measurement]:
    """A fifth of --rows rows of 256 bits, h = 31. Half of the queries are rows with 0 to 31 bits
    flipped. With what `Index.top` takes for the same rows."""
    rows, path = max(1, options.rows // 5), directory / "wide.sim"
    rng = np.random.default_rng(options.seed)
    made = rng.integers(0, 2**64, (rows, BITS // 64), dtype=np.uint64)
    asked = rng.integers(0, 2**64, (BATCH, BITS // 64), dtype=np.uint64)
    flips = rng.random((BATCH // 2, BITS)).argsort(axis=1) < rng.integers(
        0, RADIUS + 1, (BATCH // 2, 1)
    )
    masks = np.packbits(flips, axis=1).view(">u8").astype(np.uint64)
    asked[: BATCH // 2] = made[rng.integers(0, rows, BATCH // 2)] ^ masks
    found: list[Measurement] = []
    for structures in (("psm",), ("psm", "issl")):
        remove(path)
        with simindex.open(
            path, "c", options=simindex.IndexOptions(bits=BITS, structures=structures)
        ) as index:
            index.append(made)
            index.commit()
            index.compact(full=True)
        size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file()) / rows
        with simindex.open(path) as reader:
            def within(some: np.ndarray, reader: simindex.Index = reader) -> simindex.Matches:
                return reader.query(some, h=RADIUS, threads=1)

            times, answer = watch.seconds(lambda: within(asked))
            name = f"simindex {answer.stats.method}, {'+'.join(structures)}"
            notes = f"{len(answer) / BATCH:.2f} matches; calls of {BATCH:,}"
            found.append(_measured("within 31 bits", name, rows, times, BATCH, size, notes))
            times, _ = watch.seconds(
                lambda: [within(asked[place : place + 1]) for place in range(SINGLE)]
            )
            found.append(_measured("within 31 bits", name, rows, times, SINGLE, size, "calls of 1"))
            if "issl" not in structures:
                times, _ = watch.seconds(
                    lambda: reader.top(asked, k=10, method="scan", threads=1)
                )
                notes = f"calls of {BATCH:,}"
                found.append(_measured("the 10 nearest", name, rows, times, BATCH, size, notes))
        remove(path)
    return found


def _measured(
    workload: str, name: str, rows: int, times: list[float], queries: int, size: float, notes: str
) -> Measurement:
    milliseconds = tuple(1e3 * one / queries for one in times)
    return Measurement(
        f"256 bits: {workload}", name, rows, milliseconds, "ms", bytes_per_row=size, notes=notes
    )
