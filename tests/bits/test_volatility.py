"""Costs of flips fall out of what really flips, and never order a search wrongly."""

from __future__ import annotations

from itertools import combinations
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simindex.bits import volatility as module
from simindex.bits.volatility import (
    BINS,
    RAREST,
    STEP,
    Volatility,
    from_near_pairs,
    from_random_pairs,
    normalised,
    symmetric_sums,
)

HIGHEST = float(np.log((1 - RAREST) / RAREST))


def is_a_table(found: Volatility) -> bool:
    costs = found.costs
    return bool(
        costs.shape == (BINS,) and costs.dtype == np.float32 and (np.diff(costs) >= 0).all()
        and costs[0] >= 0 and costs[-1] <= HIGHEST + 1e-3
    )


def weights_of(kind: str, rows: int) -> np.ndarray:
    rng = np.random.default_rng(rows)
    return {
        "normal": rng.normal(size=(rows, 64)),
        "whole": rng.integers(-3, 4, (rows, 64)).astype(np.float64),
        "equal": np.ones((rows, 64)),
        "zero": np.zeros((rows, 64)),
        "heavy": rng.standard_cauchy((rows, 64)),
        "huge": rng.normal(size=(rows, 64)) * 1e30,
    }[kind].astype(np.float32)


KINDS = ["normal", "whole", "equal", "zero", "heavy", "huge"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rows", [0, 1, 2, 300])
@pytest.mark.parametrize("distance", [0, 3, 40])
def test_random_pairs_make_a_rising_table(kind: str, rows: int, distance: int) -> None:
    assert is_a_table(from_random_pairs(weights_of(kind, rows), distance=distance))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rows", [1, 70, 300])
@pytest.mark.parametrize("share", [0.0, 0.001, 0.05, 1.0])
def test_near_pairs_make_a_rising_table(kind: str, rows: int, share: float) -> None:
    flipped = np.random.default_rng(1).random((rows, 64)) < share
    assert is_a_table(from_near_pairs(weights_of(kind, rows), flipped))


@pytest.mark.parametrize("distance", [1, 3, 8])
@pytest.mark.slow
def test_random_pairs_expect_the_distance_they_are_given(distance: int) -> None:
    weights = np.random.default_rng(0).normal(size=(2000, 64)).astype(np.float32)
    found = from_random_pairs(weights, distance=distance)
    p = 1 / (1 + np.exp(found.of(weights).astype(np.float64)))
    assert p.sum(axis=1).mean() == pytest.approx(distance, rel=0.05)


def test_near_pairs_recover_the_rates_they_were_made_with() -> None:
    """A rewrite flips a bit with p = exp(-4 |w|) / 2, in units of the row's root mean square."""
    rng = np.random.default_rng(2)
    weights = rng.normal(size=(20_000, 64)).astype(np.float32)
    p = 0.5 * np.exp(-4 * np.abs(normalised(weights)))
    found = from_near_pairs(weights, rng.random(p.shape) < p)
    for at, within in ((0.05, 0.25), (0.2, 0.25), (0.5, 0.25), (1.0, 0.25), (1.5, 0.4)):
        rate = 0.5 * np.exp(-4 * at)
        cost = found.costs[int(at / STEP)]
        assert cost == pytest.approx(np.log((1 - rate) / rate), abs=within), at
    assert "20000" in found.source


def test_unit_of_the_weights_does_not_matter() -> None:
    rng = np.random.default_rng(3)
    weights = rng.normal(size=(500, 64)).astype(np.float32)
    flipped = rng.random(weights.shape) < 0.05
    scale = 2.0 ** rng.integers(-20, 20, (500, 1)).astype(np.float32)
    a, b = from_near_pairs(weights, flipped), from_near_pairs(weights * scale, flipped)
    assert np.allclose(a.costs, b.costs)
    assert np.allclose(a.of(weights), a.of(weights * scale), atol=0.02)


def test_cost_of_a_bit_is_read_from_its_bin() -> None:
    table = Volatility(np.arange(BINS, dtype=np.float32), "numbers")
    weights = np.array([[3.0, 4.0, 0.0, 0.0], [0, 0, 0, 0], [0, 0, 0, -100.0]], np.float32)
    rms = 2.5
    assert table.of(weights).tolist() == [
        [int(3 / rms / STEP), int(4 / rms / STEP), 0, 0], [0] * 4, [0, 0, 0, 2 / STEP],
    ]
    alone = np.zeros((1, 64), np.float32)
    alone[0, 9] = -1  # eight root mean squares, beyond the table
    assert table.of(alone)[0, 9] == BINS - 1


@given(
    rates=st.lists(st.floats(0, 1), min_size=1, max_size=12),
    sizes=st.lists(st.integers(1, 50), min_size=12, max_size=12),
)
def test_pooled_rates_fall_and_keep_their_mean(rates: list[float], sizes: list[int]) -> None:
    size = np.array(sizes[: len(rates)], np.float64)
    given_rates = np.array(rates)
    pooled = module._falling(given_rates, size)
    assert (np.diff(pooled) <= 1e-12).all()
    assert (pooled * size).sum() == pytest.approx((given_rates * size).sum())
    if (np.diff(given_rates) <= 0).all():
        assert np.allclose(pooled, given_rates)


@settings(max_examples=60)
@given(
    odds=st.lists(st.floats(0, 1), min_size=0, max_size=9), order=st.integers(0, 6),
)
def test_symmetric_sums_are_those_of_all_sets(odds: list[float], order: int) -> None:
    found, scale = symmetric_sums(np.array([odds, odds[::-1]]).reshape(2, len(odds)), order)
    expected = [sum(prod(s) for s in combinations(odds, size)) for size in range(order + 1)]
    assert found.shape == (2, order + 1)
    assert np.allclose(found, [expected, expected])
    assert not scale.any()
