"""Controlled edits of documents: copies of which it is known how much differs.

    replaced      a share of the words becomes words of other documents
    moved         sentences that hold a share of the words go to other places
    added         sentences that all copies share, of so many words, stand around the text

Words are those of `alignment`: between white space, and single letters of Han, Kana and Thai.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from simindex.simhash.alignment import word_pattern

if TYPE_CHECKING:
    from random import Random

_SENTENCE = re.compile(r"[^.!?。！？\n]+[.!?。！？\n]*\s*|[.!?。！？\n]+\s*")

Edit = Callable[[str, float, Sequence[str], "Random"], str]
"""Of a text, by a share of its words, with words of other documents."""


def count_words(text: str) -> int:
    """How many words a text has."""
    return sum(1 for _ in word_pattern().finditer(text))


def replaced(text: str, share: float, others: Sequence[str], random: Random) -> str:
    """Some words become others; at least one, if there is any."""
    spans = [found.span() for found in word_pattern().finditer(text)]
    if not spans or not others:
        return text
    chosen = sorted(random.sample(range(len(spans)), _number(share, len(spans))))
    parts, at = [], 0
    for place in chosen:
        start, end = spans[place]
        parts += [text[at:start], random.choice(others)]
        at = end
    return "".join([*parts, text[at:]])


def moved(text: str, share: float, others: Sequence[str], random: Random) -> str:
    """Sentences go to other places until so many words were moved; one at least."""
    sentences: list[str] = _SENTENCE.findall(text)
    wanted = _number(share, count_words(text))
    while wanted > 0 and len(sentences) > 1:
        taken = sentences.pop(random.randrange(len(sentences)))
        sentences.insert(random.randrange(len(sentences) + 1), taken)
        wanted -= max(1, count_words(taken))
    return "".join(sentences)


def added(text: str, share: float, others: Sequence[str], random: Random) -> str:
    """Half of so many words before the text, half behind it: the same ones for all texts."""
    number = _number(share, count_words(text))
    boilerplate = [others[place % len(others)] for place in range(number)] if others else []
    half = (number + 1) // 2
    return "\n".join([" ".join(boilerplate[:half]), text, " ".join(boilerplate[half:])])


def _number(share: float, words: int) -> int:
    return min(words, max(1, round(share * words)))


EDITS: dict[str, tuple[Edit, tuple[float, ...]]] = {
    "words replaced": (replaced, (0.01, 0.05, 0.1, 0.2)),
    "sentences moved": (moved, (0.1, 0.3)),
    "boilerplate added": (added, (0.05, 0.2)),
}
"""Edits by name, with the strengths that are tried."""
