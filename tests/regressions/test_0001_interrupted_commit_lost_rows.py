"""Ctrl-C while LMDB syncs arrives when the commit has just succeeded: its files must stay."""

from __future__ import annotations

from pathlib import Path

import lmdb
import numpy as np
import pytest

import simindex
from simindex import IndexOptions
from simindex.errors import CommitFailed, ReadOnlyIndex
from simindex.storage.catalog.environment import Transaction

ROWS = np.arange(40, dtype=np.uint64)
OPTIONS = IndexOptions(batch_rows=8, min_merge=0)


def fail_after_commit(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    """The next commit becomes durable and then raises."""
    real = Transaction.commit

    def commit(self: Transaction) -> None:
        real(self)
        monkeypatch.setattr(Transaction, "commit", real)
        raise error

    monkeypatch.setattr(Transaction, "commit", commit)


@pytest.mark.parametrize(
    ("error", "seen"),
    [(KeyboardInterrupt(), KeyboardInterrupt), (lmdb.DiskError("EIO"), CommitFailed)],
)
@pytest.mark.parametrize("count", [3, 7, 40], ids=["pending", "sealed", "spilled"])
def test_commit_that_succeeded_keeps_its_files(
    index_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException,
    seen: type[BaseException], count: int,
) -> None:
    writer = simindex.open(index_path, "c", options=OPTIONS)
    writer.append(ROWS[:count])
    fail_after_commit(monkeypatch, error)
    with pytest.raises(seen):
        writer.commit()
    with pytest.raises(ReadOnlyIndex):
        writer.append(ROWS)
    writer.close()
    with simindex.open(index_path, "w") as index:
        assert len(index) == count
        assert index.check() == []
        assert index.query(ROWS[:count], h=0).query.tolist() == list(range(count))


@pytest.mark.parametrize("error", [KeyboardInterrupt(), lmdb.DiskError("EIO")])
def test_compaction_that_succeeded_keeps_its_file(
    index_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    writer = simindex.open(index_path, "c", options=OPTIONS)
    writer.append(ROWS)
    writer.commit()
    fail_after_commit(monkeypatch, error)
    with pytest.raises((KeyboardInterrupt, CommitFailed)):
        writer.compact(full=True)
    writer.close()
    with simindex.open(index_path, "w") as index:
        assert len(index) == len(ROWS)
        assert index.check() == []


def test_interrupt_right_after_a_commit_does_not_repeat_it(
    index_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(KeyboardInterrupt), simindex.open(index_path, "c", options=OPTIONS) as index:
        index.append(ROWS)
        fail_after_commit(monkeypatch, KeyboardInterrupt())
        index.commit()
    with simindex.open(index_path) as index:
        assert len(index) == len(ROWS)
        assert index.check() == []
