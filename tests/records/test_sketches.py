"""Records of sketches: what goes in comes out, and sizes are the nearest that a byte has."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simindex import Batch, Recipe
from simindex.errors import InvalidBatch
from simindex.records.sketches import (
    NOT_KNOWN,
    numbers_of,
    packed,
    record_bytes,
    size_codes,
    sizes_of,
    words_of,
)


@given(st.integers(1, 1 << 32))
def test_a_size_is_told_within_four_and_a_half_percent(features: int) -> None:
    (told,) = numbers_of(size_codes(np.array([features]))).tolist()
    most = 3.79e9  # the last code stands for 3.6 G
    assert abs(told - min(features, told)) <= 0.045 * features
    assert features > most or abs(told - features) <= max(0.045 * features, 0.5)


def test_small_sizes_and_powers_of_two_are_told_exactly() -> None:
    exact = np.array([0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 11, *(1 << power for power in range(32))])
    assert numbers_of(size_codes(exact)).tolist() == exact.tolist()
    assert size_codes(np.array([0, 1, 2, 4])).tolist() == [NOT_KNOWN, 1, 9, 17]
    assert size_codes(np.array([1 << 40])).tolist() == [255]


def test_a_number_told_has_the_code_that_it_was_told_by() -> None:
    """So rows that are exported and built again have the sizes that they had."""
    codes = np.unique(size_codes(np.arange(1, 100_000)))
    codes = np.union1d(codes, np.arange(int(codes[-1]), 256)).astype(np.uint8)
    assert np.array_equal(size_codes(numbers_of(codes)), codes)


def test_codes_a_step_apart_are_sizes_of_one_ratio() -> None:
    codes = np.arange(200, 256, dtype=np.uint8)
    ratio = numbers_of(codes)[1:] / numbers_of(codes)[:-1]
    assert ratio == pytest.approx(2 ** (1 / 8), rel=1e-5)


def test_records_hold_words_and_sizes(rng: np.random.Generator) -> None:
    words = rng.integers(0, 1 << 64, (50, 3), dtype=np.uint64)
    sizes = rng.integers(0, 256, 50).astype(np.uint8)
    records = packed(words, sizes)
    assert records.shape == (50, record_bytes(3))
    assert words_of(records).tolist() == words.tolist()
    assert sizes_of(records).tolist() == sizes.tolist()
    assert records[7].tobytes() == words[7].astype("<u8").tobytes() + bytes([sizes[7]])
    assert not sizes_of(packed(words, None)).any()
    assert record_bytes(0) == 0


def test_a_recipe_tells_how_many_features_texts_have() -> None:
    """Each counts once, with any weights, and as far as a text goes."""
    texts = ["a b c d e f g h", "x " * 5000, " ".join(f"w{i % 3000}" for i in range(9000))]
    for weighting in ("binary", "tf", "sublinear", "tfidf", "balanced-tfidf"):
        recipe = Recipe(ngram=1, weighting=weighting, sketch_bits=64)
        if "idf" in weighting:
            recipe = recipe.fit(texts)
        batch = recipe.batch(texts)
        expected = [round(2 ** (round(8 * math.log2(n)) / 8)) for n in (8, 1, 3000)]
        assert batch.sizes is not None
        assert batch.sizes.tolist() == expected
        assert batch.take(np.array([2, 0])).sizes.tolist() == [expected[2], expected[0]]
    assert Recipe().batch(texts).sizes is None
    hashes = np.array([5, 6, 5, 7, 8, 8], np.uint64)
    given_ = Recipe(weighting="given", sketch_bits=64).batch_features(
        hashes, np.array([0, 4, 6]), np.ones(6)
    )
    assert given_.sizes is not None
    assert given_.sizes.tolist() == [3, 1]


def test_sizes_of_own_sketches_are_those_given() -> None:
    rows = np.arange(3, dtype=np.uint64)
    assert Batch(rows, sketch=rows).sizes.tolist() == [0, 0, 0]
    batch = Batch(rows, sketch=rows, features=[7, 0, 64])
    assert batch.sizes.tolist() == [7, 0, 64]
    again = Batch(rows, sketch=batch.sketches)
    assert again.sizes.tolist() == [7, 0, 64]
    assert Batch(rows, features=[7, 0, 64]).sizes is None
    for wrong in ([1, 2], [1.5, 2.0, 3.0], [-1, 2, 3], ["a", "b", "c"]):
        with pytest.raises(InvalidBatch, match="features"):
            Batch(rows, sketch=rows, features=wrong)
    with pytest.raises(InvalidBatch, match="records of sketches"):
        Batch(rows, sketch=np.zeros((3, 8), np.uint8))
