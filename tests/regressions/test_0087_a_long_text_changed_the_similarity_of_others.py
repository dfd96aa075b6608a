"""Lengths of vectors were differences of sums over all texts that are compared at once. So a text
of many equal words took digits away from those behind it, and pairs exactly at the similarity were
kept.
"""

from __future__ import annotations

import pytest

from simindex import Recipe
from simindex.simhash.vectors import vectors_of

DOCUMENTS = [f"common word{place} other{place % 7} rare{place * 3}" for place in range(500)]


@pytest.mark.parametrize("weighting", ["tf", "tfidf", "sublinear"])
def test_a_similarity_is_the_same_whatever_it_is_computed_with(weighting: str) -> None:
    recipe = Recipe(ngram=1, weighting=weighting)  # type: ignore[arg-type]
    if "idf" in weighting:
        recipe = recipe.fit(DOCUMENTS)
    one, other = "word1 word2 word3 word4 other5", "word1 word2 word3 word4 rare9"
    alone = vectors_of(recipe, [one, other]).cosines([0], [1])
    beside = vectors_of(recipe, ["zz " * 400_000, one, other]).cosines([1], [2])
    assert beside.tolist() == pytest.approx(alone.tolist(), abs=1e-14)
