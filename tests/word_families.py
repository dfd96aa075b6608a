"""Families of texts, whose members differ in some words: for tests of pairs near a similarity."""

from __future__ import annotations

from random import Random

WORDS = [f"word{number}" for number in range(400)]


def families(random: Random, count: int) -> list[str]:
    """Twelve texts of 120 words for each family, of which 0 to 25 % are other words."""
    texts = []
    for _ in range(count):
        base = random.choices(WORDS, k=120)
        for _ in range(12):
            words, share = base[:], random.uniform(0, 0.25)
            for place in range(len(words)):
                if random.random() < share:
                    words[place] = random.choice(WORDS)
            texts.append(" ".join(words))
    return texts
