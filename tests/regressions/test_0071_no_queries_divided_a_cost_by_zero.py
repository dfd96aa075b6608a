"""A batch without rows, asked by a similarity, raised ZeroDivisionError and ended the writing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simindex
from simindex import Batch, IndexOptions


@pytest.mark.parametrize(
    "options", [{}, {"recall": 0.5}, {"memory_limit": 1 << 24}, {"first": True}]
)
def test_a_batch_without_rows_has_no_matches(tmp_path: Path, options: Any) -> None:
    """As `Recipe.batch` makes it of texts that have no feature."""
    rng = np.random.default_rng(1)
    weights = rng.standard_normal((600, 64)).astype(np.float32)
    fingerprints = np.packbits(weights >= 0, axis=1).view(">u8").astype(np.uint64)[:, 0]
    batch = Batch(fingerprints, weights=weights)
    none = batch.take(np.arange(0))
    with simindex.open(tmp_path / "i.sim", "n", options=IndexOptions(batch_rows=100)) as index:
        index.append(batch)
        index.commit()
        assert len(index.query(none, similarity=0.9, **options)) == 0
        assert len(index.ingest(none, similarity=0.9, **options)) == 0
        assert [len(part) for part in index.query_stream(none, similarity=0.9)] in ([], [0])
        index.explain(none, similarity=0.9)
        index.append(batch)
    assert len(simindex.open(tmp_path / "i.sim")) == 1200
