"""Shapes that chain by similarity: what the stars of an index with sketches keep of them.

    path          a - b - c - d - ...               each at the cosine NEXT to the next
    caterpillar   a path, and two leaves at each document
    grid          each at the cosine NEXT to the next in its row and its column
    template      a centre, and documents at the cosine NEXT to it

Documents are directions in DIMENSIONS dimensions. Their fingerprints and sketches are signs of
random projections, so that the true cosine of any two of them is known. Those of different families
resemble each other by no more than chance.

A dropped document is distinct if it is two stated errors below the similarity, or below the
similarity itself, of every kept document of its family.
"""

from __future__ import annotations

from argparse import Namespace
from functools import partial
from pathlib import Path

import numpy as np

import simindex
from benchmarks.corpora import F32, I64, SLICE_ROWS, U64
from benchmarks.machine import disk_bytes
from benchmarks.report import Measurement
from benchmarks.stopwatch import Stopwatch, say
from simindex import Batch, IndexOptions

SIMILARITY, NEXT, DIMENSIONS, SHAPES, LENGTH, SKETCH_BITS = 0.9, 0.93, 64, 4, 16, 512


def chains_similarity(options: Namespace, directory: Path, watch: Stopwatch) -> list[Measurement]:
    """Stars of --rows rows, and how near their members truly are to their representatives.

    `--keep` leaves the index, which the next run then reads.
    """
    rng = np.random.default_rng(options.seed)
    documents = shapes(options.rows, rng)
    order = rng.permutation(len(documents))
    path = directory / f"chains-{len(documents)}-{options.seed}.sim"
    if not path.exists():
        _build(path, documents, order, rng)
    each_bytes = disk_bytes(path) / len(documents)
    with simindex.open(path, "r") as index:
        say(f"  {len(documents):,} rows stored")
        times, clusters = watch.seconds(
            partial(index.clusters, similarity=SIMILARITY, mode="star", threads=1)
        )
    member = clusters.representative != clusters.id
    dropped, kept = (
        order[column[member].astype(np.int64)] for column in (clusters.id, clusters.representative)
    )
    assert clusters.similarity is not None and clusters.similarity_error is not None
    told = _told(documents, dropped, kept, clusters.similarity[member],
                 clusters.similarity_error[member])
    return [Measurement(
        "chains-similarity", "simindex", len(documents), tuple(times), "s",
        bytes_per_row=each_bytes, notes=told,
    )]


def _told(documents: F32, dropped: I64, kept: I64, stated: F32, error: F32) -> str:
    """How near dropped documents are to what they lost to, and how many distinct ones were kept."""
    bound = SIMILARITY - 2 * error
    true = _cosines(documents, dropped, kept)
    lost = np.zeros(len(documents), np.bool_)
    lost[dropped] = True
    left = len(documents) - len(dropped)
    nearest = true.copy()
    doubt = np.flatnonzero(true < SIMILARITY)
    families = len(documents) // (SHAPES * LENGTH)
    first = dropped[doubt] // (families * LENGTH) * (families * LENGTH) + dropped[doubt] % families
    for member in range(LENGTH):
        other = first + member * families
        there = np.flatnonzero(~lost[other])
        some = doubt[there]
        found = _cosines(documents, dropped[some], other[there])
        nearest[some] = np.maximum(nearest[some], found)
    shares = [
        100 * left / (left + int(np.count_nonzero(nearest < least)))
        for least in (SIMILARITY, bound)
    ]
    below, truly = true < SIMILARITY, true < bound
    return (
        f"{len(dropped):,} dropped; stated similarity {stated.min():.3f} or more, "
        f"{int(np.count_nonzero(stated < bound)):,} of them two standard errors below "
        f"{SIMILARITY}; true cosine {true.min():.3f} or more, {int(np.count_nonzero(below)):,} "
        f"({100 * below.mean():.3f} %) below {SIMILARITY}, {int(np.count_nonzero(truly)):,} "
        f"({100 * truly.mean():.3f} %) two standard errors below; kept {left:,}, {shares[0]:.3f} % "
        f"of the documents below {SIMILARITY} of all kept ones, {shares[1]:.3f} % of those two "
        "standard errors below"
    )


def _cosines(documents: F32, a: I64, b: I64) -> F32:
    found = np.empty(len(a), np.float32)
    for at in range(0, len(a), SLICE_ROWS):
        some = slice(at, at + SLICE_ROWS)
        found[some] = np.einsum("ij,ij->i", documents[a[some]], documents[b[some]])
    return found


def shapes(rows: int, rng: np.random.Generator) -> F32:
    """Directions of documents, a quarter of the rows in each shape: float32 (n, DIMENSIONS).

    Shape by shape, and in each the first documents of all families, then the second ones.
    """
    families = max(1, rows // (SHAPES * LENGTH))
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


def _build(path: Path, documents: F32, order: I64, rng: np.random.Generator) -> None:
    """The documents in an order; their ids are their places in it."""
    projections = rng.standard_normal((DIMENSIONS, 64 + SKETCH_BITS), np.float32)
    with simindex.open(path, "n", options=IndexOptions(sketch_bits=SKETCH_BITS)) as index:
        for first in range(0, len(documents), SLICE_ROWS):
            signs = documents[order[first : first + SLICE_ROWS]] @ projections >= 0
            words: U64 = np.packbits(signs, axis=1).view(">u8").astype(np.uint64)
            ids = np.arange(first, first + len(words), dtype=np.uint64)
            index.append(Batch(words[:, 0], ids=ids, sketch=words[:, 1:]))
            index.commit()
        index.compact(full=True)
