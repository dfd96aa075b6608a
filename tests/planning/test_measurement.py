"""A machine is measured, and kept where all plan by it or where one reader does."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simindex
from simindex._kernels import _native
from simindex.errors import CorruptFile
from simindex.planning import measurement
from simindex.planning.machine import Machine
from simindex.planning.rounds import REPEATED, Rounds
from simindex.storage.catalog.sealed_values import pack

SMALL = (300, 5_000, 40_000)


@pytest.mark.slow
def test_a_machine_is_measured() -> None:
    """On small tables, of which no figure is kept; that all are numbers, `from_dict` checks."""
    found = measurement.measure(level_rows=SMALL)
    assert found.measured
    assert Machine.from_dict(found.to_dict()) == found
    assert len(found.levels) == len(SMALL)
    assert all(a[0] < b[0] for a, b in pairwise(found.levels))
    assert found.disk_bytes_s == Machine().disk_bytes_s
    # Kernels differ by orders of magnitude, which no load of the machine turns around.
    assert found.scanned_ns < found.vosh[0][1]
    assert found.delta_p_ns < found.heaped[0][1]


def test_probes_are_timed_with_new_queries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked again, queries would find their rows in a cache, whatever the size of the table."""
    asked: list[bytes] = []
    probe = _native.probe_checked

    def recorded(table: Any, bits: int, queries: Any, *rest: Any) -> object:
        asked.append(queries.tobytes())
        return probe(table, bits, queries, *rest)

    monkeypatch.setattr(measurement._native, "probe_checked", recorded)
    made = measurement._Rows.made(np.random.default_rng(0), 5_000)
    size, curve = measurement._level(Rounds(), np.random.default_rng(0), made)
    assert len(curve) == len(measurement.NARROWER)
    assert len(set(asked)) == len(asked) == len(curve) * (REPEATED + 1)
    assert size == made.rows.nbytes + made.directory.nbytes - made.directory.itemsize


@pytest.mark.slow
def test_made_rows_are_sorted_and_fill_the_range() -> None:
    rows = measurement._sorted_rows(np.random.default_rng(0), measurement.MADE_ROWS + 999)[:, 0]
    assert (rows[1:] >= rows[:-1]).all()
    step = (1 << 64) // len(rows)
    assert (rows // np.uint64(step) == np.arange(len(rows))).all()
    assert len(np.unique(rows % np.uint64(step))) > len(rows) // 2


@pytest.mark.parametrize(
    ("pages", "rows"), [(1, [300]), (1 << 7, [300, 5_000]), (1 << 20, [300, 5_000, 40_000])]
)
def test_tables_leave_the_machine_most_of_its_memory(
    pages: int, rows: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    known = {"SC_PHYS_PAGES": pages, "SC_PAGE_SIZE": 4096}
    monkeypatch.setattr(measurement.os, "sysconf", known.__getitem__)
    assert measurement._fitting(SMALL) == rows


def test_a_busy_machine_is_measured_for_longer_and_it_is_said(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The same constants come out as long as two rounds are quiet."""
    slow = iter([1.0, 5.0, 1.1])
    rounds: list[float] = []

    def one_round(found: Rounds, tables: object) -> Machine:
        rounds.append(next(slow))
        found._times.setdefault("step", []).append(rounds[-1])
        return Machine(delta_r_ns=min(rounds))

    monkeypatch.setattr(measurement, "_round", one_round)
    assert measurement.measure(level_rows=SMALL).delta_r_ns == 1.0
    assert rounds == [1.0, 5.0, 1.1]
    assert not caplog.records
    slow = iter([1.0, 5.0, 2.0, 3.0])
    rounds.clear()
    measurement.measure(level_rows=SMALL)
    assert len(rounds) == measurement.MOST_ROUNDS
    assert "the machine was busy while it was measured: 1 of 1 steps" in caplog.text


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Tuning measures nothing, and says this."""
    found = Machine(
        levels=((1 << 10, ((8.0, 6.0), (16.0, 10.0))),), table_ns=20.0, measured=True
    )
    monkeypatch.setattr("simindex.planning.measurement.measure", lambda file: found)
    return found


def test_a_writer_stores_the_machine_for_all(index_path: Path, quick: Machine) -> None:
    with simindex.open(index_path, "c") as writer:
        writer.append(np.arange(100, dtype=np.uint64))
        writer.commit()
        with simindex.open(index_path) as reader:
            assert reader.machine == Machine()
            writer.tune()
            assert writer.machine == quick
            assert reader.machine == Machine()
            writer.commit()
            assert reader.machine == writer.machine == quick
        writer.append(np.arange(100, dtype=np.uint64))
        writer.compact(full=True)
        assert writer.machine == quick
    with simindex.open(index_path) as again:
        assert again.machine == quick
        assert again.check() == []


def test_a_reader_keeps_the_machine_for_itself(index_path: Path, quick: Machine) -> None:
    simindex.open(index_path, "n").close()
    with simindex.open(index_path) as reader, simindex.open(index_path) as other:
        reader.tune()
        assert reader.machine == quick
        assert other.machine == Machine()
        reader.tune(machine=False)
        assert reader.machine == quick


def test_a_damaged_machine_is_told_and_written_anew(index_path: Path, quick: Machine) -> None:
    with simindex.open(index_path, "c") as index:
        index.append(np.arange(10, dtype=np.uint64))
        index.commit()
        index._handle.writing().committer.set_value("machine", pack({"delta_r_ns": -1}))
        index.commit()
        with pytest.raises(CorruptFile, match="simindex tune"):
            index.query(np.arange(1, dtype=np.uint64))
        index.tune()
        index.commit()
        assert len(index.query(np.arange(1, dtype=np.uint64))) > 0
