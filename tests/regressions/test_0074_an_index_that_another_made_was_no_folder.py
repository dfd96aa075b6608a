"""Two processes made an index at one path. One of them found nothing there, and a moment later
something, which it took for a file: IndexExists said "is not a folder; not overwritten". It has to
use the index, or to wait for it.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import simindex
from simindex.writing import creation


def test_a_folder_that_another_process_makes_meanwhile_is_used(
    index_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Path.is_dir

    def late(self: Path) -> bool:
        found = real(self)
        if self == index_path and not found:
            self.mkdir()  # by another process
        return found

    with monkeypatch.context() as patch:
        patch.setattr(Path, "is_dir", late)
        assert creation.require_place(index_path)
        index_path.rmdir()
        with simindex.open(index_path, "c") as index:
            index.append(np.arange(3, dtype=np.uint64))
    with simindex.open(index_path) as index:
        assert len(index) == 3
