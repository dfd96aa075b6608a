"""The Volatility Ordered Set Heap of [PSM], word for word: slow, and the truth for the kernel."""

from __future__ import annotations

import heapq
from collections.abc import Sequence


def reference(costs: Sequence[float], h: int, k: int) -> list[frozenset[int]]:
    """The k cheapest non-empty sets of at most h ranks, by [PSM] Algorithm 2.

    Parameters
    ----------
    costs : sequence of float
        Cost of each rank, nondecreasing.
    h, k : int
        Largest size of a set, and how many sets.

    Returns
    -------
    list of frozenset of int
        Sets of ranks from 0, in rising cost; ties by (cost, size, set). Fewer than k only if
        there are no more.

    Notes
    -----
    One tree per size, rooted at the lowest ranks, and one heap M over all trees. The rule as
    printed lost its line breaks, and line 10 writes S_L where it builds S_R; read with the text it
    says:

    - left child: add 1 to the last element, if that is still a rank;
    - right child: from right to left, find the first gap between neighbours of at least 2. If it is
      exactly 2, add 1 to the element left of it; if it is larger, or there is none, there is no
      right child.

    Every set then has exactly one parent. Let R be the run of consecutive ranks a set ends with. If
    the set is a root, R is all of it and starts at 0. Otherwise, a run of one element was made by
    the left rule (take 1 from it), and not by the right rule, which leaves two neighbours at the
    end; a longer run was made by the right rule, from the parent whose element at the run's start
    is 1 lower (there, the gap behind that element is exactly 2 and no gap stands further right),
    and not by the left rule, which leaves a gap before the end.
    `tests/bits/test_vosh.py` counts all sets by brute force.

    Theta(k log k) heap steps.
    """
    bits = len(costs)
    heap: list[tuple[float, int, tuple[int, ...]]] = []

    def push(ranks: tuple[int, ...]) -> None:
        heapq.heappush(heap, (sum(costs[rank] for rank in ranks), len(ranks), ranks))

    for size in range(1, min(h, bits) + 1):
        push(tuple(range(size)))
    found: list[frozenset[int]] = []
    while heap and len(found) < k:
        _, _, ranks = heapq.heappop(heap)
        found.append(frozenset(ranks))
        for child in children(ranks, bits):
            push(child)
    return found


def children(ranks: tuple[int, ...], bits: int) -> list[tuple[int, ...]]:
    """The left and the right child of a set in its VOSH tree, as far as they exist."""
    found = []
    if ranks[-1] < bits - 1:
        found.append((*ranks[:-1], ranks[-1] + 1))
    for j in range(len(ranks) - 2, -1, -1):
        gap = ranks[j + 1] - ranks[j]
        if gap >= 2:
            if gap == 2:
                found.append((*ranks[:j], ranks[j] + 1, *ranks[j + 1 :]))
            break
    return found
