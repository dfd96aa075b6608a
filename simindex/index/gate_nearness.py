"""What a gate asks by, unless the caller says it.

    sketches        similarity 0.85; 0.95 of the pairs at it become candidates
    no sketches     the recipe's radius, exactly

A copy in which 5 % of the words were replaced has a cosine of about 0.93 to 0.98, by the recipe.
The radius of 0.85 and 0.95 is 16 of 64 bits, within which 99.8 % of such copies were found:
docs/how-to/gate.md has the figures.
"""

from __future__ import annotations

from typing import Any

USUAL_SIMILARITY = 0.85
USUAL_SHARE = 0.95
"""Of the pairs at the similarity."""

USUAL_LIMIT = 10
"""Matches of a document that are told."""


def gate_nearness(
    h: int | None, similarity: float | None, recall: float | None, measure: str = "cosine", *,
    sketched: bool,
) -> dict[str, Any]:
    """The arguments of `Index.query` that say what a match is.

    `sketched` says whether both the rows and what is asked have sketches. A resemblance has to be
    given: which one a copy has depends on how many words a feature has.
    """
    if h is None and similarity is None and sketched and measure == "cosine":
        similarity = USUAL_SIMILARITY
    if recall is None:
        recall = 1.0 if similarity is None else USUAL_SHARE
    return {"h": h, "similarity": similarity, "measure": measure, "recall": recall}
