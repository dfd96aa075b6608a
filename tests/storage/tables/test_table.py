"""Rows are sorted with what belongs to them, and the directory says where each header begins."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simindex.storage.tables import sorted_rows
from simindex.storage.tables.keys import KeyHeap
from simindex.storage.tables.sorted_rows import header_bits
from simindex.storage.tables.table import Table, sort_table


@settings(max_examples=60)
@given(
    words=st.lists(st.sampled_from([0, 1, 2**63, 2**63 + 1, 2**64 - 1]), max_size=40),
    width=st.sampled_from([1, 2]), keyed=st.booleans(),
)
def test_sorting_keeps_rows_whole_and_equal_words_in_order(
    words: list[int], width: int, keyed: bool
) -> None:
    count = len(words)
    rows = np.zeros((count, width), np.uint64)
    rows[:, 0] = np.array(words, np.uint64)
    rows[:, -1] = rows[:, -1] if width == 1 else np.arange(count)
    keys = KeyHeap.of([f"k{i}" for i in range(count)]) if keyed else None
    table = sort_table("t", rows, np.arange(count, dtype=np.uint64), keys, horizon=1)
    order = sorted(range(count), key=lambda i: words[i])
    assert table.ids.tolist() == order
    assert np.array_equal(table.fingerprints, rows[order].reshape(count, width))
    if keyed and table.keys is not None:
        assert table.keys.decoded("str") == [f"k{i}" for i in order]


@pytest.mark.parametrize("width", [1, 2])
@pytest.mark.parametrize("rows", [0, 1, 15, 16, 100, 5000])
@pytest.mark.parametrize("shape", ["uniform", "equal", "low", "high"])
def test_directory_is_the_first_row_of_each_header(
    width: int, rows: int, shape: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sorted_rows, "_SLICE_ROWS", 64)
    rng = np.random.default_rng(rows)
    low, high = {"uniform": (0, 2**64), "equal": (7, 8), "low": (0, 9), "high": (2**64 - 9, 2**64)}[
        shape
    ]
    words = np.sort(rng.integers(low, high, rows, dtype=np.uint64))
    fingerprints = np.repeat(words[:, None], width, axis=1)
    bits = header_bits(rows)
    table = Table("t", fingerprints, words, None, horizon=0, header_bits=bits)
    borders = [header << (64 - bits) for header in range(1 << bits)]
    expected = [int(np.searchsorted(words, np.uint64(border))) for border in borders]
    assert table.directory.tolist() == [*expected, rows]
    assert table.directory.dtype == np.uint32
