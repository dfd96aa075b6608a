"""What a creation has made goes when it fails, and nothing else; others may create meanwhile."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simindex
from simindex import IndexOptions
from simindex.errors import IndexLocked
from simindex.storage.files import disk, durable, locks, removal
from simindex.storage.files.descriptor import Descriptor
from simindex.writing import creation

CALLS = [name for name in vars(disk.System) if not name.startswith("_")]
ROWS = np.arange(9, dtype=np.uint64)


class Failing(disk.System):
    """The call of that number fails, once."""

    def __init__(self, number: int) -> None:
        self.left = number

    def __getattribute__(self, name: str) -> Any:
        if name in CALLS:
            self.left -= 1
            if self.left == 0:
                return self.refuse
        return super().__getattribute__(name)

    def refuse(self, *given: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")


def create(path: Path) -> None:
    creation.create(path, IndexOptions(), overwrite=False)


def failures(path: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """Creates an index with each call failing in turn, after which the place is as it was."""
    before = sorted(path.iterdir()) if path.exists() else None
    failed = 0
    for number in range(1, 200):
        system = Failing(number)
        with monkeypatch.context() as patch:
            patch.setattr(disk, "system", system)
            try:
                create(path)
            except Exception as error:
                assert "space" in str(error)
                failed += 1
            else:
                if system.left > 0:
                    break
                removal.remove_tree(path)
                if before is not None:
                    path.mkdir()
                continue
        assert (sorted(path.iterdir()) if path.exists() else None) == before, number
    with simindex.open(path, "w") as index:
        index.append(ROWS)
        assert index.check() == []
    return failed


def test_directory_that_was_made_is_removed(
    index_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert failures(index_path, monkeypatch) > 15


def test_directory_that_was_there_is_left_empty(
    index_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index_path.mkdir()
    assert failures(index_path, monkeypatch) > 15


def test_creation_begins_again_where_a_failed_one_removed_its_directory(
    index_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It found the directory of the other one, which has failed and is gone when it asks for the
    lock; or the lock's file, which it opened just before it went."""
    real = locks.lock
    index_path.mkdir()

    def lock(path: Path) -> Any:
        monkeypatch.setattr(locks, "lock", real)
        index_path.rmdir()
        return real(path)

    monkeypatch.setattr(locks, "lock", lock)
    create(index_path)
    with simindex.open(index_path, "w") as index:
        index.append(ROWS)
        assert index.check() == []


def test_lock_of_a_removed_file_is_no_lock(
    index_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index_path.mkdir()
    path = index_path / "LOCK"
    path.touch()

    class Late(disk.System):
        def create(self, path: Path, flags: int) -> Descriptor:
            file = super().create(path, flags)
            monkeypatch.setattr(disk, "system", disk.System())
            path.unlink()  # as the other creation does, which fails
            return file

    monkeypatch.setattr(disk, "system", Late())
    lock = locks.lock(path)
    try:
        assert os.path.samestat(os.fstat(lock.fileno()), path.stat())
        with pytest.raises(IndexLocked):
            locks.lock(path)
    finally:
        locks.unlock(lock)


def test_creation_that_fails_beside_another_removes_nothing_of_it(
    index_path: Path, monkeypatch: pytest.MonkeyPatch, tree: Callable[[Path], Any]
) -> None:
    """It has made the directory, and the other one was first to lock it."""
    real = durable.make_directory

    def make_directory(path: Path) -> None:
        monkeypatch.setattr(durable, "make_directory", real)
        real(path)
        with simindex.open(index_path, "c") as other:
            other.append(ROWS)
        other = simindex.open(index_path, "w")
        held.append(other)

    held: list[simindex.Index] = []
    monkeypatch.setattr(durable, "make_directory", make_directory)
    with pytest.raises(IndexLocked):
        create(index_path)
    with held[0] as other:
        assert len(other) == len(ROWS)
        assert other.check() == []


def test_creation_that_is_refused_its_place_leaves_nothing(
    index_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(directory: Path) -> None:
        raise MemoryError

    monkeypatch.setattr(creation, "require_nothing_else", refuse)
    with pytest.raises(MemoryError):
        create(index_path)
    assert not index_path.exists()


def test_lock_that_was_there_before_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody may wait for it."""
    path = tmp_path / "index"
    path.mkdir()
    (path / "LOCK").touch()

    def fail(*arguments: Any) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(creation, "_fill", fail)
    with pytest.raises(simindex.SimindexError):
        simindex.open(path, "c")
    assert [file.name for file in path.iterdir()] == ["LOCK"]
