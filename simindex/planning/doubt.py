"""Which estimates of a similarity are doubtful: those of pairs that may lie on its other side.

    distance     0 ... certain | ... most kept ... | ... most doubtful | ...
    estimate     near             doubtful, above    doubtful, below     far

Above the threshold a pair is taken on trust, and of millions not one should be wrong. So all are
doubtful but those that no pair comes to which is two standard errors below it. Below it the worst
is that a document is kept, so there only estimates within two standard errors are doubtful.

A pair of equal bits is never doubtful: it is the same pair for whatever compares bits. Without a
sketch nothing beyond the radius of candidates is found, so that nothing beyond it is doubtful.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from simindex.bits.cosine import cosine_of_jaccard, share_at, threshold
from simindex.planning.similarity import LEAST, Similar
from simindex.records.estimate import estimated, standard_error
from simindex.values import dataclass

ERRORS = 2
"""Standard errors by which a pair may be below the threshold, or its estimate."""

CHANCE = 1e-9
"""That a pair which is so far below the threshold is certain."""


@dataclass(frozen=True, slots=True)
class Doubt:
    """The distances that leave a doubt."""

    similar: Similar
    """What was asked for."""
    certain: int
    """Up to this distance pairs are near without doubt."""
    most: int
    """Beyond this distance they are not."""

    @property
    def wide(self) -> Similar:
        """The similarity, with all pairs kept that may be near: what is searched for."""
        return replace(self.similar, most=self.most)


def doubt_of(similar: Similar) -> Doubt:
    """The distances that are doubtful for a similarity."""
    bits = similar.compared_bits
    asked = similar.similarity if similar.asked is None else similar.asked
    distance = np.arange(bits // 2 + 1, dtype=np.uint16)
    estimate = estimated(distance, bits, similar.measure).astype(np.float64)
    error = ERRORS * standard_error(distance, bits, similar.measure).astype(np.float64)
    possible = estimate + error >= asked
    last = int(np.flatnonzero(possible)[-1]) if possible.any() else 0
    last = min(last, threshold(LEAST, bits) if similar.sketch_bits else similar.h)
    low = asked - float(error[min(similar.most, len(distance) - 1)])
    return Doubt(similar, _certain(max(0.0, low), similar), max(last, similar.most))


def _certain(low: float, similar: Similar) -> int:
    """The greatest distance within which at most CHANCE of the pairs of a low similarity are; 0
    where there is none."""
    cosine = cosine_of_jaccard(low) if similar.measure == "jaccard" else low
    found, share = 0, share_at(0, cosine, similar.compared_bits)
    while found < similar.most:
        share += share_at(found + 1, cosine, similar.compared_bits)
        if share > CHANCE:
            break
        found += 1
    return found
