"""`dedup --verify-text` asked for stored rows without weights, so that none was missed within the
radius of a similarity, 14 of 64 bits. No method but a scan finds these. So the time of a run grew
with the square of the documents: of ten million, half an hour was spent on comparing rows.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import simindex
from simindex import Batch, IndexOptions
from simindex.pairs.buffer_losses import Nearness
from simindex.pairs.verified_losses import stored_candidates
from simindex.planning.doubt import doubt_of
from simindex.planning.similarity import similar

ROWS, QUERIES, SKETCH_BITS = 300_000, 1000, 128


def noisy(sums: np.ndarray[Any, Any], rng: np.random.Generator, cosine: float) -> Any:
    """Sums at so much of a cosine with others."""
    noise = rng.standard_normal(sums.shape, np.float32)
    return cosine * sums + (1 - cosine**2) ** 0.5 * noise


def batch_of(sums: Any) -> Batch:
    """64 bits and a sketch of sums that a recipe would have."""
    words = np.packbits(sums >= 0, axis=1).view(">u8").astype(np.uint64)  # the highest bit first
    return Batch(words[:, :1].copy(), weights=sums[:, :64].copy(), sketch=words[:, 1:].copy())


def test_stored_rows_are_looked_up_and_not_compared_one_by_one(
    index_path: Path, rng: np.random.Generator
) -> None:
    sums = rng.standard_normal((ROWS, 64 + SKETCH_BITS), np.float32)
    queries = batch_of(noisy(sums[:QUERIES], rng, 0.95))
    asked = similar(
        0.9, h=None, recall=0.95, bits=64, sketch_bits=SKETCH_BITS, weighted=True
    )
    doubt = doubt_of(asked)
    options = IndexOptions(sketch_bits=SKETCH_BITS)
    with simindex.open(index_path, "n", options=options) as index:
        index.append(batch_of(sums))
        index.commit()
        index.compact()
        compared = []

        class Counting:
            def __len__(self) -> int:
                return len(index)

            def query(self, batch: Batch, **given: Any) -> Any:
                found = index.query(batch, **given)
                compared.append(found.stats.rows_compared)
                return found

        found = stored_candidates(
            Counting(), queries, Nearness(asked.h, 0.95, doubt.wide), doubt
        )
    own = {(row, found.keys[place]) for row, place in zip(found.row, found.place, strict=True)}
    assert sum((row, row) in own for row in range(QUERIES)) > 0.95 * QUERIES
    assert 0 < sum(compared) < 0.05 * ROWS * QUERIES
