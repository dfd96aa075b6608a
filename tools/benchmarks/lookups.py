"""Headers looked up one after the other: by directory, by bisection and by interpolation.

That is what the literature compares; the engine's searches look many up at once. Each look-up finds
the first and the end row of its bucket, and all three must find the same.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from reproduce.lookup import LOOKUPS, Buckets, Lookup, buckets

from benchmarks.corpora import SLICE_ROWS, U64, H, oracle
from benchmarks.exact import Skewed, rewritten
from benchmarks.report import Measurement
from benchmarks.stopwatch import Stopwatch, say
from simindex.storage.tables.sorted_rows import SortedRows
from simindex.storage.tables.table import sort_table

SLICE_QUERIES = 1 << 16
"""Looked up in a call, so that what it returns stays in the cache."""

NO_FLIP = np.zeros(1, np.uint64)

Drawn = Callable[[np.random.Generator, int], U64]


def lookup(options: Namespace, directory: Path, watch: Stopwatch) -> list[Measurement]:
    """Uniform and skewed rows; half of the headers are of rewrites of rows. No file is made."""
    rng = np.random.default_rng([options.seed, 8])
    kinds: dict[str, Drawn] = {
        "uniform": lambda rng, rows: np.asarray(oracle.uniform(rng, rows)[:, 0]),
        f"skewed {options.popularity}": Skewed(rng, options.popularity).drawn,
    }
    measured = []
    for kind, drawn in kinds.items():
        rows = np.concatenate([
            drawn(rng, min(SLICE_ROWS, options.rows - first))
            for first in range(0, max(1, options.rows), SLICE_ROWS)
        ])
        half = options.queries // 2 if len(rows) else 0
        queries = np.concatenate([
            rewritten(rng, rows[rng.integers(0, max(1, len(rows)), half)], H),
            drawn(rng, options.queries - half),
        ])
        queries = queries[rng.permutation(len(queries))][:, None]
        ids = np.arange(len(rows), dtype=np.uint64)
        table = sort_table("", rows[:, None], ids, None, horizon=0)
        measured += in_every_way(f"lookup {kind}", table, queries, watch)
    return measured


def in_every_way(
    name: str, table: SortedRows, queries: U64, watch: Stopwatch
) -> list[Measurement]:
    """Time of a look-up in each way, in turn, and the rows it touches."""
    bits = table.header_bits
    say(f"  {name}: {len(table):,} rows, headers of {bits} bits")
    answers = {way: answer(table, queries, way) for way in LOOKUPS}
    for way, found in answers.items():
        confirm(way, found, answers["directory"])
    times = watch.in_turn({way: partial(look_all_up, table, queries, way) for way in LOOKUPS})
    measured = []
    for way, found in answers.items():
        measured.append(Measurement(
            name, f"simindex {way}", len(table),
            tuple(1e9 * seconds / len(queries) for seconds in times[way]), "ns",
            notes=(
                f"t = {bits}; {found.steps.mean():.2f} rows touched for the first row, at most "
                f"{found.steps.max()}; {found.end_steps.mean():.2f} for the end"
            ) if way != "directory" else f"t = {bits}; two entries, no row touched",
        ))
        say(f"  {way}: {measured[-1].median:.0f} ns; {measured[-1].notes}")
    return measured


def look_all_up(table: SortedRows, queries: U64, way: Lookup) -> None:
    """Each query's header, a slice at a time; the answers are dropped."""
    for start in range(0, len(queries), SLICE_QUERIES):
        some = queries[start : start + SLICE_QUERIES]
        buckets(table, some, NO_FLIP, header_bits=table.header_bits, lookup=way)


def answer(table: SortedRows, queries: U64, way: Lookup) -> Buckets:
    """The buckets of all queries, in one call."""
    return buckets(table, queries, NO_FLIP, header_bits=table.header_bits, lookup=way)


def confirm(way: str, found: Buckets, expected: Buckets) -> None:
    """Ends the run if other buckets are found than in the directory."""
    if not (
        np.array_equal(found.first, expected.first) and np.array_equal(found.end, expected.end)
    ):
        raise SystemExit(f"{way} finds other rows than the directory")
