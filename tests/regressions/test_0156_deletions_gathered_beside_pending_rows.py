"""Deletions stayed as long as one pending row was older than they were, however many they became:
only segments were written again because of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import simindex
from simindex import Batch, IndexOptions
from simindex.writing import policy


@pytest.fixture(autouse=True)
def _few_tombstones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy, "LEAST_TOMBSTONES", 100)


@pytest.mark.parametrize("segment_rows", [0, 300])
@pytest.mark.parametrize("min_merge", [0, 8])
def test_deletions_of_other_documents_do_not_gather(
    index_path: Path, segment_rows: int, min_merge: int
) -> None:
    with simindex.open(index_path, "n", options=IndexOptions(min_merge=min_merge)) as index:
        if segment_rows:
            index.append(np.arange(segment_rows, dtype=np.uint64))
            index.compact()
        index.append(Batch(np.arange(3, dtype=np.uint64), ids=[1_000, 1_001, 1_002]))
        index.commit()
        most = 0
        for start in range(2_000, 6_000, 50):
            index.delete(ids=np.arange(start, start + 50, dtype=np.uint64))
            index.commit()
            most = max(most, index.stats().tombstones)
        pending = [run.horizon for run in index._current().head.pending]
        assert min(pending) > 70  # they were written again
        if not (segment_rows and min_merge == 0):  # without merges a segment keeps them
            assert most <= 2 * max(100, (segment_rows + 3) // 2)
        assert len(index) == segment_rows + 3
        assert index.check() == []


def test_deleted_pending_rows_are_dropped(index_path: Path) -> None:
    with simindex.open(index_path, "n") as index:
        index.append(Batch(np.arange(400, dtype=np.uint64), ids=range(400)))
        index.commit()
        for start in range(0, 400, 50):
            index.delete(ids=np.arange(start, start + 50, dtype=np.uint64))
            index.commit()
        index.delete(ids=np.arange(1_000, 1_400, dtype=np.uint64))
        index.commit()
        stats = index.stats()
        assert (len(index), stats.pending_rows, stats.tombstones) == (0, 0, 0)
        assert index.check() == []
