"""Distances of sketches as similarities of sets see them: by how many features both sets have.

    sizes, by codes      a row of m features, one of n
    distance             in so many bits their sketches differ
    seen                 in so many bits those of two sets of equal size with many features would,
                         which have the same resemblance, or the same cosine

What is seen goes on as the distance: rows are kept, put in order and told how similar they are by
it. So all who compare distances go by the resemblance of the sets.

1. Sets of different sizes. Of m and n features they share i, so the resemblance is
   J = i / (m + n - i), and the cosine of their binary vectors c = i / sqrt(m n). With
   t = (m + n) / sqrt(m n), J = c / (t - c). t is 2 for equal sizes, and more for all others.
2. Few features. A bit is the sign of a sum of n random numbers, which is normal only for many. Of
   sets that share i features bits differ with a chance that can be counted (`flip_share_of_sets`),
   and from the chance follows i. Only where features weigh about the same, as of short texts
   without idf, and each number is one of few: +1 or -1, or with the projection "ternary" also 0.
   A pair that differs less than a set and a part of it is as near as these where features weigh
   the same. Where a feature weighs more that occurs more often, it is nearer: what is shared
   may weigh more than the rest.
3. Equal bits stay equal, and what differs never becomes equal.
"""

from __future__ import annotations

from functools import lru_cache
from math import acos, ceil, floor, pi, sqrt
from typing import NamedTuple

import numpy as np

from simindex.arrays import F64, I64, U8, U16, Bools
from simindex.records.sketches import NOT_KNOWN, STEPS, numbers_of

MOST_APART = 4 * STEPS
"""Codes of sizes that are further apart count as this far: one set is 16 times as large, and no
resemblance that can be asked for is possible."""

MANY = 7 * STEPS + 1
"""From the code of 128 features on, sums are taken to be normal: the bias is below 0.003."""

JACCARD = "jaccard"

NUMBERS = {"sign": (0.5, 0.0, 0.5), "ternary": (0.125, 0.75, 0.125)}
"""Projections whose numbers are few, and the chances of -1, 0 and 1."""


class Counted(NamedTuple):
    """A recipe whose sums of few features can be counted, as these weigh about the same."""

    projection: str
    """One of `NUMBERS`."""
    alike: bool
    """Whether all features weigh the same, however often a text has them."""


def by_sizes(
    distance: U16, some: U8, others: U8, bits: int, measure: str, *, counted: Counted | None
) -> U16:
    """uint16 (n,): what is seen of distances, by the codes of sizes of both rows.

    `counted` is None where features do not weigh the same.
    Where a size is not known, sets are taken to be of equal size, and to have many features.
    """
    known = (some != NOT_KNOWN) & (others != NOT_KNOWN)
    apart = np.where(known, np.abs(some.astype(np.int16) - others), 0)
    apart = np.minimum(apart, MOST_APART)
    seen: U16 = _of_many(bits)[apart, distance] if measure == JACCARD else distance
    smaller = np.minimum(some, others)
    few = np.flatnonzero(known & (smaller < MANY)) if counted else ()
    if counted is None or not len(few):
        return seen
    seen = seen.copy()
    kind = smaller[few].astype(np.int64) * (MOST_APART + 1) + apart[few]
    for one in np.unique(kind).tolist():
        at = few[kind == one]
        row = _of_few(*divmod(one, MOST_APART + 1), bits, measure, counted)
        seen[at] = row[distance[at]]
    return seen


@lru_cache(16)
def _of_many(bits: int) -> U16:
    """uint16 (MOST_APART + 1, bits + 1): of resemblances, by how far codes are apart."""
    cosine = np.cos(pi * np.arange(bits + 1) / bits)
    smaller = np.exp2(-np.arange(MOST_APART + 1) / STEPS)[:, None]
    larger = (1 + smaller) / np.sqrt(smaller)
    # No more than the smaller set has of the larger one, as far as codes tell that.
    resemblance = np.minimum(cosine / (larger - cosine), smaller * 2 ** (1 / STEPS))
    found = _seen(_cosine_of_equal(resemblance), bits)
    found[0] = np.arange(bits + 1)
    return np.maximum(found, np.arange(bits + 1, dtype=np.uint16) * (found > 0))


