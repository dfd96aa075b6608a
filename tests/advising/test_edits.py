"""Edited copies differ in as much as was asked for."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simindex.advising.edits import EDITS, added, count_words, moved, replaced

OTHERS = ["other0", "other1", "other2"]
TEXT = " ".join(f"word{place}{'.' * (place % 10 == 9)}" for place in range(200))


@given(st.floats(0.001, 1), st.integers(0, 100))
def test_so_many_words_are_replaced(share: float, seed: int) -> None:
    found = replaced(TEXT, share, OTHERS, Random(seed)).split()
    assert len(found) == 200
    assert sum(word in OTHERS for word in found) == max(1, round(200 * share))


def test_moved_sentences_leave_the_words() -> None:
    found = moved(TEXT, 0.2, OTHERS, Random(1))
    assert Counter(found.replace(".", ". ").split()) == Counter(TEXT.split())
    assert found != TEXT


def test_boilerplate_is_the_same_for_all() -> None:
    copies = [added(text, 0.1, OTHERS, Random(2)) for text in (TEXT, TEXT.replace("word", "w"))]
    around = [copy.split("\n")[::2] for copy in copies]
    assert around[0] == around[1]
    assert count_words(copies[0]) == 220 and TEXT in copies[0]


@pytest.mark.parametrize("text", ["", "!", "word", "我们今天去北京。明天回来。", "\n\n", "é " * 3])
@pytest.mark.parametrize("edit", [edit for edit, _ in EDITS.values()])
def test_texts_of_any_kind_are_edited(text: str, edit: object) -> None:
    assert isinstance(edit(text, 0.5, OTHERS, Random(0)), str)  # type: ignore[operator]
    assert isinstance(edit(text, 0.5, [], Random(0)), str)  # type: ignore[operator]


def test_letters_of_han_are_words() -> None:
    assert count_words("我们今天 ok") == 5
    found = replaced("我们今天", 0.5, ["昨"], Random(3))
    assert len(found) == 4 and found.count("昨") == 2
