"""Equal rows share a number, and each number names the first of them; values occur once."""

from __future__ import annotations

import numpy as np
import pytest

from simindex.bits.distinct_rows import distinct, distinct_values


@pytest.mark.parametrize("words", [1, 2, 5])
@pytest.mark.parametrize("rows", [0, 1, 2, 300])
def test_rows_are_told_apart_by_all_their_words(words: int, rows: int) -> None:
    rng = np.random.default_rng([words, rows])
    values = rng.integers(0, 3, (rows, words), dtype=np.uint64) << np.uint64(62)
    first, number = distinct(values)
    met: dict[tuple[int, ...], int] = {}
    for at, row in enumerate(values.tolist()):
        met.setdefault(tuple(row), at)
    expected = [met[row] for row in sorted(met)]
    assert first.tolist() == expected
    assert first[number].tolist() == [met[tuple(row)] for row in values.tolist()]
    assert first.dtype == number.dtype == np.int64


@pytest.mark.parametrize("dtype", [np.uint32, np.uint64])
@pytest.mark.parametrize("count", [0, 1, 2, 300])
def test_values_that_occur_ascend_and_keep_their_kind(dtype: type[np.generic], count: int) -> None:
    values = np.random.default_rng(count).integers(0, 40, count).astype(dtype)
    found = distinct_values(values)
    assert found.tolist() == sorted(set(values.tolist()))
    assert found.dtype == dtype
