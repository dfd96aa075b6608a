"""Intervals hold what they say, also where pairs share documents."""

from __future__ import annotations

import numpy as np
import pytest

from simindex.advising.intervals import rates, wilson


def test_wilson_is_that_of_the_formula() -> None:
    found = wilson(8, 10)  # Wilson (1927): 0.4902 to 0.9433
    assert (round(found.low, 4), round(found.high, 4)) == (0.4902, 0.9433)
    assert wilson(0, 0).value is None
    assert wilson(0, 100).low == pytest.approx(0) and 0.03 < wilson(0, 100).high < 0.04
    assert wilson(100, 100).high == pytest.approx(1)


def test_a_rate_counts_weights_and_further_pairs() -> None:
    a, b = np.array([0, 1, 2]), np.array([3, 4, 5])
    hits, among = np.array([True, False, True]), np.array([True, True, False])
    found = rates(
        [(hits, among, 0.0), (hits, among, 4.0), (hits, ~among & ~hits, 0.0)], a, b,
        np.array([1.0, 3.0, 5.0]), documents=6, seed=0,
    )
    assert found[0].value == pytest.approx(0.25) and found[0].count == 2
    assert found[1].value == pytest.approx((1 + 4) / (4 + 4)) and found[1].count == 6
    assert found[2].value is None
    assert all(one.low <= (one.value or 0) <= one.high for one in found)
    assert rates([], a, b, np.ones(3), documents=6, seed=0) == []


@pytest.mark.slow
def test_intervals_cover_where_pairs_share_documents() -> None:
    """Documents in groups: a group of 10 has 45 pairs, which are all missed or all found. Wilson's
    interval of the pairs would hold the truth in fewer than half of the trials."""
    random = np.random.default_rng(4)
    a, b = (side.ravel() for side in np.triu_indices(10, 1))
    groups = 60
    first = np.concatenate([a + 10 * group for group in range(groups)])
    second = np.concatenate([b + 10 * group for group in range(groups)])
    held = narrow = 0
    trials = 40
    for trial in range(trials):
        missed = np.repeat(random.random(groups) < 0.3, len(a))
        every = np.ones(len(first), np.bool_)
        [found] = rates(
            [(missed, every, 0.0)], first, second, np.ones(len(first)), documents=10 * groups,
            seed=trial,
        )
        held += found.low <= 0.3 <= found.high
        plain = wilson(int(missed.sum()), len(missed))
        narrow += plain.low <= 0.3 <= plain.high
    assert held > narrow
