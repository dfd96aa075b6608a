"""Which distances are doubtful, by the formula of the estimate and its error."""

from __future__ import annotations

import pytest

from simindex.bits.cosine import threshold
from simindex.planning.doubt import doubt_of
from simindex.planning.similarity import LEAST, Similar, similar
from simindex.records.estimate import estimated, standard_error


def asked(similarity: float, sketch_bits: int, measure: str = "cosine") -> Similar:
    return similar(
        similarity, h=None, recall=1.0, bits=64, sketch_bits=sketch_bits, measure=measure
    )


@pytest.mark.parametrize("measure", ["cosine", "jaccard"])
@pytest.mark.parametrize("bits", [128, 512, 1024])
@pytest.mark.parametrize("similarity", [0.6, 0.8, 0.9, 0.97])
def test_doubtful_are_estimates_within_two_errors(
    similarity: float, bits: int, measure: str
) -> None:
    import numpy as np

    found = doubt_of(asked(similarity, bits, measure))
    for distance in range(1, threshold(LEAST, bits) + 1):
        column = np.array([distance], np.uint16)
        estimate = float(estimated(column, bits, measure)[0])
        error = float(standard_error(column, bits, measure)[0])
        expected = abs(estimate - similarity) <= 2 * error
        assert (found.certain < distance <= found.most) is expected, distance
    assert found.certain < found.similar.most < found.most


def test_equal_bits_are_not_doubtful_and_nothing_is_beyond_the_radius() -> None:
    assert doubt_of(asked(1.0, 512)).certain == 0
    bare = asked(0.9, 0)
    assert (doubt_of(bare).certain, doubt_of(bare).most) == (5, bare.h)


@pytest.mark.parametrize("recall", [1.0, 0.95, 0.5])
@pytest.mark.parametrize("similarity", [0.5, 0.7, 0.9, 0.99, 1.0])
@pytest.mark.parametrize("bits", [64, 128, 512, 1024])
def test_the_question_has_the_same_candidates_and_keeps_all_that_may_be_near(
    similarity: float, bits: int, recall: float
) -> None:
    first = similar(similarity, h=None, recall=recall, bits=64, sketch_bits=bits)
    found = doubt_of(first)
    wide = similar(**found.question, h=None, bits=64, sketch_bits=bits)
    assert (wide.h, wide.most) == (first.h, found.most)
    assert wide.recall >= first.recall
    assert found.wide.most == found.most


def test_the_question_of_a_resemblance_goes_by_sizes() -> None:
    first = asked(0.8, 512, "jaccard")
    found = doubt_of(first)
    wide = similar(**found.question, h=None, bits=64, sketch_bits=512)
    assert wide.measure == "jaccard"
    assert (wide.h, wide.most) == (first.h, found.most)
