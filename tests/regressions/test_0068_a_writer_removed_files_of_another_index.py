"""A writer had opened the catalog of an index when another index took its place at the path.

It then took the lock of the new one, and removed the new one's files, which the old catalog does
not name, as strays.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simindex
from simindex.index import handle
from simindex.storage import location
from simindex.storage.files import durable

OPTIONS = simindex.IndexOptions(batch_rows=16, min_merge=0)


def made(path: Path, rows: int, commits: int) -> None:
    with simindex.open(path, "c", options=OPTIONS) as index:
        for number in range(commits):
            index.append(np.arange(number * rows, (number + 1) * rows, dtype=np.uint64))
            index.commit()


def test_a_writer_opens_the_index_that_took_the_place(
    index_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = index_path.with_name("other.sim")
    made(index_path, 20, 5)  # at a later commit than the other one, whose files are no newer
    made(other, 30, 2)
    real = location.leased

    def leased(path: Path, **given: Any) -> Any:
        found = real(path, **given)
        monkeypatch.undo()
        if not durable.exchange(other, index_path):
            pytest.skip("the file system exchanges no names")
        return found

    monkeypatch.setattr(handle, "leased", leased)
    with simindex.open(index_path, "w") as index:
        assert len(index) == 60
    with simindex.open(index_path) as index:
        assert len(index) == 60
        assert index.check() == []
    with simindex.open(other) as index:
        assert len(index) == 100
