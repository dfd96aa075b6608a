"""Two texts side by side, word by word, with what differs marked.

    the quick brown fox …        the quick red fox …
              -----                        ===

Words stand between white space. Equal words far from a change are left out.
"""

from __future__ import annotations

from simindex.reporting.escaping import html_text
from simindex.simhash.alignment import equal_pairs, steps_between

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
    most = MOST_WORDS if equal_pairs(a, b) <= MOST_EQUAL else FEW_WORDS
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
    steps = steps_between(a, b)
    left, right = [], []
    for number, (equal, of_a, of_b) in enumerate(steps):
        if equal:
            shown = _around(
                a[of_a], first=number == 0, last=number == len(steps) - 1, only=len(steps) == 1
            )
            left.append(shown)
            right.append(shown)
            continue
        if a[of_a]:
            left.append(f"<del>{html_text(' '.join(a[of_a]))}</del>")
        if b[of_b]:
            right.append(f"<ins>{html_text(' '.join(b[of_b]))}</ins>")
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
