"""Native VOSH against the Python reference, at every level."""

import random

import numpy as np
import pytest
from vosh_heap import reference

from simindex._kernels import LEVELS, _native
from simindex.bits.vosh import plan

LEVEL_NUMBERS = range(len(LEVELS))


def cost_table(entries=512, step=0.005, scale=0.2):
    """Log-odds of a chance to flip that falls as |w| grows: 0.5 at a tie."""
    p = 0.5 * np.exp(-np.arange(entries) * step / scale)
    return np.log((1 - p) / p).astype(np.float32), step


def make(m, bits, seed, kind="normal"):
    rng = np.random.default_rng(seed)
    weights = rng.normal(size=(m, bits)).astype(np.float32)
    if kind == "counts":
        weights = rng.integers(-9, 10, size=(m, bits)).astype(np.float32)
    elif kind == "scaled":
        weights *= np.exp(rng.normal(size=(m, 1)) * 9).astype(np.float32)
    return weights


def costs_of(weights, header_bits, table, step):
    """Cost of each header bit by the contract, in float64."""
    w = weights.astype(np.float64)
    sigma = np.sqrt((w**2).mean(axis=1, keepdims=True))
    sigma[sigma == 0] = 1
    entry = np.minimum(np.abs(w) / sigma / step, len(table) - 1).astype(np.int64)
    return table[entry[:, :header_bits]].astype(np.float64)


def bits_of(mask):
    return [p for p in range(64) if int(mask) >> (63 - p) & 1]


def run(weights, header_bits, h, flips, level, table, step):
    p = plan(header_bits, h, flips)
    return _native.vosh(
        weights, table, step, header_bits, h, p.flips, p.candidates, p.sort_network,
        p.select_network, level,
    )


CASES = [
    (20, 3, 16, "normal"), (22, 3, 10, "counts"), (26, 3, 64, "scaled"), (32, 6, 16, "normal"),
    (12, 3, 30, "counts"), (2, 3, 3, "normal"), (1, 1, 1, "normal"), (5, 5, 31, "normal"),
    (20, 3, 500, "normal"), (22, 3, 256, "normal"), (24, 6, 256, "counts"),
    (40, 2, 16, "normal"), (64, 3, 200, "scaled"), (9, 8, 400, "counts"),
]  # fmt: skip


@pytest.mark.parametrize(("header_bits", "h", "flips", "kind"), CASES)
@pytest.mark.slow
def test_masks_are_the_cheapest_sets(header_bits, h, flips, kind):
    """Same costs as Algorithm 2, up to one entry of the table per bit and 2^-12 of the sum."""
    table, step = cost_table()
    weights = make(37, 64, header_bits * flips, kind)
    costs = costs_of(weights, header_bits, table, step)
    slack = h * float(np.diff(table).max())
    expected = []
    for q in range(37):
        ranked = np.sort(costs[q]).tolist()
        expected.append([sum(ranked[r] for r in s) for s in reference(ranked, h, flips)])
    for level in LEVEL_NUMBERS:
        masks = run(weights, header_bits, h, flips, level, table, step)
        assert masks.dtype == np.uint64
        assert masks.shape == (37, flips)
        for q in range(37):
            assert len(set(masks[q].tolist())) == flips
            sets = [bits_of(mask) for mask in masks[q]]
            assert all(1 <= len(s) <= h and max(s) < header_bits for s in sets)
            found = [costs[q][s].sum() for s in sets]
            assert found == pytest.approx(expected[q], abs=slack, rel=2**-11)


@pytest.mark.parametrize("bits", [64, 128, 1024])
@pytest.mark.parametrize(("header_bits", "flips"), [(21, 16), (21, 200)])
def test_all_levels_give_the_same_bits(bits, header_bits, flips):
    table, step = cost_table()
    for kind in ("normal", "counts", "scaled"):
        weights = make(131, bits, 3, kind)
        expected = run(weights, header_bits, 3, flips, 0, table, step)
        for level in LEVEL_NUMBERS:
            assert np.array_equal(run(weights, header_bits, 3, flips, level, table, step), expected)


