"""A query by similarity raised ValueError where headers have fewer sets of flips than are tried."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import simindex
from simindex import Batch, IndexOptions


def weighted(rows: int, seed: int) -> Batch:
    """Random fingerprints, with weights of their signs."""
    rng = np.random.default_rng(seed)
    weights = rng.standard_normal((rows, 64)).astype(np.float32)
    fingerprints = np.packbits(weights >= 0, axis=1).view(">u8").astype(np.uint64)[:, 0]
    return Batch(fingerprints, weights=weights)


@pytest.mark.parametrize("similarity", [0.999, 0.99, 0.95, 0.8])
@pytest.mark.parametrize("recall", [0.5, 0.9, 0.99])
def test_a_small_segment_answers_by_similarity(
    tmp_path: Path, similarity: float, recall: float
) -> None:
    """Headers of its tables are narrow, or the radius is: each of both leaves few sets."""
    batch = weighted(600, seed=1)
    with simindex.open(tmp_path / "i.sim", "n", options=IndexOptions(batch_rows=100)) as index:
        index.append(batch)
    with simindex.open(tmp_path / "i.sim") as index:
        found = index.query(batch.take(np.arange(5)), similarity=similarity, recall=recall)
        # A row is always among its own matches: nothing is flipped for it.
        assert set(zip(range(5), range(5), strict=True)) <= set(
            zip(found.query.tolist(), found.id.tolist(), strict=True)
        )
