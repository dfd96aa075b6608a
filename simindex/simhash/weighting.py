"""How much a feature counts: by how often a document has it, and by how rare it is.

    weight = c(tf) * idf        tf: how often the document has the feature

Weights are whole numbers, of units or of steps of 2^-12, so sums are exact in any order: c(tf) =
1 + ln tf and idf are rounded to steps, and a product of both is rounded back to them.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

WeightingName = Literal[
    "binary", "tf", "sublinear", "idf", "tfidf", "sublinear-tfidf", "given"
]


class Weighting(NamedTuple):
    """One way to weigh."""

    counting: Literal["once", "often", "sublinear"]
    """c(tf): 1, tf, or 1 + ln tf."""
    idf: bool
    """Whether learned idf is a factor."""
    meaning: str


WEIGHTINGS: dict[str, Weighting] = {
    "binary": Weighting("once", False, "a feature counts once"),
    "tf": Weighting("often", False, "as often as the document has it"),
    "sublinear": Weighting("sublinear", False, "1 + ln of how often the document has it"),
    "idf": Weighting("once", True, "once, times idf"),
    "tfidf": Weighting("often", True, "as often as the document has it, times idf"),
    "sublinear-tfidf": Weighting("sublinear", True, "1 + ln of how often, times idf"),
    "given": Weighting("often", False, "the caller's own, by Recipe.batch_features"),
}

COUNTINGS = ("once", "often", "sublinear")
"""By the number the kernels know them by."""

STEP_BITS = 12
STEPS_PER_UNIT = 1 << STEP_BITS
"""A weight of 1 in steps; the kernels know the same number."""

MOST_SUBLINEAR = 1 << 16
"""Occurrences from which on 1 + ln tf grows no more."""


@cache
def sublinear_steps() -> NDArray[np.uint32]:
    """1 + ln tf in steps, for tf below MOST_SUBLINEAR: uint32 (65536,).

    None lies within 10^-5 of a step of where rounding changes, so every C library gives the same.
    """
    steps = [0, *(round((1 + math.log(tf)) * STEPS_PER_UNIT) for tf in range(1, MOST_SUBLINEAR))]
    return np.array(steps, dtype=np.uint32)
