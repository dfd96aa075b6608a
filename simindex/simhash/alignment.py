"""Two texts, word by word: which runs of words are equal, and which differ.

    the quick brown fox jumps        equal    the quick      the quick
    the quick red fox jumps          changed  brown          red
                                     equal    fox jumps      fox jumps

Words stand between white space. Letters of Han, Kana and Thai are words of their own.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from simindex.records.pair_explanation import WordChange

MOST_WORDS = 5_000
"""Of each text, so many are aligned: difflib takes the square of them at worst."""

MOST_EQUAL = 1_000_000
"""Pairs of equal words. Where there are more, difflib may skip words that are very common."""

MOST_CHARACTERS = 1 << 20
"""Of each text, so many are looked at."""

_ALONE = "\u0e00-\u0e7f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"


@cache
def word_pattern() -> re.Pattern[str]:
    """A word of a text. Compiled when it is first used, which takes 2 ms."""
    return re.compile(f"[{_ALONE}]|[^\\s{_ALONE}]+")


class Alignment(NamedTuple):
    """Runs of words in order, and whether the texts have words beyond them."""

    changes: tuple[WordChange, ...]
    cut: bool


def aligned(a: str, b: str) -> Alignment:
    """How the words of one text become those of another."""
    of_a, cut_a = _spans(a)
    of_b, cut_b = _spans(b)
    words_a, words_b = _words(a, of_a), _words(b, of_b)
    changes: list[WordChange] = []
    waiting: list[tuple[slice, slice]] = []

    def add_changed() -> None:
        if waiting:
            runs = [slice(waiting[0][side].start, waiting[-1][side].stop) for side in (0, 1)]
            changes.append(WordChange("changed", _text(a, of_a, runs[0]), _text(b, of_b, runs[1])))
            waiting.clear()

    for equal, run_a, run_b in steps_between(words_a, words_b):
        if equal:
            add_changed()
            changes.append(WordChange("equal", _text(a, of_a, run_a), _text(b, of_b, run_b)))
        else:
            waiting.append((run_a, run_b))
    add_changed()
    return Alignment(tuple(changes), cut_a or cut_b)


def _spans(text: str) -> tuple[list[tuple[int, int]], bool]:
    spans: list[tuple[int, int]] = []
    for found in word_pattern().finditer(text, 0, MOST_CHARACTERS):
        if len(spans) == MOST_WORDS:
            return spans, True
        spans.append(found.span())
    return spans, len(text) > MOST_CHARACTERS


def _words(text: str, spans: Sequence[tuple[int, int]]) -> list[str]:
    return [text[start:end] for start, end in spans]


def _text(text: str, spans: Sequence[tuple[int, int]], run: slice) -> str:
    return text[spans[run.start][0] : spans[run.stop - 1][1]] if run.stop > run.start else ""


def equal_pairs(a: Sequence[str], b: Sequence[str]) -> int:
    """How many pairs of a word of one text and a word of the other are equal: difflib's work."""
    theirs = Counter(b)
    return sum(number * theirs[word] for word, number in Counter(a).items())


def steps_between(a: Sequence[str], b: Sequence[str]) -> list[tuple[bool, slice, slice]]:
    """Runs of both, equal or not. What both begin and end with is not left to difflib."""
    from difflib import SequenceMatcher

    first, shorter = 0, min(len(a), len(b))
    while first < shorter and a[first] == b[first]:
        first += 1
    last = 0
    while last < shorter - first and a[-1 - last] == b[-1 - last]:
        last += 1
    inner_a, inner_b = a[first : len(a) - last], b[first : len(b) - last]
    many = equal_pairs(inner_a, inner_b) > MOST_EQUAL
    matcher = SequenceMatcher(None, inner_a, inner_b, autojunk=many)
    steps = [(True, slice(0, first), slice(0, first))] if first else []
    steps += [
        (step == "equal", slice(i + first, j + first), slice(k + first, m + first))
        for step, i, j, k, m in matcher.get_opcodes()
    ]
    if last:
        steps.append((True, slice(len(a) - last, len(a)), slice(len(b) - last, len(b))))
    return steps
