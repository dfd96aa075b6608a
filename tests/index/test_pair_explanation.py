"""`Index.explain_pair`: by texts, by names, and by one of each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simindex
from simindex import Batch, IndexOptions, Recipe
from simindex.errors import InvalidBatch, InvalidOption

FOX = "the quick brown fox jumps over the lazy dog and runs away into the deep dark wood"
RED = FOX.replace("brown", "red")


@pytest.fixture
def index(index_path: Path) -> simindex.Index:
    recipe = Recipe(sketch_bits=512)
    with simindex.open(index_path, "n", options=IndexOptions(keys="str", recipe=recipe)) as made:
        made.append(recipe.batch([FOX, RED], keys=["fox", "red"]))
    return simindex.open(index_path)


def test_names_have_what_texts_have_but_for_the_features(index: simindex.Index) -> None:
    with index:
        by_text = index.explain_pair(FOX, RED)
        assert by_text == simindex.explain_pair(FOX, RED, index.recipe)
        by_name = index.explain_pair(keys=("fox", "red"))
        assert by_name.distance == by_text.distance
        assert by_name.sketch_distance == by_text.sketch_distance is not None
        assert by_name.similarity == by_text.similarity
        bits = [[one.bit for one in some.flipped or ()] for some in (by_name, by_text)]
        assert bits[0] == bits[1]
        assert (by_name.features, by_name.cosine, by_name.words) == (None, None, None)
        assert (by_name.name_a, by_name.name_b) == ("fox", "red")
        mixed = index.explain_pair(FOX, keys=(None, "red"))
        assert mixed.distance == by_text.distance and mixed.features is None
        flipped = (mixed.flipped or ())[0]
        assert flipped.sum_a is not None and flipped.sum_b is None
        assert index.explain_pair(FOX, RED, h=64).match


@pytest.mark.parametrize("similarity", [0.5, 0.8, 0.9, 0.95, 1.0])
def test_a_similarity_matches_what_pairs_finds(index: simindex.Index, similarity: float) -> None:
    with index:
        found = index.explain_pair(keys=("fox", "red"), similarity=similarity)
        assert found.match == (sum(map(len, index.pairs(similarity=similarity))) == 1)
        assert (found.asked, found.measure) == (similarity, "cosine")
        assert found.reached is not None and found.distance is not None
        assert found.match == (found.reached and found.distance <= found.h)
        assert found.to_dict()["match"] == found.match
        by_text = index.explain_pair(FOX, RED, similarity=similarity)
        assert (by_text.match, by_text.h, by_text.reached) == (found.match, found.h, found.reached)


def test_of_several_rows_the_nearest_are_compared(index_path: Path) -> None:
    with simindex.open(index_path, "n") as index:
        rows = np.array([0, 0xFF, 0xFF00, 0xFE], np.uint64)
        index.append(Batch(rows, ids=np.array([1, 1, 2, 2])))
        index.commit()
        found = index.explain_pair(ids=np.array([1, 2], np.uint64))
        assert found.distance == 1 and [one.bit for one in found.flipped or ()] == [63]
        with pytest.raises(InvalidBatch, match="no recipe"):
            index.explain_pair("one", "two")


@pytest.mark.parametrize("wrong", [
    {}, {"a": FOX}, {"keys": ("fox", "nobody")}, {"keys": ("fox",)}, {"keys": "fox"},
    {"ids": (1, 2), "keys": ("fox", "red")}, {"a": FOX, "b": RED, "h": 65},
    {"a": FOX, "b": RED, "h": -1}, {"a": FOX, "b": RED, "h": 3, "similarity": 0.9},
    {"a": FOX, "b": RED, "similarity": 0.2}, {"a": FOX, "b": RED, "similarity": float("nan")},
    {"a": FOX, "b": RED, "similarity": 0.8, "measure": "jaccard"},
    {"a": FOX, "b": RED, "measure": "jaccard"}, {"a": FOX, "b": RED, "measure": "dice"},
])
def test_wrong_calls_are_refused(index: simindex.Index, wrong: dict[str, Any]) -> None:
    with index, pytest.raises(InvalidOption):
        index.explain_pair(**wrong)


@pytest.mark.parametrize("wrong", [{"ids": (1, 2)}, {"keys": (1, 2)}, {"a": 7, "b": FOX}])
def test_names_of_another_kind_are_refused(index: simindex.Index, wrong: dict[str, Any]) -> None:
    with index, pytest.raises(InvalidBatch):
        index.explain_pair(**wrong)
