"""Words in other ways: a caller's tokenizer, stop words, stems."""

from __future__ import annotations

import functools
import logging
import pickle
import re
import sys
import textwrap
from collections.abc import Iterator

import jieba
import numpy as np
import pyarrow as pa
import pytest
import simhash_oracle as oracle
import Stemmer
import stopwordsiso

from simindex.errors import InvalidBatch, InvalidOption, MissingExtra
from simindex.simhash.recipe import Recipe

CHINESE = ["我来到北京清华大学", "他来到了网易杭研大厦", "", "我来到北京。Tsinghua University 2011"]


@pytest.fixture(scope="module", autouse=True)
def quiet() -> None:
    """jieba says on stderr, and with warnings of its own, that it loads its dictionary."""
    jieba.setLogLevel(logging.ERROR)


def by_spaces(text: str) -> list[str]:
    return text.split(" ")


def one_by_one(text: str) -> Iterator[str]:
    yield from text.split()


def long_words(text: str) -> tuple[str, ...]:
    return tuple(re.findall(r"\w{4,}", text))


def fails(text: str) -> list[str]:
    raise LookupError(text)


def gives_numbers(text: str) -> list:
    return [text, 7] if text == "b" else [text]


def gives_nothing(text: str) -> list | None:
    return None if text == "b" else [text]


def by_hand(text: str) -> list | str:
    return " ".join(text) if text == "b" else [text]


class Splitter:
    def split(self, text: str) -> list[str]:
        return text.split()

    def __call__(self, text: str) -> list[str]:
        return text.split()


def assert_made_of(recipe: Recipe, texts: list[str], listed: list[list[str]]) -> None:
    """Fingerprints and counts are those of the given words."""
    batch = recipe.batch(texts, ids=range(len(texts)))
    exact = [oracle.grams(words, "word", recipe.sizes) for words in listed]
    assert batch.ids.tolist() == [i for i, found in enumerate(exact) if found]
    for row, position in enumerate(batch.ids.tolist()):
        found = exact[position]
        hashes = np.array([oracle.feature_hash(n, recipe.seed) for n in found], dtype=np.uint64)
        v = oracle.vectors(hashes, "sign", recipe.bits)
        weights = [oracle.weight(count, 0, recipe.weighting) for count in found.values()]
        sums = np.array(weights) @ v
        shown = oracle.shown_weights(sums, "sign", recipe.weighting)
        assert batch.weights[row].tolist() == shown.tolist()
        assert batch.rows[row].tolist() == oracle.words_of(sums[None], "sign")[0].tolist()
    counted = recipe.document_frequencies(texts)
    expected: dict[int, int] = {}
    for found in exact:
        for name in found:
            h = oracle.feature_hash(name, recipe.seed)
            expected[h] = expected.get(h, 0) + 1
    assert dict(zip(counted.hashes.tolist(), counted.counts.tolist(), strict=True)) == expected
    for text, found in zip(texts, exact, strict=True):
        assert {f.feature.encode(): f.count for f in recipe.features(text)} == found


# tokenizers ---------------------------------------------------------------------------------------


@pytest.mark.slow
def test_jieba_gives_the_words():
    recipe = Recipe(ngram=(1, 2), tokenizer=jieba.lcut)
    assert_made_of(recipe, CHINESE, [jieba.lcut(text.casefold()) for text in CHINESE])
    assert "北京" in {f.feature for f in recipe.features(CHINESE[0])}
    assert Recipe(tokenizer=jieba.cut).batch(CHINESE).fingerprints.tolist() == (
        Recipe(tokenizer=jieba.lcut).batch(CHINESE).fingerprints.tolist()
    )


@pytest.mark.parametrize(
    "tokenizer", [by_spaces, one_by_one, long_words, str.split], ids=lambda t: t.__name__
)
def test_any_iterable_of_words_will_do_and_empty_ones_are_left_out(tokenizer):
    texts = [*oracle.SCRIPTS, "  two  SPACES ", "", "a"]
    listed = [[word for word in tokenizer(text.casefold()) if word] for text in texts]
    assert_made_of(Recipe(ngram=2, seed=3, tokenizer=tokenizer), texts, listed)
    encoded = [text.encode() for text in texts]
    expected = Recipe(tokenizer=tokenizer).batch(texts, threads=1).weights.tolist()
    for threads in (1, 3):
        for shape in (encoded, iter(texts), pa.array(texts), pa.array(encoded)):
            made = Recipe(tokenizer=tokenizer).batch(shape, threads=threads)
            assert made.weights.tolist() == expected


def test_words_with_surrogates_and_nulls_are_units_as_they_are():
    texts = ["a\ud800 b\x00c", "\udfff"]
    batch = Recipe(ngram=1, tokenizer=by_spaces).batch(texts)
    h = oracle.feature_hash("\udfff".encode("utf-8", "surrogatepass"), 0)
    assert batch.fingerprints[1] == h
    assert {f.feature for f in Recipe(ngram=1, tokenizer=by_spaces).features(texts[0])} == {
        "a\ud800", "b\x00c"
    }


