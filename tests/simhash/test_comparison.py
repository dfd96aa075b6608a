"""Why two texts match or not, beside an oracle that knows nothing of the recipe's kernels."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st

import simindex
from simindex import Recipe
from simindex.errors import InvalidBatch, InvalidOption

WORDS = ["the", "fox", "dog", "wood", "dark", "red", "blue", "one", "two"]
words = st.lists(st.sampled_from(WORDS), max_size=40)
SINGLE = Recipe(ngram=1, weighting="tf")
LONG = " ".join(f"word{number}" for number in range(200))


def cosine_of_counts(a: list[str], b: list[str]) -> float | None:
    """Of how often each word occurs, in whole numbers up to the root."""
    one, other = Counter(a), Counter(b)
    squares = [sum(count * count for count in some.values()) for some in (one, other)]
    if not all(squares):
        return None
    dot = sum(count * other[word] for word, count in one.items())
    return math.sqrt(Fraction(dot * dot, squares[0] * squares[1]))


@given(words, words)
def test_the_cosine_is_that_of_word_counts(a: list[str], b: list[str]) -> None:
    found = simindex.explain_pair(" ".join(a), " ".join(b), SINGLE)
    expected = cosine_of_counts(a, b)
    if expected is None:
        assert found.cosine is None and found.distance is None and found.warnings
        return
    assert found.cosine == pytest.approx(expected, abs=1e-9)
    assert found.jaccard == len(set(a) & set(b)) / len(set(a) | set(b))
    counts = {one.feature: (one.count_a, one.count_b) for one in found.features or ()}
    assert counts == {word: (a.count(word), b.count(word)) for word in {*a, *b}}


@pytest.mark.parametrize("recipe", [
    Recipe(), Recipe(bits=128, sketch_bits=256), Recipe(unit="char"), Recipe(min_features=2),
    Recipe(projection="gaussian"), Recipe(projection="ternary", weighting="tf"),
    Recipe(stop_words=["the"]),
])  # fmt: skip
def test_flipped_bits_are_those_of_the_sums(recipe: Recipe) -> None:
    a, b = LONG, LONG.replace("word7 ", "another ").replace("word190", "last")
    found = simindex.explain_pair(a, b, recipe)
    batch = recipe.batch([a, b])
    assert batch.weights is not None
    signs = batch.weights > 0
    assert [one.bit for one in found.flipped or ()] == [
        bit for bit in range(recipe.bits) if signs[0, bit] != signs[1, bit]
    ]
    assert found.distance == int(simindex.hamming(batch.rows[:1], batch.rows[1:])[0])
    for one in found.flipped or ():
        assert (one.sum_a, one.sum_b) == tuple(batch.weights[:, one.bit].tolist())
    assert found.match == (found.distance <= recipe.h)
    assert found.warnings == ()


def test_sums_are_told_in_standard_deviations() -> None:
    """Of a hundred words that count once the deviation is 10."""
    found = simindex.explain_pair(
        " ".join(f"a{number}" for number in range(100)),
        " ".join(f"b{number}" for number in range(100)), SINGLE,
    )
    assert found.cosine == 0 and found.flipped
    assert found.expected_distance == 32 and found.expected_deviation == 4
    for one in found.flipped:
        assert one.sum_a is not None and one.deviations_a == pytest.approx(abs(one.sum_a) / 10)


def test_a_sketch_estimates_the_similarity() -> None:
    recipe = Recipe(sketch_bits=1024)
    found = simindex.explain_pair(LONG, LONG.replace("word7 ", "another "), recipe)
    assert found.compared_bits == 1024 and found.sketch_distance is not None
    assert found.similarity is not None and found.standard_error is not None
    assert found.cosine is not None
    assert abs(found.similarity - found.cosine) < 4 * found.standard_error
    assert simindex.explain_pair(LONG, LONG).compared_bits == 64


@pytest.mark.parametrize("projection", ["sign", "gaussian", "ternary"])
def test_a_word_that_decides_every_bit_is_a_warning(projection: str) -> None:
    recipe = Recipe(ngram=1, weighting="tf", projection=projection)  # type: ignore[arg-type]
    found = simindex.explain_pair("spam " * 500 + "ham eggs", LONG, recipe)
    one, other = found.dominances
    assert (one.document, one.feature) == ("a", "spam") and other.decided_bits < 64
    assert one.share == pytest.approx(500 / 502)
    if projection != "ternary":  # there most of the bits of a word are 0
        assert one.decided_bits == 64
        assert [told for told in found.warnings if "'spam' has 100 %" in told]


def test_texts_without_features_have_no_distance() -> None:
    for a, b in (("", "one two"), ("!", ""), ("one two", "")):
        found = simindex.explain_pair(a, b)
        assert found.distance is None and found.similarity is None and not found.match
        assert found.flipped is None and found.cosine is None
        assert len(found.warnings) >= 1 and "no fingerprint" in found.warnings[0]
    few = simindex.explain_pair("one two", "one three", Recipe(ngram=1, min_features=3))
    assert few.distance is None and few.cosine == pytest.approx(0.5)
    assert "too few features (2)" in few.warnings[0]


def test_the_result_is_a_table_and_an_object() -> None:
    found = simindex.explain_pair("我们今天去北京", b"the \xe2\x82\xac", names=("x", 7))
    table = pyarrow.table(found)
    assert table.column_names == ["feature", "count_a", "count_b", "weight_a", "weight_b"]
    assert table.num_rows == len(found.features or ())
    told = found.to_dict()
    assert (told["name_a"], told["name_b"], told["match"]) == ("x", 7, False)
    assert len(told["features"]) == table.num_rows


def test_texts_that_are_none_are_refused() -> None:
    with pytest.raises(InvalidBatch, match="UTF-8"):
        simindex.explain_pair("one", b"\xff")
    with pytest.raises(InvalidBatch):
        simindex.explain_pair("one", 7)  # type: ignore[arg-type]
    with pytest.raises(InvalidOption):
        simindex.explain_pair("one", "two", Recipe(weighting="given"))
