"""Sums of fractions depend on their order, and so did a bit near half of the weights.

The values are those of simhash 2.1.2 of PyPI.
"""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

from simindex.compat.simhash import Simhash

TENTHS = [("0", 0.2), ("1", 0.2), ("2", 0.1), ("3", 0.2), ("4", 0.3), ("5", 0.2)]


def theirs() -> Any:
    found = pytest.importorskip("simhash")
    if not hasattr(found, "SimhashIndex"):
        pytest.skip("another package of this name is installed")
    return found


def test_a_sum_of_tenths_is_that_of_the_package() -> None:
    assert Simhash(TENTHS).value == 0x05E5AFDB75A712FF


@pytest.mark.slow
@pytest.mark.parametrize(
    "weights",
    [
        [number / 10 for number in range(1, 6)],
        [number * math.log(2) for number in range(1, 6)],
        [number / 100 for number in range(1, 100)],
        [0.1, 0.3, 1, 2, 50, 51, 60, 200, 0, -1, -3],
        [0.1, -0.3, 1e300, 1],
    ],
    ids=["tenths", "logarithms", "two decimals", "mixed", "extreme"],
)
def test_fractional_weights_have_the_fingerprints_of_the_package(weights: list[Any]) -> None:
    """As pairs and as a dict, around the 200 features after which the package sums up."""
    draw = random.Random(102)
    for count in [*range(1, 30), 199, 200, 201, 399, 400, 401, 450, 650] * 3:
        features = {str(draw.randrange(10**6)): draw.choice(weights) for _ in range(count)}
        expected = theirs().Simhash(features).value
        assert Simhash(features).value == expected, features
        assert Simhash(list(features.items())).value == expected
        some = [(name if draw.random() < 0.5 else (name, 3)) for name in features]
        mixed = [*some, *features.items()]
        assert Simhash(mixed, 128).value == theirs().Simhash(mixed, 128).value
