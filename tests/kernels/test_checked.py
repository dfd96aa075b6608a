"""Tables and flip orders that were checked once answer as the arrays they hold do."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

from simindex._kernels import LEVELS, _native
from simindex.bits import vosh
from simindex.bits.volatility import STEP

BITS = 9


def case(words: int = 1) -> dict[str, Any]:
    rng = np.random.default_rng(7)
    rows = rng.integers(0, 2**64, (3000, words), dtype=np.uint64, endpoint=False)
    rows = rows[np.argsort(rows[:, 0], kind="stable")]
    weights = rng.standard_normal((200, 64 * words)).astype(np.float32)
    queries = rows[rng.integers(0, len(rows), 200)] ^ (
        np.uint64(1) << rng.integers(0, 64, (200, words), dtype=np.uint64)
    )
    return {
        "rows": rows,
        "directory": _native.header_directory(np.ascontiguousarray(rows[:, 0]), BITS),
        "ids": rng.permutation(len(rows)).astype(np.uint64),
        "queries": np.ascontiguousarray(queries),
        "weights": weights,
        "costs": np.linspace(0, 9, 64, dtype=np.float32),
    }


@pytest.mark.parametrize("level", range(len(LEVELS)))
@pytest.mark.parametrize("words", [1, 2])
@pytest.mark.parametrize("first", [False, True])
def test_a_checked_table_answers_as_its_arrays_do(level: int, words: int, first: bool) -> None:
    of = case(words)
    order = vosh.plan(BITS, 3, 12)
    table = _native.CheckedTable(of["rows"], of["directory"], BITS, of["ids"])
    checked = _native.CheckedVosh(
        of["costs"], STEP, 64 * words, BITS, 3, 12, order.candidates, order.sort_network,
        order.select_network,
    )
    expected = _native.psm(
        of["rows"], of["directory"], BITS, BITS, of["queries"], of["weights"], of["costs"], STEP, 3,
        12, order.candidates, order.sort_network, order.select_network, first, level,
    )
    found = _native.psm_checked(table, checked, of["queries"], of["weights"], first, level)
    masks = np.array([0, 1 << 63, 1 << 62], np.uint64)
    expected_probe = _native.probe(
        of["rows"], of["directory"], BITS, BITS, of["queries"], masks, 3, first, level
    )
    found_probe = _native.probe_checked(table, BITS, of["queries"], masks, 3, first, level)
    for wanted, got in ((expected, found), (expected_probe, found_probe)):
        assert len(wanted[0]) > 0
        for column, same in zip(wanted[:3], got[:3], strict=True):
            np.testing.assert_array_equal(column, same)
            assert column.dtype == same.dtype
        np.testing.assert_array_equal(got[3], of["ids"][wanted[1]])
        assert wanted[3:] == got[4:]


@pytest.mark.slow
def test_a_checked_table_keeps_its_arrays_alive() -> None:
    of = case()
    table = _native.CheckedTable(of.pop("rows"), of.pop("directory"), BITS, of.pop("ids"))
    gc.collect()
    found = _native.probe_checked(table, BITS, of["queries"], np.zeros(1, np.uint64), 64, False)
    assert len(found[0]) > 0
    assert found[3].max() < 3000


@pytest.mark.slow
def test_found_columns_outlive_the_search() -> None:
    of = case()
    table = _native.CheckedTable(of["rows"], of["directory"], BITS, of["ids"])
    query, row, _, ids, _, _ = _native.probe_checked(
        table, BITS, of["queries"], np.zeros(1, np.uint64), 64, False
    )
    del table
    gc.collect()
    np.testing.assert_array_equal(ids, of["ids"][row])
    assert query.flags.writeable and query.base is not None


def test_arrays_that_do_not_belong_together_are_refused() -> None:
    of = case()
    with pytest.raises(ValueError, match="ids"):
        _native.CheckedTable(of["rows"], of["directory"], BITS, of["ids"][:-1].copy())
    with pytest.raises(ValueError, match="directory"):
        _native.CheckedTable(of["rows"], of["directory"][:-1].copy(), BITS, of["ids"])
    table = _native.CheckedTable(of["rows"], of["directory"], BITS, of["ids"])
    with pytest.raises(ValueError, match="header_bits"):
        _native.probe_checked(table, BITS + 1, of["queries"], np.zeros(1, np.uint64), 3, False)
    order = vosh.plan(BITS, 3, 12)
    checked = _native.CheckedVosh(
        of["costs"], STEP, 64, BITS, 3, 12, order.candidates, order.sort_network,
        order.select_network,
    )
    with pytest.raises(ValueError, match="weights"):
        _native.psm_checked(table, checked, of["queries"], of["weights"][:-1].copy(), False)
