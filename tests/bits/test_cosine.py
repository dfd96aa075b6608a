"""Radius and threshold of a similarity against sums and draws of their own."""

from __future__ import annotations

from math import acos, cos, pi

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simindex.bits.cosine import (
    candidate_radius,
    cosine_of_jaccard,
    flip_share,
    share_within,
    threshold,
)


@pytest.mark.parametrize("bits", [64, 512, 4096])
@pytest.mark.parametrize("similarity", [0.5, 0.8, 0.9, 0.95, 0.99, 1.0])
def test_the_radius_is_the_least_that_has_the_share(similarity: float, bits: int) -> None:
    for share in (0.5, 0.85, 0.95):
        h = candidate_radius(similarity, share, bits)
        assert share_within(h, similarity, bits) >= share - 1e-9
        assert h == 0 or share_within(h - 1, similarity, bits) < share


def test_shares_are_those_that_are_drawn(rng: np.random.Generator) -> None:
    drawn = rng.binomial(64, acos(0.9) / pi, 200_000)
    for h in (5, 9, 12):
        assert share_within(h, 0.9, 64) == pytest.approx(np.mean(drawn <= h), abs=0.006)
    assert candidate_radius(0.9, 0.85, 64) == 12
    assert share_within(64, 0.9, 64) == pytest.approx(1)


def test_vectors_at_an_angle_differ_in_such_a_share_of_bits(rng: np.random.Generator) -> None:
    """By hyperplanes of their own: what the binomial supposes."""
    planes = rng.standard_normal((20_000, 2))
    angle = acos(0.9)
    signs = planes @ np.array([[1, cos(angle)], [0, np.sin(angle)]]) >= 0
    assert np.mean(signs[:, 0] != signs[:, 1]) == pytest.approx(flip_share(0.9), abs=0.01)


@pytest.mark.parametrize("bits", [64, 192, 512, 1024, 4096])
def test_the_threshold_is_the_last_distance_whose_cosine_is_enough(bits: int) -> None:
    for similarity in (0.5, 0.6, 0.9, 0.95, 0.999, 1.0, cos(pi * 7 / bits), cos(pi * 13 / bits)):
        most = threshold(similarity, bits)
        assert cos(pi * most / bits) >= similarity
        assert cos(pi * (most + 1) / bits) < similarity
    assert threshold(0.9, 512) == 73
    assert threshold(1.0, 512) == 0


@pytest.mark.parametrize(("shared", "size"), [(10, 10), (8, 10), (5, 10), (1, 3), (0, 4)])
def test_the_cosine_of_sets_of_equal_size(shared: int, size: int) -> None:
    resemblance = shared / (2 * size - shared)
    assert cosine_of_jaccard(resemblance) == pytest.approx(shared / size)


@given(st.integers(1, 2000), st.integers(1, 2000), st.floats(0, 1))
def test_the_cosine_of_sets_is_least_where_they_are_of_equal_size(
    m: int, n: int, part: float
) -> None:
    """So the radius of the law for these loses no pair of the resemblance."""
    shared = part * min(m, n)
    resemblance = shared / (m + n - shared)
    assert shared / (m * n) ** 0.5 >= cosine_of_jaccard(resemblance) - 1e-12
