"""A commit that cannot merge older segments has still succeeded."""

from __future__ import annotations

import errno
from pathlib import Path

import numpy as np
import pytest

import simindex
from simindex import IndexOptions
from simindex.errors import CorruptFile, StorageFull
from simindex.storage.tables import compaction
from simindex.writing import policy


@pytest.mark.parametrize(
    "error", [CorruptFile("damaged"), StorageFull("full"), OSError(errno.EMFILE, "too many")]
)
def test_commit_outlives_a_merge_that_fails(
    index_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def merge(*arguments: object) -> None:
        raise error

    with simindex.open(index_path, "c", options=IndexOptions(batch_rows=8, min_merge=2)) as index:
        monkeypatch.setattr(compaction, "merge", merge)
        for start in range(0, 40, 8):
            index.append(np.arange(start, start + 8, dtype=np.uint64))
            index.commit()
        assert "not merged" in caplog.text
        monkeypatch.undo()
        assert len(index) == 40
        index.compact()
        assert index.stats().segments < 3
        assert index.check() == []


def test_full_compaction_stays_within_row_numbers(
    index_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with simindex.open(index_path, "c", options=IndexOptions(batch_rows=8, min_merge=0)) as index:
        for start in range(0, 40, 8):
            index.append(np.arange(start, start + 8, dtype=np.uint64))
            index.commit()
        monkeypatch.setattr(policy, "MAX_ROWS", 20)
        index.compact(full=True)
        rows = index.query(np.arange(40, dtype=np.uint64), h=0).id
        assert rows.tolist() == list(range(40))
        assert [entry["rows"] for entry in index.stats().segment_list] == [16, 16, 8]
        index.delete(ids=[0])
        index.compact(full=True)
        assert len(index) == 39
        assert index.stats().dead_rows == 0
        assert index.stats().tombstones == 0
        assert index.check() == []


def test_compact_merges_what_commits_left(index_path: Path) -> None:
    with simindex.open(index_path, "c", options=IndexOptions(batch_rows=8, min_merge=0)) as index:
        for start in range(0, 80, 8):
            index.append(np.arange(start, start + 8, dtype=np.uint64))
            index.commit()
        assert index.stats().segments == 10
        index.compact()
        assert index.stats().segments == 1
        assert len(index) == 80
        assert index.check() == []
