"""Queries with weights by a similarity, their candidates kept or rejected by sketches.

Rows have weights of a standard normal distribution and random sketches. The last tenth of a slice
are rewrites of the first tenth. A rewrite of the cosine c has the weights c W + sqrt(1 - c^2) Z,
and a sketch with each bit flipped by the chance arccos(c) / pi, as further bits of the sums have
it. Recall is the share of all such pairs whose sketch is near enough.
"""

from __future__ import annotations

from argparse import Namespace
from math import acos, pi
from pathlib import Path
from typing import Any

import numpy as np

import simindex
from benchmarks.corpora import F32, SLICE_ROWS, U64, oracle
from benchmarks.machine import disk_bytes
from benchmarks.report import Measurement
from benchmarks.stopwatch import Stopwatch, say
from simindex import Batch, IndexOptions
from simindex.bits.cosine import candidate_radius, threshold

SIMILARITY, RECALL, SKETCH_WORDS = 0.9, 0.95, 8
LEAST_STORED = 0.85
"""The cosine of the least similar rewrites among stored rows; the others are above it, evenly."""

USUAL_STRUCTURE = "bphs:G=4,g=1,r=2"
"""That of a new index."""

EXACT_H, EXACT_STRUCTURE, EXACT_QUERIES = 10, "bphs:G=6,g=1,r=3", 20_000
"""The exact search that it is compared with, and of how many queries."""


def similarity(options: Namespace, directory: Path, watch: Stopwatch) -> list[Measurement]:
    """Calls of many queries, half of them rewrites of stored rows at the similarity."""
    path, asked, partner = _prepared(options, directory)
    with simindex.open(path) as index:
        say(f"  querying {len(asked):,} at a time")
        rates, found = watch.rates(
            len(asked),
            lambda: index.query(asked, similarity=SIMILARITY, recall=RECALL, threads=1),
        )
        exact = EXACT_QUERIES if len(asked) > EXACT_QUERIES else len(asked)
        some = asked.take(np.arange(exact))
        within, _ = watch.rates(exact, lambda: index.query(some, h=EXACT_H, threads=1))
    wanted = partner >= 0
    wanted &= _sketch_distances(asked, partner, path) <= threshold(SIMILARITY, 64 * SKETCH_WORDS)
    hit = np.zeros(len(asked), np.bool_)
    hit[found.query[found.id.astype(np.int64) == partner[found.query]]] = True
    if (hit & ~wanted).any():
        raise SystemExit("a match is none: its sketch is too far")
    name = f"simindex {found.stats.method}"
    each_bytes = disk_bytes(path) / options.rows
    return [
        Measurement(
            "similarity", name, options.rows, rates, "queries/s", bytes_per_row=each_bytes,
            recall=float((hit & wanted).sum() / wanted.sum()),
            notes=(
                f"similarity {SIMILARITY}, asked {RECALL}; k = {found.stats.flips}; "
                f"{found.stats.rows_compared / len(asked):,.0f} rows compared with a query; recall "
                f"of {int(wanted.sum()):,} planted pairs with a near sketch; calls of "
                f"{len(asked):,}"
            ),
        ),
        Measurement(
            "similarity", f"simindex exact h = {EXACT_H}", options.rows, within, "queries/s",
            bytes_per_row=each_bytes, recall=1.0, notes=f"calls of {exact:,}",
        ),
    ]


def _prepared(options: Namespace, directory: Path) -> tuple[Path, Batch, Any]:
    """The index, the questions, and the id that each was made of, or -1."""
    name = f"similar-{options.rows}-{options.queries}-{options.seed}"
    path, questions = directory / f"{name}.sim", directory / f"{name}.npz"
    if not questions.exists():
        _build(options, path, questions)
    with np.load(questions) as kept:
        weights, sketch, partner = kept["weights"], kept["sketch"], kept["partner"]
    return path, Batch(oracle.signs(weights)[:, 0], weights=weights, sketch=sketch), partner


