"""Options of a recipe that make no sense are refused by name."""

from __future__ import annotations

import numpy as np
import pytest

from simindex.errors import InvalidOption
from simindex.simhash.recipe import Recipe


@pytest.mark.parametrize(
    ("option", "wrong"),
    [
        ("bits", 0), ("bits", 65), ("bits", 4160), ("bits", True), ("bits", "64"),
        ("unit", "line"), ("unit", None), ("ngram", 0), ("ngram", 6), ("ngram", ()),
        ("ngram", (1, 9)), ("ngram", "3"), ("ngram", 1.0), ("weighting", "df"), ("seed", -1),
        ("sketch_bits", -64), ("sketch_bits", 65), ("sketch_bits", 4160), ("sketch_bits", True),
        ("sketch_bits", None), ("sketch_bits", "64"), ("seed", 2**32),
        ("seed", None), ("min_features", 0), ("min_features", 1.5),
        ("h", -1), ("h", 65), ("h", True), ("h", 6.0), ("h", "6"),
        ("idf", {}), ("weighting", None), ("weighting", []), ("projection", "gauss"),
        ("projection", None), ("projection", 0), ("tokenizer", 0), ("tokenizer", 2),
        ("tokenizer", "name"), ("tokenizer", "m:\ud800"), ("tokenizer", True), ("tokenizer", None),
        ("stop_words", 7), ("stop_words", [1]), ("stop_words", b"en"), ("stop_words", None),
        ("stop_words", ["\ud800"]), ("stemmer", 3), ("stemmer", "\ud800/1"),
        ("stop_words", [f"w{i}" for i in range(200_000)]),
    ],
)  # fmt: skip
@pytest.mark.slow
def test_an_option_out_of_range_is_refused_by_name(option, wrong):
    with pytest.raises(InvalidOption, match=option) as caught:
        Recipe(**{option: wrong})
    assert caught.value.data["option"] == option


def test_sizes_may_be_any_set_of_whole_numbers():
    several = [{1, 2, 3}, frozenset((3, 1, 2)), range(1, 4), [1, 2, 3], np.arange(1, 4).tolist()]
    assert {Recipe(ngram=sizes) for sizes in several} == {Recipe(ngram=(1, 2, 3))}
    assert Recipe(bits=np.int64(128), ngram=np.int64(2)) == Recipe(bits=128, ngram=2)


def test_weights_of_the_caller_are_told_apart_from_those_of_texts():
    with pytest.raises(InvalidOption) as caught:
        Recipe(weighting="tf-idf")
    told = str(caught.value.remedy)
    assert 'balanced-tfidf, or "given" for weights of your own' in told
    assert "batch_features" in told
