"""The recipes that are compared, and what this version of the package knows of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from simindex import InvalidOption, Recipe

BITS = 256
"""Width that is made; its first 64 and 128 bits are the fingerprints of those widths."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """Unit, sizes, weighting and projection of a recipe."""

    unit: str
    ngram: int | tuple[int, ...]
    weighting: str
    projection: str = "sign"

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
        """Features and weighting, and the projection if it is not random signs."""
        projection = "" if self.projection == "sign" else f", {self.projection}"
        return f"{self.features}, {self.weighting}{projection}"

    @property
    def single_words(self) -> bool:
        """Whether it is one of the weightings of single words under random signs."""
        return self.features == "word 1" and self.projection == "sign"


def recipe(candidate: Candidate, texts: Callable[[], Iterable[str]]) -> Recipe | None:
    """The recipe, fitted on the texts if it learns; None if the package does not know it."""
    try:
        made = Recipe(
            bits=BITS, unit=candidate.unit, ngram=candidate.ngram,  # type: ignore[arg-type]
            weighting=candidate.weighting,  # type: ignore[arg-type]
            projection=candidate.projection,  # type: ignore[arg-type]
        )
    except InvalidOption:
        return None
    return made if made.fitted else made.fit(texts())


WORDS = [
    Candidate("word", 1, weighting)
    for weighting in ("tfidf", "tf", "binary", "idf", "sublinear", "sublinear-tfidf")
]
REVISIONS = [
    *WORDS[:4], Candidate("word", 3, "tf"), Candidate("word", 3, "binary"), *WORDS[4:],
]
"""Compared on consecutive revisions."""

UNITS = [
    *(Candidate("word", n, w) for n in (2, 3, (1, 2, 3)) for w in ("tfidf", "tf", "binary")),
    *(Candidate("char", n, w) for n in (3, 5) for w in ("tfidf", "tf", "binary")),
]
PROJECTIONS = [
    Candidate("word", 1, weighting, projection)
    for weighting in ("tfidf", "tf") for projection in ("gaussian", "ternary")
]
AGREEMENT = [*WORDS, *UNITS, *PROJECTIONS]
"""Compared on all pairs of a sample, with exact cosines."""
