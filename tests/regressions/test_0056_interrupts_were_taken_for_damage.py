"""What a signal handler raised was taken for damage where it was a ValueError: `check` and `open`
told of damage, and `repair` dropped deletions, so that deleted rows were back. A `delete` that was
cut off left half an entry, and the next commit failed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import pytest

import simindex
from simindex import Batch, IndexOptions
from simindex.errors import ReadOnlyIndex
from simindex.storage.tables.keys import KeyHeap
from simindex.storage.tables.row_names import Names
from simindex.writing.waiting import Waiting


class Stop(ValueError):
    """As a handler of the caller's may raise it."""


def stop(*arguments: Any, **named: Any) -> Any:
    raise Stop


@pytest.fixture
def filled(index_path: Path) -> Path:
    """Thirty keyed rows, of which one is deleted."""
    options = IndexOptions(keys=True, batch_rows=10, min_merge=0)
    with simindex.open(index_path, "n", options=options) as index:
        index.append(Batch(np.arange(30, dtype=np.uint64), keys=[f"k{i}" for i in range(30)]))
        index.commit()
        index.delete(keys=["k0"])
    return index_path


CALLS: dict[str, Callable[[Path], Any]] = {
    "repair": lambda path: simindex.repair(path, apply=True),
    "survey": simindex.repair,
    "check": lambda path: simindex.open(path).check(),
    "open": simindex.open,
    "query": lambda path: simindex.open(path).query(np.arange(3, dtype=np.uint64)),
}


@pytest.mark.parametrize(
    ("call", "owner", "name"),
    [
        ("repair", KeyHeap, "hashes"), ("survey", KeyHeap, "hashes"), ("check", KeyHeap, "hashes"),
        ("repair", msgpack, "unpackb"), ("check", msgpack, "unpackb"), ("open", msgpack, "unpackb"),
        ("query", msgpack, "unpackb"), ("repair", KeyHeap, "equal"),
    ],
)
def test_it_is_for_the_caller(
    filled: Path, call: str, owner: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = sorted(path.name for path in filled.rglob("*"))
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, stop)
        with pytest.raises(Stop):
            CALLS[call](filled)
    assert sorted(path.name for path in filled.rglob("*")) == files
    with simindex.open(filled, "w") as index:
        assert len(index) == 29
        assert index.check() == []


def test_deletion_is_buffered_whole_or_not_at_all(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = simindex.open(filled, "w")
    with monkeypatch.context() as patch:
        patch.setattr(Names, "of_keys", stop)
        with pytest.raises(Stop):
            index.delete(keys=["k1"])
    with pytest.raises(ReadOnlyIndex, match="`delete` was interrupted"):
        index.delete(keys=["k1"])
    index.close()


@pytest.mark.parametrize("error", [MemoryError(), OSError(28, "no space")])
def test_deletion_that_fails_leaves_the_others(
    filled: Path, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: Any) -> Any:
        raise error

    with simindex.open(filled, "w") as index:
        index.delete(keys=["k1"])
        with monkeypatch.context() as patch:
            patch.setattr(Names, "of_keys", fail)
            with pytest.raises((MemoryError, simindex.errors.StorageFull)):
                index.delete(keys=["k2"])
        index.delete(keys=["k3"])
        index.commit()
        assert len(index) == 27
        assert isinstance(index._handle.writer.committer.waiting, Waiting)
