"""Rows go from one index into another with the times when they came."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import simindex
from simindex import Batch, IndexOptions
from simindex.index.aged_rows import aged_rows, append_aged
from simindex.storage.tables import times

TIMED = IndexOptions(times=True, batch_rows=16)


def came(index: simindex.Index) -> dict[int, int]:
    return {
        int(row): int(time) for batch, part in aged_rows(index, 3)
        for row, time in zip(batch.rows[:, 0], np.asarray(part), strict=True)
    }


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Row i came at 1000 i; 40 rows, of which the last has replaced another."""
    path = tmp_path / "source.sim"
    with simindex.open(path, "n", options=TIMED) as index:
        for number in range(1, 41):
            monkeypatch.setattr(times, "clock", lambda number=number: 1000.0 * number)
            index.replace(Batch(np.array([number], np.uint64), ids=[min(number, 39)]))
    monkeypatch.setattr(times, "clock", lambda: 50_000.0)
    return path


def test_rows_keep_their_times(source: Path, index_path: Path) -> None:
    with simindex.open(source) as old, simindex.open(index_path, "n", options=TIMED) as new:
        for batch, part in aged_rows(old, 7):
            append_aged(new, batch, part)
        new.commit()
        assert came(new) == came(old) == {i: 1000 * i for i in range(1, 41) if i != 39}
        assert new.expire(older_than=20_000) == 29
        new.append(np.array([99], np.uint64))
        new.commit()
        assert came(new)[99] == 50_000


def test_rows_of_an_index_without_times_come_now(tmp_path: Path, source: Path) -> None:
    with simindex.open(tmp_path / "bare.sim", "n") as bare:
        bare.append(np.arange(5, dtype=np.uint64))
        bare.commit()
        ((batch, part),) = aged_rows(bare, 10)
    assert part is None
    with simindex.open(source, "w") as index:
        append_aged(index, Batch(batch.rows), part)
        index.commit()
        assert [came(index)[number] for number in (0, 4)] == [50_000, 50_000]


def test_rows_older_than_what_has_expired_come_at_that_time(source: Path) -> None:
    """So that no row is dead when it comes."""
    with simindex.open(source, "w") as index:
        index.expire(older_than=40_000)
        append_aged(index, Batch(np.array([77], np.uint64)), np.array([5], np.uint32))
        index.commit()
        assert came(index)[77] == 10_000


def test_times_are_not_stored_where_an_index_has_none(index_path: Path) -> None:
    with simindex.open(index_path, "n") as index:
        append_aged(index, Batch(np.array([1], np.uint64)), np.array([5], np.uint32))
        index.commit()
        ((_, part),) = aged_rows(index, 10)
        assert part is None
