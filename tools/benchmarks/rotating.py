"""All pairs of rows in memory by rotation, with and without measuring what it misses."""

from __future__ import annotations

from argparse import Namespace
from functools import partial
from pathlib import Path

import numpy as np

import simindex
from benchmarks.building import plain_file
from benchmarks.corpora import H
from benchmarks.exact import rewritten
from benchmarks.report import Measurement
from benchmarks.stopwatch import Stopwatch, say

SETTINGS = ((25, 1), (64, 1), (25, 8))
"""(rotations, window)."""


def rotation(options: Namespace, directory: Path, watch: Stopwatch) -> list[Measurement]:
    """Uniform rows, a twentieth of which rewrite another twentieth within H."""
    rows = np.fromfile(plain_file(options.rows, options.seed, directory), "<u8")
    rng = np.random.default_rng([options.seed, 7])
    planted = np.arange(len(rows) // 20)
    partner = planted + len(rows) - len(planted)
    rows[planted] = rewritten(rng, rows[partner], H)
    measured = []
    for rotations, window in SETTINGS:
        find = partial(simindex.rotation_pairs, rows, h=H, rotations=rotations, window=window)
        rates, pairs = watch.rates(len(rows), find)
        bare, _ = watch.rates(len(rows), partial(find, comparisons=0))
        found = np.isin(planted, pairs.a[pairs.b - pairs.a == len(rows) - len(planted)]).mean()
        stats = pairs.stats
        if stats.recall is None:
            raise SystemExit("no row has a near one: give more --rows")
        say(f"  {rotations} rotations, window {window}: {stats.guarantee}")
        for name, some in ((" with recall measured", rates), ("", bare)):
            measured.append(Measurement(
                "rotation", f"simindex rotation k={rotations} window={window}{name}",
                options.rows, some, "rows/s", recall=stats.recall if name else None,
                notes=(
                    f"{len(pairs):,} pairs; interval {stats.recall_low:.4f} - "
                    f"{stats.recall_high:.4f}, of {stats.recall_rows:,} rows; found {found:.4f} of "
                    f"{len(planted):,} planted"
                ) if name else "",
            ))
    return measured
