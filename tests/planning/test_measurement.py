"""A machine is measured, and kept where all plan by it or where one reader does."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import simindex
from simindex.errors import CorruptFile
from simindex.planning import measurement
from simindex.planning.machine import Machine
from simindex.storage.catalog.values import pack

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


def test_reading_speed_needs_a_long_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(measurement.LEAST_READ_BYTES - 1))
    assert measurement.read_bytes_s(path) is None
    path.write_bytes(bytes(2 * measurement.LEAST_READ_BYTES))
    speed = measurement.read_bytes_s(path)
    assert speed is not None and speed > 1e5


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Tuning measures nothing, and says this."""
    found = Machine(
        levels=((1 << 10, ((8.0, 6.0), (16.0, 10.0))),), table_ns=20.0, measured=True
    )
    monkeypatch.setattr("simindex.index.index.measure", lambda file: found)
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
