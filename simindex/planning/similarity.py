"""A similarity in place of a radius: which rows are candidates, and which of these are kept.

    similarity, share    -> h        the least radius within which that share of such pairs is
    share / P(X <= h)    -> recall   of the search within h: what is left of the share, rounded up
    similarity, sketch   -> most     the largest distance of sketches that is kept
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil
from typing import Any

from simindex.arrays import U8, U16
from simindex.bits import sets
from simindex.bits.cosine import (
    candidate_radius,
    cosine_of_jaccard,
    share_within,
    threshold,
)
from simindex.checks import require_share
from simindex.errors import InvalidBatch, InvalidOption
from simindex.records.estimate import MEASURES
from simindex.simhash.weighting import counted_of
from simindex.values import dataclass

LEAST = 0.5
"""As a cosine. Below it bits differ in a third of all places or more, so that strangers are near,
too."""

USUAL_SHARE = 0.85
"""Of the pairs at the similarity, where no recall below 1 is asked for: within 12 of 64 bits at
0.9."""

RADIUS_LOSS = 0.4
"""Of the pairs that may be lost, those beyond the radius where queries have weights and a sketch
decides: flips take as long whatever the radius is, so that these may lose the others."""

FURTHER = 0.05, 0.1
"""So much less similar are the strangers of which an answer without a sketch tells the share."""


@dataclass(frozen=True, slots=True)
class Similar:
    """A checked similarity."""

    similarity: float
    h: int
    """The radius for candidates."""
    recall: float
    """Of the search for them."""
    bits: int
    """Of a fingerprint."""
    sketch_bits: int
    """0 where rows have no sketch, so that the radius alone decides."""
    most: int
    """The largest distance that is kept: of sketches, if there are any."""
    measure: str = "cosine"
    """Of what was asked for, and of what an answer tells."""
    asked: float | None = None
    """In this measure; None for the cosine itself."""
    counted: sets.Counted | None = None
    """Where features weigh about the same, and texts of few of them are understood."""

    @property
    def compared_bits(self) -> int:
        """Of how many bits an answer tells the distance."""
        return self.sketch_bits or self.bits

    @property
    def told(self) -> dict[str, Any]:
        """What an answer says of how it compares."""
        return {"similarity_bits": self.compared_bits, "measure": self.measure}

    @property
    def question(self) -> dict[str, Any]:
        """The arguments of a call that asks for it."""
        asked = self.similarity if self.asked is None else self.asked
        return {"similarity": asked, "measure": self.measure}

    def by_sizes(self, distance: U16, some: U8, others: U8) -> U16:
        """uint16 (n,): what the measure sees of distances of sketches, by the codes of sizes of
        both rows: those that sets of equal size with many features would have (`bits.sets`)."""
        return sets.by_sizes(
            distance, some, others, self.sketch_bits, self.measure, counted=self.counted
        )

    @property
    def sees_sizes(self) -> bool:
        """Whether sizes of rows change what is seen."""
        return self.counted is not None or self.measure == "jaccard"

    def compared_by(self, sketch_bits: int) -> Similar:
        """The same for rows with sketches of so many bits."""
        most = threshold(self.similarity, sketch_bits) if sketch_bits else self.h
        return replace(self, sketch_bits=sketch_bits, most=most)

    def guarantee(self, of_search: str, share: float | None = None) -> str:
        """What an answer promises, by what its search does, and the share of pairs that it finds,
        if not all within h."""
        found = share_within(self.h, self.similarity, self.bits) if share is None else share
        told = (
            f"candidates within {self.h} of {self.bits} bits ({of_search}), with "
            f"{found:.2f} of the pairs at similarity {self.similarity:g}"
        )
        if self.measure == "jaccard":
            told += f", that of sets of equal size at the resemblance {self.asked:g}"
        if self.sketch_bits:
            told = f"{told}; kept within {self.most} of {self.sketch_bits} bits of sketch"
            return f"{told}, by the sizes of both sets" if self.measure == "jaccard" else told
        lower = [round(self.similarity - further, 4) for further in FURTHER]
        strangers = ", ".join(
            f"{share_within(self.h, cosine, self.bits):.2f} of those at {cosine:g}"
            for cosine in lower
        )
        unrelated = share_within(self.h, 0.0, self.bits)
        return (
            f"{told}; without a sketch, {strangers} and {unrelated:.0e} of unrelated ones are "
            "kept, too"
        )


def similar(
    similarity: object, *, h: object, recall: object, bits: int, sketch_bits: int,
    measure: object = "cosine", recipe: Any = None, weighted: bool = False,
) -> Similar:
    """The similarity that a call was given, with its radius; one that has been checked is itself.

    `recipe` is that of the rows, if it is known; `weighted` is whether queries have weights.
    Raises InvalidOption if the similarity is out of range, h was given, too, or the recipe has no
    such measure.
    """
    if isinstance(similarity, Similar):
        return similarity
    weighting = None if recipe is None else recipe.weighting
    require_measure(measure, similarity, weighting)
    if h is not None:
        raise InvalidOption(
            f"similarity={similarity!r} and h={h!r} contradict each other",
            remedy="give one of them: similarity chooses the radius itself", option="similarity",
            found=similarity,
        )
    try:
        asked = value = require_share(similarity, "similarity")
    except InvalidOption as error:
        raise _out_of_range(similarity, measure) from error
    if measure == "jaccard":
        value = cosine_of_jaccard(asked)
    if value < LEAST:
        raise _out_of_range(similarity, measure)
    share = require_share(recall, "recall")
    share = USUAL_SHARE if share == 1.0 else share
    near = 1 - RADIUS_LOSS * (1 - share) if weighted and sketch_bits and bits == 64 else share
    radius = candidate_radius(value, near, bits)
    within = share_within(radius, value, bits)
    left = min(1.0, ceil(1000 * share / within) / 1000)
    found = Similar(value, radius, left, bits, 0, radius, counted=counted_of(recipe))
    if measure == "jaccard":
        found = replace(found, measure=measure, asked=asked)
    return found.compared_by(sketch_bits)


def require_measure(measure: object, similarity: object, weighting: str | None) -> None:
    """Raises InvalidOption for a measure that is unknown, has nothing to measure, or is not that
    of the features that a recipe weighs."""
    if not isinstance(measure, str) or measure not in MEASURES:
        raise InvalidOption(
            f"measure={measure!r} is unknown",
            remedy=f"give one of {', '.join(MEASURES)}", option="measure", found=measure,
            expected=MEASURES,
        )
    if measure == MEASURES[0]:
        return
    if similarity is None:
        raise InvalidOption(
            f"measure={measure!r} says what a similarity is, and none is given",
            remedy="give similarity=0.8, or leave measure out", option="measure", found=measure,
        )
    if weighting not in (None, "binary"):
        raise InvalidOption(
            f"measure={measure!r} compares sets of features, and this recipe has "
            f"weighting={weighting!r}",
            remedy='make the index with Recipe(weighting="binary"), or leave measure out',
            option="measure", found=measure, expected="binary",
        )


def _out_of_range(similarity: object, measure: object) -> InvalidOption:
    jaccard = measure == "jaccard"
    least, example = ("1/3", 0.8) if jaccard else (str(LEAST), 0.9)
    what = "resemblance" if jaccard else "cosine"
    return InvalidOption(
        f"similarity={similarity!r} is not valid",
        remedy=f"give a {what} from {least} to 1, such as {example}", option="similarity",
        found=similarity, expected=f"{least} to 1",
    )


def require_sketches(batch: Any, similar: Similar) -> None:
    """Raises InvalidBatch unless the queries have sketches as wide as those of the rows.

    `batch` has records of them as `sketches`. No queries need none.
    """
    if not len(batch.rows):
        return
    sketches = batch.sketches
    found = 0 if sketches is None else 64 * (int(sketches.shape[1]) // 8)
    if similar.sketch_bits and found != similar.sketch_bits:
        has = f"sketches of {found} bits" if found else "no sketches"
        raise InvalidBatch(
            f"the queries have {has}, and this index compares sketches of {similar.sketch_bits} "
            "bits",
            remedy="give texts, or a Batch that index.recipe made; or give h in place of "
            "similarity", found=found, expected=similar.sketch_bits,
        )
