"""Two texts by a similarity; tests/simhash/test_comparison.py has what is told of them."""

from __future__ import annotations

import pytest

import simindex
from simindex import Recipe
from simindex.errors import InvalidOption

LONG = " ".join(f"word{number}" for number in range(200))
NEAR = LONG.replace("word7 ", "another ")


@pytest.mark.parametrize("similarity", [0.9, 0.999])
@pytest.mark.parametrize("sketch_bits", [0, 512])
def test_a_pair_matches_if_find_all_finds_it(similarity: float, sketch_bits: int) -> None:
    recipe = Recipe(sketch_bits=sketch_bits)
    found = simindex.explain_pair(LONG, NEAR, recipe, similarity=similarity)
    pairs = simindex.find_all(recipe.batch([LONG, NEAR]), similarity=similarity)
    assert found.match == bool(len(pairs))
    assert (found.reached is None) == (not sketch_bits)


def test_a_resemblance_is_estimated_as_find_all_does() -> None:
    recipe = Recipe(ngram=1, weighting="binary", sketch_bits=1024)
    few, more = "a b c d e f g h", "a b c d e f g h i j"
    found = simindex.explain_pair(few, more, recipe, similarity=0.5, measure="jaccard")
    pairs = simindex.find_all(recipe.batch([few, more]), similarity=0.5, measure="jaccard")
    assert pairs.similarity is not None and found.jaccard == pytest.approx(0.8)
    assert found.similarity == pytest.approx(float(pairs.similarity[0]))
    assert found.match and found.measure == "jaccard" and found.asked == 0.5


@pytest.mark.parametrize("wrong", [
    {"similarity": 0.2}, {"similarity": "x"}, {"similarity": 0.9, "h": 3}, {"measure": "jaccard"},
    {"similarity": 0.8, "measure": "jaccard"}, {"h": 65}, {"h": "3"},
    {"recipe": "tfidf"},
])
def test_wrong_options_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidOption):
        simindex.explain_pair("one", "two", **wrong)  # type: ignore[arg-type]
