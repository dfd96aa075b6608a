"""Estimates of a similarity against draws of bits."""

from __future__ import annotations

from math import acos, pi

import numpy as np
import pytest

from simindex.records.estimate import estimated, standard_error


def test_equal_bits_are_one_and_opposite_bits_minus_one() -> None:
    found = estimated(np.array([0, 32, 64], np.uint16), 64)
    assert found.dtype == np.float32
    assert found.tolist() == pytest.approx([1, 0, -1], abs=1e-6)


@pytest.mark.parametrize("bits", [64, 512, 1024])
@pytest.mark.parametrize("similarity", [0.6, 0.9, 0.97])
def test_the_error_is_that_of_estimates_of_drawn_bits(
    similarity: float, bits: int, rng: np.random.Generator
) -> None:
    drawn = rng.binomial(bits, acos(similarity) / pi, 50_000).astype(np.uint16)
    found = estimated(drawn, bits)
    told = np.sqrt(np.mean(standard_error(drawn, bits).astype(np.float64) ** 2))
    assert np.mean(found) == pytest.approx(similarity, abs=0.01 if bits == 64 else 0.002)
    assert told == pytest.approx(np.std(found), rel=0.25 if bits == 64 else 0.06)


def test_equal_bits_are_not_certain() -> None:
    errors = standard_error(np.zeros(1, np.uint16), 64), standard_error(np.zeros(1, np.uint16), 512)
    assert 0 < errors[1][0] < errors[0][0] < 0.01
