"""Texts are read a portion at a time, and refused by their position."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from simindex.errors import InvalidBatch
from simindex.simhash import recipe_kernels
from simindex.simhash.recipe import Recipe


def test_a_wrong_text_is_refused_by_its_position():
    with pytest.raises(InvalidBatch, match="text 1 is NoneType") as caught:
        Recipe().batch(["a", None])
    assert caught.value.data["position"] == 1
    with pytest.raises(InvalidBatch, match="text 0 is not UTF-8"):
        Recipe(weighting="tfidf").fit([b"\xff"])


def distinct_words(documents):
    return [" ".join(f"{i:x}w{j:x}" for j in range(200)) for i in range(documents)]


def test_counting_holds_a_portion_at_a_time_whatever_it_is_given(monkeypatch):
    texts = distinct_words(60)
    recipe = Recipe(ngram=(1, 2), weighting="tfidf")
    whole = recipe.document_frequencies(texts)
    monkeypatch.setattr(recipe_kernels, "COUNTED_CHARACTERS", 3000)
    seen = []
    real = recipe_kernels.RecipeKernels._answer

    def watched(self, portion, first, threads, calls):
        seen.append((first, len(portion)))
        return real(self, portion, first, threads, calls)

    monkeypatch.setattr(recipe_kernels.RecipeKernels, "_answer", watched)
    for given in (texts, tuple(texts), iter(texts), pa.array(texts), pa.chunked_array([texts])):
        seen.clear()
        counted = recipe.document_frequencies(given)
        assert counted.documents == 60 and counted.hashes.tolist() == whole.hashes.tolist()
        assert counted.counts.tolist() == whole.counts.tolist()
        assert len(seen) > 10 and max(n for _, n in seen) <= 4
        assert [first for first, _ in seen] == np.cumsum([0, *(n for _, n in seen)])[:-1].tolist()


def test_words_through_python_are_held_a_portion_at_a_time(monkeypatch):
    texts = distinct_words(60)
    recipe = Recipe(stop_words=["0w1"], ngram=2)
    whole = recipe.batch(texts)
    monkeypatch.setattr(recipe_kernels, "SPLIT_CHARACTERS", 3000)
    for given in (texts, iter(texts), pa.array(texts)):
        made = recipe.batch(given)
        assert made.weights.tolist() == whole.weights.tolist()
    with pytest.raises(InvalidBatch, match="text 61 is NoneType"):
        recipe.batch([*texts, "a", None])
