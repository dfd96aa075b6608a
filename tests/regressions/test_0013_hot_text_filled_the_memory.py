"""A template that much of the index is near to: its matches are brought a few queries at a time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simindex
from simindex import Batch, IndexOptions
from simindex.methods.base import Found
from simindex.query import flip_statistics


def test_matches_at_once_do_not_grow_with_the_index(
    index_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    near = np.uint64(1) << rng.integers(0, 64, 3000).astype(np.uint64)
    sizes: list[int] = []
    real = flip_statistics.search_by

    def noting(*arguments: Any) -> Found:
        found = real(*arguments)
        sizes.append(len(found.query))
        return found

    options = IndexOptions(batch_rows=1 << 15, reservoir_rows=400)
    with simindex.open(index_path, "c", options=options) as index:
        weights = np.ones((3000, 64), np.float32)
        index.append(Batch(near, weights=weights))
        index.commit()
        whole = flip_statistics.find_near_pairs(index._current(), h=3, budget_s=float("inf"))
        assert whole.texts == 400
        monkeypatch.setattr(flip_statistics, "MATCHES_AT_ONCE", 20_000)
        monkeypatch.setattr(flip_statistics, "search_by", noting)
        found = flip_statistics.find_near_pairs(index._current(), h=3, budget_s=float("inf"))
    assert max(sizes[1:]) <= 20_000
    assert np.array_equal(found.text, whole.text)
    assert np.array_equal(found.differing, whole.differing)
