"""Rows that wait for a segment were limited by their number alone: with keys of 64 KB a million of
them took 64 GB of a writer, and 65,535 pending ones 4 GB of the catalog and of every reader."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import simindex
from simindex import Batch, IndexOptions
from simindex.errors import StorageFull
from simindex.storage.segment_files import SegmentFiles
from simindex.writing import catalog_edit, waiting


def batch(start: int, count: int = 10) -> Batch:
    """Rows whose keys take 100 bytes each."""
    keys = [f"{number:0100}" for number in range(start, start + count)]
    return Batch(np.arange(start, start + count, dtype=np.uint64), keys=keys)


def segments(index: simindex.Index) -> list[int]:
    return [len(one) for one in index._current().segments]


def options() -> IndexOptions:
    return IndexOptions(keys=True, min_merge=0)


def test_a_writer_holds_bounded_bytes_of_keys(
    index_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "MAX_HELD_KEY_BYTES", 3_500)
    with simindex.open(index_path, "n", options=options()) as index:
        for start in range(0, 100, 10):
            index.append(batch(start))
            assert index._handle.writer.committer.waiting.key_bytes <= 4_500
        index.replace(batch(0, 5))
        index.delete(keys=[f"{7:0100}"])
        index.commit()
        assert segments(index) == [40, 40]
        assert (len(index), index.stats().pending_rows) == (99, 25)
        assert index.check() == []


def test_pending_rows_have_bounded_bytes_of_keys(
    index_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalog_edit, "MAX_PENDING_KEY_BYTES", 3_500)
    with simindex.open(index_path, "n", options=options()) as index:
        for start in range(0, 100, 10):
            index.append(batch(start))
            index.commit()
            assert index.stats().pending_rows <= 30
        assert segments(index) == [40, 40]
        assert len(index) == 100
        assert index.check() == []


def test_what_fails_while_rows_are_written_early_changes_nothing(
    index_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "MAX_HELD_KEY_BYTES", 3_500)

    def full(*_: object) -> None:
        raise StorageFull("the disk is full", path=str(index_path))

    with simindex.open(index_path, "n", options=options()) as index:
        index.append(batch(0, 30))
        with monkeypatch.context() as patched:
            patched.setattr(SegmentFiles, "write", full)
            with pytest.raises(StorageFull):
                index.append(batch(30))
        assert index._handle.writer.committer.waiting.key_bytes == 3_000
        index.append(batch(30))
        index.commit()
        assert len(index) == 40
        assert index.check() == []
