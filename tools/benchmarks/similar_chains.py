"""Shapes that chain by similarity: what the stars of an index with sketches keep of them.

    path          a - b - c - d - ...               each at the cosine NEXT to the next
    caterpillar   a path, and two leaves at each document
    grid          each at the cosine NEXT to the next in its row and its column
    template      a centre, and documents at the cosine NEXT to it

Documents are directions in DIMENSIONS dimensions. Their fingerprints and sketches are signs of
random projections, so that the true cosine of any two of them is known.
"""

from __future__ import annotations

from argparse import Namespace
from functools import partial
from pathlib import Path

import numpy as np

import simindex
from benchmarks.corpora import F32, SLICE_ROWS, U64
from benchmarks.machine import disk_bytes
from benchmarks.report import Measurement
from benchmarks.stopwatch import Stopwatch, say
from simindex import Batch, IndexOptions

SIMILARITY, NEXT, DIMENSIONS, LENGTH, SKETCH_BITS = 0.9, 0.93, 64, 16, 512


def chains_similarity(options: Namespace, directory: Path, watch: Stopwatch) -> list[Measurement]:
    """Stars of --rows rows, and how near their members truly are to their representatives."""
    rng = np.random.default_rng(options.seed)
    documents = shapes(options.rows, rng)
    documents = documents[rng.permutation(len(documents))]
    path = directory / "chains.sim"
    _build(path, documents, rng)
    each_bytes = disk_bytes(path) / len(documents)
    with simindex.open(path) as index:
        say(f"  {len(documents):,} rows stored")
        times, clusters = watch.seconds(
            partial(index.clusters, similarity=SIMILARITY, mode="star", threads=1)
        )
    member = clusters.representative != clusters.id
    ids, stars = (
        column[member].astype(np.int64) for column in (clusters.id, clusters.representative)
    )
    true = np.concatenate([
        np.einsum("ij,ij->i", documents[ids[at : at + SLICE_ROWS]],
                  documents[stars[at : at + SLICE_ROWS]])
        for at in range(0, len(ids), SLICE_ROWS)
    ])
    assert clusters.similarity is not None and clusters.similarity_error is not None
    stated, error = clusters.similarity[member], clusters.similarity_error[member]
    below = int(np.count_nonzero(stated < SIMILARITY - 2 * error))
    truly = int(np.count_nonzero(true < SIMILARITY - 2 * error))
    notes = (
        f"{len(ids):,} members, stated similarity {stated.min():.3f} or more, {below:,} of them "
        f"two standard errors below {SIMILARITY}; true cosine {true.min():.3f} or more, "
        f"{truly:,} ({100 * truly / len(ids):.2f} %) two standard errors below; "
        f"{len(documents) - len(ids):,} documents kept"
    )
    return [Measurement(
        "chains-similarity", "simindex", len(documents), tuple(times), "s",
        bytes_per_row=each_bytes, notes=notes,
    )]


def shapes(rows: int, rng: np.random.Generator) -> F32:
    """Directions of documents, a quarter of the rows in each shape: float32 (n, DIMENSIONS)."""
    families = max(1, rows // (4 * LENGTH))
    spine = LENGTH // 3 + 1
    path = _path(rng, families, LENGTH, DIMENSIONS, NEXT)
    bodies = _path(rng, families, spine, DIMENSIONS, NEXT)
    leaves = [_next(rng, body, NEXT) for body in bodies[: spine - 1] for _ in (0, 1)]
    # Half of the dimensions are the row's, half the column's: a step changes one of them.
    half = 2 * NEXT - 1
    rows_, columns = (_path(rng, families, 4, DIMENSIONS // 2, half) for _ in (0, 1))
    grid = [np.concatenate([a, b], axis=1) / np.float32(2**0.5) for a in rows_ for b in columns]
    centre = _directions(rng, families, DIMENSIONS)
    around = [_next(rng, centre, NEXT) for _ in range(LENGTH - 1)]
    return np.concatenate([*path, *bodies, *leaves, *grid, centre, *around])


def _directions(rng: np.random.Generator, count: int, dimensions: int) -> F32:
    made = rng.standard_normal((count, dimensions), np.float32)
    made /= np.linalg.norm(made, axis=1, keepdims=True)
    return made


def _next(rng: np.random.Generator, before: F32, cosine: float) -> F32:
    """Directions at a cosine to those before, anywhere around them."""
    across = rng.standard_normal(before.shape, np.float32)
    across -= np.einsum("ij,ij->i", across, before)[:, None] * before
    across *= np.float32((1 - cosine * cosine) ** 0.5) / np.linalg.norm(
        across, axis=1, keepdims=True
    )
    across += np.float32(cosine) * before
    return across


def _path(
    rng: np.random.Generator, count: int, length: int, dimensions: int, cosine: float
) -> list[F32]:
    made = [_directions(rng, count, dimensions)]
    for _ in range(length - 1):
        made.append(_next(rng, made[-1], cosine))
    return made


def _build(path: Path, documents: F32, rng: np.random.Generator) -> None:
    projections = rng.standard_normal((DIMENSIONS, 64 + SKETCH_BITS), np.float32)
    with simindex.open(path, "n", options=IndexOptions(sketch_bits=SKETCH_BITS)) as index:
        for first in range(0, len(documents), SLICE_ROWS):
            signs = documents[first : first + SLICE_ROWS] @ projections >= 0
            words: U64 = np.packbits(signs, axis=1).view(">u8").astype(np.uint64)
            ids = np.arange(first, first + len(words), dtype=np.uint64)
            index.append(Batch(words[:, 0], ids=ids, sketch=words[:, 1:]))
            index.commit()
        index.compact(full=True)
