"""Features that were made elsewhere: hashes by document, with or without weights."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import simhash_oracle as oracle
from hypothesis import given, settings
from hypothesis import strategies as st

from simindex.errors import InvalidBatch, InvalidOption
from simindex.simhash.recipe import Recipe

TEXTS = [*oracle.SCRIPTS, "", "one two one", "漢字", "one"]


def hashed(texts: list[str], seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Hashes of the words of texts, repeated as they are."""
    listed = [[oracle.feature_hash(w.encode(), seed) for w in oracle.words(t)] for t in texts]
    offsets = np.cumsum([0, *map(len, listed)])
    return np.array([h for some in listed for h in some], dtype=np.uint64), offsets


@pytest.mark.parametrize("projection", oracle.PROJECTIONS)
@pytest.mark.parametrize("weighting", oracle.WEIGHTINGS)
def test_hashes_of_words_give_what_the_texts_give(weighting, projection):
    recipe = Recipe(128, "word", 1, weighting, projection=projection, seed=4)
    if "idf" in weighting:
        recipe = recipe.fit(TEXTS[::2])
    expected = recipe.batch(TEXTS, ids=range(len(TEXTS)))
    hashes, offsets = hashed(TEXTS, 4)
    for kind in (np.int64, np.uint64, np.int32, np.uint16):
        for threads in (1, 3):
            batch = recipe.batch_features(
                hashes, offsets.astype(kind), ids=range(len(TEXTS)), threads=threads
            )
            assert batch.rows.tolist() == expected.rows.tolist()
            assert batch.weights.tolist() == expected.weights.tolist()
            assert batch.ids.tolist() == expected.ids.tolist()
            assert batch.skipped == expected.skipped
            assert batch.recipe is recipe


weights_ = st.floats(0, 1e30) | st.sampled_from([0.0, 1.0, 1 / 3, 1e-300, 5e-324])


@settings(max_examples=60)
@given(
    documents=st.lists(
        st.lists(st.tuples(st.integers(0, 2**64 - 1), weights_), max_size=12), max_size=4
    ),
    projection=st.sampled_from(oracle.PROJECTIONS),
    bits=st.sampled_from([64, 192]),
)
@pytest.mark.slow
def test_given_weights_are_added_in_their_order(documents, projection, bits):
    recipe = Recipe(bits, weighting="given", projection=projection)
    flat = [pair for document in documents for pair in document]
    hashes = np.array([h for h, _ in flat], dtype=np.uint64)
    weights = np.array([w for _, w in flat])
    offsets = list(itertools.accumulate(map(len, documents), initial=0))
    batch = recipe.batch_features(hashes, offsets, weights, ids=range(len(documents)))
    assert batch.ids.tolist() == [i for i, document in enumerate(documents) if document]
    for row, position in enumerate(batch.ids.tolist()):
        some = slice(offsets[position], offsets[position + 1])
        fingerprint, expected = oracle.given(hashes[some], weights[some], projection, bits)
        assert batch.rows[row].tolist() == fingerprint
        assert batch.weights[row].tolist() == expected.tolist()


@pytest.mark.parametrize("projection", oracle.PROJECTIONS)
def test_many_given_weights_are_added_in_their_order_whatever_the_threads(projection):
    """More than the kernels take at once."""
    rng = np.random.default_rng(6)
    hashes = rng.integers(0, 2**64, 5001, dtype=np.uint64)
    weights = rng.exponential(size=5001)
    offsets = [0, 1, 1, 2050, 5001]
    recipe = Recipe(weighting="given", projection=projection)
    for threads in (1, 2, 5):
        batch = recipe.batch_features(hashes, offsets, weights, threads=threads)
        for row, (a, b) in enumerate(((0, 1), (1, 2050), (2050, 5001))):
            fingerprint, expected = oracle.given(hashes[a:b], weights[a:b], projection, 64)
            assert batch.rows[row].tolist() == fingerprint
            assert batch.weights[row].tolist() == expected.tolist()
        assert [s.position for s in batch.skipped] == [1]


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.float16, np.int8, np.uint64])
def test_weights_of_any_kind_of_number_will_do(kind):
    hashes = np.array([1, 2, 3], dtype=np.uint64)
    batch = Recipe(weighting="given").batch_features(hashes, [0, 3], np.array([1, 2, 4], kind))
    fingerprint, expected = oracle.given(hashes, np.array([1.0, 2, 4]), "sign", 64)
    assert batch.rows.tolist() == [fingerprint] and batch.weights[0].tolist() == expected.tolist()


@pytest.mark.parametrize("weighting", ["tf", "binary", "sublinear", "given"])
def test_documents_with_too_few_distinct_features_are_left_out(weighting):
    recipe = Recipe(weighting=weighting, min_features=2)
    hashes = np.array([5, 5, 5, 5, 6, 7], dtype=np.uint64)
    weights = np.ones(6) if weighting == "given" else None
    batch = recipe.batch_features(
        hashes, [0, 3, 3, 6], weights, keys=["same", "none", "several"]
    )
    assert batch.keys == ["several"]
    assert [(s.key, s.reason) for s in batch.skipped] == [
        ("same", "too few features: 1 < 2"), ("none", "empty")
    ]


