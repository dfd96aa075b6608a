"""Which distances belong to a similarity: a radius for candidates, and a threshold for sketches.

    p = arccos(similarity) / pi                      the chance that a bit differs
    radius      the least h with P(X <= h) >= share, X binomial of b bits and p
    threshold   floor(b p)                           the distance that is expected at the similarity

A Jaccard resemblance J of two sets of equal size is a cosine of their binary vectors: of n features
each they share i, so J = i / (2 n - i), cosine = i / n = 2 J / (1 + J). Sets of other sizes have a
larger cosine at the same resemblance, so a radius for sets of equal size loses no other. `sets` has
the law of all sizes.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import accumulate, islice
from math import acos, cos, exp, floor, lgamma, log, log1p, pi


def cosine_of_jaccard(resemblance: float) -> float:
    """The cosine of two sets of equal size; that of sets of other sizes is larger."""
    return 2 * resemblance / (1 + resemblance)


def flip_share(similarity: float) -> float:
    """The chance that a bit of two documents of this cosine differs."""
    return acos(similarity) / pi


@lru_cache(256)
def share_within(h: int, similarity: float, bits: int) -> float:
    """Which share of the pairs of this cosine differ in at most h of so many bits."""
    return min(1.0, next(islice(_shares(flip_share(similarity), bits), h, None)))


def share_at(distance: int, similarity: float, bits: int) -> float:
    """Which share of the pairs of this cosine differ in so many bits."""
    return _chance(distance, flip_share(similarity), bits)


def _chance(count: int, p: float, bits: int) -> float:
    """That so many of the bits differ, each with the chance p. By logarithms: of thousands of bits
    the coefficients are beyond floats."""
    if p == 0:
        return float(count == 0)
    ways = lgamma(bits + 1) - lgamma(count + 1) - lgamma(bits - count + 1)
    return exp(ways + count * log(p) + (bits - count) * log1p(-p))


@lru_cache(256)
def candidate_radius(similarity: float, share: float, bits: int) -> int:
    """The least h within which at least this share of the pairs of this cosine is."""
    for h, found in enumerate(_shares(flip_share(similarity), bits)):
        if found >= share:
            return h
    return bits


def _shares(p: float, bits: int) -> Iterator[float]:
    """That at most 0, 1, … `bits` of the bits differ, each with the chance p. A share and its
    radius are found in the same sums: `sum` rounds otherwise from Python 3.12 on."""
    return accumulate(_chance(count, p, bits) for count in range(bits + 1))


def threshold(similarity: float, bits: int) -> int:
    """The most bits in which two documents differ whose estimated cosine is not less."""
    distance = floor(bits * flip_share(similarity))
    # The cosine of an exact multiple may be rounded to just above it.
    return distance + (cos(pi * (distance + 1) / bits) >= similarity)
