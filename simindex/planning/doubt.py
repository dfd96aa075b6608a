"""Which estimates of a similarity are doubtful: those within two standard errors of the threshold.

    distance     0 ... certain | ... most kept ... | ... most doubtful | ...
    estimate     near             doubtful, above    doubtful, below     far

A pair of equal bits is never doubtful: it is the same pair for whatever compares bits. Without a
sketch nothing beyond the radius of candidates is found, so that nothing beyond it is doubtful.
"""

from __future__ import annotations

from dataclasses import replace
from math import cos, nextafter, pi
from typing import Any

import numpy as np

from simindex.bits.cosine import share_within, threshold
from simindex.planning.similarity import LEAST, Similar
from simindex.records.estimate import estimated, standard_error
from simindex.values import dataclass

ERRORS = 2
"""Standard errors on both sides of the threshold."""


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
        """The similarity, with all pairs kept that may be near."""
        return replace(self.similar, most=self.most)

    @property
    def question(self) -> dict[str, Any]:
        """The arguments of `Index.query` that find all rows that may be near: those of the same
        candidates whose sketches are within `most`."""
        asked, bits = self.similar, self.similar.bits
        if not asked.sketch_bits:
            return {"h": asked.h, "recall": asked.recall}
        # Half a bit more: a cosine that stands for a whole number of bits may be rounded up.
        cosine = max(LEAST, cos(pi * (self.most + 0.5) / asked.sketch_bits))
        within = share_within(asked.h, cosine, bits)
        fewer = share_within(asked.h - 1, cosine, bits) if asked.h else 0.0
        share = min(max(asked.recall * within, nextafter(fewer, 2.0)), nextafter(within, 0.0))
        value = cosine if asked.measure == "cosine" else cosine / (2 - cosine)
        return {"similarity": value, "measure": asked.measure, "recall": share}


def doubt_of(similar: Similar) -> Doubt:
    """The distances that are doubtful for a similarity."""
    bits = similar.compared_bits
    asked = similar.similarity if similar.asked is None else similar.asked
    distance = np.arange(bits // 2 + 1, dtype=np.uint16)
    estimate = estimated(distance, bits, similar.measure).astype(np.float64)
    error = ERRORS * standard_error(distance, bits, similar.measure).astype(np.float64)
    certain = estimate - error >= asked
    certain[0] = True
    possible = estimate + error >= asked
    first = int(np.argmin(certain)) - 1 if not certain.all() else len(distance) - 1
    last = int(np.flatnonzero(possible)[-1]) if possible.any() else 0
    if similar.sketch_bits:
        last = min(last, threshold(LEAST, bits))
    else:
        first, last = min(first, similar.h), min(last, similar.h)
    return Doubt(similar, min(first, similar.most), max(last, similar.most))
