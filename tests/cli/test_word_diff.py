"""What changed between two texts, word by word."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simindex.cli.word_diff import CONTEXT_WORDS, GAP, WordDiff

WORDS = st.lists(st.sampled_from("abcdefgh"), max_size=40)


@pytest.mark.parametrize(
    ("before", "after", "changed"),
    [
        ("the quick brown fox", "the quick red fox", "the quick [-brown-] {+red+} fox"),
        ("one two", "one two three", "one two {+three+}"),
        ("one two three", "two  \n three", "[-one-] two three"),
        ("a b c d X e f g h", "a b c d Y e f g h", f"{GAP} b c d [-X-] {{+Y+}} e f g {GAP}"),
        ("X a b c d e f Y", "a b c d e f", "[-X-] a b c d e f [-Y-]"),
        ("X a b c d e f g Y", "a b c d e f g", f"[-X-] a b c {GAP} e f g [-Y-]"),
        ("same words", "same\twords", ""),
        ("", "new", "{+new+}"),
        ("", "", ""),
    ],
)
def test_changes_are_marked_with_some_words_around(before: str, after: str, changed: str) -> None:
    assert WordDiff.of(before, after).changed == changed


@given(WORDS, WORDS)
def test_the_changes_hold_all_removed_and_added_words(a: list[str], b: list[str]) -> None:
    """Without its gaps the difference is part of both texts, and what is missing is equal."""
    diff = WordDiff.of(" ".join(a), " ".join(b))
    removed = " ".join(re.findall(r"\[-(.*?)-\]", diff.changed)).split()
    added = " ".join(re.findall(r"\{\+(.*?)\+\}", diff.changed)).split()
    kept_of_a, kept_of_b = len(a) - len(removed), len(b) - len(added)
    assert kept_of_a == kept_of_b
    assert diff.similarity == (2 * kept_of_a / (len(a) + len(b)) if a or b else 1)
    assert sorted([*a, *added]) == sorted([*b, *removed])


@given(WORDS, WORDS)
def test_no_more_equal_words_than_the_context_are_next_to_each_other(
    a: list[str], b: list[str]
) -> None:
    diff = WordDiff.of(" ".join(a), " ".join(b))
    for run in re.split(r"\[-.*?-\]|\{\+.*?\+\}|…", diff.changed):
        assert len(run.split()) <= 2 * CONTEXT_WORDS


@given(WORDS, WORDS, st.integers(12, 60), st.integers(1, 3))
def test_lines_are_as_few_and_as_short_as_asked(
    a: list[str], b: list[str], width: int, most: int
) -> None:
    diff = WordDiff.of(" ".join(a), " ".join(b))
    lines = diff.lines(width, most)
    assert len(lines) <= most
    assert all(len(line) <= width for line in lines)
    if " ".join(lines) != diff.changed:
        assert lines[-1].endswith(GAP)
        assert diff.changed.startswith(" ".join(lines).removesuffix(GAP).rstrip())


def test_a_long_word_is_cut() -> None:
    lines = WordDiff.of("a", "x" * 500).lines(40, 2)
    assert len(lines) == 2
    assert all(len(line) <= 40 for line in lines)
