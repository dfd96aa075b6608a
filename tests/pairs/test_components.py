"""Components of pairs: each row's label is the smallest row that it can be reached from."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simindex._kernels import _native
from simindex.pairs.components import connected


def smallest_reachable(pairs: list[tuple[int, int]], n: int) -> list[int]:
    beside: list[set[int]] = [set() for _ in range(n)]
    for a, b in pairs:
        beside[a].add(b)
        beside[b].add(a)
    labels = []
    for row in range(n):
        seen, queue = {row}, [row]
        while queue:
            new = beside[queue.pop()] - seen
            seen |= new
            queue += new
        labels.append(min(seen))
    return labels


@given(st.integers(1, 30).flatmap(
    lambda n: st.tuples(
        st.just(n), st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=40)
    )
))  # fmt: skip
def test_a_label_is_the_smallest_row_that_can_be_reached(
    graph: tuple[int, list[tuple[int, int]]],
) -> None:
    n, pairs = graph
    a = np.array([pair[0] for pair in pairs], dtype=np.int64)
    b = np.array([pair[1] for pair in pairs], dtype=np.int64)
    assert connected(a, b, n).tolist() == smallest_reachable(pairs, n)


def test_a_long_chain_in_any_order_is_one_group() -> None:
    n = 20_000
    order = np.random.default_rng(3).permutation(n)
    assert connected(order[:-1], order[1:], n).tolist() == [0] * n
    assert connected(np.empty(0, np.int64), np.empty(0, np.int64), 3).tolist() == [0, 1, 2]


def test_the_kernels_refuse_what_is_not_there() -> None:
    forest = _native.Forest(4)
    forest.unite(np.array([3], np.uint64), np.array([1], np.uint64))
    with pytest.raises(ValueError, match="outside"):
        forest.unite(np.array([1], np.uint64), np.array([4], np.uint64))
    assert forest.labels().tolist() == [0, 1, 2, 1]
    rows = np.arange(3, dtype=np.uint32)
    none, bits = np.empty(0, np.uint32), np.empty(0, np.uint16)
    one, bit = np.array([7], np.uint32), np.ones(1, np.uint16)
    for first, document, a, distance in (
        (rows + 1, rows, none, bits), (rows, rows + 1, none, bits), (rows, rows, one, bit)
    ):
        with pytest.raises(ValueError, match="not there"):
            _native.star(first.astype(np.uint32), document.astype(np.uint32), 3, a, a, distance)
