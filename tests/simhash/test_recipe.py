"""A recipe against the definition, and its guards."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
import simhash_oracle as oracle

from simindex.errors import InvalidBatch, InvalidOption
from simindex.simhash import document_frequencies, features
from simindex.simhash.recipe import Recipe


def test_one_feature_gives_its_hash():
    """[PSM] Algorithm 1 with n = 1; also for a text shorter than the smallest n-gram."""
    for text in ("One, two THREE!", "one two", "one"):
        expected = oracle.feature_hash(" ".join(oracle.words(text)).encode(), 7)
        recipe = Recipe(seed=7, ngram=3, weighting="tf")
        assert recipe.fingerprint(text).fingerprints.tolist() == [expected]


def test_bytes_and_str_of_one_text_are_alike():
    for text in oracle.SCRIPTS:
        assert (
            Recipe().fingerprint(text).fingerprints
            == Recipe().fingerprint(text.encode()).fingerprints
        )


# guards -------------------------------------------------------------------------------------------


def test_texts_without_enough_features_are_listed_and_keys_stay_aligned():
    recipe = Recipe(ngram=1, min_features=3)
    batch = recipe.batch(
        ["a b c", "", "a a b", "... !", "c d e f"], keys=["k0", "k1", "k2", "k3", "k4"]
    )
    assert batch.keys == ["k0", "k4"]
    assert batch.fingerprints.tolist() == recipe.batch(["a b c", "c d e f"]).fingerprints.tolist()
    assert [(s.position, s.key, s.reason) for s in batch.skipped] == [
        (1, "k1", "empty"),
        (2, "k2", "too few features: 2 < 3"),
        (3, "k3", "empty"),
    ]


def test_skipped_names_the_id_or_nothing():
    assert Recipe().batch(["", "a"], ids=[70, 71]).skipped[0].key == 70
    assert Recipe().batch(["", "a"]).skipped[0].key is None
    assert Recipe().batch(["", "a"], ids=np.array([70, 71])).ids.tolist() == [71]


@pytest.mark.parametrize("bits", [64, 256])
@pytest.mark.parametrize("texts", [[], [""], iter(())])
def test_a_batch_of_nothing_has_its_shape(bits, texts):
    batch = Recipe(bits=bits).batch(texts)
    assert len(batch) == 0 and batch.bits == bits and batch.weights.shape == (0, bits)


@pytest.mark.parametrize("name", ["ids", "keys"])
def test_ids_or_keys_of_another_length_are_refused(name):
    with pytest.raises(InvalidBatch, match=f"2 texts but 1 {name}"):
        Recipe().batch(["a", ""], **{name: [1] if name == "ids" else ["k"]})


def test_an_unfitted_tfidf_recipe_refuses_and_says_how_to_fit():
    with pytest.raises(InvalidOption, match=r"recipe\.fit\(texts\)"):
        Recipe(weighting="tfidf").batch(["a"])
    assert not Recipe(weighting="tfidf").fitted


def words(text):
    return text.split()


@pytest.mark.parametrize("changed", [
    {"seed": 1}, {"ngram": 2}, {"unit": "char", "ngram": 1}, {"stop_words": ["a"]},
    {"tokenizer": words},
])
def test_an_idf_is_kept_only_with_the_features_that_it_was_learned_of(changed):
    fitted = Recipe(ngram=1, weighting="tfidf").fit(["a b c", "b c d"])
    assert replace(fitted, bits=128, min_features=2, weighting="idf").idf is fitted.idf
    with pytest.raises(InvalidOption, match="learned with another") as refused:
        replace(fitted, **changed)
    assert refused.value.data["option"] == "idf" and "fit the recipe again" in refused.value.remedy
    assert not replace(fitted, idf=None, **changed).fitted


def test_fit_refuses_where_there_is_nothing_to_learn():
    with pytest.raises(InvalidOption, match="does not learn"):
        Recipe().fit(["a"])
    with pytest.raises(InvalidOption, match="there were none"):
        Recipe(weighting="tfidf").fit([])


def test_options_may_be_given_in_order():
    assert Recipe(128, "char", (3, 2, 3), "binary", 9, 4).to_dict() == {
        "bits": 128, "unit": "char", "ngram": [2, 3], "weighting": "binary", "seed": 9,
        "min_features": 4, "projection": "sign", "tokenizer": 1,
        "unicode": features.UNICODE, "stop_words": [], "stemmer": None,
        "documents": None, "features": None, "idf_digest": None, "h": 6,
    }  # fmt: skip


def test_n_grams_of_sixteen_code_points_are_as_defined():
    text = "a quick brown fox "
    for ngram in (16, (6, 16)):
        recipe = Recipe(unit="char", ngram=ngram)
        sizes = ngram if isinstance(ngram, tuple) else (ngram,)
        expected = oracle.simhash(text * 9, unit="char", sizes=sizes, weighting="tf", bits=64)
        assert recipe.batch([text * 9]).rows[0].tolist() == expected[0]
    with pytest.raises(InvalidOption, match="ngram"):
        Recipe(unit="char", ngram=17)


# the radius ---------------------------------------------------------------------------------------


def test_the_radius_is_kept_and_makes_no_other_recipe():
    usual, wider = Recipe(ngram=1, weighting="tfidf"), Recipe(ngram=1, weighting="tfidf", h=11)
    assert (usual.h, wider.h) == (7, 11)
    assert wider == usual and hash(wider) == hash(usual) and wider.identity == usual.identity
    assert wider.differences(usual) == {}
    assert wider.to_dict()["h"] == 11 and "h=11" in repr(wider)
    fitted = wider.fit(["a b", "a c"])
    for again in (fitted, Recipe.from_bytes(fitted.to_bytes()), pickle.loads(pickle.dumps(fitted))):  # noqa: S301
        assert again.h == 11
    assert Recipe(h=np.int64(7)).h == 7
    assert [Recipe(h=h).h for h in (0, 64)] == [0, 64]


def test_a_changed_recipe_keeps_its_radius_unless_it_is_asked_anew():
    recipe = Recipe()
    assert replace(recipe, bits=256).h == recipe.h
    assert replace(recipe, bits=256, h=None).h == Recipe(bits=256).h == 4 * recipe.h


# idf ----------------------------------------------------------------------------------------------


def test_idf_is_that_of_the_documents():
    fitted = Recipe(ngram=1, weighting="tfidf").fit(iter(["a b", "a", "", "a c c"]))
    expected = {b"a": (4, 3), b"b": (4, 1), b"c": (4, 1), b"zebra": (4, 0)}
    for feature, counts in expected.items():
        assert fitted.idf.idf(oracle.feature_hash(feature, 0)) == oracle.idf_steps(*counts) / 4096
    assert fitted.idf.documents == 4 and len(fitted.idf) == 3


@pytest.mark.parametrize("merge_features", [0, 5, 1 << 20])
def test_document_frequencies_merged_in_parts_are_the_same(monkeypatch, merge_features):
    monkeypatch.setattr(document_frequencies, "_PENDING_FEATURES", merge_features)
    monkeypatch.setattr(features, "PORTION_TEXTS", 2)
    rng = np.random.default_rng(3)
    corpus = [" ".join(f"w{i}" for i in rng.integers(0, 60, 12)) for _ in range(40)]
    table = Recipe(ngram=(1, 2), weighting="tfidf").fit(iter(corpus)).idf
    df = oracle.document_frequencies(corpus, "word", (1, 2))
    known = sorted((oracle.feature_hash(f, 0), oracle.idf_steps(40, n)) for f, n in df.items())
    assert list(zip(table.hashes.tolist(), table.steps.tolist(), strict=True)) == known


def test_a_recipe_whose_weights_are_given_shows_no_features():
    with pytest.raises(InvalidOption, match="batch_features"):
        Recipe(weighting="given").features("a b")


@pytest.mark.parametrize("options", [{}, {"stop_words": ["the"]}, {"sketch_bits": 128}])
@pytest.mark.parametrize("text", ["The cat of the house", b"the cat", "", "\u6f22\u5b57\u306e"])
def test_one_text_gets_what_it_gets_in_a_batch(options, text):
    recipe = Recipe(**options)
    for names in ({}, {"ids": [7]}, {"keys": ["k"]}):
        one, many = recipe.fingerprint(text, **names), recipe.batch([text], **names)
        assert one.rows.tolist() == many.rows.tolist()
        assert one.weights is not None and many.weights is not None
        assert one.weights.tolist() == many.weights.tolist()
        assert (one.keys, one.skipped) == (many.keys, many.skipped)
        for mine, other in ((one.ids, many.ids), (one.sketch, many.sketch)):
            assert (mine is None) == (other is None)
            assert mine is None or (other is not None and mine.tolist() == other.tolist())


def test_one_text_that_is_none_is_refused():
    with pytest.raises(InvalidBatch, match="text 0 is int"):
        Recipe().fingerprint(7)
    with pytest.raises(InvalidBatch, match="not UTF-8 at byte 1"):
        Recipe().fingerprint(b"a\xff")
    with pytest.raises(InvalidBatch):
        Recipe().fingerprint("a text", ids=[1], keys=["k"])
    with pytest.raises(InvalidBatch, match="1 texts but 2 keys"):
        Recipe().fingerprint("a text", keys=["k", "l"])