@pytest.mark.parametrize("flips", [16, 200])
def test_sigma_is_taken_over_the_whole_row(flips):
    """Widening the spread outside the header must cheapen the header's bits."""
    table = np.array([0.0, 100.0], np.float32)  # free below one sigma
    weights = np.full((1, 128), 1.0, np.float32)
    weights[0, :4] = 2.0
    weights[0, 64:] = 5.0  # sigma 3.6: every header bit is free
    masks = run(weights, 8, 1, 8, 0, table, 1.0)
    assert {bits_of(m)[0] for m in masks[0]} == set(range(8))
    weights[0, 64:] = 1.0  # sigma 1.06: bits 0 to 3 cost 100
    for level in LEVEL_NUMBERS:
        masks = run(weights, 8, 2, 10, level, table, 1.0)
        assert {b for m in masks[0] for b in bits_of(m)} == {4, 5, 6, 7}


@pytest.mark.parametrize("level", LEVEL_NUMBERS)
@pytest.mark.parametrize("flips", [16, 300])
def test_weights_without_meaning_still_give_valid_distinct_sets(flips, level):
    table, step = cost_table()
    weights = np.zeros((6, 64), np.float32)
    weights[1] = np.nan
    weights[2, 3] = np.inf
    weights[3] = 1e-42
    weights[4] = 3e38
    weights[5] = -0.0
    masks = run(weights, 20, 3, flips, level, table, step)
    for row in masks:
        assert len(set(row.tolist())) == flips
        assert all(1 <= len(bits_of(m)) <= 3 and max(bits_of(m)) < 20 for m in row)


@pytest.mark.parametrize("m", [0, 1, 15, 16, 17])
def test_any_number_of_queries(m):
    table, step = cost_table()
    weights = make(17, 64, 1)
    everything = run(weights, 20, 3, 16, 0, table, step)
    for level in LEVEL_NUMBERS:
        assert np.array_equal(run(weights[:m], 20, 3, 16, level, table, step), everything[:m])


def test_inconsistent_plans_are_refused():
    table, step = cost_table()
    weights = make(4, 64, 1)
    p = plan(20, 3, 16)
    good = [weights, table, step, 20, 3, 16, p.candidates, p.sort_network, p.select_network]

    def refused(place, value):
        bad = list(good)
        bad[place] = value
        with pytest.raises(ValueError, match=r"\w"):
            _native.vosh(*bad)

    _native.vosh(*good)
    refused(0, np.zeros((4, 60), np.float32))
    refused(1, table[:0])
    refused(2, 0.0)
    refused(3, 65)
    refused(4, 2)
    refused(5, 36)
    refused(6, np.full_like(p.candidates, 16))
    refused(6, np.full_like(p.candidates, 255))
    refused(7, np.full_like(p.sort_network, 20))
    refused(8, np.full_like(p.select_network, 35))


@pytest.mark.slow
def test_random_plans_agree_with_the_reference():
    rng = random.Random(11)
    table, step = cost_table(64, 0.05, 0.4)
    for _ in range(25):
        header_bits, h = rng.randint(1, 28), rng.randint(1, 5)
        p = plan(header_bits, h, rng.randint(1, 64))
        weights = make(16, 64, rng.random().__hash__() % 1000, rng.choice(["normal", "counts"]))
        expected = costs_of(weights, header_bits, table, step)
        masks = run(weights, header_bits, h, p.flips, -1, table, step)
        for q in range(16):
            found = [expected[q][bits_of(m)].sum() for m in masks[q]]
            ranked = np.sort(expected[q]).tolist()
            wanted = [sum(ranked[r] for r in s) for s in reference(ranked, h, p.flips)]
            slack = h * float(np.diff(table).max())
            assert found == pytest.approx(wanted, abs=slack, rel=2**-12)
