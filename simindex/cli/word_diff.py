"""What changed between two texts, word by word, short enough for a line or two.

    the quick brown fox jumps   ->   the quick [-brown-] {+red+} fox jumps

`[-...-]` was removed, `{+...+}` was added, as `git diff --word-diff` marks them.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from simindex.values import dataclass

CONTEXT_WORDS = 3
"""Equal words shown on each side of a change."""

GAP = "…"
"""Stands for words that are not shown."""


@dataclass(frozen=True, slots=True)
class WordDiff:
    """The words of two texts, and how one becomes the other."""

    similarity: float
    """Share of the words of both texts that are equal and in the same order: 1 if all are."""
    changed: str
    """The changes with some words around them; empty if there are none."""

    @classmethod
    def of(cls, before: str, after: str) -> WordDiff:
        """The difference of two texts, which takes the square of their words at worst."""
        from simindex.simhash.alignment import steps_between

        a, b = before.split(), after.split()
        steps = steps_between(a, b)
        pieces: list[str] = []
        kept = 0
        for number, (equal, of_a, of_b) in enumerate(steps):
            if equal:
                kept += of_a.stop - of_a.start
                pieces += _around(a[of_a], first=number == 0, last=number == len(steps) - 1)
                continue
            if of_a.stop > of_a.start:
                pieces.append(f"[-{' '.join(a[of_a])}-]")
            if of_b.stop > of_b.start:
                pieces.append(f"{{+{' '.join(b[of_b])}+}}")
        words = len(a) + len(b)
        return cls(2 * kept / words if words else 1.0, " ".join(pieces))

    def lines(self, width: int, most: int) -> list[str]:
        """The changes in at most so many lines of at most so many characters."""
        return textwrap.wrap(
            self.changed, width, max_lines=most, placeholder=f" {GAP}", break_on_hyphens=False
        )


def _around(words: Sequence[str], *, first: bool, last: bool) -> list[str]:
    """The equal words next to changes; those between are left out."""
    if first and last:
        return []
    head = [] if first else list(words[:CONTEXT_WORDS])
    tail = [] if last else list(words[-CONTEXT_WORDS:])
    if len(words) <= len(head) + len(tail):
        return list(words)
    return [*head, GAP, *tail]
