"""Doubtful pairs, decided by texts that a test gives."""

from __future__ import annotations

from math import isnan

import pytest

from simindex import Recipe
from simindex.errors import InvalidBatch, InvalidOption
from simindex.pairs import doubtful_pairs
from simindex.pairs.doubtful_pairs import Verifier, known_texts, texts_of, verifier_of
from simindex.planning.doubt import doubt_of
from simindex.planning.similarity import similar
from simindex.records.verification import Verification

RECIPE = Recipe(ngram=1, weighting="tf")
ASKED = similar(0.8, h=None, recall=1.0, bits=64, sketch_bits=512)
LIKELY, UNLIKELY = ASKED.most, ASKED.most + 1

TEXTS = {"own": ("a b c d e",), "near": ("a b c d e f",), "far": ("a b c x y z",), "none": ()}


def made() -> Verifier:
    return Verifier(doubt_of(ASKED), RECIPE)


def nearest(verifier: Verifier, *others: tuple[int, str]) -> tuple[int, str, float] | None:
    return verifier.nearest(lambda: TEXTS["own"], others, TEXTS.__getitem__)


def test_the_first_that_is_near_by_its_text_is_found() -> None:
    verifier = made()
    found = nearest(verifier, (LIKELY, "far"), (UNLIKELY, "near"), (UNLIKELY, "own"))
    assert found is not None
    assert found[:2] == (UNLIKELY, "near")
    assert found[2] == pytest.approx(5 / (5 * 6) ** 0.5)
    assert verifier.told == Verification(verified=2, kept=1, dropped=1, overruled=2)


def test_a_pair_without_a_text_remains_as_estimated() -> None:
    verifier = made()
    assert nearest(verifier, (UNLIKELY, "none"), (LIKELY, "far")) is None
    found = nearest(verifier, (LIKELY, "none"), (UNLIKELY, "far"))
    assert found is not None and found[:2] == (LIKELY, "none") and isnan(found[2])
    assert verifier.told.unreadable == 2
    by_text = nearest(verifier, (LIKELY, "none"), (UNLIKELY, "near"))
    assert by_text is not None and by_text[1] == "near"
    assert verifier.told.unreadable == 2


def test_so_many_are_compared_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doubtful_pairs, "MOST_COMPARED", 2)
    verifier = made()
    others = [(LIKELY, "far"), (LIKELY, "far"), (LIKELY, "near")]
    assert nearest(verifier, *others) is None
    assert verifier.told.verified == 2


def test_of_several_texts_the_nearest_count_and_equal_ones_reach_every_similarity() -> None:
    exactly = similar(1.0, h=None, recall=1.0, bits=64, sketch_bits=512)
    verifier = Verifier(doubt_of(exactly), RECIPE)
    found = verifier.nearest(
        lambda: ("x y z", "a b c d e e"), [(1, "other")], lambda _: ("a b c d e e", "q")
    )
    assert found is not None and found[2] == pytest.approx(1)


def test_jaccard_is_that_of_the_sets_of_features() -> None:
    resemblance = similar(
        0.5, h=None, recall=1.0, bits=64, sketch_bits=512, measure="jaccard",
        recipe=Recipe(weighting="binary"),
    )
    verifier = Verifier(doubt_of(resemblance), Recipe(ngram=1, weighting="binary"))
    found = nearest(verifier, (1, "near"))
    assert found is not None and found[2] == pytest.approx(5 / 6)
    assert nearest(verifier, (1, "far")) is None  # 3 of 8


def test_texts_that_nothing_can_compare_are_refused() -> None:
    assert verifier_of(None, None, None, "components") is None
    for texts, asked, recipe, mode, told in (
        ({}, None, RECIPE, "star", "give similarity=0.9"),
        ({}, ASKED, RECIPE, "components", 'need mode="star"'),
        ({}, ASKED, None, "star", "has no recipe"),
        (["a"], ASKED, RECIPE, "star", "give a mapping"),
    ):
        with pytest.raises(InvalidOption, match=told):
            verifier_of(texts, asked, recipe, mode)
    with pytest.raises(InvalidOption, match="return a mapping"):
        known_texts(lambda asked: [], None)  # type: ignore[arg-type]
    assert texts_of({"a": "x", "b": ["x", "y"]}, "b") == ("x", "y")
    assert texts_of({"a": "x"}, "a") == ("x",) and texts_of({}, "a") == ()
    with pytest.raises(InvalidBatch, match="not str or bytes"):
        made().nearest(lambda: (7,), [(1, "own")], TEXTS.__getitem__)  # type: ignore[arg-type,return-value]


@pytest.mark.parametrize("wrong", [5, [5], ["text", None], object()])
def test_what_is_no_text_of_a_document_is_refused(wrong: object) -> None:
    assert texts_of({"a": "text", "b": [b"one", "two"]}, "c") == ()
    assert texts_of({"a": "text", "b": [b"one", "two"]}, "b") == (b"one", "two")
    with pytest.raises(InvalidOption, match="for 'a': give a text, or a list of texts"):
        texts_of({"a": wrong}, "a")
