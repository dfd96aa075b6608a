"""A reader of an index that was repaired or built again says so, and does not answer."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import simindex
from simindex.errors import ClosedIndex
from simindex.storage import view

ROWS = np.arange(40, dtype=np.uint64)


def repaired(path: Path) -> None:
    with (path / "catalog" / "data.mdb").open("r+b") as file:
        file.seek(16)
        file.write(b"x")
    assert simindex.repair(path, apply=True).applied


def built_anew(path: Path) -> None:
    other = path.with_name("other.sim")
    simindex.open(other, "n").close()
    path.rename(path.with_name("old.sim"))
    other.rename(path)


@pytest.mark.parametrize("change", [repaired, built_anew])
def test_it_says_so(
    index_path: Path, change: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    with simindex.open(index_path, "c") as index:
        index.append(ROWS)
    reader = simindex.open(index_path, "r")
    pinned = simindex.open(index_path, "r", refresh=False)
    change(index_path)
    for _ in range(2):
        with pytest.raises(ClosedIndex, match="was repaired or built again"):
            reader.refresh()
    monkeypatch.setattr(view, "LOOK_S", 0)
    with pytest.raises(ClosedIndex, match="was repaired or built again"):
        reader.query(ROWS[:1])
    assert len(pinned) == len(ROWS)  # of the commit that it was opened at
    reader.close()
    pinned.close()
    with simindex.open(index_path, "r") as index:
        assert index.refresh() is False


def test_an_index_that_is_gone_is_answered_from(
    index_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(view, "LOOK_S", 0)
    with simindex.open(index_path, "c") as index:
        index.append(ROWS)
    with simindex.open(index_path, "r") as reader:
        shutil.rmtree(index_path)
        assert len(reader) == len(ROWS)


def test_a_writer_that_lost_its_place_writes_nothing(index_path: Path) -> None:
    options = simindex.IndexOptions(batch_rows=1 << 10)
    with simindex.open(index_path, "c", options=options) as index:
        index.append(ROWS)
    writer = simindex.open(index_path, "w")
    writer.append(ROWS)
    moved = index_path.with_name("moved.sim")
    index_path.rename(moved)
    simindex.open(index_path, "n").close()
    with pytest.raises(ClosedIndex, match="was repaired or built again"):
        writer.commit()
    with pytest.raises(ClosedIndex, match="was repaired or built again"):
        writer.close()
    for path, rows in ((moved, len(ROWS)), (index_path, 0)):
        with simindex.open(path, "w") as index:
            assert len(index) == rows
            assert index.check() == []


def test_a_link_that_leads_elsewhere_later_replaces_nothing(
    index_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(view, "LOOK_S", 0)
    for name, rows in (("first", 40), ("second", 30)):
        with simindex.open(index_path.with_name(name), "c") as index:
            index.append(ROWS[:rows])
    index_path.symlink_to("first")
    with simindex.open(index_path, "r") as reader:
        index_path.unlink()
        index_path.symlink_to("second")
        assert reader.refresh() is False
        assert len(reader) == 40
        with simindex.open(index_path, "r") as other:
            assert len(other) == 30
