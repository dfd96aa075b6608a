"""Words of two texts beside each other."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simindex.simhash import alignment
from simindex.simhash.alignment import aligned

texts = st.lists(st.sampled_from(["a", "b", "c", "é", "京", " ", "\n"]), max_size=30).map("".join)


def squeezed(text: str) -> str:
    return "".join(text.split())


@given(texts, texts)
def test_runs_make_up_both_texts(a: str, b: str) -> None:
    changes, cut = aligned(a, b)
    assert not cut
    assert squeezed("".join(one.a for one in changes)) == squeezed(a)
    assert squeezed("".join(one.b for one in changes)) == squeezed(b)
    for one in changes:
        assert (one.kind == "equal") == (one.a.split() == one.b.split()) or squeezed(
            one.a
        ) == squeezed(one.b)
    kinds = [one.kind for one in changes]
    assert all(kind != after for kind, after in pairwise(kinds))


@given(texts)
def test_equal_texts_have_one_equal_run(text: str) -> None:
    kinds = [one.kind for one in aligned(text, text).changes]
    assert kinds == (["equal"] if text.split() else [])


def test_a_replaced_word_is_the_only_change() -> None:
    changes = aligned("the quick  brown fox", "the quick red fox").changes
    assert [(one.kind, one.a, one.b) for one in changes] == [
        ("equal", "the quick", "the quick"), ("changed", "brown", "red"), ("equal", "fox", "fox"),
    ]


def test_chinese_letters_are_words() -> None:
    changes = aligned("我们今天去", "我们昨天去").changes
    assert [(one.kind, one.a, one.b) for one in changes] == [
        ("equal", "我们", "我们"), ("changed", "今", "昨"), ("equal", "天去", "天去"),
    ]


@pytest.mark.slow
def test_texts_that_repeat_one_word_are_aligned_in_seconds() -> None:
    started = time.process_time()
    a = "spam ham " * 6000
    changes, cut = aligned("x " + a, "y " + a[5:] + " z")
    assert cut and changes
    assert time.process_time() - started < 20


def test_long_texts_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alignment, "MOST_WORDS", 3)
    changes, cut = aligned("a b c d", "a b c e")
    assert cut and [one.kind for one in changes] == ["equal"]
    assert not aligned("a b c", "a b c").cut
