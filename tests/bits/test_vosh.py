"""VOSH in Python: the reference against all subsets, the plan's networks against sorting."""

import random
from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from vosh_heap import children, reference

from simindex.bits.vosh import PADDING, plan, set_count
from simindex.errors import InvalidOption


def subsets(bits, h):
    return [s for size in range(1, h + 1) for s in combinations(range(bits), size)]


def some_costs(rng, bits):
    kind = rng.choice(["spread", "ties", "zeros", "steep"])
    if kind == "ties":
        return sorted(rng.choice([0.5, 1.0, 1.5]) for _ in range(bits))
    if kind == "zeros":
        return sorted(rng.choice([0.0, rng.random()]) for _ in range(bits))
    if kind == "steep":
        return sorted(2.0 ** rng.uniform(-9, 9) for _ in range(bits))
    return sorted(rng.random() for _ in range(bits))


@pytest.mark.parametrize(("bits", "size"), [(1, 1), (6, 1), (6, 6), (9, 2), (9, 3), (10, 5)])
def test_a_tree_holds_each_set_of_its_size_once(bits, size):
    """Algorithm 2's two children reach every set, and none along two branches."""
    seen = Counter()
    stack = [tuple(range(size))]
    while stack:
        ranks = stack.pop()
        seen[ranks] += 1
        stack += children(ranks, bits)
    assert seen == Counter(combinations(range(bits), size))


def test_children_cost_no_less_than_their_parent():
    rng = random.Random(5)
    costs = some_costs(rng, 12)
    for ranks in subsets(12, 4):
        for child in children(ranks, 12):
            assert sum(costs[r] for r in child) >= sum(costs[r] for r in ranks)


@pytest.mark.parametrize("seed", range(12))
def test_reference_finds_the_cheapest_sets_of_all_sizes(seed):
    rng = random.Random(seed)
    bits, h = rng.randint(1, 10), rng.randint(1, 5)
    costs = some_costs(rng, bits)
    expected = sorted(sum(costs[r] for r in s) for s in subsets(bits, min(h, bits)))
    for k in (0, 1, 7, len(expected), len(expected) + 5):
        found = reference(costs, h, k)
        assert len(found) == len(set(found)) == min(k, len(expected))
        assert all(1 <= len(s) <= h and max(s) < bits for s in found)
        assert [sum(costs[r] for r in sorted(s)) for s in found] == pytest.approx(expected[:k])


def test_figure_2_of_the_paper():
    """Children as drawn there, ranks counted from 1."""

    def drawn(*ranks):
        return [tuple(r + 1 for r in c) for c in children(tuple(r - 1 for r in ranks), 64)]

    assert drawn(1, 2) == [(1, 3)]
    assert drawn(1, 3) == [(1, 4), (2, 3)]
    assert drawn(1, 4) == [(1, 5)]
    assert drawn(1, 2, 4) == [(1, 2, 5), (1, 3, 4)]
    assert drawn(1, 3, 4) == [(1, 3, 5), (2, 3, 4)]
    assert drawn(1, 3, 5) == [(1, 3, 6), (1, 4, 5)]


@pytest.mark.parametrize(("bits", "h", "k"), [(14, 3, 16), (8, 3, 40), (10, 4, 12), (5, 5, 31)])
@pytest.mark.slow
def test_candidates_are_the_sets_dominated_by_fewer_than_k(bits, h, k):
    """Dominance by definition: some one-to-one matching onto ranks that are not smaller."""

    def dominates(a, b):
        if len(a) > len(b) or a == b:
            return False
        return all(sum(y >= x for y in b) >= sum(z >= x for z in a) for x in a)

    every = subsets(bits, h)
    expected = {s for s in every if sum(dominates(o, s) for o in every) < k}
    found = [tuple(r for r in row if r != PADDING) for row in plan(bits, h, k).candidates.tolist()]
    assert len(found) == len(set(found))
    assert set(found) == expected


def test_sixteen_flips_of_three_bits_need_35_candidates():
    assert len(plan(22, 3, 16).candidates) == 35


@pytest.mark.parametrize(("bits", "h", "k"), [(22, 3, 16), (4, 3, 14), (26, 6, 10), (20, 3, 64)])
def test_networks_bring_the_lowest_to_the_front(bits, h, k):
    made = plan(bits, h, k)
    rng = random.Random(bits * k)
    for _ in range(200):
        wires = [rng.random() for _ in range(bits)]
        lowest = sorted(wires)[: min(k, bits)]
        for low, high in made.sort_network.tolist():
            wires[low], wires[high] = sorted((wires[low], wires[high]))
        assert wires[: len(lowest)] == lowest

        costs = some_costs(rng, bits)
        sums = [sum(costs[r] for r in row if r != PADDING) for row in made.candidates.tolist()]
        lowest = sorted(sum(costs[r] for r in s) for s in reference(costs, h, k))
        for low, high in made.select_network.tolist():
            sums[low], sums[high] = sorted((sums[low], sums[high]))
        assert sums[:k] == pytest.approx(lowest)


def test_plan_clamps_to_the_sets_there_are():
    assert plan(3, 2, 100).flips == set_count(3, 2) == 6
    assert plan(20, 3, 10**9).flips == set_count(20, 3) == 1350
    assert plan(20, 0, 5).flips == plan(0, 3, 5).flips == 0


def test_many_flips_or_wide_headers_are_left_to_the_heap():
    assert len(plan(20, 3, 1000).candidates) == 0
    assert len(plan(40, 3, 16).candidates) == 0


def test_plan_is_cached_and_cannot_be_written():
    assert plan(20, 3, 16) is plan(20, 3, 16)
    with pytest.raises(ValueError, match="read-only"):
        plan(20, 3, 16).candidates[0, 0] = np.uint8(1)


def test_negative_numbers_are_refused():
    with pytest.raises(InvalidOption, match="not negative"):
        plan(20, -1, 5)
