"""A recipe against the definition, its guards, its identity and its bytes."""

from __future__ import annotations

import hashlib
import pickle
import shlex
import struct
import textwrap

import msgpack
import numpy as np
import pyarrow as pa
import pytest
import simhash_oracle as oracle

from simindex.errors import CorruptFile, FormatTooNew, InvalidBatch, InvalidOption
from simindex.simhash import document_frequencies, features, idf, reader
from simindex.simhash.document_frequencies import DocumentFrequencies
from simindex.simhash.recipe import Recipe

CORPUS = [*oracle.SCRIPTS, *oracle.ODDITIES, "the fox and the dog", "the the the"]


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


# identity and bytes -------------------------------------------------------------------------------

VARIANTS = [
    Recipe(),
    Recipe(bits=128),
    Recipe(unit="char"),
    Recipe(ngram=2),
    Recipe(ngram=(2, 3)),
    Recipe(weighting="binary"),
    Recipe(weighting="tfidf"),
    Recipe(seed=1),
    Recipe(min_features=2),
    Recipe(weighting="tfidf").fit(["a b c"]),
    Recipe(weighting="tfidf").fit(["a b c", "a b c"]),
    Recipe(weighting="tfidf").fit(["a b d"]),
]
OTHERS = [
    *(Recipe(weighting=name) for name in ("sublinear", "idf", "sublinear-tfidf", "given")),
    Recipe(projection="gaussian"), Recipe(projection="ternary"),
    Recipe(stop_words=["the"]), Recipe(stop_words=["a"]), Recipe(stop_words="en"),
    Recipe(stemmer="english"), Recipe(stemmer="german"), Recipe(tokenizer=textwrap.wrap),
    Recipe(tokenizer=shlex.split), Recipe(weighting="sublinear-tfidf").fit(["a b d"]),
]  # fmt: skip


def test_identity_tells_all_recipes_apart_and_is_stable():
    every = [*VARIANTS, *OTHERS]
    assert len({recipe.identity for recipe in every}) == len(set(every)) == len(every)
    assert Recipe(stop_words=["B", "a", "a"]) == Recipe(stop_words=("a", "b"))
    assert Recipe(ngram=(3,)) == Recipe(64, "word", 3, "tf") == Recipe()
    assert Recipe().identity == hashlib.blake2b(
        msgpack.packb(sorted(Recipe().to_dict().items())), digest_size=16
    ).hexdigest()
    assert Recipe() != "recipe"


def test_golden_identity_and_fingerprint():
    """Frozen: stored indexes compare with these."""
    assert Recipe().identity == "ca37cba39a007fc1b6f14c40a4b0fbf2"
    batch = Recipe().fingerprint("The quick brown fox jumps over the lazy dog")
    assert f"{int(batch.fingerprints[0]):016x}" == "f8130a3876855016"


def test_differences_name_what_differs():
    assert Recipe().differences(Recipe()) == {}
    assert Recipe().differences(Recipe(bits=128, seed=4)) == {"bits": (64, 128), "seed": (0, 4)}
    fitted, other = VARIANTS[-3], VARIANTS[-1]
    assert set(fitted.differences(other)) == {"idf_digest"}


@pytest.mark.parametrize("recipe", [*VARIANTS, *OTHERS], ids=repr)
def test_bytes_and_pickles_bring_the_recipe_back(recipe):
    for back in (Recipe.from_bytes(recipe.to_bytes()), pickle.loads(pickle.dumps(recipe))):  # noqa: S301
        assert back == recipe and back.to_dict() == recipe.to_dict()
        if isinstance(back.tokenizer, str):
            back = back.using(recipe.tokenizer)
        if recipe.fitted and recipe.weighting != "given":
            assert (
                back.batch(CORPUS).weights.tolist() == recipe.batch(CORPUS).weights.tolist()
            )


@pytest.mark.parametrize("recipe", [Recipe(), VARIANTS[-1]], ids=["unfitted", "fitted"])
def test_any_damage_to_the_bytes_is_noticed(recipe):
    content = recipe.to_bytes()
    for at in range(len(content)):
        damaged = bytearray(content)
        damaged[at] ^= 0x10
        with pytest.raises(CorruptFile):
            Recipe.from_bytes(bytes(damaged))
    for length in range(len(content)):
        with pytest.raises(CorruptFile):
            Recipe.from_bytes(content[:length])
    with pytest.raises(CorruptFile):
        Recipe.from_bytes(content + b"\0")


def sealed(header, arrays=b"", version=1, length=None) -> bytes:
    prefix = struct.pack("<8sII", b"SIMRECIP", version, len(header) if length is None else length)
    content = prefix + header + arrays
    return content + hashlib.blake2b(content, digest_size=16).digest()


FITTED = VARIANTS[-1]
VALUES = {**FITTED.to_dict(), "unseen": FITTED.idf.unseen}
ARRAYS = FITTED.idf.hashes.tobytes() + FITTED.idf.steps.tobytes()


