"""Tables of wide fingerprints that are out of order, under checksums that hold, raised numpy's
ValueError from `check` and `repair`."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import simindex
from simindex import IndexOptions
from simindex.errors import CorruptFile
from simindex.storage.segment import FINGERPRINTS
from simindex.storage.table import SortedRows

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

from reliability.forgery import forged

STRUCTURES = ("psm", "bphs:G=4,g=1", "issl:w=8")


@pytest.mark.parametrize("bits", [64, 128, 256])
@pytest.mark.parametrize("suffix", [".rows", ".bphs"])
@pytest.mark.parametrize("how", ["reversed", "ends", "one value"])
def test_rows_out_of_order_are_damage(
    index_path: Path, bits: int, suffix: str, how: str
) -> None:
    rng = np.random.default_rng(bits)
    options = IndexOptions(batch_rows=500, bits=bits, structures=STRUCTURES)
    rows = rng.integers(0, 1 << 64, (400, bits // 64), dtype=np.uint64)
    with simindex.open(index_path, "n", options=options) as index:
        index.append(rows)
        index.compact(full=True)
    (file,) = (index_path / "segments").glob(f"*{suffix}")
    with forged(index_path, file) as change:
        words = change.section(FINGERPRINTS, "<u8").reshape(-1, bits // 64)
        if how == "reversed":
            words[:] = words[::-1].copy()
        elif how == "ends":
            words[0, 0], words[-1, 0] = (1 << 64) - 1, 0
        else:
            words[200, 0] = 1 << 20
    with simindex.open(index_path) as index:
        errors = [finding for finding in index.check() if finding.severity == "error"]
        assert file.name in {Path(finding.path).name for finding in errors}
        assert sum("sorted" in finding.what for finding in errors) >= 1
        with suppress(CorruptFile):
            index.query(rows[:, 0] if bits == 64 else rows, h=3)
    done = simindex.repair(index_path, apply=True)
    assert (done.rows, done.losses, done.remaining) == (400, (), ())
    with simindex.open(index_path) as index:
        assert [finding for finding in index.check() if finding.severity == "error"] == []
    assert not simindex.repair(index_path).needed


@pytest.mark.parametrize("width", [1, 2])
def test_directory_of_rows_out_of_order_is_refused_or_rises(width: int) -> None:
    words = np.zeros((100, width), np.uint64)
    words[:, 0] = np.random.default_rng(1).integers(0, 1 << 64, 100, dtype=np.uint64)
    try:
        made = SortedRows(words, header_bits=8).compute_directory()
    except CorruptFile:
        return
    assert made[0] == 0
    assert made[-1] == 100
    assert (made[1:] >= made[:-1]).all()
