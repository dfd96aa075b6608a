"""All that changes the disk goes through one object, which nothing but writing calls."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simindex
from simindex import Batch, IndexOptions
from simindex.storage.files import disk, durable, removal

OPTIONS = IndexOptions(batch_rows=16, structures=("psm", "bphs:G=2,g=1", "issl:w=8"))

CALLS = [name for name in vars(disk.System) if not name.startswith("_")]


class Noted(disk.System):
    """Notes the name of each call, and makes it."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def __getattribute__(self, name: str) -> Any:
        if name in CALLS:
            self.calls.append(name)
        return super().__getattribute__(name)


@pytest.fixture
def noted(monkeypatch: pytest.MonkeyPatch) -> Iterator[Noted]:
    system = Noted()
    monkeypatch.setattr(disk, "system", system)
    return system


def filled(path: Path) -> None:
    values = np.arange(20, dtype=np.uint64)
    with simindex.open(path, "c", options=OPTIONS) as index:
        index.append(Batch(values, ids=values, weights=np.ones((20, 64), np.float32)))
        index.commit()
        index.append(values[:1], ids=values[:1])
        index.delete(ids=[3])


def test_reading_changes_nothing(index_path: Path, noted: Noted) -> None:
    """But LMDB's table of readers, which is made if it is not there."""
    filled(index_path)
    before = {path: path.read_bytes() for path in index_path.rglob("*") if path.is_file()}
    noted.calls.clear()
    with simindex.open(index_path) as index:
        index.query(np.arange(5, dtype=np.uint64), h=1)
        index.top(np.arange(5, dtype=np.uint64), k=2)
        list(index.rows())
        assert index.check() == []
    assert set(noted.calls) == {"create", "lmdb"}
    after = {path: path.read_bytes() for path in index_path.rglob("*") if path.is_file()}
    table = index_path / "catalog" / "lock.mdb"
    assert {**before, table: b""} == {**after, table: b""}


def test_writing_calls_each_of_them(index_path: Path, noted: Noted) -> None:
    filled(index_path)
    with simindex.open(index_path, "w") as index:
        index.compact(full=True)
        assert index.check() == []
    simindex.open(index_path, "n", options=OPTIONS, overwrite=True).close()
    # Large files only are written back; a repair only links, a replacement only exchanges.
    assert set(CALLS) - set(noted.calls) <= {"write_back", "link", "exchange"}


def test_nothing_is_written_beside_it(
    index_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the object refuses everything, nothing appears."""

    class Refusing(disk.System):
        def __getattribute__(self, name: str) -> Any:
            if name in CALLS:
                raise PermissionError(name)
            return super().__getattribute__(name)

    monkeypatch.setattr(disk, "system", Refusing())
    with pytest.raises(OSError, match=r"make_directory|create"):
        simindex.open(index_path, "c", options=OPTIONS)
    assert not index_path.exists()


def test_large_file_is_written_back_and_small_one_is_not(tmp_path: Path, noted: Noted) -> None:
    with durable.NewFile(tmp_path) as file:
        file.write(bytes(100), 0)
        assert "write_back" not in noted.calls
        file.write(bytes(3 * durable.WRITE_BACK_BYTES), 0)
        assert noted.calls.count("write_back") == 3 + 1  # and one that is waited for


def test_tree_is_removed_without_following_links(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_bytes(b"x")
    tree = tmp_path / "tree"
    (tree / "inner" / "deep").mkdir(parents=True)
    (tree / "inner" / "deep" / "file").write_bytes(b"x")
    (tree / "link").symlink_to(outside)
    (tree / "inner" / "file").symlink_to(outside / "kept")
    (tree / "dangling").symlink_to(tmp_path / "nowhere")
    removal.remove_tree(tree)
    assert not tree.exists()
    assert (outside / "kept").read_bytes() == b"x"
