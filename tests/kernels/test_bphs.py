"""The kernels of permuted tables give, at every level, what the design says in Python."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import oracle
import pytest

from simindex._kernels import _native
from simindex.bits.design import BlockDesign
from simindex.methods import bphs
from simindex.storage.tables.permuted import permuted_rows
from simindex.storage.tables.sorted_rows import SortedRows
from simindex.storage.tables.table import Table, sort_table

LEVELS = range(len(_native.levels()))
DESIGNS = (
    "bphs:G=5,g=2", "bphs:nested=3x4", "bphs:G=2,g=1,r=1", "bphs:G=3,g=1,r=2", "bphs:G=4,g=1",
)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("words", [1, 2, 7])
@pytest.mark.parametrize("rows", [0, 1, 511, 1300])
def test_rows_are_permuted_as_the_design_does(level: int, words: int, rows: int) -> None:
    made = oracle.uniform(np.random.default_rng(rows), rows, words)
    for name in DESIGNS:
        design = BlockDesign.parse(name, 64 * words)
        for table in range(design.tables):
            permuted = _native.permute(made, design.rotations(table), level)
            assert np.array_equal(permuted, design.permute(made, table))
            back = _native.permute(permuted, design.rotations(table, inverse=True), level)
            assert np.array_equal(back, made)


def tables_of(
    table: Table, design: BlockDesign, h: int, directory_bits: int
) -> list[_native.CheckedPermuted]:
    made = []
    for number, flips in enumerate(design.table_flips(h)):
        if flips >= 0:
            rows = SortedRows(
                permuted_rows(table.fingerprints, design, number),
                header_bits=min(directory_bits, design.header_bits[number]),
            )
            made.append(bphs.checked_table(rows if number else table, design, number, flips))
    return made


@cache
def data(kind: str, words: int) -> tuple[Table, oracle.U64]:
    """A table and queries, made once for all tests."""
    rng = np.random.default_rng(words)
    made = oracle.uniform(rng, 4000, words)
    if kind == "shared":  # table 0 has one long bucket, where rows are found again by bisection
        made = (made >> np.uint64(24)) | np.uint64(0xABCDEF << 40)
        made[100:200] = made[100]
    if kind == "skewed":
        made = oracle.skewed(rng, 4000, words, templates=30)
        made[:200] = made[3000]
    table = sort_table("", made, np.arange(4000, dtype=np.uint64) + np.uint64(9), None, horizon=0)
    queries = oracle.flip(rng, made[rng.choice(4000, 300)], rng.integers(0, 5, 300))
    return table, np.concatenate([queries, oracle.uniform(rng, 50, words)])


@cache
def near(kind: str, words: int, h: int) -> oracle.I64:
    """(query, row, distance) of all pairs within h of the same data, in order."""
    table, queries = data(kind, words)
    return oracle.matches(table.fingerprints, queries, h)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("kind", ["uniform", "skewed", "shared"])
@pytest.mark.parametrize("words", [1, 2])
@pytest.mark.parametrize("name", DESIGNS)
@pytest.mark.slow
def test_every_pair_is_found_once(level: int, kind: str, words: int, name: str) -> None:
    design = BlockDesign.parse(name, 64 * words)
    table, queries = data(kind, words)
    for h in range(design.exact_for + 1):
        expected = near(kind, words, h)
        for directory_bits, sweep_queries in ((3, h % 2), (9, 1 - h % 2)):
            tables = tables_of(table, design, h, directory_bits)
            query, row, distance, ids, probes, compared, missing = _native.bphs(
                table.checked, table.header_bits, tables, queries, h, False, sweep_queries,
                level,
            )
            found = np.column_stack([query, row, distance])[np.lexsort((row, query))]
            assert np.array_equal(found, expected)
            assert np.array_equal(ids, table.ids[row])
            assert missing == 0
            widths = [table.header_bits, *[directory_bits] * (design.tables - 1)]
            assert probes == len(queries) * sum(
                count for count, _ in bphs.looked_up(design, design.table_flips(h), widths)
            )
            assert compared > 0
            query, row, distance, *_, missing = _native.bphs(
                table.checked, table.header_bits, tables, queries, h, True, 0, level
            )
            assert np.array_equal(np.sort(query), np.unique(expected[:, 0]))
            chosen = {(pair[0], pair[1]): pair[2] for pair in expected.tolist()}
            for first in zip(query.tolist(), row.tolist(), distance.tolist(), strict=True):
                assert chosen.get(first[:2]) == first[2]
            assert missing == 0


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.slow
def test_a_sweep_finds_what_probes_find(level: int) -> None:
    table, queries = data("skewed", 1)
    for name in DESIGNS:
        design = BlockDesign.parse(name)
        tables = tables_of(table, design, design.exact_for, 8)
        probed, swept = (
            _native.bphs(table.checked, 8, tables, queries, 3, False, probes, level)
            for probes in (0, 1)
        )
        for columns in (probed, swept):
            assert columns[4] == probed[4]
        assert sorted(zip(*map(np.ndarray.tolist, probed[:4]), strict=True)) == sorted(
            zip(*map(np.ndarray.tolist, swept[:4]), strict=True)
        )


def test_hits_that_table_0_lacks_are_counted() -> None:
    table, queries = data("uniform", 1)
    design = BlockDesign.parse("bphs:G=2,g=1,r=1")
    tables = tables_of(table, design, 3, 8)
    none = sort_table("", table.fingerprints[:0], table.ids[:0], None, horizon=0)
    *_, missing = _native.bphs(none.checked, 0, tables[1:], queries, 3, False, 0)
    assert missing > 50


@pytest.mark.parametrize("change", ["source", "rotation", "shape", "header", "words", "rows", "h"])
def test_arrays_that_do_not_fit_are_refused(change: str) -> None:
    table, queries = data("uniform", 1)
    design = BlockDesign.parse("bphs:G=2,g=1")
    rows = SortedRows(permuted_rows(table.fingerprints, design, 1), header_bits=5)
    rotations = design.rotations(1)
    parts: list[Any] = [
        rows.fingerprints, rows.directory, 5, 5, rotations, design.rotations(1, inverse=True),
        np.zeros(1, np.uint64), bphs.header_mask(design, 1, 5), 0,
    ]
    h = 1
    if change == "source":
        parts[4] = rotations + np.array([[1, 0, 0, 0]], np.uint64)
    elif change == "rotation":
        parts[5] = rotations + np.array([[0, 0, 64, 0]], np.uint64)
    elif change == "shape":
        parts[4] = rotations[:, :3].copy()
    elif change == "header":
        parts[7] = np.zeros(2, np.uint64)
    elif change == "words":
        queries = np.zeros((3, 2), np.uint64)
    elif change == "rows":  # a table without rotations is table 0 itself
        some = SortedRows(table.fingerprints[:9], header_bits=5)
        parts[0], parts[1], parts[4] = some.fingerprints, some.directory, rotations[:0]
    else:
        h = -1
    with pytest.raises(ValueError, match=":"):
        _native.bphs(
            table.checked, table.header_bits, [_native.CheckedPermuted(*parts)], queries, h, False,
            0,
        )
