"""Groups by pairs, against brute force in plain Python."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from simindex.clusters import connected


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
