"""The recipe of the shell by its radius, and by how many documents its idf was learned from."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from reproduce import truth
from simindex import Recipe

RADII = (3, 5, 6, 7, 8, 9, 10)
DOCUMENTS = (1, 3, 10, 30, 100)
DRAWS = 3
"""Times that documents to learn from are drawn; the mean counts."""

FAR = 0.6

Kind = Recipe(ngram=1, weighting="balanced-tfidf")


class Known:
    """The pairs of some texts, and which of them are right."""

    def __init__(self, texts: list[str], cosines: truth.Cosines) -> None:
        self.texts = texts
        self._pairs = np.triu_indices(len(texts), 1)
        self._right = cosines[self._pairs] >= 0.9 - 1e-6
        self._far = cosines[self._pairs] < FAR

    def distances(self, recipe: Recipe) -> NDArray[np.uint8]:
        """Of each pair."""
        rows = recipe.batch(self.texts).rows[:, 0]
        return np.asarray(np.bitwise_count(rows[self._pairs[0]] ^ rows[self._pairs[1]]))

    def f1(self, distances: NDArray[np.uint8], h: int) -> float:
        """F1 of the pairs within h."""
        near = distances <= h
        return float(2 * (near & self._right).sum() / max(1, near.sum() + self._right.sum()))

    def strangers(self, distances: NDArray[np.uint8], h: int) -> float:
        """Pairs of a low cosine within h, in a million such pairs."""
        near = (distances <= h) & self._far
        return float(1e6 * near.sum() / max(1, self._far.sum()))


def by_radius(name: str, known: Known) -> str:
    """F1 for each of RADII."""
    distances = known.distances(Kind.fit(known.texts))
    cells = [f"{known.f1(distances, h):.2f}" for h in RADII]
    return f"| {name} | " + " | ".join(cells) + " |"


def by_documents(name: str, known: Known, pages: Sequence[str], seed: int) -> str:
    """F1 and strangers with the idf of a few documents, all revisions of a page together."""
    rng = np.random.default_rng(seed)
    cells = []
    for number in (*DOCUMENTS, len(known.texts)):
        found, strange = [], []
        for _ in range(DRAWS):
            order = rng.permutation(len(known.texts)).tolist()
            first = {page: place for place, page in reversed(list(enumerate(
                pages[one] for one in order
            )))}
            order.sort(key=lambda one, first=first: first[pages[one]])
            recipe = Kind.fit([known.texts[one] for one in order[:number]])
            assert recipe.h is not None
            distances = known.distances(recipe)
            found.append(known.f1(distances, recipe.h))
            strange.append(known.strangers(distances, recipe.h))
        cells.append(f"{np.mean(found):.2f} ({np.mean(strange):.0f})")
    return f"| {name} | " + " | ".join(cells) + " |"