@pytest.mark.parametrize(
    "nameless",
    [lambda text: text.split(), functools.partial(by_spaces), Splitter()],
    ids=["lambda", "partial", "instance"],
)
def test_a_tokenizer_without_a_name_is_refused(nameless):
    with pytest.raises(InvalidOption, match="no name that an index could store") as caught:
        Recipe(tokenizer=nameless)
    assert caught.value.data["option"] == "tokenizer"

    def inner(text: str) -> list[str]:
        return text.split()

    with pytest.raises(InvalidOption, match="no name that an index could store"):
        Recipe().using(inner)


@pytest.mark.parametrize("wrong", [None, 0, 3, -1, True, "jieba", 1.0, b"a:b"])
def test_what_is_no_tokenizer_is_refused(wrong):
    with pytest.raises(InvalidOption, match="tokenizer"):
        Recipe(tokenizer=wrong)


@pytest.mark.slow
def test_a_recipe_that_was_read_asks_for_its_tokenizer():
    recipe = Recipe(tokenizer=jieba.lcut)
    read = Recipe.from_bytes(recipe.to_bytes())
    assert read == recipe and read.tokenizer == "jieba:lcut"
    for call in (read.batch, read.document_frequencies, read.features, read.fingerprint):
        with pytest.raises(InvalidOption, match=r"recipe\.using\(tokenizer\)"):
            call(CHINESE[:1] if call != read.fingerprint else CHINESE[0])
    again = read.using(jieba.lcut)
    assert again == recipe
    assert again.batch(CHINESE).weights.tolist() == recipe.batch(CHINESE).weights.tolist()
    with pytest.raises(InvalidOption, match=r"not 'jieba:cut'"):
        read.using(jieba.cut)
    with pytest.raises(InvalidOption, match="tokenizer is 1"):
        Recipe().using(jieba.lcut)


def test_a_method_of_another_object_is_no_tokenizer():
    """Its words depend on that object's dictionary, of which a name says nothing."""
    with pytest.raises(InvalidOption, match="no name that an index could store"):
        Recipe(tokenizer=jieba.Tokenizer().lcut)


def test_a_recipe_with_a_method_is_pickled_by_name():
    recipe = Recipe(tokenizer=jieba.lcut)
    again = pickle.loads(pickle.dumps(recipe))  # noqa: S301
    assert again == recipe and again.tokenizer == "jieba:lcut"
    assert again.using(jieba.lcut).tokenizer == jieba.lcut


@pytest.mark.slow
def test_stop_words_of_languages_whose_words_are_pairs_want_a_tokenizer():
    for language in ("ja", "th", "zh"):
        with pytest.raises(InvalidOption, match="together with a tokenizer"):
            Recipe(stop_words=language)
    assert Recipe(stop_words="ko").stop_words
    recipe = Recipe(stop_words="zh", tokenizer=jieba.lcut, ngram=1)
    assert "的" not in {feature.feature for feature in recipe.features("我的书")}


@pytest.mark.parametrize("name", ["/", "english/", "/3.1", "english/x", "english/3.1/", "a b/1.0"])
def test_a_stemmer_with_half_a_version_is_refused(name):
    with pytest.raises(InvalidOption, match="stemmer"):
        Recipe(stemmer=name)


def test_a_tokenizer_is_pickled_with_its_recipe():
    recipe = Recipe(tokenizer=textwrap.wrap, weighting="idf", ngram=1).fit(["a b", "c"])
    again = pickle.loads(pickle.dumps(recipe))  # noqa: S301
    assert again.tokenizer is textwrap.wrap and again == recipe
    assert again.batch(["a b c"]).weights.tolist() == recipe.batch(["a b c"]).weights.tolist()
    nameless = Recipe.from_bytes(recipe.to_bytes())
    assert pickle.loads(pickle.dumps(nameless)).tokenizer == "textwrap:wrap"  # noqa: S301


def test_tokenizers_tell_recipes_apart():
    assert Recipe(tokenizer=by_spaces) == Recipe(tokenizer=by_spaces)
    assert len({Recipe(), Recipe(tokenizer=by_spaces), Recipe(tokenizer=long_words)}) == 3
    assert Recipe().differences(Recipe(tokenizer=textwrap.wrap))["tokenizer"] == (
        1, "textwrap:wrap"
    )


def test_what_a_tokenizer_raises_goes_through():
    with pytest.raises(LookupError, match="text"):
        Recipe(tokenizer=fails).batch(["Text"])


@pytest.mark.parametrize(
    ("tokenizer", "kind"), [(gives_numbers, "int"), (gives_nothing, "NoneType"), (by_hand, "str")]
)
def test_a_tokenizer_that_gives_no_words_is_refused_by_the_texts_position(
    tokenizer, kind, monkeypatch
):
    monkeypatch.setattr("simindex.simhash.features.PORTION_TEXTS", 2)
    with pytest.raises(InvalidBatch, match=f"gave a {kind} for text 3") as caught:
        Recipe(tokenizer=tokenizer).batch(iter(["a", "a", "a", "b"]))
    assert caught.value.data["position"] == 3


