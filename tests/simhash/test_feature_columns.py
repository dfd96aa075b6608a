"""Features that are kept, against the texts that they were found in."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import simindex
from simindex.errors import InvalidBatch
from simindex.simhash import recipe_kernels
from simindex.simhash.feature_columns import FeatureColumn, FeatureKeeper, keeps_features
from simindex.simhash.features import Column, columns_of

WORDS = ["the", "of", "Straße", "漢字", "x", "rare", "7", "—", "\n"]

TEXTS = st.lists(st.lists(st.sampled_from(WORDS), max_size=20).map(" ".join), max_size=40)

RECIPES: list[dict[str, Any]] = [
    {"ngram": 1, "weighting": "balanced-tfidf"},
    {"ngram": (1, 2), "weighting": "tfidf", "bits": 128},
    {"weighting": "sublinear-tfidf", "projection": "ternary"},
    {"weighting": "idf", "min_features": 3},
    {"unit": "char", "weighting": "tfidf", "projection": "gaussian"},
    {"ngram": 1, "weighting": "balanced-tfidf", "sketch_bits": 128},
]


def column(texts: list[str]) -> Column:
    (found,) = columns_of(pa.array(["none", *texts], pa.string())[1:]) or ()
    return found


def kept(keeper: FeatureKeeper, texts: list[str]) -> FeatureColumn:
    found = keeper.keep(column(texts))
    assert found is not None
    return found


def require_same(recipe: Any, features: FeatureColumn, texts: list[str]) -> None:
    made = recipe.batch(features, keys=texts_as_keys(texts), count_features=5)
    wanted = recipe.batch(texts, keys=texts_as_keys(texts), count_features=5)
    assert made.rows.tobytes() == wanted.rows.tobytes()
    assert made.weights.tobytes() == wanted.weights.tobytes()
    assert made.keys == wanted.keys
    assert made.skipped == wanted.skipped
    assert made.features.tolist() == wanted.features.tolist()
    if recipe.sketch_bits:
        assert made.sketches.tobytes() == wanted.sketches.tobytes()


def texts_as_keys(texts: list[str]) -> list[str]:
    return [f"document-{number}" for number in range(len(texts))]


@pytest.mark.parametrize("options", RECIPES, ids=lambda options: options["weighting"])
@settings(max_examples=15)
@given(parts=st.lists(TEXTS, min_size=1, max_size=3))
def test_kept_features_give_the_rows_of_their_texts(
    options: dict[str, Any], parts: list[list[str]]
) -> None:
    recipe: Any = simindex.Recipe(**options)
    keeper = FeatureKeeper(recipe)
    columns = [kept(keeper, texts) for texts in parts]
    keeper.count(["the last one", "is not kept"])
    counted = keeper.counted()
    every = [*(text for texts in parts for text in texts), "the last one", "is not kept"]
    wanted = recipe.document_frequencies(every)
    assert counted.documents == wanted.documents
    assert counted.hashes.tolist() == wanted.hashes.tolist()
    assert counted.counts.tolist() == wanted.counts.tolist()
    fitted = recipe.fit(counted)
    for features, texts in zip(columns, parts, strict=True):
        require_same(fitted, features, texts)


def test_threads_and_several_vocabularies_change_no_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables are taken while texts are kept; later columns number other features."""
    monkeypatch.setattr(recipe_kernels, "TAKEN_FEATURES", 500)
    monkeypatch.setenv("SIMINDEX_THREADS", "3")
    texts = [
        " ".join(["the", "of", *(f"w{(row * 37 + word) % 900}" for word in range(row % 50))])
        for row in range(2000)
    ]
    recipe: Any = simindex.Recipe(ngram=1, weighting="balanced-tfidf")
    keeper = FeatureKeeper(recipe)
    columns = [kept(keeper, texts[start : start + 500]) for start in range(0, 2000, 500)]
    fitted = recipe.fit(keeper.counted())
    assert fitted == recipe.fit(texts)
    assert len({id(features._vocabulary) for features in columns}) > 1
    assert keeper.vocabulary_bytes == sum(
        vocabulary.nbytes for vocabulary in {features._vocabulary for features in columns}
    )
    for number, features in enumerate(columns):
        require_same(fitted, features, texts[500 * number : 500 * (number + 1)])


def test_calls_at_once_count_each_text_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """No call takes the tables of another one, which still counts into them."""
    monkeypatch.setattr(recipe_kernels, "TAKEN_FEATURES", 500)
    texts = [" ".join(f"w{(row * 37 + word) % 900}" for word in range(90)) for row in range(9000)]
    parts = [texts[start : start + 1000] for start in range(0, 9000, 1000)]
    recipe: Any = simindex.Recipe(ngram=1, weighting="balanced-tfidf")
    keeper = FeatureKeeper(recipe, calls=3)
    with ThreadPoolExecutor(3) as pool:
        columns = list(pool.map(partial(kept, keeper), parts))
    assert len({id(features._vocabulary) for features in columns}) > 3
    fitted = recipe.fit(keeper.counted())
    assert fitted == recipe.fit(texts)
    for features, part in zip(columns, parts, strict=True):
        require_same(fitted, features, part)


def test_a_feature_may_occur_more_often_than_an_entry_counts() -> None:
    texts = ["of " * times + "the the rare" for times in (254, 255, 256, 510, 511, 2000)]
    texts += [f"the other {number}" for number in range(9)]
    for options in RECIPES:
        recipe: Any = simindex.Recipe(**options)
        keeper = FeatureKeeper(recipe)
        features = kept(keeper, texts)
        require_same(recipe.fit(keeper.counted()), features, texts)


def test_a_part_is_that_of_its_texts() -> None:
    texts = ["", "  ", "the rare é", " !? ", "of the", "漢字 x", *["the"] * 300]
    recipe: Any = simindex.Recipe(ngram=1, weighting="balanced-tfidf")
    keeper = FeatureKeeper(recipe)
    features = kept(keeper, texts)
    fitted = recipe.fit(keeper.counted())
    for start, stop in ((0, 306), (1, 6), (3, 3), (4, 305)):
        part, own = features.part(start, stop), column(texts).part(start, stop)
        assert len(part) == len(own)
        assert part.characters == own.characters == sum(map(len, texts[start:stop]))
        assert part.ends.tolist() == own.ends.tolist()
        require_same(fitted, part, texts[start:stop])
    part = features.part(1, 6)
    assert [part.text(at) for at in (0, 2)] == [b"", b"!?"]
    with pytest.raises(KeyError):
        part.text(1)


def test_a_column_takes_a_fraction_of_its_texts() -> None:
    rng = np.random.default_rng(1)
    texts = [
        " ".join(f"word{number}" for number in rng.zipf(1.3, 300) % 10_000) for _ in range(300)
    ]
    features = kept(FeatureKeeper(simindex.Recipe(ngram=1, weighting="tfidf")), texts)
    assert 0 < features.nbytes < column(texts).nbytes / 3


def test_a_text_that_is_not_utf8_is_refused() -> None:
    texts = Column(np.frombuffer(b"a word\xff", np.uint8), np.array([0, 2, 7], np.int64))
    with pytest.raises(InvalidBatch, match="text 1 is not UTF-8 at byte 4"):
        FeatureKeeper(simindex.Recipe(weighting="tfidf")).keep(texts)


def test_recipes_whose_words_are_python_strings_keep_nothing() -> None:
    assert keeps_features(simindex.Recipe())
    assert not keeps_features(simindex.Recipe(stop_words=["the"]))
