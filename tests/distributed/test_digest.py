"""Digests do not depend on the order of rows, and on everything else."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import oracle
import pytest

from simindex.distributed import digest
from simindex.errors import CorruptFile


def test_rows_in_any_order_and_in_any_parts(rng: np.random.Generator) -> None:
    rows, ids = oracle.uniform(rng, 50, 2), oracle.uniform(rng, 50)[:, 0]
    whole = digest.rows_digest(ids, rows)
    order = rng.permutation(50)
    parts = [order[:7], order[7:7], order[7:]]
    assert digest.joined_digest(digest.rows_digest(ids[p], rows[p]) for p in parts) == whole
    assert 0 <= whole < 1 << 64


def test_any_other_row_has_another_digest(rng: np.random.Generator) -> None:
    rows, ids = oracle.uniform(rng, 9, 2), oracle.uniform(rng, 9)[:, 0]
    told = {digest.rows_digest(ids, rows)}
    told.add(digest.rows_digest(ids[:8], rows[:8]))
    told.add(digest.rows_digest(ids, rows[:, ::-1].copy()))
    told.add(digest.rows_digest(np.roll(ids, 1), rows))
    for bit in range(64):
        other = ids.copy()
        other[4] ^= np.uint64(1 << bit)
        told.add(digest.rows_digest(other, rows))
    assert len(told) == 4 + 64


def test_each_byte_of_a_sketch_and_a_region_count(rng: np.random.Generator) -> None:
    rows, ids = oracle.uniform(rng, 9), oracle.uniform(rng, 9)[:, 0]
    records = rng.integers(0, 256, (9, 17), np.uint8)
    told = {digest.rows_digest(ids, rows), digest.rows_digest(ids, rows, records)}
    for byte in range(17):
        other = records.copy()
        other[4, byte] ^= 1
        told.add(digest.rows_digest(ids, rows, other))
    assert len(told) == 2 + 17
    regions = ("", "0", "1", "00", "0-31")
    assert len({digest.region_digest(region) for region in regions}) == len(regions)
    assert digest.region_digest("") == 0


def test_files_by_name_and_bytes(tmp_path: Path) -> None:
    (tmp_path / "catalog").mkdir()
    for name in ("a", "catalog/data.mdb", "catalog/lock.mdb", "LOCK"):
        (tmp_path / name).write_bytes(name.encode())
    sizes = digest.file_sizes(tmp_path)
    assert sizes == {"a": 1, "catalog/data.mdb": 16}
    before = digest.files_digest(tmp_path, sizes)
    (tmp_path / "LOCK").write_bytes(b"process 1")
    assert digest.files_digest(tmp_path, sizes) == before
    (tmp_path / "a").write_bytes(b"b")
    assert digest.files_digest(tmp_path, sizes) != before
    (tmp_path / "a").unlink()
    with pytest.raises(CorruptFile, match="a is missing"):
        digest.files_digest(tmp_path, sizes)
