"""The weight of a feature: how often a document has it, and how rare it is.

    weight = c(tf) * idf        tf: how often the document has the feature
    idf = ln((1 + N) / (1 + df)) + 1        of the df of N documents that have it

A balanced idf is lowered by one shift for all features of a document, to 1 at least. The shift says
how much rarer the document's common features are than those of most documents: `idf_shift`.

Weights are whole numbers, of units or of steps of 2^-12, so sums are exact in any order: c(tf) =
1 + ln tf and idf are rounded to steps, and a product of both is rounded back to them. The table of
idf that a recipe learns and stores decides, not the logarithm of the machine that reads it:

    hashes   uint64 (f,)   feature hashes, strictly ascending
    steps    uint32 (f,)   idf of each, in steps of 2^-12
    unseen   step of a feature that no document had

Counts come from `document_frequencies`; where some of them are bounds, a step is the middle of the
idf at both bounds.
"""

from __future__ import annotations

import math
from collections import Counter
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from simindex.bits.digests import blake2b
from simindex.values import dataclass

if TYPE_CHECKING:
    from simindex.arrays import U32, U64
    from simindex.bits.sets import Counted
    from simindex.simhash.features import Unit


WeightingName = Literal[
    "binary", "tf", "sublinear", "idf", "tfidf", "sublinear-tfidf", "balanced-tfidf", "given"
]


class Weighting(NamedTuple):
    """One way to weigh."""

    counting: Literal["once", "often", "sublinear", "balanced"]
    """c(tf): 1, tf, or 1 + ln tf; "balanced" is tf, of an idf that is balanced."""
    idf: bool
    """Whether learned idf is a factor."""


WEIGHTINGS: dict[str, Weighting] = {
    "binary": Weighting("once", False),  # a feature counts once
    "tf": Weighting("often", False),  # as often as the document has it
    "sublinear": Weighting("sublinear", False),  # 1 + ln of how often the document has it
    "idf": Weighting("once", True),  # once, times idf
    "tfidf": Weighting("often", True),  # as often as the document has it, times idf
    "sublinear-tfidf": Weighting("sublinear", True),  # 1 + ln of how often, times idf
    "balanced-tfidf": Weighting("balanced", True),  # tfidf, idf balanced for each document
    "given": Weighting("often", False),  # the caller's own, by Recipe.batch_features
}


COUNTED_WEIGHTINGS, COUNTED_PROJECTIONS = ("binary", "tf", "sublinear"), ("sign", "ternary")
"""Of texts of few features. Most features of a short text occur once, and weigh the same then."""


def counted_of(recipe: Any) -> Counted | None:
    """How sums of few features are counted in a recipe; None where they are not."""
    if recipe is None or recipe.weighting not in COUNTED_WEIGHTINGS:
        return None
    if recipe.projection not in COUNTED_PROJECTIONS:
        return None
    from simindex.bits.sets import Counted  # arrays, which help does not need

    return Counted(recipe.projection, alike=recipe.weighting == "binary")


COUNTINGS = ("once", "often", "sublinear", "balanced")
"""By the number the kernels know them by."""

STEP_BITS = 12
STEPS_PER_UNIT = 1 << STEP_BITS
"""A weight of 1 in steps, as in the kernels; tests/simhash/test_weighting.py compares both."""

MOST_SUBLINEAR = 1 << 16
"""Occurrences from which on 1 + ln tf grows no more."""


@cache
def sublinear_steps() -> U32:
    """1 + ln tf in steps, for tf below MOST_SUBLINEAR: uint32 (65536,).

    None lies within 10^-5 of a step of where rounding changes, so every logarithm gives the same:
    that of a C library, and that of numpy, which takes 1 ms instead of 15.
    """
    import numpy as np

    steps = np.zeros(MOST_SUBLINEAR, dtype=np.uint32)
    steps[1:] = np.rint((1 + np.log(np.arange(1, MOST_SUBLINEAR))) * STEPS_PER_UNIT)
    return steps