ONE = np.array([1], dtype=np.uint64)


@pytest.mark.parametrize(
    ("hashes", "offsets"),
    [
        ([-1], [0, 1]), ([[1], [2, 3]], [0, 1]), (ONE[:, None], [0, 1]),
        (ONE, [[0], [1, 2]]), (None, [0]), (ONE.astype(float), [0, 1]),
        (ONE, []), (ONE, [0]), (ONE, [1]), (ONE, [0, 2]), (ONE, [1, 1]), (ONE, [-1, 1]),
        (ONE, [0, 1, 0]), (ONE, [0, 1, 0, 1]), (ONE, [0.0, 1.0]), (ONE, [[0, 1]]), (ONE, 7),
        (ONE, None), (ONE, np.array([0, 2**64 - 1, 1], dtype=np.uint64)),
        (ONE, np.array([0, 2**63, 1], dtype=np.uint64)), (ONE, [False, True]), (ONE, ["0", "1"]),
    ],
    ids=str,
)  # fmt: skip
def test_arrays_that_do_not_fit_are_refused(hashes, offsets):
    with pytest.raises(InvalidBatch, match=r"hashes|offset"):
        Recipe().batch_features(hashes, offsets)


@pytest.mark.parametrize(
    ("weights", "row"),
    [
        ([1.0, -1.0, 1.0], 1), ([1.0, 1.0, np.nan], 2), ([np.inf, 1.0, 1.0], 0), ([1, 2, -3], 2),
        ([1.0, -np.inf, np.nan], 1), ([-1e-300, 1, 1], 0),
    ],
)  # fmt: skip
def test_a_weight_that_is_negative_or_not_finite_is_refused_by_its_row(weights, row):
    hashes = np.array([1, 2, 3], dtype=np.uint64)
    with pytest.raises(InvalidBatch, match="finite and not negative") as caught:
        Recipe(weighting="given").batch_features(hashes, [0, 0, 2, 3], weights)
    assert caught.value.data["row"] == row
    assert caught.value.data["document"] == (2 if row == 2 else 1)


@pytest.mark.parametrize(
    "weights", [[1.0], [[1.0, 1.0]], ["1", "2"], [True, False], [1j, 1j], [None, 1.0], 1.0]
)
def test_weights_of_another_kind_or_number_are_refused(weights):
    with pytest.raises(InvalidBatch, match="weights are"):
        Recipe(weighting="given").batch_features(
            np.array([1, 2], dtype=np.uint64), [0, 2], weights
        )


def test_whole_numbers_of_any_type_are_hashes():
    expected = Recipe().batch_features(ONE, [0, 1]).fingerprints.tolist()
    for same in ([1], ONE.astype(np.int64), ONE.astype(">u8"), ONE.astype(np.uint8)):
        assert Recipe().batch_features(same, [0, 1]).fingerprints.tolist() == expected


@pytest.mark.parametrize("projection", ["sign", "gaussian"])
def test_sums_that_are_no_float_are_refused_by_their_document(projection):
    hashes = np.array([1, 2, 3], dtype=np.uint64)
    recipe = Recipe(weighting="given", projection=projection)
    for large in (1e39, 1e308):
        with pytest.raises(InvalidBatch, match=r"document 1 have the sum .* scale them"):
            recipe.batch_features(hashes, [0, 1, 3], [1.0, large, large])
    heaviest = recipe.batch_features(hashes, [0, 1, 3], [1.0, 5e36, 5e36]).weights
    assert np.isfinite(heaviest).all() and np.abs(heaviest).max() > 1e36
    with pytest.raises(InvalidBatch, match="weights are not an array"):
        recipe.batch_features(hashes, [0, 1, 3], [[1.0], [2.0, 3.0]])


def test_weights_go_with_their_weighting_only():
    with pytest.raises(InvalidOption, match="leave out weights"):
        Recipe().batch_features(ONE, [0, 1], [1.0])
    with pytest.raises(InvalidOption, match="needs weights"):
        Recipe(weighting="given").batch_features(ONE, [0, 1])
    with pytest.raises(InvalidOption, match="batch_features"):
        Recipe(weighting="given").batch(["a"])
    with pytest.raises(InvalidOption, match=r"recipe\.fit\(texts\)"):
        Recipe(weighting="idf").batch_features(ONE, [0, 1])


@pytest.mark.parametrize("name", ["ids", "keys"])
def test_ids_or_keys_of_another_length_are_refused(name):
    with pytest.raises(InvalidBatch, match=name):
        Recipe().batch_features(ONE, [0, 1], **{name: [1, 2] if name == "ids" else ["a", "b"]})


def test_no_documents_give_an_empty_batch():
    for hashes in (ONE[:0], []):
        batch = Recipe(128).batch_features(hashes, [0])
        assert len(batch) == 0 and batch.weights.shape == (0, 128)
