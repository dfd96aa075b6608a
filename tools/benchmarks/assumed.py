"""Recall of an index that knows no near-duplicates, of several kinds of them."""

from __future__ import annotations

from argparse import Namespace
from functools import partial
from pathlib import Path

import numpy as np

import simindex
from benchmarks.corpora import H, oracle
from benchmarks.online import RECALL
from benchmarks.report import Measurement
from benchmarks.stopwatch import Stopwatch, say
from simindex import Batch, IndexOptions

AT_ONCE = 1_000_000
"""Rows that are made at a time."""

ENGINES = {"psm": ("psm",), "auto": ("psm", "bphs:G=3,g=1,r=2")}
"""Methods, and the structures that the index then has."""


def assumed_recall(options: Namespace, directory: Path, watch: Stopwatch) -> list[Measurement]:
    """Rewrites of each kind, asked of uniform rows among which nothing is near another."""
    rng = np.random.default_rng(options.seed)
    measured = []
    for method, structures in ENGINES.items():
        path = directory / f"unlearned-{method}-{options.rows}.sim"
        with simindex.open(path, "n", options=IndexOptions(structures=structures)) as index:
            weights = oracle.normal_weights(rng, min(options.rows, AT_ONCE))
            index.append(oracle.signs(weights), weights=weights)
            for first in range(AT_ONCE, options.rows, AT_ONCE):
                more = oracle.normal_weights(rng, min(AT_ONCE, options.rows - first))
                index.append(oracle.signs(more), weights=more)
                index.commit()
            index.compact(full=True)
            index.tune()
        with simindex.open(path) as index:
            for kind in oracle.KINDS:
                asked, made_of = oracle.rewritten(rng, kind, weights[: options.queries], H)
                batch = Batch(oracle.signs(asked), weights=asked)
                ask = partial(
                    index.query, batch, h=H, recall=RECALL, method=method, threads=1
                )
                rates, found = watch.rates(len(batch), ask)
                of = made_of[found.query].astype(np.uint64)
                recall = len(np.unique(found.query[found.id == of])) / len(batch)
                one = Measurement(
                    f"assumed-recall, {kind}", f"simindex {found.stats.method}", options.rows,
                    rates, "queries/s", recall=recall,
                    notes=f"k = {found.stats.flips}, calls of {len(batch):,}; "
                    + found.stats.guarantee.partition(" where ")[0],
                )
                say(f"  {one.workload}: {one.recall:.4f}, {one.median:,.0f}/s, {one.notes}")
                measured.append(one)
    return measured
