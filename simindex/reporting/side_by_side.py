"""Two texts side by side, word by word, with what differs marked.

    the quick brown fox …        the quick red fox …
              -----                        ===

Words stand between white space. Equal words far from a change are left out.
"""

from __future__ import annotations

from collections import Counter
from difflib import SequenceMatcher

from simindex.reporting.escaping import html_text

MOST_WORDS = 1500
"""Of each text, so many are compared."""
MOST_EQUAL, FEW_WORDS = 100_000, 200
"""Pairs of equal words, of one text and the other. Texts with more, which repeat few words, are
compared by fewer words: 1,500 words, of which half are the same, take half a minute."""
CONTEXT_WORDS = 14
"""Equal words that are shown next to a change."""
WORD_CHARACTERS = 200
"""A longer word, such as data in base 64, is cut."""

GAP = ' <span class="gap">…</span> '


def side_by_side(one: str, other: str) -> str:
    """Both texts as markup: two columns."""
    a, b = _words(one), _words(other)
    theirs = Counter(b)
    equal = sum(number * theirs[word] for word, number in Counter(a).items())
    most = MOST_WORDS if equal <= MOST_EQUAL else FEW_WORDS
    left, right = _marked(a[:most], b[:most])
    cut = ""
    if len(a) > most or len(b) > most:
        cut = f'<p class="note">The first {most:,} words are compared.</p>'
    return (
        f'<div class="sides"><div dir="auto">{left}</div><div dir="auto">{right}</div></div>{cut}'
    )


def beginning(text: str, words: int = 60) -> str:
    """The first words of a text, as markup."""
    split = _words(text[: words * WORD_CHARACTERS], words)
    return html_text(" ".join(split[:words])) + (GAP if len(split) > words else "")


def _words(text: str, most: int = MOST_WORDS) -> list[str]:
    """The first words, and one more if there are more."""
    return [word[:WORD_CHARACTERS] for word in text.split(None, most + 1)[: most + 1]]


def _marked(a: list[str], b: list[str]) -> tuple[str, str]:
    start = 0
    while start < min(len(a), len(b)) and a[start] == b[start]:
        start += 1
    end = 0
    while end < min(len(a), len(b)) - start and a[-1 - end] == b[-1 - end]:
        end += 1
    inner = SequenceMatcher(
        None, a[start : len(a) - end], b[start : len(b) - end], autojunk=False
    ).get_opcodes()
    steps: list[tuple[str, int, int, int, int]] = []
    if start:
        steps.append(("equal", 0, start, 0, start))
    steps += [
        (step, i1 + start, i2 + start, j1 + start, j2 + start) for step, i1, i2, j1, j2 in inner
    ]
    if end:
        steps.append(("equal", len(a) - end, len(a), len(b) - end, len(b)))
    left, right = [], []
    for number, (step, a_first, a_end, b_first, b_end) in enumerate(steps):
        if step == "equal":
            shown = _around(
                a[a_first:a_end], first=number == 0, last=number == len(steps) - 1,
                only=len(steps) == 1,
            )
            left.append(shown)
            right.append(shown)
            continue
        if a_end > a_first:
            left.append(f"<del>{html_text(' '.join(a[a_first:a_end]))}</del>")
        if b_end > b_first:
            right.append(f"<ins>{html_text(' '.join(b[b_first:b_end]))}</ins>")
    return " ".join(left), " ".join(right)


def _around(words: list[str], *, first: bool, last: bool, only: bool) -> str:
    """Equal words, without those that are far from a change."""
    if only:
        return html_text(" ".join(words[: 4 * CONTEXT_WORDS])) + (
            GAP if len(words) > 4 * CONTEXT_WORDS else ""
        )
    head = [] if first else words[:CONTEXT_WORDS]
    tail = [] if last else words[-CONTEXT_WORDS:]
    if len(words) <= len(head) + len(tail) + 2:
        return html_text(" ".join(words))
    return html_text(" ".join(head)) + GAP + html_text(" ".join(tail))
