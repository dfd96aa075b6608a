"""What `calibrate` returns: rates of misses and strangers, and the threshold that they recommend.

    pair        similar: exact cosine >= similarity      stranger: below it
    found       within h bits, and kept by the sketch if there is one
    misses      share of the similar pairs that are not found        1 - recall
    strangers   share of the found pairs that are strangers          1 - precision
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from simindex.values import dataclass


@dataclass(frozen=True, slots=True)
class Rate:
    """A share with its 95 % interval; None where there is nothing to count."""

    value: float | None
    low: float
    high: float
    count: int
    """Of how many pairs, in the sample."""


@dataclass(frozen=True, slots=True)
class PairRates:
    """How well a radius does on the pairs of a sample."""

    features: str
    sketch_bits: int
    h: int
    misses: Rate
    strangers: Rate
    f1: float | None


@dataclass(frozen=True, slots=True)
class SimilarityRates:
    """The pairs of one range of cosines, and which share of them is found."""

    features: str
    sketch_bits: int
    h: int
    low: float
    high: float
    found: Rate


@dataclass(frozen=True, slots=True)
class EditRates:
    """Edited copies of documents, and which share of them is missed."""

    features: str
    sketch_bits: int
    h: int
    edit: str
    strength: float
    """Share of the words that are replaced, moved or added."""
    words_low: int
    """Length of the documents: from so many words on."""
    words_high: int | None
    cosine: float | None
    """Mean exact cosine of document and copy."""
    misses: Rate


@dataclass(frozen=True, slots=True)
class Advice:
    """A recommended recipe and threshold, and what they are expected to do."""

    similarity: float
    """The least cosine of what counts as a near-duplicate."""
    recall: float
    """The recall that was asked for."""
    precision: float
    features: str
    sketch_bits: int
    h: int
    """The radius: of all matches, or with a sketch of the candidates for it."""
    ask_similarity: float | None
    """With a sketch, the similarity to ask for; None where the radius alone decides."""
    ask_recall: float | None
    """With a sketch, the recall to ask for, which makes h the radius of candidates."""
    misses: float
    misses_low: float
    misses_high: float
    strangers: float
    strangers_low: float
    strangers_high: float
    reached: bool
    """Whether recall and precision are both expected to be reached."""
    documents: int
    pairs: int
    """Similar pairs of the sample."""
    recipe: str
    """Identity of the recipe whose features were measured."""

    @property
    def arguments(self) -> dict[str, Any]:
        """What `Index.query`, `pairs` and `clusters` take: h, or similarity and recall."""
        if self.ask_similarity is None:
            return {"h": self.h}
        return {"similarity": self.ask_similarity, "recall": self.ask_recall}


@dataclass(frozen=True, slots=True)
class CalibrationReport:
    """Misses and false matches on a sample of documents, and what is recommended."""

    documents: int
    """Documents of the sample that have a fingerprint."""
    skipped: int
    """Those that have none."""
    similarity: float
    pairs: tuple[PairRates, ...]
    by_similarity: tuple[SimilarityRates, ...]
    edits: tuple[EditRates, ...]
    advice: Advice | None
    """None where fewer than 20 pairs of different features are similar."""
    own: Advice | None
    """The same of the sketch that the recipe has, where `advice` is of another width."""
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values."""
        return asdict(self)
