"""F1 that independent bits have on average: what a width of sketches allows.

Each bit of a pair differs with a chance of its own, that of the pair's cosine, independently of all
others. A pair is found if at most h of 64 bits differ, and at most `most` of the sketch.
"""

from __future__ import annotations

from math import floor, lgamma, pi
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simindex.planning.similarity import similar

Floats = NDArray[np.float64]


def f1(cosines: Floats, right: NDArray[np.bool_], width: int, similarity: float, **asked: Any) -> (
    float
):
    """Of pairs with these cosines, of which some are right; `asked` says what the similarity is."""
    by = similar(similarity, h=None, recall=1.0, bits=64, sketch_bits=width, **asked)
    share = np.arccos(np.minimum(1, cosines)) / pi
    found = _at_most(by.h, 64, share) * _at_most(by.most, width, share)
    return float(2 * found[right].sum() / max(1.0, right.sum() + found.sum()))


def minhash_f1(
    resemblances: Floats, right: NDArray[np.bool_], permutations: int, least: float
) -> float:
    """The same of MinHash, of pairs with these resemblances: the number of equal permutations is
    binomial, and a pair is found if their share is `least` or more."""
    most_unequal = floor(permutations * (1 - least) + 1e-9)
    found = _at_most(most_unequal, permutations, 1 - resemblances)
    return float(2 * found[right].sum() / max(1.0, right.sum() + found.sum()))


def _at_most(most: int, bits: int, share: Floats) -> Floats:
    """The chance that at most so many of independent bits differ, each with a chance."""
    share = np.clip(share, 1e-12, 1 - 1e-12)
    chance = np.zeros_like(share)
    for count in range(most + 1):
        ways = lgamma(bits + 1) - lgamma(count + 1) - lgamma(bits - count + 1)
        chance += np.exp(ways + count * np.log(share) + (bits - count) * np.log1p(-share))
    return chance
