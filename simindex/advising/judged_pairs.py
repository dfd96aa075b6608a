"""Which pairs of a sample a threshold finds, and which of these it should.

    similar    exact cosine >= the similarity that is meant
    judged     those of them whose features are not equal: any radius finds equal ones
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from simindex.advising.intervals import Shares, rates
from simindex.bits.cosine import threshold
from simindex.values import dataclass

if TYPE_CHECKING:
    from simindex.advising.goals import Asked
    from simindex.advising.sample_pairs import Standing
    from simindex.arrays import U16, Bools
    from simindex.records.advice import Rate

EQUAL = 1 - 1e-9
"""From this cosine on two texts have the same features."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A threshold: a radius, and with a sketch a similarity that is asked for."""

    sketch_bits: int
    h: int
    asked: float

    def kept(self, sketched: Mapping[int, U16]) -> Bools | None:
        """Which candidates their sketches keep; None if no sketch decides."""
        if not self.sketch_bits:
            return None
        kept: Bools = sketched[self.sketch_bits] <= threshold(self.asked, self.sketch_bits)
        return kept


class Judged:
    """The pairs of a sample by one recipe."""

    def __init__(self, pairs: Standing, documents: int, asked: Asked) -> None:
        self.pairs: Standing = pairs
        self._documents, self._asked = documents, asked
        self.similar: Bools = pairs.cosine >= asked.similarity
        self.judged: Bools = self.similar & (pairs.cosine < EQUAL)

    def found(self, choice: Choice) -> Bools:
        """Which pairs a choice finds."""
        within: Bools = self.pairs.distance <= choice.h
        kept = choice.kept(self.pairs.sketched)
        return within if kept is None else within & kept

    def shares(self, choice: Choice) -> Shares:
        """Of misses and of strangers."""
        found = self.found(choice)
        far = 0 if choice.sketch_bits else int(self.pairs.others[: choice.h + 1].sum())
        return [(~found, self.judged, 0.0), (~self.similar, found, float(far))]

    def quickly(self, choice: Choice) -> tuple[float, float]:
        """Misses and strangers without intervals."""
        values = []
        for hits, among, more in self.shares(choice):
            counted = self.pairs.weight * among
            total = float(counted.sum()) + more
            hit = float((counted * hits).sum()) + more
            values.append(hit / total if total else 0.0)
        return values[0], values[1]

    def rates(self, shares: Shares) -> list[Rate]:
        """With intervals."""
        pairs = self.pairs
        return rates(
            shares, pairs.a, pairs.b, pairs.weight, documents=self._documents,
            seed=self._asked.seed,
        )
