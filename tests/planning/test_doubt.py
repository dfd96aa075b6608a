"""Which distances are doubtful, by the formula of the estimate and its error, and by chances that
are summed from binomial coefficients."""

from __future__ import annotations

from dataclasses import replace
from math import acos, comb, pi
from typing import Any

import numpy as np
import pytest

from simindex.bits.cosine import threshold
from simindex.planning.doubt import doubt_of
from simindex.planning.similarity import LEAST, Similar, similar
from simindex.records.estimate import estimated, standard_error


def asked(similarity: float, sketch_bits: int, measure: str = "cosine") -> Similar:
    return similar(
        similarity, h=None, recall=1.0, bits=64, sketch_bits=sketch_bits, measure=measure
    )


def at(distance: int, bits: int, measure: str) -> tuple[float, float]:
    """The estimate and its error."""
    column = np.array([distance], np.uint16)
    return (
        float(estimated(column, bits, measure)[0]), float(standard_error(column, bits, measure)[0])
    )


def chance_within(most: int, similarity: float, bits: int, measure: str) -> float:
    """That a pair of this similarity has at most such a distance, by binomial coefficients."""
    p = acos(2 * similarity / (1 + similarity) if measure == "jaccard" else similarity) / pi
    return sum(comb(bits, d) * p**d * (1 - p) ** (bits - d) for d in range(most + 1))


GRID = [
    pytest.mark.parametrize("measure", ["cosine", "jaccard"]),
    pytest.mark.parametrize("bits", [128, 512, 1024]),
    pytest.mark.parametrize("similarity", [0.6, 0.8, 0.9, 0.97]),
]


def over_the_grid(test: Any) -> Any:
    for mark in GRID:
        test = mark(test)
    return test


@over_the_grid
def test_below_the_similarity_estimates_within_two_errors_are_doubtful(
    similarity: float, bits: int, measure: str
) -> None:
    found = doubt_of(asked(similarity, bits, measure))
    assert found.certain < found.similar.most < found.most
    for distance in range(found.similar.most + 1, threshold(LEAST, bits) + 1):
        estimate, error = at(distance, bits, measure)
        assert (distance <= found.most) is (estimate >= similarity - 2 * error), distance


@over_the_grid
def test_a_pair_two_errors_below_is_certain_once_in_a_thousand_million(
    similarity: float, bits: int, measure: str
) -> None:
    found = doubt_of(asked(similarity, bits, measure))
    low = similarity - 2 * at(found.similar.most, bits, measure)[1]
    assert chance_within(found.certain + 1, low, bits, measure) > 1e-9
    if found.certain:  # else equal bits alone are
        assert chance_within(found.certain, low, bits, measure) <= 1e-9


def test_equal_bits_are_not_doubtful_and_nothing_is_beyond_the_radius() -> None:
    assert doubt_of(asked(1.0, 512)).certain == 0
    bare = asked(0.9, 0)
    assert (doubt_of(bare).certain, doubt_of(bare).most) == (0, bare.h)


@pytest.mark.parametrize("measure", ["cosine", "jaccard"])
@pytest.mark.parametrize("weighted", [False, True])
def test_what_is_searched_for_has_the_same_candidates_and_keeps_all_that_may_be_near(
    weighted: bool, measure: str
) -> None:
    first = similar(0.9, h=None, recall=0.95, bits=64, sketch_bits=512, measure=measure,
                    weighted=weighted)
    found = doubt_of(first)
    assert found.wide == replace(first, most=found.most) and found.most > first.most
    assert similar(found.wide, h=None, recall=1.0, bits=64, sketch_bits=512) == found.wide
