"""A recipe against the definition, and its guards."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
import simhash_oracle as oracle

from simindex.errors import InvalidBatch, InvalidOption
from simindex.simhash import document_frequencies, features, reader
from simindex.simhash.recipe import Recipe


def test_one_feature_gives_its_hash():
    """[PSM] Algorithm 1 with n = 1; also for a text shorter than the smallest n-gram."""
    for text in ("One, two THREE!", "one two", "one"):
        expected = oracle.feature_hash(" ".join(oracle.words(text)).encode(), 7)
        assert Recipe(seed=7).fingerprint(text).fingerprints.tolist() == [expected]


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


def test_a_wrong_text_is_refused_by_its_position():
    with pytest.raises(InvalidBatch, match="text 1 is NoneType") as caught:
        Recipe().batch(["a", None])
    assert caught.value.data["position"] == 1
    with pytest.raises(InvalidBatch, match="text 0 is not UTF-8"):
        Recipe(weighting="tfidf").fit([b"\xff"])


def test_an_unfitted_tfidf_recipe_refuses_and_says_how_to_fit():
    with pytest.raises(InvalidOption, match=r"recipe\.fit\(texts\)"):
        Recipe(weighting="tfidf").batch(["a"])
    assert not Recipe(weighting="tfidf").fitted


def test_fit_refuses_where_there_is_nothing_to_learn():
    with pytest.raises(InvalidOption, match="learns nothing"):
        Recipe().fit(["a"])
    with pytest.raises(InvalidOption, match="none were given"):
        Recipe(weighting="tfidf").fit([])


@pytest.mark.parametrize(
    ("option", "wrong"),
    [
        ("bits", 0), ("bits", 65), ("bits", 4160), ("bits", True), ("bits", "64"),
        ("unit", "line"), ("unit", None), ("ngram", 0), ("ngram", 6), ("ngram", ()),
        ("ngram", (1, 9)), ("ngram", "3"), ("ngram", 1.0), ("weighting", "df"), ("seed", -1),
        ("seed", 2**32), ("seed", None), ("min_features", 0), ("min_features", 1.5),
        ("idf", {}), ("weighting", None), ("weighting", []), ("projection", "gauss"),
        ("projection", None), ("projection", 0), ("tokenizer", 0), ("tokenizer", 2),
        ("tokenizer", "name"), ("tokenizer", "m:\ud800"), ("tokenizer", True), ("tokenizer", None),
        ("stop_words", 7), ("stop_words", [1]), ("stop_words", b"en"), ("stop_words", None),
        ("stop_words", ["\ud800"]), ("stemmer", 3), ("stemmer", "\ud800/1"),
        ("stop_words", [f"w{i}" for i in range(200_000)]),
    ],
)  # fmt: skip
def test_an_option_out_of_range_is_refused_by_name(option, wrong):
    with pytest.raises(InvalidOption, match=option) as caught:
        Recipe(**{option: wrong})
    assert caught.value.data["option"] == option


def test_options_may_be_given_in_order():
    assert Recipe(128, "char", (3, 2, 3), "binary", 9, 4).to_dict() == {
        "bits": 128, "unit": "char", "ngram": [2, 3], "weighting": "binary", "seed": 9,
        "min_features": 4, "projection": "sign", "tokenizer": 1,
        "unicode": features.UNICODE, "stop_words": [], "stemmer": None,
        "documents": None, "features": None, "idf_digest": None,
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


def test_sizes_may_be_any_set_of_whole_numbers():
    several = [{1, 2, 3}, frozenset((3, 1, 2)), range(1, 4), [1, 2, 3], np.arange(1, 4).tolist()]
    assert {Recipe(ngram=sizes) for sizes in several} == {Recipe(ngram=(1, 2, 3))}
    assert Recipe(bits=np.int64(128), ngram=np.int64(2)) == Recipe(bits=128, ngram=2)


def test_a_recipe_whose_weights_are_given_shows_no_features():
    with pytest.raises(InvalidOption, match="batch_features"):
        Recipe(weighting="given").features("a b")


def distinct_words(documents):
    return [" ".join(f"{i:x}w{j:x}" for j in range(200)) for i in range(documents)]


def test_counting_holds_a_portion_at_a_time_whatever_it_is_given(monkeypatch):
    texts = distinct_words(60)
    recipe = Recipe(ngram=(1, 2), weighting="tfidf")
    whole = recipe.document_frequencies(texts)
    monkeypatch.setattr(features, "SMALL_PORTION_CHARACTERS", 3000)
    seen = []
    real = reader.Reader._answer

    def watched(self, portion, first, threads, calls):
        seen.append((first, len(portion)))
        return real(self, portion, first, threads, calls)

    monkeypatch.setattr(reader.Reader, "_answer", watched)
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
    monkeypatch.setattr(features, "SMALL_PORTION_CHARACTERS", 3000)
    for given in (texts, iter(texts), pa.array(texts)):
        made = recipe.batch(given)
        assert made.weights.tolist() == whole.weights.tolist()
    with pytest.raises(InvalidBatch, match="text 61 is NoneType"):
        recipe.batch([*texts, "a", None])
