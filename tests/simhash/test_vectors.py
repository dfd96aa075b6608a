"""Exact similarities of many texts, beside those of word counts and of `Recipe.features`."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simindex import Recipe
from simindex.errors import InvalidBatch
from simindex.simhash.vectors import vectors_of

WORDS = ["the", "fox", "dog", "wood", "dark", "red", "blue", "one", "two", "京都", "é"]
texts = st.lists(st.lists(st.sampled_from(WORDS), max_size=30).map(" ".join), min_size=2,
                 max_size=6)

CORPUS = [" ".join(WORDS[place % 9 :] * (place % 3 + 1)) for place in range(40)]
RECIPES = [
    Recipe(), Recipe(ngram=1, weighting="tf"), Recipe(unit="char", weighting="binary"),
    Recipe(ngram=1, weighting="balanced-tfidf").fit(CORPUS),
    Recipe(ngram=1, weighting="sublinear-tfidf").fit(CORPUS),
    Recipe(ngram=(1, 3), weighting="idf").fit(CORPUS), Recipe(stop_words=["the"]),
]


def plain_cosine(recipe: Recipe, a: str, b: str) -> float:
    """By the features of single texts, as dictionaries."""
    one, other = ({f.feature: f.weight for f in recipe.features(text)} for text in (a, b))
    length = math.hypot(*one.values()) * math.hypot(*other.values())
    dot = sum(weight * other.get(name, 0.0) for name, weight in one.items())
    return dot / length if length else 0.0


@settings(deadline=None, max_examples=30)
@given(texts=texts)
@pytest.mark.parametrize("recipe", RECIPES, ids=str)
def test_cosines_are_those_of_the_features(recipe: Recipe, texts: list[str]) -> None:
    a, b = np.triu_indices(len(texts))
    found = vectors_of(recipe, texts).cosines(a, b)
    expected = [
        plain_cosine(recipe, texts[one], texts[other]) for one, other in zip(a, b, strict=True)
    ]
    assert found == pytest.approx(expected, abs=1e-9)


def test_pairs_may_come_in_any_order() -> None:
    vectors = vectors_of(RECIPES[1], CORPUS)
    random = np.random.default_rng(0)
    a, b = random.integers(0, len(CORPUS), (2, 200))
    found = vectors.cosines(a, b)
    assert found == pytest.approx(vectors.cosines(b, a), abs=1e-12)
    assert vectors.cosines(a[:0], b[:0]).shape == (0,)


@settings(deadline=None, max_examples=10)
@given(texts=texts)
@pytest.mark.parametrize("recipe", RECIPES, ids=str)
def test_resemblances_are_those_of_the_sets_of_features(recipe: Recipe, texts: list[str]) -> None:
    a, b = np.triu_indices(len(texts))
    found = vectors_of(recipe, texts).resemblances(a, b)
    sets = [{feature.feature for feature in recipe.features(text)} for text in texts]
    expected = [
        len(sets[one] & sets[other]) / max(1, len(sets[one] | sets[other]))
        for one, other in zip(a, b, strict=True)
    ]
    assert found == pytest.approx(expected)


def test_what_is_no_text_is_refused() -> None:
    with pytest.raises(InvalidBatch, match="text 1 is int"):
        vectors_of(Recipe(), ["a", 7])  # type: ignore[list-item]
    with pytest.raises(InvalidBatch, match="not UTF-8"):
        vectors_of(Recipe(), [b"a \xff"])
