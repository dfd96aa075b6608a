"""Why the fingerprints of two texts are near or not: their features, sums and bits beside each
other. `planning.pair_explanation` has the call.

    cosine(a, b) = sum of w_a w_b / (|w_a| |w_b|)       of the recipe's own weights
    a sum W_j = sum of v_ij w_i has mean 0 and standard deviation |w|, over the vectors v
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np

from simindex.bits.sets import Counted, by_sizes
from simindex.records.estimate import estimated, standard_error
from simindex.records.pair_explanation import (
    Dominance,
    FeaturePair,
    FlippedBit,
    PairExplanation,
)
from simindex.records.sketches import sizes_of, words_of
from simindex.simhash.alignment import aligned
from simindex.simhash.weighting import counted_of
from simindex.values import dataclass

if TYPE_CHECKING:
    from simindex.arrays import F32, U8, U16, U64, Bools
    from simindex.records.batch import Batch
    from simindex.simhash.recipe import Recipe
    from simindex.simhash.weighting import Feature

SIDES: tuple[Literal["a", "b"], ...] = ("a", "b")


class Nearness(Protocol):
    """A similarity that is asked for: `planning.similarity.Similar` is one."""

    @property
    def h(self) -> int:
        """The radius of candidates."""

    @property
    def most(self) -> int:
        """The largest distance of sketches that is near enough."""

    @property
    def measure(self) -> str:
        """Of what an answer tells."""

    @property
    def question(self) -> dict[str, Any]:
        """With the `similarity` in this measure."""

    def by_sizes(self, distance: U16, some: U8, others: U8) -> U16:
        """What the measure sees of distances of sketches."""


def each_row(batch: Batch, texts: int) -> list[Batch | None]:
    """The row of each of so many texts as a batch; None for those without a fingerprint."""
    skipped = {skip.position for skip in batch.skipped}
    rows = iter(range(len(batch)))
    return [
        None if position in skipped else batch.take(np.array([next(rows)]))
        for position in range(texts)
    ]


def compared(
    recipe: Recipe | None,
    texts: Sequence[str | None],
    batches: Sequence[Batch | None],
    *,
    h: int,
    names: tuple[str | int | None, str | int | None],
    bits: int | None = None,
    near: Nearness | None = None,
) -> PairExplanation:
    """The explanation of two documents, by their texts, their rows, or both.

    `batches` has a batch of one row for each side, None for a document without a fingerprint. With
    `near` the similarity decides, whose radius takes the place of `h`.
    """
    features = [
        None if text is None or recipe is None else recipe.features(text) for text in texts
    ]
    mine, theirs = features
    pairs = None if mine is None or theirs is None else _feature_pairs(mine, theirs)
    width = bits if recipe is None else recipe.bits
    assert width is not None
    words = None if texts[0] is None or texts[1] is None else aligned(texts[0], texts[1])
    norms = [None if some is None else _norm(some) for some in features]
    cosine = None if pairs is None else _cosine(pairs)
    flips = None if cosine is None else math.acos(max(-1.0, min(1.0, cosine))) / math.pi
    dominances = tuple(
        found for side, some, batch in zip(SIDES, features, batches, strict=True)
        if recipe is not None and some and batch is not None and batch.weights is not None
        and (found := _dominance(recipe, side, some, batch.weights[0])) is not None
    )
    a, b = batches
    flipped, estimate = None, _Estimate()
    if a is not None and b is not None:
        flipped = _flipped((a, b), norms, width)
        estimate = _estimate(
            a, b, len(flipped), width, counted=counted_of(recipe), near=near
        )
    return PairExplanation(
        name_a=names[0], name_b=names[1], bits=width, h=h if near is None else near.h,
        distance=None if flipped is None else len(flipped),
        similarity=estimate.similarity, standard_error=estimate.error,
        compared_bits=estimate.bits, sketch_distance=estimate.sketched,
        cosine=cosine, jaccard=None if pairs is None else _jaccard(pairs),
        expected_distance=None if flips is None else width * flips,
        expected_deviation=None if flips is None else math.sqrt(width * flips * (1 - flips)),
        features=pairs, flipped=flipped, dominances=dominances,
        words=None if words is None else words.changes,
        words_cut=words is not None and words.cut,
        warnings=tuple(_warnings(features, batches, dominances, width)),
        asked=None if near is None else near.question["similarity"],
        measure="cosine" if near is None else near.measure,
        reached=estimate.reached,
    )


def _feature_pairs(a: Sequence[Feature], b: Sequence[Feature]) -> tuple[FeaturePair, ...]:
    of_a, of_b = ({one.feature: one for one in side} for side in (a, b))
    pairs = [
        FeaturePair(
            name,
            of_a[name].count if name in of_a else 0, of_b[name].count if name in of_b else 0,
            of_a[name].weight if name in of_a else 0.0, of_b[name].weight if name in of_b else 0.0,
        )
        for name in of_a | of_b
    ]
    return tuple(sorted(
        pairs, key=lambda pair: (-max(pair.weight_a, pair.weight_b), pair.feature)
    ))


def _norm(features: Sequence[Feature]) -> float:
    return math.sqrt(math.fsum(one.weight**2 for one in features))


def _cosine(pairs: Sequence[FeaturePair]) -> float | None:
    square_a = math.fsum(pair.weight_a**2 for pair in pairs)
    square_b = math.fsum(pair.weight_b**2 for pair in pairs)
    if not square_a or not square_b:
        return None
    dot = math.fsum(pair.weight_a * pair.weight_b for pair in pairs)
    return min(1.0, dot / math.sqrt(square_a * square_b))


def _jaccard(pairs: Sequence[FeaturePair]) -> float | None:
    return sum(pair.shared for pair in pairs) / len(pairs) if pairs else None


def _flipped(
    batches: Sequence[Batch], norms: Sequence[float | None], width: int
) -> tuple[FlippedBit, ...]:
    a, b = (bits_of(batch.rows, width) for batch in batches)
    sums = [None if batch.weights is None else batch.weights[0] for batch in batches]
    found = []
    for bit in np.flatnonzero(a != b).tolist():
        values = [None if some is None else float(some[bit]) for some in sums]
        near = [
            None if value is None or not norm else abs(value) / norm
            for value, norm in zip(values, norms, strict=True)
        ]
        found.append(FlippedBit(bit, values[0], values[1], near[0], near[1]))
    return tuple(found)


def bits_of(rows: U64, width: int) -> Bools:
    """The bits of one fingerprint in the order of their sums, bool (width,)."""
    words = np.ascontiguousarray(rows).reshape(-1).astype(">u8")
    return np.unpackbits(words.view(np.uint8))[:width].astype(np.bool_)


@dataclass(frozen=True, slots=True)
class _Estimate:
    similarity: float | None = None
    error: float | None = None
    bits: int | None = None
    sketched: int | None = None
    """The distance of the sketches."""
    reached: bool | None = None


def _estimate(
    a: Batch, b: Batch, distance: int, width: int, *, counted: Counted | None, near: Nearness | None
) -> _Estimate:
    """Of two rows, by their sketches if they have some."""
    sketched, reached = None, None
    measure = "cosine" if near is None else near.measure
    column = np.array([distance], np.uint16)
    if a.sketches is not None and b.sketches is not None:
        differing = words_of(a.sketches) ^ words_of(b.sketches)
        sketched, width = int(np.bitwise_count(differing).sum()), 64 * differing.shape[1]
        column[0] = sketched
        sizes = sizes_of(a.sketches), sizes_of(b.sketches)
        if near is None:
            column = by_sizes(column, *sizes, width, measure, counted=counted)
        else:
            column = near.by_sizes(column, *sizes)
            reached = bool(column[0] <= near.most)
    return _Estimate(
        float(estimated(column, width, measure)[0]),
        float(standard_error(column, width, measure)[0]), width, sketched, reached,
    )


def _dominance(
    recipe: Recipe, side: Literal["a", "b"], features: Sequence[Feature], sums: F32
) -> Dominance | None:
    """How many sums the heaviest feature of a text decides alone: |w v_j| > |W_j - w v_j|."""
    import mmh3

    heaviest = features[0]
    total = math.fsum(one.weight for one in features)
    if not total:
        return None
    encoded = heaviest.feature.encode("utf-8", "surrogatepass")
    hashed = np.array([mmh3.hash64(encoded, seed=recipe.seed, signed=False)[0]], np.uint64)
    plain = replace(recipe, weighting="tf", idf=None, min_features=1, sketch_bits=0)
    vector = plain.batch_features(hashed, np.array([0, 1])).weights
    assert vector is not None
    own = heaviest.weight * vector[0].astype(np.float64)
    decided = int((np.abs(own) > np.abs(sums - own) + 1e-6 * heaviest.weight).sum())
    return Dominance(side, heaviest.feature, heaviest.weight / total, decided)


def _warnings(
    features: Sequence[Sequence[Feature] | None], batches: Sequence[Batch | None],
    dominances: Sequence[Dominance], width: int,
) -> list[str]:
    told = []
    for side, some, batch in zip(SIDES, features, batches, strict=True):
        if batch is None:
            few = "no features" if not some else f"too few features ({len(some)})"
            told.append(f"{side} has {few}, so it has no fingerprint and matches nothing")
    for one in dominances:
        if one.decided_bits == width:
            feature = one.feature if len(one.feature) <= 60 else one.feature[:60] + "…"
            told.append(
                f"in {one.document} one feature decides every bit: {feature!r} has "
                f"{100 * one.share:.0f} % of the weight, so other words count for nothing"
            )
    return told
