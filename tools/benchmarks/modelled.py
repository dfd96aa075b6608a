"""Predicted and measured queries a second of every method; and whether `auto` chooses well."""

from __future__ import annotations

import statistics
from argparse import Namespace
from pathlib import Path

import simindex
from benchmarks.corpora import Corpus, H
from benchmarks.machine import disk_bytes
from benchmarks.report import Measurement
from benchmarks.stopwatch import Stopwatch, say
from benchmarks.stored import Stored, prepare
from simindex import Batch

DESIGNS = (
    "bphs:G=2,g=1,r=1", "bphs:G=3,g=1,r=2", "bphs:G=4,g=1", "bphs:G=5,g=2", "bphs:nested=4x4",
)
RECALL = 0.95
SCANNED_QUERIES = 64
EXHAUSTED_SHARE = 16
"""All flip sets are tried for so many times fewer queries."""

Asked = tuple[str, float, int]
"""Method, recall, and how many times fewer queries."""


def model(options: Namespace, directory: Path, watch: Stopwatch) -> list[Measurement]:
    """Tunes first, on the core and at the time of the measurements."""
    stored = prepare(Corpus(options.rows, options.queries, options.seed), directory)
    with simindex.open(stored.path, "w") as index:
        structures = ("psm", *DESIGNS)
        if index.options.structures != structures:
            say("  building permuted tables")
            index.compact(full=True, structures=structures)
        index.tune()
    asked: list[Asked] = [
        ("psm", RECALL, 1), ("psm", 1.0, EXHAUSTED_SHARE), *((name, 1.0, 1) for name in DESIGNS),
        ("scan", 1.0, -(-options.queries // SCANNED_QUERIES)), ("auto", RECALL, 1),
        ("auto", 1.0, 1),
    ]
    with simindex.open(stored.path) as index:
        return [_measured(options, index, stored, watch, *one) for one in asked]


def _measured(
    options: Namespace, index: simindex.Index, stored: Stored, watch: Stopwatch, method: str,
    recall: float, fewer: int,
) -> Measurement:
    count = max(1, len(stored.queries) // fewer)
    batch = Batch(stored.queries[:count], weights=stored.weights[:count])
    expected = index.explain(batch, h=H, recall=recall, method=method)
    rates, found = watch.rates(
        count, lambda: index.query(batch, h=H, recall=recall, method=method, threads=1)
    )
    predicted = count / expected.expected_s
    off = predicted / statistics.median(rates) - 1
    measured = Measurement(
        "model", f"simindex {method}, recall {recall:g}", options.rows, rates, "queries/s",
        bytes_per_row=disk_bytes(stored.path) / options.rows,
        notes=(
            f"predicted {predicted:,.0f}/s, {off:+.0%}; by {found.stats.method}, "
            f"k = {found.stats.flips}; calls of {count:,}"
        ),
    )
    say(
        f"  {measured.engine}: {measured.median:,.0f}, predicted {predicted:,.0f} queries/s, "
        f"{off:+.0%}"
    )
    return measured
