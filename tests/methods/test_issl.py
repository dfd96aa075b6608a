"""Slice lists of a segment answer as brute force does, or name the file that is damaged."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import oracle
import pytest

import simindex
from simindex import IndexOptions
from simindex.errors import CorruptFile
from simindex.methods import issl, scan
from simindex.methods.base import Asked, TablePlan, TopTablePlan
from simindex.storage.tables.table import Table

ROWS = 3000
SCAN = TablePlan("scan", 0, 0, True, 0.0)


def fill(path: Path, bits: int, structure: str) -> oracle.U64:
    rng = np.random.default_rng(bits)
    rows = oracle.skewed(rng, ROWS, bits // 64, templates=40)
    options = IndexOptions(bits=bits, structures=(structure,), batch_rows=ROWS)
    with simindex.open(path, "n", options=options) as index:
        index.append(rows, ids=rng.integers(0, 900, ROWS).astype(np.uint64))
        index.commit()
    return oracle.flip(rng, rows[rng.integers(0, ROWS, 40)], 6)


def listed(max_error: int) -> TablePlan:
    return TablePlan("issl", 0, 0, True, 0.0, max_error=max_error)


def scored(max_error: int, rerank: int) -> TopTablePlan:
    return TopTablePlan("issl", False, 0.0, rerank, max_error)


def table_of(index: simindex.Index) -> Table:
    (table,) = index._handle.view.last().tables
    return table


@pytest.mark.parametrize(
    ("bits", "structure"), [(64, "issl"), (256, "issl"), (1024, "issl"), (4096, "issl:w=8")]
)
@pytest.mark.parametrize("deleted", [False, True])
@pytest.mark.slow
def test_all_rows_reranked_give_the_true_top(
    index_path: Path, bits: int, structure: str, deleted: bool
) -> None:
    queries = fill(index_path, bits, structure)
    with simindex.open(index_path) as index:
        table = table_of(index)
        dead = None
        if deleted:
            dead = (np.random.default_rng(1).random(ROWS) < 0.4).astype(np.uint8)
        exact = scan.top(table, TopTablePlan("scan", True, 0.0), queries, 8, dead, threads=1)
        found = issl.top(table, scored(0, ROWS), queries, 8, dead, threads=2)
        for column in range(3):
            assert np.array_equal(exact[column], found[column])
        assert found.compared == exact.compared
        assert found.lists == 40 * bits // issl._lists(table).width
        lists = issl._lists(table)
        usual = issl.default_rerank(ROWS, 8, 1, width=lists.width, slices=lists.slices)
        fewer = issl.top(table, scored(1, usual), queries, 8, dead, threads=1)
        assert (fewer.distance >= exact.distance).all()
        assert (fewer.distance[:, 0] == exact.distance[:, 0]).mean() > 0.9
        assert fewer.compared < found.compared
        assert issl.checked(table) is issl.checked(table)


@pytest.mark.parametrize(
    ("bits", "structure", "h"), [(64, "issl", 7), (256, "issl", 30), (1024, "issl", 127)]
)
@pytest.mark.slow
def test_rows_within_h_are_those_of_a_scan(
    index_path: Path, bits: int, structure: str, h: int
) -> None:
    queries = fill(index_path, bits, structure)
    with simindex.open(index_path) as index:
        table = table_of(index)
        slices = issl._lists(table).slices
        for first in (False, True):
            exact = scan.search(table, SCAN, Asked(queries, h, first))
            found = issl.within(table, listed(h // slices), Asked(queries, h, first))
            for column in range(4):
                assert np.array_equal(exact[column], found[column])


def test_row_numbers_out_of_range_name_their_file(index_path: Path) -> None:
    queries = fill(index_path, 256, "issl:w=8")
    (file,) = (index_path / "segments").glob("*.issl")
    with simindex.open(index_path) as index:
        numbers = issl._lists(table_of(index)).numbers
        whole = numbers.tobytes()
    damaged = file.read_bytes().replace(whole, np.full_like(numbers, ROWS).tobytes())
    file.chmod(0o644)
    file.write_bytes(damaged)
    with simindex.open(index_path, verify="never") as index:
        table = table_of(index)
        for look in (
            lambda: issl.top(table, scored(0, 200), queries, 3, None, 1),
            lambda: issl.within(table, listed(0), Asked(queries, 20)),
        ):
            with pytest.raises(CorruptFile, match=f"{file.name}.*out of range.*--structures"):
                look()


def test_more_rows_are_reranked_where_scores_tell_little() -> None:
    wide = {"width": 16, "slices": 64}
    assert issl.default_rerank(1_000_000, 10, 0, **wide) == 1953
    assert issl.default_rerank(1_000_000, 10, 1, **wide) == 33203
    assert issl.default_rerank(1_000_000, 10, 2, **wide) == 256
    assert issl.default_rerank(1_000_000, 100, 2, **wide) == 1000
    assert issl.default_rerank(1_000, 10, 1, **wide) == 256
