"""Why two documents match or not: what `explain_pair` returns.

    texts a, b -> features, weights -> sums W -> bits -> distance -> estimated similarity
                  cosine, jaccard      flipped           h           asked, standard error
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Literal

import numpy as np

from simindex.records import arrow
from simindex.values import dataclass


@dataclass(frozen=True, slots=True)
class FeaturePair:
    """A feature of two texts; 0 where a text does not have it."""

    feature: str
    count_a: int
    count_b: int
    weight_a: float
    weight_b: float

    @property
    def shared(self) -> bool:
        """Whether both texts have it."""
        return self.count_a > 0 and self.count_b > 0


@dataclass(frozen=True, slots=True)
class FlippedBit:
    """A bit in which two fingerprints differ."""

    bit: int
    """Its number: that of its sum in `Batch.weights`."""
    sum_a: float | None
    """The sum W of text a, whose sign is the bit; None without the text."""
    sum_b: float | None
    deviations_a: float | None
    """How near the sum was to the other sign: \\|W\\| in standard deviations of a sum, which are
    the length of the vector of the text's weights. Below about 0.5 a small edit flips the bit."""
    deviations_b: float | None


@dataclass(frozen=True, slots=True)
class WordChange:
    """A run of words that both texts have, or that differs."""

    kind: Literal["equal", "changed"]
    a: str
    b: str


@dataclass(frozen=True, slots=True)
class Dominance:
    """The heaviest feature of a text, and how much it decides alone."""

    document: Literal["a", "b"]
    feature: str
    share: float
    """Of the weight of all features of the text."""
    decided_bits: int
    """Bits in which it outweighs all other features together."""


@dataclass(frozen=True, slots=True)
class PairExplanation:
    """Why two documents match or not.

    Arrow libraries read it as a table of its features; `to_dict` is for JSON.
    """

    name_a: str | int | None
    name_b: str | int | None
    bits: int
    h: int
    """The radius: documents match if they differ in at most so many bits. If a similarity was asked
    for, that of the candidates."""
    distance: int | None
    """Bits that differ; None if a text has no fingerprint."""
    similarity: float | None
    """Cosine as it is estimated from the sketches, or from the fingerprints without them; the
    resemblance if that was asked for."""
    standard_error: float | None
    """Of `similarity`; too small where few features have most of the weight of a text."""
    compared_bits: int | None
    """Width of what the similarity is estimated from."""
    sketch_distance: int | None
    """Bits in which the sketches differ; None without sketches."""
    cosine: float | None
    """Exact cosine of the weights of all features; None without the texts or without features."""
    jaccard: float | None
    """Share of their distinct features that both texts have; None without the texts."""
    expected_distance: float | None
    """The distance that is expected at the exact cosine: bits arccos(cosine) / pi."""
    expected_deviation: float | None
    """Standard deviation of the distance at that cosine."""
    features: tuple[FeaturePair, ...] | None
    """Of both texts, the heaviest first; None without the texts."""
    flipped: tuple[FlippedBit, ...] | None
    dominances: tuple[Dominance, ...]
    words: tuple[WordChange, ...] | None
    """The words of both texts, aligned; None without the texts."""
    words_cut: bool
    """Whether only the first words were aligned."""
    warnings: tuple[str, ...]
    asked: float | None = None
    """The similarity that was asked for; None if the radius alone decides."""
    measure: str = "cosine"
    """What `similarity` and `asked` are: ``"cosine"`` or ``"jaccard"``."""
    reached: bool | None = None
    """Whether the sketches are near enough for it; None without sketches, or if none was asked
    for."""

    @property
    def match(self) -> bool:
        """Whether the two are within the radius, and as similar as was asked for."""
        within = self.distance is not None and self.distance <= self.h
        return within and self.reached is not False

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values."""
        return {"match": self.match, **asdict(self)}

    def feature_columns(self) -> Mapping[str, Any]:
        """The features as columns, one row each."""
        features = self.features or ()
        return {
            "feature": [one.feature for one in features],
            "count_a": np.array([one.count_a for one in features], np.int64),
            "count_b": np.array([one.count_b for one in features], np.int64),
            "weight_a": np.array([one.weight_a for one in features], np.float32),
            "weight_b": np.array([one.weight_b for one in features], np.float32),
        }

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The features, for pyarrow, polars, pandas and others."""
        columns = dict(self.feature_columns())
        columns["feature"] = [  # a half of a surrogate pair is no UTF-8
            one.encode("utf-8", "backslashreplace").decode() for one in columns["feature"]
        ]
        return arrow.stream(columns)
