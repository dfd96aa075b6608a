"""At 4,096 bits the odds of all flip sets went beyond a float, and one flip seemed enough."""

from __future__ import annotations

from math import comb, lgamma, log

import numpy as np
import pytest

from simindex.bits.volatility import BINS, Volatility, symmetric_sums
from simindex.planning.calibration import Calibration, NearPairs

BITS = 4096


def test_sums_of_wide_rows_are_told_by_their_logarithm() -> None:
    sums, scale = symmetric_sums(np.full((2, BITS), 0.9), 400)
    assert np.isfinite(sums).all()
    expected = lgamma(BITS + 1) - lgamma(401) - lgamma(BITS - 399) + 400 * log(0.9)
    assert log(sums[0, 400]) + scale[0] == pytest.approx(expected, rel=1e-9)
    narrow, none = symmetric_sums(np.full((1, 20), 1.0), 20)
    assert not none.any()
    assert narrow[0].tolist() == [comb(20, size) for size in range(21)]


def test_flips_of_wide_rows_reach_the_recall() -> None:
    """All bits flip alike, so what k flips reach of the flip sets can be counted."""
    h, header_bits = 1000, 10
    chance = 0.9 * h / BITS
    volatility = Volatility(
        np.full(BINS, log((1 - chance) / chance), np.float32), "made up"
    )
    none = NearPairs(3, np.empty(0, np.int64), np.empty((0, 64), np.uint64),
                     np.empty((0, BITS), np.float16))
    sample = np.random.default_rng(1).normal(size=(4, BITS)).astype(np.float16)
    flips = Calibration(volatility, none, sample, 0).flips(header_bits, h, 0.9)
    # About a binomial number of the header's bits flip, hardly changed by the bound of h in all.
    sets, reached = 0, 0.0
    for size in range(header_bits + 1):
        for _ in range(comb(header_bits, size)):
            reached += chance**size * (1 - chance) ** (header_bits - size)
            sets += 1
            if reached >= 0.9:
                break
        if reached >= 0.9:
            break
    assert flips == pytest.approx(sets - 1, rel=0.15)
