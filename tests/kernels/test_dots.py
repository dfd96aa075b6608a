"""Products of the weights of common features, beside dense rows of numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simindex._kernels import _native

WIDTH = 12


@given(
    st.lists(st.dictionaries(st.integers(0, WIDTH - 1), st.integers(1, 50), max_size=WIDTH),
             min_size=1, max_size=6),
    st.data(),
)
def test_dots_are_those_of_dense_rows(texts: list[dict[int, int]], data: st.DataObject) -> None:
    """In any order of pairs, of texts without features and with themselves."""
    numbers = st.lists(st.integers(0, len(texts) - 1), max_size=20)
    a = np.array(data.draw(numbers), np.int64)
    b = np.array(data.draw(st.lists(
        st.integers(0, len(texts) - 1), min_size=len(a), max_size=len(a)
    )), np.int64)
    dense = np.zeros((len(texts), WIDTH))
    for row, text in enumerate(texts):
        dense[row, [*text]] = [*text.values()]
    # Features of no text may come first and last, as where a part of a list is given.
    features = np.array([0] * WIDTH + [one for text in texts for one in text] + [1], np.int64)
    weights = np.array([7] * WIDTH + [w for text in texts for w in text.values()] + [7], np.float64)
    starts = WIDTH + np.cumsum([0, *map(len, texts)])
    found = _native.dots(features, weights, starts, WIDTH, a, b)
    assert found.tolist() == (dense[a] * dense[b]).sum(axis=1).tolist()


@pytest.mark.parametrize(("change", "said"), [
    ({"weights": np.ones(2)}, "features and weights differ"),
    ({"features": np.array([0, 3, 1])}, "below width"),
    ({"features": np.array([0, -1, 1])}, "below width"),
    ({"width": 4}, "no more than there are"),
    ({"starts": np.array([0, 2, 1])}, "starts ascend"),
    ({"starts": np.array([-1, 2, 3])}, "starts ascend"),
    ({"starts": np.array([0, 2, 4])}, "starts ascend"),
    ({"starts": np.array([], np.int64)}, "starts ascend"),
    ({"a": np.array([2])}, "numbers of texts"),
    ({"b": np.array([-1])}, "numbers of texts"),
    ({"b": np.array([0, 1])}, "a and b differ"),
])
def test_numbers_out_of_range_are_refused(change: dict[str, Any], said: str) -> None:
    given: dict[str, Any] = {
        "features": np.array([0, 2, 1]), "weights": np.ones(3), "starts": np.array([0, 2, 3]),
        "width": 3, "a": np.array([0]), "b": np.array([1]),
    }
    assert _native.dots(**given).tolist() == [0]
    with pytest.raises(ValueError, match=said):
        _native.dots(**{**given, **change})
