"""A similarity is checked once, and becomes a radius, a recall and a threshold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simindex.bits.cosine import share_within, threshold
from simindex.errors import InvalidBatch, InvalidOption
from simindex.planning.similarity import Similar, require_sketches, similar
from simindex.records.batch import Batch


def made(similarity: Any = 0.9, **changes: Any) -> Similar:
    return similar(
        similarity, **{"h": None, "recall": 1.0, "bits": 64, "sketch_bits": 512, **changes}
    )


def test_radius_and_search_reach_the_share_together() -> None:
    for recall, share in ((1.0, 0.85), (0.95, 0.95), (0.7, 0.7)):
        for similarity in (0.5, 0.8, 0.9, 0.99):
            found = made(similarity, recall=recall)
            reached = share_within(found.h, similarity, 64) * found.recall
            assert share <= reached + 1e-9 < share + 0.002 or found.recall == 1.0
    assert (made().h, made().most, made().compared_bits) == (12, 73, 512)


def test_with_weights_and_a_sketch_flips_may_lose_more_than_the_radius() -> None:
    usual, weighted = made(recall=0.95), made(recall=0.95, weighted=True)
    assert (usual.h, weighted.h) == (14, 15)
    assert weighted.recall < usual.recall
    assert share_within(15, 0.9, 64) * weighted.recall >= 0.95 - 1e-9
    for same in ({"sketch_bits": 0}, {"bits": 128}):
        assert made(recall=0.95, weighted=True, **same) == made(recall=0.95, **same)


def test_equal_documents_are_asked_for_by_one() -> None:
    assert (made(1).h, made(1).most, made(1).recall) == (0, 0, 0.85)


def test_without_a_sketch_the_radius_is_the_threshold() -> None:
    found = made(sketch_bits=0)
    assert (found.h, found.most, found.compared_bits) == (12, 12, 64)
    told = found.guarantee("exact")
    assert "12 of 64 bits (exact), with 0.88 of the pairs at similarity 0.9" in told
    assert "0.66 of those at 0.85, 0.44 of those at 0.8 and 2e-07 of unrelated ones" in told
    assert found.compared_by(1024).most == threshold(0.9, 1024)
    assert "kept within 73 of 512 bits of sketch" in made().guarantee("exact")
    assert "of those at" not in made().guarantee("exact")


@pytest.mark.parametrize(
    "wrong", [0, 0.49, 1.01, -0.9, 90, True, "0.9", float("nan"), [0.9], np.array([0.9]), 1 + 0j]
)
def test_what_is_no_similarity_is_refused(wrong: Any) -> None:
    with pytest.raises(InvalidOption, match="similarity=") as caught:
        made(wrong)
    assert caught.value.data["option"] == "similarity"
    assert "0.5 to 1" in str(caught.value.remedy)


def test_a_similarity_and_a_radius_contradict_each_other() -> None:
    with pytest.raises(InvalidOption, match="h=3 contradict") as caught:
        made(h=3)
    assert "one of them" in str(caught.value.remedy)
    with pytest.raises(InvalidOption, match="recall"):
        made(recall=0)
    assert made(np.float32(0.9)).h == 12


def test_queries_need_sketches_as_wide_as_those_of_rows() -> None:
    rows = np.zeros(2, np.uint64)
    wide = np.zeros((2, 8), np.uint64)
    require_sketches(Batch(rows, sketch=wide), made())
    require_sketches(Batch(rows), made(sketch_bits=0))
    require_sketches(Batch(rows, sketch=wide), made(sketch_bits=0))
    for wrong, said in ((Batch(rows), "no sketches"), (Batch(rows, sketch=wide[:, :4]), "256")):
        with pytest.raises(InvalidBatch, match=said) as caught:
            require_sketches(wrong, made())
        assert "index.recipe" in str(caught.value.remedy)
