"""An append that meets a full disk keeps nothing of its batch, so that it can be given again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import simindex
from simindex import Batch, IndexOptions
from simindex.errors import StorageFull
from simindex.storage.files.durable import NewFile


@pytest.mark.parametrize("failing", [1, 2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_failed_append_can_be_repeated(
    index_path: Path, monkeypatch: pytest.MonkeyPatch, failing: int, weighted: bool
) -> None:
    rows = np.arange(30, dtype=np.uint64)
    weights = np.ones((30, 64), np.float32) if weighted else None
    calls = 0
    real = NewFile.reserve

    def reserve(self: NewFile, size: int) -> None:
        nonlocal calls
        calls += 1
        if calls == failing:
            raise StorageFull("no space")
        real(self, size)

    with simindex.open(index_path, "c", options=IndexOptions(batch_rows=8, min_merge=0)) as index:
        index.append(np.array([1 << 50, 1 << 51, 1 << 52], np.uint64))
        monkeypatch.setattr(NewFile, "reserve", reserve)
        with pytest.raises(StorageFull):
            index.append(Batch(rows, weights=weights))
        monkeypatch.undo()
        assert list((index_path / "segments").iterdir()) == []
        ids = index.append(Batch(rows, weights=weights))
        assert ids.tolist() == list(range(3, 33))
        index.commit()
        assert len(index) == 33
        assert index.stats().sample_rows == (30 if weighted else 0)
        assert index.check() == []
