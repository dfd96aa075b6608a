from __future__ import annotations

import pytest

import simindex
from simindex import Recipe
from simindex.errors import RecipeMismatch
from simindex.simhash.recipe_differences import LABELS, contrast

TEXTS = ["the quick brown fox", "the lazy dog", "five dozen liquor jugs"]


@pytest.mark.parametrize(("one", "other", "words"), [
    (Recipe(), Recipe(), ""),
    (Recipe(weighting="tf", seed=1), Recipe(weighting="binary"),
     "weighting tf instead of binary, seed 1 instead of 0"),
    (Recipe(ngram=(1, 2)), Recipe(ngram=3), "n-gram sizes 1 and 2 instead of 3"),
    (Recipe(stop_words={"the"}), Recipe(), "other stop words"),
    (Recipe(weighting="tfidf").fit(TEXTS), Recipe(weighting="tf"),
     "weighting tfidf instead of tf, idf learned from 3 documents instead of not learned"),
    (Recipe(weighting="tfidf").fit(TEXTS), Recipe(weighting="tfidf").fit(TEXTS[:2]),
     "idf learned from 3 documents instead of learned from 2 documents"),
    (Recipe(weighting="tfidf").fit(TEXTS), Recipe(weighting="tfidf").fit([*TEXTS[:2], "jugs"]),
     "idf learned from other documents"),
])
def test_differences_are_told_in_words(one: Recipe, other: Recipe, words: str) -> None:
    assert contrast(one.differences(other)) == words


def test_every_setting_that_decides_is_told() -> None:
    settings = set(Recipe(sketch_bits=64).to_dict()) - {"h"}
    untold = settings - set(LABELS) - {"stop_words", "documents", "features", "idf_digest"}
    assert untold == set()
    for name in settings:
        assert contrast({name: (1, 2)})


def test_a_batch_of_another_recipe_is_refused_without_internals(index_path: object) -> None:
    options = simindex.IndexOptions(recipe=Recipe(weighting="tfidf").fit(TEXTS))
    with simindex.open(index_path, "n", options=options) as index:
        with pytest.raises(RecipeMismatch) as caught:
            index.append(Recipe(weighting="tfidf").fit(TEXTS[:2]).batch(["a fox"]))
        told = str(caught.value)
        assert "idf learned from 2 documents instead of learned from 3 documents" in told
        assert "digest" not in told and "!=" not in told
        assert "idf_digest" in caught.value.data["differences"]