def _build(options: Namespace, path: Path, questions: Path) -> None:
    structures = ("psm", USUAL_STRUCTURE, EXACT_STRUCTURE)
    made = IndexOptions(structures=structures, sketch_bits=64 * SKETCH_WORDS)
    wanted = -(-options.queries // 2 // -(-options.rows // SLICE_ROWS))
    asked: list[tuple[F32, U64, Any]] = []
    with simindex.open(path, "n", options=made, overwrite=True) as index:
        for first in range(0, options.rows, SLICE_ROWS):
            rng = np.random.default_rng([options.seed, first])
            rows = min(SLICE_ROWS, options.rows - first)
            weights: F32 = oracle.normal_weights(rng, rows)
            sketch = rng.integers(0, 1 << 64, (rows, SKETCH_WORDS), dtype=np.uint64)
            again = rows // 10
            cosines = rng.uniform(LEAST_STORED, 1, again)
            weights[rows - again :], sketch[rows - again :] = rewritten(
                rng, weights[:again], sketch[:again], cosines
            )
            ids = np.arange(first, first + rows, dtype=np.uint64)
            index.append(Batch(
                oracle.signs(weights)[:, 0], ids=ids, weights=weights, sketch=sketch
            ))
            index.commit()
            chosen = rng.choice(rows, min(wanted, rows), replace=False)
            asked.append((
                *rewritten(rng, weights[chosen], sketch[chosen], np.full(len(chosen), SIMILARITY)),
                chosen + first,
            ))
            say(f"  {first + rows:,} of {options.rows:,} rows stored")
        index.compact(full=True)
        index.tune(h=candidate_radius(SIMILARITY, RECALL, 64))
    rng = np.random.default_rng([options.seed, 2])
    planted = min(options.queries, sum(len(part) for _, _, part in asked))
    others = options.queries - planted
    order = rng.permutation(options.queries)
    np.savez(
        questions,
        weights=np.concatenate([
            np.concatenate([part for part, _, _ in asked])[:planted],
            oracle.normal_weights(rng, others),
        ])[order],
        sketch=np.concatenate([
            np.concatenate([part for _, part, _ in asked])[:planted],
            rng.integers(0, 1 << 64, (others, SKETCH_WORDS), dtype=np.uint64),
        ])[order],
        partner=np.concatenate([
            np.concatenate([part for _, _, part in asked])[:planted], np.full(others, -1),
        ])[order],
    )


def rewritten(
    rng: np.random.Generator, weights: F32, sketch: U64, cosines: Any
) -> tuple[F32, U64]:
    """Weights and sketches of rewrites of some rows, of the cosines given."""
    kept = cosines.astype(np.float32)[:, None]
    moved = kept * weights + np.sqrt(1 - kept**2) * oracle.normal_weights(rng, len(weights))
    changed = np.empty_like(sketch)
    for start in range(0, len(sketch), 1 << 14):
        some = slice(start, start + (1 << 14))
        share = np.array([acos(cosine) / pi for cosine in cosines[some]], np.float32)[:, None]
        size = (len(sketch[some]), 64 * sketch.shape[1])
        flips = np.packbits(rng.random(size, np.float32) < share, axis=1)
        changed[some] = sketch[some] ^ flips.view(np.uint64)
    return moved.astype(np.float32), changed


def _sketch_distances(asked: Batch, partner: Any, path: Path) -> Any:
    """In how many bits of sketch each question differs from the row it was made of."""
    ids, sketches = [], []
    wanted = np.sort(partner[partner >= 0]).astype(np.uint64)
    with simindex.open(path) as index:
        for part in index.rows():
            assert part.ids is not None
            assert part.sketch is not None
            chosen = np.flatnonzero(np.isin(part.ids, wanted))
            ids.append(part.ids[chosen])
            sketches.append(part.sketch[chosen])
    named = np.concatenate(ids)
    order = np.argsort(named)
    at = order[np.searchsorted(named[order], np.maximum(partner, 0).astype(np.uint64)) % len(order)]
    assert asked.sketch is not None
    further = np.bitwise_count(asked.sketch ^ np.concatenate(sketches)[at]).sum(axis=1)
    return further.astype(np.int64)