@dataclass(frozen=True, eq=False)
class IdfTable:
    """idf of features by ascending hash; see the module's second drawing."""

    documents: int
    """Number N of documents it was learned from."""
    hashes: U64
    steps: U32
    unseen: int
    source: str
    """Digest of the options that its features were made with: `recipe_bytes.features_source`."""

    def __len__(self) -> int:
        return len(self.hashes)

    @cached_property
    def digest(self) -> str:
        """Hexadecimal BLAKE2b-128 of the table's content."""
        made = blake2b(digest_size=16)
        made.update(self.documents.to_bytes(8, "little") + self.unseen.to_bytes(8, "little"))
        made.update(self.hashes.astype("<u8").tobytes())
        made.update(self.steps.astype("<u4").tobytes())
        return made.hexdigest()

    @cached_property
    def buckets(self) -> U64:
        """The table as kernels look it up, uint64 (2^k, 8): 32 to 64 bytes a feature."""
        from simindex._kernels import _native

        buckets: U64 = _native.idf_buckets(self.hashes, self.steps)
        return buckets

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in self.__dict__.items() if name != "buckets"}

    def idf(self, feature_hash: int) -> float:
        """idf of one feature; that of df = 0 if no document had it."""
        return self.step(feature_hash) / STEPS_PER_UNIT

    def step(self, feature_hash: int) -> int:
        """idf of one feature in steps."""
        import numpy as np

        row = int(np.searchsorted(self.hashes, np.uint64(feature_hash)))
        known = row < len(self) and int(self.hashes[row]) == feature_hash
        return int(self.steps[row]) if known else self.unseen


def idf_step(documents: int, containing: int, most: int | None = None) -> int:
    """idf of a feature that `containing` of `documents` have, in steps of 2^-12.

    With `most`, of one that `containing` to `most` have: the middle of the idf at both ends, which
    is wrong by no more than half of what lies between them.
    """
    rarest = math.log((1 + documents) / (1 + containing))
    commonest = rarest if most is None else math.log((1 + documents) / (1 + most))
    return round(((rarest + commonest) / 2 + 1) * STEPS_PER_UNIT)


COMMON_FEATURES = 10
"""Features of idf 1 that count with those of a text, so that short texts keep their idf."""

HALF = 2839
"""ln 2 in steps: the idf of what half of the documents have, less 1."""


def idf_shift(steps: list[int]) -> int:
    """What a balanced weighting takes off each idf of a document, in steps.

    `steps` has the idf of every occurrence of a feature, in any order. COMMON_FEATURES of idf 1 are
    added. m is the mean from the lowest tenth to the third: the lowest are left out, because
    languages share some words. d = m - 1 is about ln of how many times more documents there are
    than documents in this language. The shift is 0 up to d = ln 2, d from 2 ln 2 on, and 2 (d -
    ln 2) between. The kernels compute the same.
    """
    ascending = sorted([STEPS_PER_UNIT] * COMMON_FEATURES + steps)
    n = len(ascending)
    first, last = n // 10, (3 * n - 1) // 10
    # In tenths of a feature: number i covers 10 i to 10 i + 10, and those from n to 3 n count.
    total = 10 * sum(ascending[first : last + 1])
    total -= (n - 10 * first) * ascending[first] + (10 * last + 10 - 3 * n) * ascending[last]
    rarer = (total + n) // (2 * n) - STEPS_PER_UNIT
    return min(rarer, 2 * (rarer - HALF)) if rarer > HALF else 0


@dataclass(frozen=True, slots=True)
class Feature:
    """One feature of a text, as `Recipe.features` shows it."""

    feature: str
    """Its units, joined."""
    count: int
    """How often the text has it."""
    weight: float


def anatomy(
    units: list[str],
    unit: Unit,
    sizes: tuple[int, ...],
    weighting: Weighting,
    *,
    seed: int,
    idf: IdfTable | None,
) -> list[Feature]:
    """The features of a text of some units, the heaviest first; O(features) in Python."""
    import mmh3

    joiner = " " if unit == "word" else ""
    grams = [
        joiner.join(units[start : start + size])
        for size in sizes
        for start in range(len(units) - size + 1)
    ]
    if units and len(units) < sizes[0]:
        grams = [joiner.join(units)]
    counts = Counter(grams)
    steps = dict.fromkeys(counts, STEPS_PER_UNIT)
    if idf is not None:
        for gram in counts:
            encoded = gram.encode("utf-8", "surrogatepass")
            steps[gram] = idf.step(mmh3.hash64(encoded, seed=seed, signed=False)[0])
    if weighting.counting == "balanced":
        shift = idf_shift([steps[gram] for gram in grams])
        steps = {
            gram: step - min(shift, max(0, step - STEPS_PER_UNIT)) for gram, step in steps.items()
        }
    weighed = [
        Feature(gram, count, _weight(weighting, count, steps[gram]))
        for gram, count in counts.items()
    ]
    return sorted(weighed, key=lambda feature: (-feature.weight, feature.feature))


def _weight(weighting: Weighting, count: int, steps: int) -> float:
    if weighting.counting == "sublinear":
        table = sublinear_steps()
        factor = int(table[min(count, len(table) - 1)])
        steps = (steps * factor + STEPS_PER_UNIT // 2) >> STEP_BITS
    elif weighting.counting != "once":
        steps *= count
    return steps / STEPS_PER_UNIT
