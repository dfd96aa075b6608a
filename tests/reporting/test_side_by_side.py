"""Two texts side by side."""

from __future__ import annotations

import re
import time

import pytest

from simindex.reporting.side_by_side import FEW_WORDS, MOST_WORDS, beginning, side_by_side


def sides(one: str, other: str) -> list[str]:
    return re.findall(r'<div dir="auto">(.*?)</div>', side_by_side(one, other))


@pytest.mark.parametrize(("one", "other", "left", "right"), [
    ("a b c", "a x c", "a <del>b</del> c", "a <ins>x</ins> c"),
    ("a b c", "a c", "a <del>b</del> c", "a c"),
    ("a c", "a b c", "a c", "a <ins>b</ins> c"),
    ("a", "b", "<del>a</del>", "<ins>b</ins>"),
    ("", "b", "", "<ins>b</ins>"),
    ("a  b\n", "a b", "a b", "a b"),
    ("a a a", "a a", "a a <del>a</del>", "a a"),
    ("<b>", "<i>", "<del>&lt;b&gt;</del>", "<ins>&lt;i&gt;</ins>"),
])
def test_what_differs_is_marked(one: str, other: str, left: str, right: str) -> None:
    assert sides(one, other) == [left, right]


def test_equal_words_far_from_a_change_are_left_out() -> None:
    words = [f"w{n}" for n in range(200)]
    left, _ = sides(" ".join(words), " ".join([*words[:100], "new", *words[101:]]))
    assert "w99" in left and "w101" in left and "w50" not in left and "w150" not in left
    assert left.count("…") == 2
    left, _ = sides(" ".join(words), " ".join(words))
    assert left.startswith("w0 w1") and "…" in left and "w199" not in left


def test_both_sides_hold_all_words_of_short_texts() -> None:
    one, other = "the quick brown fox jumps", "a quick red fox jumps high"
    plain = [re.sub("<[^>]*>", "", side) for side in sides(one, other)]
    assert plain == [one, other]


@pytest.mark.slow
def test_long_texts_are_cut() -> None:
    """Also those without white space, and those of few words that are repeated."""
    words = [f"w{n % 400}" for n in range(MOST_WORDS + 1)]
    assert f"The first {MOST_WORDS:,} words" in side_by_side(" ".join(words), "w1")
    assert "words are compared" not in side_by_side(" ".join(words[:-1]), "w1")
    assert len(side_by_side("x" * 10_000_000, "y" * 10_000_000)) < 1000
    started = time.perf_counter()
    text = side_by_side(" ".join(["a", "b"] * 10_000), " ".join(["b", "c", "a"] * 10_000))
    assert f"The first {FEW_WORDS:,} words" in text
    assert time.perf_counter() - started < 10


def test_the_beginning_of_a_text_is_short() -> None:
    assert beginning("one <two> three", 2).startswith("one &lt;two&gt;")
    assert "…" in beginning("one two three", 2) and "…" not in beginning("one two", 2)
    assert len(beginning("x" * 10_000_000)) < 1000