def test_what_sealed_makes_is_what_is_written():
    assert sealed(msgpack.packb(VALUES), ARRAYS) == FITTED.to_bytes()


@pytest.mark.parametrize(
    "change",
    [
        {"bits": 63}, {"bits": "64"}, {"unit": ["word"]}, {"ngram": [3]}, {"ngram": []},
        {"ngram": {}}, {"weighting": "tf"}, {"seed": None}, {"tokenizer": 0}, {"tokenizer": "1"},
        {"tokenizer": None}, {"projection": "x"}, {"projection": 0},
        {"unicode": None}, {"unicode": "1"}, {"stop_words": ["b", "a"]}, {"stop_words": "en"},
        {"stop_words": ["A"]}, {"stop_words": {}}, {"stop_words": [1]}, {"stemmer": 0},
        {"documents": 0}, {"documents": -1}, {"documents": 2**60}, {"documents": None},
        {"features": 2}, {"features": -1}, {"features": None}, {"features": True},
        {"unseen": 1}, {"unseen": 2**20}, {"unseen": None}, {"idf_digest": "00"}, {"more": 1},
    ],
    ids=str,
)  # fmt: skip
def test_sealed_bytes_with_a_wrong_header_are_refused(change):
    with pytest.raises(CorruptFile):
        Recipe.from_bytes(sealed(msgpack.packb({**VALUES, **change}), ARRAYS))


def test_sealed_bytes_without_a_name_or_with_another_shape_are_refused():
    for name in VALUES:
        header = msgpack.packb({key: value for key, value in VALUES.items() if key != name})
        with pytest.raises(CorruptFile):
            Recipe.from_bytes(sealed(header, ARRAYS))
    for header in (b"", b"\xc1", b"\x93\x01", msgpack.packb([1]), b"\x81\x90\x01", b"\x81\xc0\x01"):
        with pytest.raises(CorruptFile):
            Recipe.from_bytes(sealed(header))
    for length in (0, 5, 2**32 - 1):
        with pytest.raises(CorruptFile):
            Recipe.from_bytes(sealed(msgpack.packb(VALUES), ARRAYS, length=length))
    with pytest.raises(CorruptFile):
        Recipe.from_bytes(sealed(msgpack.packb(VALUES), ARRAYS, version=0))


def test_an_idf_table_out_of_order_is_refused():
    three = Recipe(ngram=1, weighting="tfidf").fit(["a b c"])
    table = three.idf
    values = {**three.to_dict(), "unseen": table.unseen}
    for hashes, steps in (
        (table.hashes[::-1], table.steps),
        (table.hashes[[0, 0, 1]], table.steps),
        (table.hashes, table.steps - np.uint32(4096)),
        (table.hashes, table.steps + np.uint32(1 << 20)),
    ):
        broken = idf.IdfTable(table.documents, hashes, steps, table.unseen)
        header = msgpack.packb({**values, "idf_digest": broken.digest})
        with pytest.raises(CorruptFile, match="out of order or out of range"):
            Recipe.from_bytes(sealed(header, hashes.tobytes() + steps.tobytes()))


def test_newer_bytes_are_refused_as_newer():
    with pytest.raises(FormatTooNew):
        Recipe.from_bytes(sealed(b"", version=2))
    with pytest.raises(FormatTooNew, match="tokenizer 2"):
        Recipe.from_bytes(sealed(msgpack.packb({**VALUES, "tokenizer": 2}), ARRAYS))


def test_the_representation_is_short_and_says_what_was_learned():
    assert repr(Recipe()) == f"<Recipe 64 bits, word 3, tf, {Recipe().identity[:8]}>"
    assert "fitted on 2 documents" in repr(VARIANTS[-2])


def test_sizes_may_be_any_set_of_whole_numbers():
    several = [{1, 2, 3}, frozenset((3, 1, 2)), range(1, 4), [1, 2, 3], np.arange(1, 4).tolist()]
    assert {Recipe(ngram=sizes) for sizes in several} == {Recipe(ngram=(1, 2, 3))}
    assert Recipe(bits=np.int64(128), ngram=np.int64(2)) == Recipe(bits=128, ngram=2)


def test_what_is_no_bytes_is_refused():
    for read in (Recipe.from_bytes, DocumentFrequencies.from_bytes):
        for wrong in ("abc", None, 5):
            with pytest.raises(InvalidBatch, match="give bytes"):
                read(wrong)
    with pytest.raises(InvalidBatch, match="cannot be merged"):
        DocumentFrequencies().merge(5)


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
    real = reader.Reader.frequencies

    def watched(self, portion, first, threads):
        seen.append((first, len(portion)))
        return real(self, portion, first, threads)

    monkeypatch.setattr(reader.Reader, "frequencies", watched)
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
