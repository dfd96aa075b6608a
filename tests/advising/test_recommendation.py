"""What is recommended, and that it holds for documents that were not seen."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import simindex
from simindex import Recipe
from simindex.advising.recommendation import sampled
from simindex.errors import InvalidBatch, InvalidOption
from simindex.simhash.vectors import vectors_of


def revisions(pages: int, seed: int, each: int = 3, words: int = 80) -> list[str]:
    """Pages of random words, each with revisions of which a few words changed."""
    random = np.random.default_rng(seed)
    made = []
    for _ in range(pages):
        page = random.integers(0, 3000, words)
        for _ in range(each):
            copy = page.copy()
            places = random.integers(0, words, random.integers(0, 12))
            copy[places] = random.integers(0, 3000, len(places))
            made.append(" ".join(f"w{number}" for number in copy))
    return made


@pytest.fixture(scope="module")
def report() -> simindex.CalibrationReport:
    return simindex.calibrate(revisions(300, 1), recipe=Recipe(ngram=1, weighting="tf"))


@pytest.mark.slow
@pytest.mark.parametrize("sketch_bits", [0, 512])
def test_the_prediction_holds_for_documents_that_were_not_seen(sketch_bits: int) -> None:
    """Misses of an exact search by the recommended radius; the truth is the cosine of counts."""
    recipe = Recipe(ngram=1, weighting="tf", sketch_bits=sketch_bits)
    own = simindex.calibrate(revisions(600, 1), recipe=recipe, others=[]).own
    assert own is not None and own.sketch_bits == sketch_bits
    unseen = revisions(600, 2)
    batch, vectors = recipe.batch(unseen), vectors_of(recipe, unseen)
    a, b = np.triu_indices(len(unseen), 1)
    near = a // 3 == b // 3
    a, b = a[near], b[near]
    cosine = vectors.cosines(a, b)
    judged = (cosine >= own.similarity - 1e-9) & (cosine < 1 - 1e-9)
    found = np.bitwise_count(batch.rows[a] ^ batch.rows[b]).reshape(len(a), -1).sum(1) <= own.h
    if sketch_bits:
        pairs = simindex.find_all(batch, **own.arguments)
        kept = {*zip(pairs.a.tolist(), pairs.b.tolist(), strict=True)}
        found = np.array([pair in kept for pair in zip(a.tolist(), b.tolist(), strict=True)])
    missed = float((~found[judged]).mean())
    assert abs(missed - own.misses) < 3 * (own.misses / own.pairs) ** 0.5
    assert own.misses_low <= own.misses <= own.misses_high


def test_tables_are_complete(report: simindex.CalibrationReport) -> None:
    own = report.own
    assert own is not None and report.documents == 900 and report.skipped == 0
    assert {row.sketch_bits for row in report.pairs} == {0, 512, 1024}
    assert len({row.features for row in report.pairs}) == 2
    assert {row.edit for row in report.edits} == {
        "words replaced", "sentences moved", "boilerplate added",
    }
    for features in {row.features for row in report.pairs}:
        misses = [
            row.misses.value for row in report.pairs
            if (row.features, row.sketch_bits) == (features, 0)
        ]
        assert misses == sorted(misses, reverse=True, key=lambda value: value or 0.0)
    assert report.to_dict()["own"]["h"] == own.h
    assert own.arguments == {"h": own.h}


def test_more_words_replaced_are_missed_more_often(report: simindex.CalibrationReport) -> None:
    first = report.edits[0].features
    missed = {
        row.strength: row.misses.value for row in report.edits
        if row.edit == "words replaced" and row.features == first and row.words_low == 50
    }
    assert list(missed.values()) == sorted(missed.values(), key=lambda value: value or 0.0)
    assert (missed[0.01] or 0) < 0.05 < (missed[0.2] or 0)


def test_the_same_seed_recommends_the_same() -> None:
    texts = revisions(40, 3)
    one, other = (simindex.calibrate(texts, sample=60, seed=5, others=[]) for _ in range(2))
    assert (one.own, one.pairs, one.edits) == (other.own, other.pairs, other.edits)
    assert one.documents == 60


def test_arguments_of_a_sketch_make_its_radius(index_path: Any) -> None:
    """The recall that is told chooses the radius that was measured."""
    recipe = Recipe(sketch_bits=512)
    texts = revisions(80, 6)
    with simindex.open(
        index_path, "n", options=simindex.IndexOptions(keys="str", recipe=recipe)
    ) as index:
        index.append(recipe.batch(texts, keys=[str(place) for place in range(len(texts))]))
        index.commit()
        assert index.advice is None
        own = index.calibrate(texts).own
        assert own is not None and own.ask_similarity is not None
        index.commit()
        assert index.advice == own == index.stats().advice
        bare = recipe.batch(texts[:1]).without_weights()
        assert f"within {own.h} of 64" in index.query(bare, **own.arguments).stats.guarantee
        assert index.check() == []
    with simindex.open(index_path) as reader:
        assert reader.advice == own


@pytest.mark.parametrize("texts", [[], ["one text"], ["", "!", "?"], ["one", ""]])
def test_too_few_documents_are_refused(texts: list[str]) -> None:
    with pytest.raises(InvalidBatch, match="fingerprint"):
        simindex.calibrate(texts)


def test_equal_documents_have_no_recommendation() -> None:
    found = simindex.calibrate(["the same text"] * 50)
    assert found.advice is None and found.own is None
    assert all(row.misses.value is None for row in found.pairs)


def test_unrelated_documents_have_no_recommendation() -> None:
    found = simindex.calibrate([f"a{place} b{place} c{place}" for place in range(50)])
    assert found.own is None


@pytest.mark.parametrize(("pairs", "enough"), [(1, False), (19, False), (20, True)])
def test_few_similar_pairs_recommend_nothing(pairs: int, enough: bool) -> None:
    """A single pair was enough for a radius that misses most others."""
    texts = [f"a{page} b{page} c{page}" for page in range(50)]
    for page in range(pairs):
        one = " ".join(f"p{page}w{place}" for place in range(60))
        texts += [one, f"{one} more"]
    found = simindex.calibrate(texts, recipe=Recipe(ngram=1, weighting="binary"), others=[])
    assert found.pairs[0].misses.count == pairs
    assert (found.own is not None) == (found.advice is not None) == enough


def test_chinese_texts_are_calibrated_on() -> None:
    random = np.random.default_rng(7)
    made = []
    for _ in range(60):
        letters = random.integers(0x4E00, 0x6E00, 120)
        made.append("".join(map(chr, letters)))
        letters[random.integers(0, 120, 2)] = 0x5000
        made.append("".join(map(chr, letters)))
    found = simindex.calibrate([*made, "", "!"])
    assert found.own is not None and found.skipped == 2
    assert {row.words_low for row in found.edits} == {50}


@pytest.mark.parametrize("wrong", [
    {"similarity": 0.5}, {"similarity": 2}, {"recall": 0}, {"precision": 1.5}, {"sample": 1},
    {"sample": 1 << 30}, {"seed": -1}, {"recipe": Recipe(weighting="given")},
])
def test_wrong_options_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidOption):
        simindex.calibrate(["one two", "one three"], **wrong)


def test_what_is_no_text_is_refused() -> None:
    for wrong in ("one text", [b"\xff", "x"], [7, 8], None, 5):
        with pytest.raises(InvalidBatch):
            simindex.calibrate(wrong)  # type: ignore[arg-type]


def test_a_sample_is_uniform() -> None:
    counts = np.zeros(20)
    for seed in range(400):
        for text in sampled((str(place) for place in range(20)), 5, seed):
            counts[int(text)] += 1
    assert counts.sum() == 2000 and (abs(counts - 100) < 45).all()