@lru_cache(4096)
def _of_few(code: int, apart: int, bits: int, measure: str, counted: Counted) -> U16:
    """uint16 (bits + 1,): of sets whose sizes have these codes."""
    projection, alike = counted
    other = min(255, code + apart)
    m, n = numbers_of(np.array([code, other], np.uint8)).tolist()
    cosine, whole = _counted(m, n, bits, measure, projection)
    if apart:  # sets as much alike as one is as large as its code allows, the other as small
        most = max(m, floor(2 ** ((code - 0.5) / STEPS)))
        least = min(n, ceil(2 ** ((other - 1.5) / STEPS)))
        nearest, _ = _counted(most, least, bits, measure, projection)
        cosine = np.where(whole, np.maximum(cosine, nearest), cosine)
        if not alike:
            nearer = _nearer_than_a_part(m, n, bits, projection)
            cosine = np.where(whole, np.maximum(cosine, nearer), cosine)
    return _seen(cosine, bits)


def _nearer_than_a_part(m: int, n: int, bits: int, projection: str) -> F64:
    """The cosines of distances (bits + 1,) below that of sets of which one has all of the other:
    the angle goes from theirs to 0 as the distance does."""
    m, n = sorted((m, n))
    shares = [0.0, flip_share_of_sets(m, n, m, projection)]
    angles = np.interp(np.arange(bits + 1) / bits, shares, [0.0, acos(sqrt(m / n))])
    cosine: F64 = np.cos(angles)
    return cosine


def _counted(
    m: int, n: int, bits: int, measure: str, projection: str
) -> tuple[F64, Bools]:
    """Of each distance (bits + 1,) of sets of such sizes: the cosine that stands for it, and
    whether the larger set has all of the smaller one."""
    m, n = sorted((m, n))
    shared = np.arange(m + 1)
    share = np.array([flip_share_of_sets(m, n, i, projection) for i in range(m + 1)])
    share = np.minimum.accumulate(share)  # it falls but for the last digits
    found = np.interp(np.arange(bits + 1) / bits, share[::-1], shared[::-1])
    if measure == JACCARD:
        return _cosine_of_equal(found / (m + n - found)), found == m
    return found / np.sqrt(m * n), found == m


def _cosine_of_equal(resemblance: F64) -> F64:
    cosine: F64 = np.clip(2 * resemblance / (1 + np.maximum(resemblance, 0)), -1.0, 1.0)
    return cosine


def _seen(cosine: F64, bits: int) -> U16:
    """The distance that stands for each cosine, in rows of one for each distance."""
    found = np.round(bits * np.arccos(np.clip(cosine, -1.0, 1.0)) / pi)
    found[..., 1:] = np.maximum(found[..., 1:], 1)
    found[..., 0] = 0
    return found.astype(np.uint16)


def flip_share_of_sets(m: int, n: int, shared: int, projection: str = "sign") -> float:
    """The chance that a bit of sets of m and n features differs, which share so many of them.

    With S the sum of the shared numbers, and A and B those of the others of each set, it is that
    one of S + A and S + B makes a 1 and the other does not: by "sign" a sum of 0 makes a 1, by
    "ternary" it does not.
    """
    least = -np.arange(-shared, shared + 1) + (projection == "ternary")  # -S, or 1 - S
    chance = _sums(shared, projection)
    one = _at_least(m - shared, least, projection)
    other = _at_least(n - shared, least, projection)
    return float((chance * (one * (1 - other) + other * (1 - one))).sum())


def _at_least(features: int, least: I64, projection: str) -> F64:
    """The chances that a sum of so many numbers is at least some numbers."""
    upper: F64 = np.append(np.cumsum(_sums(features, projection)[::-1])[::-1], 0.0)
    return np.minimum(upper[np.clip(least + features, 0, 2 * features + 1)], 1.0)


@lru_cache(1024)
def _sums(features: int, projection: str) -> F64:
    """The chances that a sum of so many numbers is -features to features."""
    length = 2 * features + 1
    spectrum = np.fft.rfft(NUMBERS[projection], length) ** features
    chances: F64 = np.fft.irfft(spectrum, length)
    return np.maximum(chances, 0.0)
