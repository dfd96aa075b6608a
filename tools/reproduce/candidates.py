"""The recipes that are compared, and what this version of the package knows of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from simindex import InvalidOption, Recipe

BITS = 256
"""Width that is made; its first 64 and 128 bits are the fingerprints of those widths."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """Unit, sizes and weighting of a recipe."""

    unit: str
    ngram: int | tuple[int, ...]
    weighting: str

    @property
    def sizes(self) -> tuple[int, ...]:
        """The n-gram sizes."""
        return self.ngram if isinstance(self.ngram, tuple) else (self.ngram,)

    @property
    def features(self) -> str:
        """What is counted, in words."""
        return f"{self.unit} {'+'.join(map(str, self.sizes))}"

    @property
    def label(self) -> str:
        """Features and weighting."""
        return f"{self.features}, {self.weighting}"


def recipe(candidate: Candidate, texts: Callable[[], Iterable[str]]) -> Recipe | None:
    """The recipe, fitted on the texts if it learns; None if the package does not know it."""
    try:
        made = Recipe(
            bits=BITS, unit=candidate.unit, ngram=candidate.ngram,  # type: ignore[arg-type]
            weighting=candidate.weighting,  # type: ignore[arg-type]
        )
    except InvalidOption:
        return None
    return made if made.fitted else made.fit(texts())


WORDS = [
    Candidate("word", 1, weighting)
    for weighting in ("tfidf", "tf", "binary", "idf", "sublinear", "sublinear-tfidf")
]
REVISIONS = [
    WORDS[0], WORDS[1], WORDS[2], WORDS[3],
    Candidate("word", 3, "tf"), Candidate("word", 3, "binary"),
]
"""Compared on consecutive revisions."""

UNITS = [
    *(Candidate("word", n, w) for n in (2, 3, (1, 2, 3)) for w in ("tfidf", "tf", "binary")),
    *(Candidate("char", n, w) for n in (3, 5) for w in ("tfidf", "tf", "binary")),
]
AGREEMENT = [*WORDS, *UNITS]
"""Compared on all pairs of a sample, with exact cosines."""
