"""Who loses to whom in a buffer, against brute force in plain Python."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simindex.pairs import buffer_losses
from simindex.pairs.buffer_losses import NOWHERE, Nearness, any_neighbour, greedy

Loss = tuple[int, int] | None


def apart(a: list[int], b: list[int]) -> int:
    return sum((x ^ y).bit_count() for x, y in zip(a, b, strict=True))


def lost_by_brute_force(
    rows: list[list[int]], order: list[int], excluded: list[bool], h: int
) -> list[Loss]:
    kept: list[int] = []
    lost: list[Loss] = [None] * len(rows)
    for row in order:
        near = [(apart(rows[row], rows[other]), place) for place, other in enumerate(kept)]
        if near and min(near)[0] <= h:
            distance, place = min(near)
            lost[row] = (kept[place], distance)
        elif not excluded[row]:
            kept.append(row)
    return lost


def as_list(losses: buffer_losses.Losses) -> list[Loss]:
    return [
        None if winner < 0 else (winner, distance)
        for winner, distance in zip(losses.winner.tolist(), losses.distance.tolist(), strict=True)
    ]


def buffers(words: int) -> st.SearchStrategy[list[list[int]]]:
    """Rows that share most bits, many of them equal."""
    value = st.integers(0, 63).map(lambda bits: bits | (bits & 1) << 63)
    return st.lists(st.lists(value, min_size=words, max_size=words), max_size=40)


@given(
    st.data(), st.sampled_from([1, 2]), st.sampled_from([0, 1, 3, 5, 40, 500]),
    st.sampled_from([1, 3, 2048]),
)
@pytest.mark.slow
def test_greedy_keeps_by_rank_and_loses_to_the_nearest_kept(
    data: st.DataObject, words: int, h: int, block: int
) -> None:
    rows = data.draw(buffers(words))
    order = data.draw(st.permutations(range(len(rows))))
    outside = data.draw(st.sets(st.sampled_from(rows).map(tuple), max_size=2)) if rows else set()
    excluded = [tuple(row) in outside for row in rows]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(buffer_losses, "BLOCK_ROWS", block)
        losses = greedy(
            np.array(rows, np.uint64).reshape(-1, words), np.array(order, np.int64),
            np.array(excluded, np.bool_), Nearness(h),
        )
    assert as_list(losses) == lost_by_brute_force(rows, order, excluded, h)
    assert (losses.distance == NOWHERE).tolist() == (losses.winner < 0).tolist()


@given(
    st.data(), st.sampled_from([1, 2]), st.sampled_from([0, 1, 3, 5, 40, 500]),
    st.sampled_from([1, 3, 2048]),
)
@pytest.mark.slow
def test_any_neighbour_is_another_row_within_h(
    data: st.DataObject, words: int, h: int, block: int
) -> None:
    rows = data.draw(buffers(words))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(buffer_losses, "BLOCK_ROWS", block)
        losses = as_list(any_neighbour(np.array(rows, np.uint64).reshape(-1, words), Nearness(h)))
    for row, (mine, loss) in enumerate(zip(rows, losses, strict=True)):
        others = [apart(mine, other) for b, other in enumerate(rows) if b != row]
        assert (loss is None) == (min(others, default=h + 1) > h)
        if loss is not None:
            assert loss[0] != row
            assert loss[1] == apart(mine, rows[loss[0]]) <= h


def test_a_row_between_others_finds_one_that_lost_elsewhere() -> None:
    """2 is near 1 only, which loses to 0: 2 would be kept, and yet is not alone."""
    rows = np.array([[0b0000], [0b0011], [0b1111], [0xFF << 40]], np.uint64)
    losses = any_neighbour(rows, Nearness(2))
    assert as_list(losses) == [(1, 2), (0, 2), (1, 2), None]


@pytest.mark.slow
def test_a_template_a_hundred_thousand_times_is_compared_once() -> None:
    """A comparison of all its copies would hold five thousand million pairs."""
    rows = np.full((100_000, 1), 77, np.uint64)
    rows[1::50_000] = 76
    order = np.arange(len(rows))[::-1].copy()
    losses = greedy(rows, order, np.zeros(len(rows), np.bool_), Nearness(1))
    assert losses.winner[-1] == -1
    assert (losses.winner[:-1] == 99_999).all()
    assert losses.distance.nonzero()[0].tolist() == [1, 50_001, 99_999]
    losses = any_neighbour(rows, Nearness(0))
    assert losses.winner[[0, 2, 3]].tolist() == [2, 0, 0]
    assert losses.winner[[1, 50_001]].tolist() == [50_001, 1]
    assert (losses.distance == 0).all()
    template = np.uint64(1) << np.arange(64, dtype=np.uint64)
    near = (template[:, None] | template[None, :]).reshape(-1, 1)  # 2,080 rows within 4 bits
    assert (any_neighbour(near, Nearness(4)).winner >= 0).all()
    losses = greedy(near, order[-len(near) :], np.zeros(len(near), np.bool_), Nearness(4))
    assert (losses.winner >= 0).sum()
