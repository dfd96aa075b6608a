"""Forests merge in any order to the forest of all pairs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simindex.distributed import Forest, forest, forests, merge_forests
from simindex.records.pairs import CollapsedPairs, EqualRows, Pairs

IDS = st.integers(0, 30).map(lambda number: number * 600_000_000_000_000_000)
EDGES = st.lists(st.tuples(IDS, IDS), max_size=25)


def pairs(edges: list[tuple[int, int]]) -> Pairs:
    a, b = np.array(edges, np.uint64).reshape(-1, 2).T
    return Pairs(a, b, np.zeros(len(edges), np.uint16))


def smallest_connected(edges: list[tuple[int, int]]) -> dict[int, int]:
    """The smallest id of each one's component, found by following edges until nothing changes."""
    root = {node: node for edge in edges for node in edge}
    changed = True
    while changed:
        changed = False
        for a, b in edges:
            least = min(root[a], root[b])
            if (root[a], root[b]) != (least, least):
                root[a] = root[b] = least
                changed = True
    return root


def as_dict(found: Forest) -> dict[int, int]:
    assert found.node.tolist() == sorted(set(found.node.tolist()))
    return dict(zip(found.node.tolist(), found.root.tolist(), strict=True))


@settings(max_examples=40)
@given(EDGES, EDGES, EDGES)
def test_merging_is_associative_and_commutative(
    one: list[tuple[int, int]], two: list[tuple[int, int]], three: list[tuple[int, int]]
) -> None:
    a, b, c = (forest([pairs(edges)]) for edges in (one, two, three))
    expected = smallest_connected(one + two + three)
    assert as_dict(merge_forests(merge_forests(a, b), c)) == expected
    assert as_dict(merge_forests(c, merge_forests(b, a))) == expected
    assert as_dict(forest([pairs(one), pairs(two), pairs(three)])) == expected


def test_parts_are_merged_as_they_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forests, "LEAST_PAIRS", 2)
    edges = [(number, number + 1) for number in range(50)]
    found = forest(pairs([edge]) for edge in edges)
    assert as_dict(found) == dict.fromkeys(range(51), 0)


def test_equal_rows_are_connected() -> None:
    first, row = np.array([3, 3], np.uint64), np.array([5, 9], np.uint64)
    none = np.empty(0, np.uint64)
    found = forest([CollapsedPairs(none, none, np.empty(0, np.uint16), EqualRows(first, row))])
    assert as_dict(found) == {3: 3, 5: 3, 9: 3}
    assert found.roots_of(np.array([9, 4, 3], np.uint64)).tolist() == [3, 4, 3]


def test_no_pairs() -> None:
    found = forest([])
    assert as_dict(found) == {}
    assert found.roots_of(np.array([7], np.uint64)).tolist() == [7]
