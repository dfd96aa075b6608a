"""Groups by pairs, against brute force in plain Python."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simindex import clusters
from simindex.clusters import connected, neighbours


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


@pytest.mark.parametrize("words", [1, 2])
@pytest.mark.parametrize("cells", [1, 100, 1 << 20])
def test_neighbours_are_all_pairs_within_h(
    monkeypatch: pytest.MonkeyPatch, words: int, cells: int
) -> None:
    monkeypatch.setattr(clusters, "_BLOCK_CELLS", cells)
    rng = np.random.default_rng(5)
    rows = rng.integers(0, 2**64, (60, words), dtype=np.uint64)
    rows[20:40] = rows[:20]
    rows[20:40, 0] ^= rng.integers(0, 16, 20, dtype=np.uint64)
    h = 3
    expected = [
        (a, b, distance)
        for b in range(60) for a in range(b)
        if (distance := sum(
            (int(rows[a, word]) ^ int(rows[b, word])).bit_count() for word in range(words)
        )) <= h
    ]  # fmt: skip
    a, b, distance = neighbours(rows[:, 0] if words == 1 else rows, h)
    assert list(zip(a.tolist(), b.tolist(), distance.tolist(), strict=True)) == expected
    assert len(expected) > 10


def test_no_rows_have_no_neighbours() -> None:
    a, b, distance = neighbours(np.empty(0, np.uint64), 3)
    assert len(a) == len(b) == len(distance) == 0
