"""LMDB's lock file has its space before it is mapped, and nobody else opens it."""

from __future__ import annotations

import os
from pathlib import Path

import lmdb
import numpy as np
import pytest

import simindex
from simindex.errors import IndexLocked, StorageFull
from simindex.storage.catalog import environment as module
from simindex.storage.catalog import lmdb_files

pytestmark = pytest.mark.usefixtures("nothing_left_open")

ROWS = np.arange(30, dtype=np.uint64)


@pytest.mark.slow
def test_lock_file_has_its_space_before_it_is_mapped(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = filled / "catalog" / "lock.mdb"
    lock.unlink()

    def full(fd: int, offset: int, size: int) -> None:
        raise OSError(28, "no space")

    with monkeypatch.context() as patch:
        patch.setattr(module.os, "posix_fallocate", full)
        for mode in ("r", "w"):
            with pytest.raises(StorageFull):
                simindex.open(filled, mode)  # type: ignore[arg-type]
            assert not lock.exists()
    with simindex.open(filled) as reader:
        assert len(reader) == 30
    assert lock.stat().st_blocks * 512 >= lock.stat().st_size >= 64 * lmdb_files.MAX_READERS


@pytest.mark.slow
def test_existing_lock_file_is_never_opened(filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Opening and closing it would drop LMDB's locks in this process."""
    real = os.open
    opened: list[str] = []

    def note(path: os.PathLike[str], flags: int, *rest: int, **named: object) -> int:
        fd = real(path, flags, *rest, **named)  # type: ignore[arg-type]
        opened.append(Path(path).name)
        return fd

    monkeypatch.setattr(os, "open", note)
    with simindex.open(filled, "w") as index:
        index.append(ROWS)
        index.commit()
        assert index.check() == []
    assert "lock.mdb" not in opened
    assert "LOCK" in opened


@pytest.mark.slow
def test_a_catalog_that_other_code_has_open_is_no_damage(filled: Path) -> None:
    """`repair` refuses, too: it would replace a catalog that is whole."""
    calls = (
        lambda: simindex.open(filled), lambda: simindex.open(filled, "w"),
        lambda: simindex.repair(filled), lambda: simindex.repair(filled, apply=True),
    )
    with lmdb.open(str(filled / "catalog"), readonly=True):
        for call in calls:
            with pytest.raises(IndexLocked, match="has its catalog open with LMDB") as refused:
                call()
            assert refused.value.data["holder"] == "this process"
    with simindex.open(filled) as reader:
        assert len(reader) == 30