@pytest.mark.parametrize(
    "options", [{"tokenizer": by_spaces}, {"stop_words": ["a"]}, {"stemmer": "english"}],
    ids=" ".join,
)
def test_characters_have_no_words(options):
    with pytest.raises(InvalidOption, match="word"):
        Recipe(unit="char", **options)


# stop words ---------------------------------------------------------------------------------------


def test_stop_words_are_left_out_before_n_grams():
    texts = ["The fox and THE dog", "the and", "", "and fox", "Straße strasse fox"]
    stop_words = ["The", "AND", "Straße"]
    folded = {word.casefold() for word in stop_words}
    listed = [[w for w in oracle.words(text) if w not in folded] for text in texts]
    for shape in (stop_words, tuple(stop_words), set(stop_words), iter(stop_words)):
        recipe = Recipe(ngram=(1, 2), stop_words=shape)
        assert recipe.stop_words == ("and", "strasse", "the")
        assert_made_of(recipe, texts, listed)
    assert {f.feature for f in Recipe(ngram=2, stop_words=stop_words).features(texts[0])} == {
        "fox dog"
    }
    assert [s.reason for s in Recipe(stop_words=stop_words).batch(texts).skipped] == ["empty"] * 2


def test_stop_words_of_a_language():
    recipe = Recipe(ngram=1, stop_words="en")
    assert recipe.stop_words == tuple(
        sorted({word.casefold() for word in stopwordsiso.stopwords("en")})
    )
    assert [f.feature for f in recipe.features("this is the quixotic fox")] == ["fox", "quixotic"]
    assert recipe == Recipe(ngram=1, stop_words=stopwordsiso.stopwords("en"))
    with pytest.raises(InvalidOption, match="not a language with stop words") as caught:
        Recipe(stop_words="english")
    assert caught.value.data["option"] == "stop_words"


# stems --------------------------------------------------------------------------------------------


def test_words_are_cut_down_to_stems_after_stop_words():
    texts = ["Running dogs run", "the runner's dog ran", "the", "漢字の dogs"]
    stem = Stemmer.Stemmer("english").stemWord
    for stop_words in ((), ("the", "running")):
        listed = [
            [stem(word) for word in oracle.words(text) if word not in stop_words] for text in texts
        ]
        recipe = Recipe(ngram=(1, 2), stemmer="english", stop_words=stop_words)
        assert_made_of(recipe, texts, listed)
    assert {f.feature for f in Recipe(ngram=1, stemmer="english").features(texts[0])} == {
        "dog", "run"
    }
    both = Recipe(ngram=1, stemmer="english", tokenizer=by_spaces)
    assert {f.feature for f in both.features("dogs-run dogs")} == {stem("dogs-run"), "dog"}


def test_the_rules_of_a_stemmer_are_part_of_the_recipe():
    version = ".".join(Stemmer.version().split(".")[:2])
    recipe = Recipe(stemmer="english")
    assert recipe.stemmer == f"english/{version}"
    assert Recipe.from_bytes(recipe.to_bytes()) == recipe == Recipe(stemmer=f"english/{version}")
    assert recipe != Recipe() and recipe != Recipe(stemmer="porter")
    other = Recipe(stemmer="english/0.1")
    with pytest.raises(InvalidOption, match=r"PyStemmer==0\.1\.\*") as caught:
        other.batch(["a"])
    assert caught.value.data["option"] == "stemmer"
    assert Recipe.from_bytes(other.to_bytes()) == other


def test_an_unknown_stemmer_is_refused():
    with pytest.raises(InvalidOption, match="english") as caught:
        Recipe(stemmer="klingon")
    assert caught.value.data["option"] == "stemmer"
    with pytest.raises(InvalidOption, match="stemmer"):
        Recipe(stemmer="")


def test_a_missing_extra_says_how_to_install_it(monkeypatch):
    read = Recipe.from_bytes(Recipe(stemmer="english").to_bytes())
    by_language = Recipe(stop_words="en").to_bytes()
    monkeypatch.setitem(sys.modules, "Stemmer", None)
    monkeypatch.setitem(sys.modules, "stopwordsiso", None)
    for call in (lambda: Recipe(stemmer="english"), lambda: read.batch(["a"])):
        with pytest.raises(MissingExtra, match=r"pip install 'simindex\[stem\]'") as caught:
            call()
        assert caught.value.data["extra"] == "stem"
    with pytest.raises(MissingExtra, match=r"pip install 'simindex\[stopwords\]'") as caught:
        Recipe(stop_words="en")
    assert caught.value.data["extra"] == "stopwords"
    assert len(Recipe.from_bytes(by_language).batch(["fox"])) == 1
    assert len(Recipe(stop_words=["en"]).batch(["fox"])) == 1
