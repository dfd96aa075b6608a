"""Two processes open with mode c at once: the later must not clear what the earlier made."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import simindex
from simindex.storage.files import durable, locks

ROWS = np.arange(9, dtype=np.uint64)


def test_index_made_while_the_lock_was_awaited_is_kept(
    index_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = locks.lock
    index_path.mkdir()

    def lock(path: Path) -> int:
        monkeypatch.setattr(locks, "lock", real)
        with simindex.open(index_path, "c") as earlier:
            earlier.append(ROWS)
        return real(path)

    monkeypatch.setattr(locks, "lock", lock)
    with simindex.open(index_path, "c") as later:
        assert len(later) == len(ROWS)
        assert later.check() == []


def test_directory_made_in_between_is_used(
    index_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = durable.make_directory

    def make_directory(path: Path) -> None:
        monkeypatch.setattr(durable, "make_directory", real)
        with simindex.open(index_path, "c") as earlier:
            earlier.append(ROWS)
        real(path)

    monkeypatch.setattr(durable, "make_directory", make_directory)
    with simindex.open(index_path, "c") as later:
        assert len(later) == len(ROWS)
