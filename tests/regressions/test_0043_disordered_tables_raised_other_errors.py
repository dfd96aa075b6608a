"""Content that nobody writes, under checksums that hold, raised errors of numpy: tables of wide
fingerprints out of order from `check` and `repair`, offsets of keys out of order from `repair` and
`compact`, weights that are not numbers from queries. Compactions of rows out of order did not end.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from reliability.forgery import forge_value, forged

import simindex
from simindex import IndexOptions
from simindex.errors import CorruptFile
from simindex.storage.tables import compaction
from simindex.storage.tables.reservoir import Reservoir
from simindex.storage.tables.segment import KEY_OFFSETS
from simindex.storage.tables.sorted_rows import SortedRows
from simindex.storage.tables.structure import FINGERPRINTS

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


def keyed(path: Path) -> Path:
    """Two segments of 40 rows with keys; the first one's file."""
    options = IndexOptions(batch_rows=40, min_merge=0, keys="str", structures=("psm",))
    with simindex.open(path, "n", options=options) as index:
        index.append(np.arange(80, dtype=np.uint64), keys=[f"key {i}" for i in range(80)])
        index.commit()
        return path / "segments" / index._current().segments[0].name


@pytest.mark.parametrize("places", [(10, 30), (0, 1), (39, 40), (0, 40)])
def test_offsets_of_keys_out_of_order_cost_the_rows_between(
    index_path: Path, places: tuple[int, int]
) -> None:
    file = keyed(index_path)
    a, b = places
    with forged(index_path, file) as change:
        offsets = change.section(KEY_OFFSETS, "<i8")
        offsets[[a, b]] = offsets[[b, a]]
    done = simindex.repair(index_path, apply=True)
    lost = {row for place in places for row in (place - 1, place)} & {*range(40)}
    assert (done.rows, done.lost_rows, done.remaining) == (80 - len(lost), len(lost), ())
    with simindex.open(index_path) as index:
        found = {str(m.key) for m in index.query(np.arange(80, dtype=np.uint64), h=0)}
    assert found == {f"key {row}" for row in range(80) if row not in lost}


@pytest.mark.parametrize("value", [1, 3, -5, 1 << 40])
@pytest.mark.parametrize("deleted", [False, True])
def test_compacting_keys_that_begin_elsewhere_is_typed(
    index_path: Path, value: int, deleted: bool
) -> None:
    file = keyed(index_path)
    with forged(index_path, file) as change:
        change.section(KEY_OFFSETS, "<i8")[0] = value
    with simindex.open(index_path, "w") as index:
        assert [finding for finding in index.check() if finding.severity == "error"]
        with suppress(CorruptFile):
            if deleted:
                index.delete(keys=["key 7"])
            index.compact(full=True)
    assert simindex.repair(index_path, apply=True).remaining == ()


@pytest.mark.parametrize("window", [4, 16, 1 << 20])
def test_compacting_rows_out_of_order_ends(
    index_path: Path, window: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "WINDOW_ROWS", window)
    file = keyed(index_path)
    with forged(index_path, file) as change:
        words = change.section(FINGERPRINTS, "<u8")
        words[:] = words[::-1].copy()
    with simindex.open(index_path, "w") as index:
        with suppress(CorruptFile):
            index.compact(full=True)
        assert len(index) == 80
    assert simindex.repair(index_path, apply=True).rows == 80


@pytest.mark.parametrize("weight", [np.nan, np.inf, -np.inf])
def test_weights_that_are_no_numbers_are_damage(index_path: Path, weight: float) -> None:
    rows = np.arange(100, dtype=np.uint64)
    weights = np.where(rows[:, None] >> np.arange(64, dtype=np.uint64)[::-1] & np.uint64(1), 1, -1)
    asked = simindex.Batch(rows, weights=weights.astype(np.float32))
    with simindex.open(index_path, "n", options=IndexOptions(batch_rows=50)) as index:
        index.append(asked)
        index.compact(full=True)
        sample = index._current().reservoir
    bad = sample.weights.copy()
    bad[3, 5] = weight
    made = Reservoir(sample.priority, sample.fingerprints, bad)
    forge_value(index_path, "reservoir", made.encode())
    with simindex.open(index_path) as index:
        with pytest.raises(CorruptFile, match="repair"):
            index.query(asked, h=3, recall=0.9)
        assert [finding for finding in index.check() if finding.severity == "error"]
    done = simindex.repair(index_path, apply=True)
    assert (done.rows, done.lost_rows, done.remaining) == (100, 0, ())
    assert "sample" in done.losses[0]
    with simindex.open(index_path) as index:
        assert len(index.query(asked, h=0, recall=0.9)) == 100
