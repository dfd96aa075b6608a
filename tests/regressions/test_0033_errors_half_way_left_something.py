"""An error in the middle of an opening or a commit left a lock, an environment or files behind."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simindex
from simindex import Batch, IndexOptions, StorageFailed
from simindex.storage.catalog import leases
from simindex.storage.catalog.catalog import Edit
from simindex.storage.tables.table import Table
from simindex.writing import catalog_edit, ownership

ROWS = np.arange(40, dtype=np.uint64)


def open_below(path: Path) -> list[str]:
    """Files of an index that this process has open."""
    found = [fd.readlink() for fd in Path("/proc/self/fd").iterdir() if fd.is_symlink()]
    return [str(name) for name in found if name.is_relative_to(path)]


def test_writers_lock_is_closed_if_its_state_cannot_be_asked(
    index_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    simindex.open(index_path, "n").close()
    asked = os.fstat

    def refused(fd: int) -> os.stat_result:
        if Path(f"/proc/self/fd/{fd}").readlink().name == "LOCK":
            raise OSError(errno.EIO, "refused")
        return asked(fd)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fstat", refused)
        with pytest.raises(StorageFailed):
            simindex.open(index_path, "w")
    assert open_below(index_path) == []


def test_environment_is_closed_if_its_file_cannot_be_asked(
    index_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    simindex.open(index_path, "n").close()
    found, calls = leases._identity, []

    def refused(directory: Path) -> Any:
        calls.append(directory)
        if len(calls) == 2:
            raise OSError(errno.EIO, "refused", str(directory))
        return found(directory)

    monkeypatch.setattr(leases, "_identity", refused)
    with pytest.raises(StorageFailed):
        simindex.open(index_path, "r")
    assert open_below(index_path) == []
    simindex.open(index_path, "r").close()


def test_an_existing_index_that_cannot_be_asked_gives_a_typed_error(
    index_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(path: Path) -> bool:
        raise OSError(errno.EIO, "refused", str(path))

    monkeypatch.setattr(ownership, "exists", refused)
    with pytest.raises(StorageFailed):
        simindex.open(index_path, "c")


@pytest.mark.parametrize("owner, method", [
    (Table, "compute_directory"), (Edit, "add_segment"), (catalog_edit, "_add_tombstones"),
])
def test_segment_of_a_commit_that_ran_out_of_memory_is_removed(
    index_path: Path, monkeypatch: pytest.MonkeyPatch, owner: Any, method: str
) -> None:
    options = IndexOptions(
        batch_rows=16, min_merge=0, reservoir_rows=4, structures=("psm", "bphs:G=2,g=1", "issl:w=8")
    )

    def short(*given: object) -> None:
        raise MemoryError

    with simindex.open(index_path, "n", options=options) as index:
        index.append(Batch(ROWS[:12], ids=ROWS[:12]))
        index.commit()
        before = sorted((index_path / "segments").iterdir())
        index.append(Batch(ROWS[12:24], ids=ROWS[12:24]))
        index.delete(ids=[0])
        with monkeypatch.context() as patch:
            patch.setattr(owner, method, short)
            with pytest.raises(MemoryError):
                index.commit()
        assert sorted((index_path / "segments").iterdir()) == before
        index.commit()
        assert sorted(id for batch in index.rows() for id in batch.ids.tolist()) == [*range(1, 24)]
        assert index.check() == []
