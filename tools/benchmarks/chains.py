"""Shapes that chain: what stars keep of them, and what single linkage does.

    path          a - b - c - d - ...               each h bits from the next
    caterpillar   a path, and two leaves at each document
    grid          each h bits from the next in its row and its column
    template      a centre, and documents one bit from it

A document is distinct if it is near no document that is kept.
"""

from __future__ import annotations

from argparse import Namespace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import simindex
from benchmarks.report import Measurement
from benchmarks.stopwatch import Stopwatch

H = 3
LENGTH = 16
"""Documents of a shape; a grid is 4 by 4."""


def shapes(rows: int, rng: np.random.Generator) -> dict[str, Any]:
    """A quarter of the rows each, uint64 (n,): bits are never flipped back, so that documents are
    as far apart as they are steps."""
    families = max(1, rows // (4 * LENGTH))
    base = rng.integers(0, 2**64, (families, 1), np.uint64)
    step = np.uint64((1 << H) - 1)
    ladder = np.array([(1 << (H * n)) - 1 for n in range(LENGTH)], np.uint64)
    spine = LENGTH // 3
    leaves = [
        ladder[n] ^ (step << np.uint64(40 + H * side)) for n in range(spine) for side in (0, 1)
    ]
    grid = [ladder[i] ^ (ladder[j] << np.uint64(32)) for i in range(4) for j in range(4)]
    bits = [0, *(1 << n for n in range(LENGTH - 1))]
    made = {
        "paths": ladder, "caterpillars": np.array([*ladder[:spine], *leaves], np.uint64),
        "grids": np.array(grid, np.uint64), "templates": np.array(bits, np.uint64),
    }
    return {name: (base ^ shape).reshape(-1) for name, shape in made.items()}


def chains(options: Namespace, directory: Path, watch: Stopwatch) -> list[Measurement]:
    """Clusters of --rows rows in both modes, and how many distinct documents each keeps."""
    rng = np.random.default_rng(options.seed)
    rows = np.concatenate([*shapes(options.rows, rng).values()])
    rows = rows[rng.permutation(len(rows))]
    found = []
    for mode in ("star", "components"):
        times, clusters = watch.seconds(
            partial(simindex.find_clusters, rows, h=H, mode=mode, threads=1)
        )
        heads = clusters.representative == clusters.id
        kept = int(np.count_nonzero(heads))
        far = int(np.count_nonzero(clusters.distance > H))
        # Members further than h from their representative are distinct, and not kept.
        notes = (
            f"{far:,} members beyond {H} bits, up to {int(clusters.distance.max())}; kept {kept:,} "
            f"documents, {100 * kept / (kept + far):.3f} % of those that are near no kept one"
        )
        found.append(
            Measurement(f"chains, {mode}", "simindex", len(rows), tuple(times), "s", notes=notes)
        )
    return found
