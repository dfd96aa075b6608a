"""Computes the curves of other mixes of the same pairs from their cosines alone.

    Curves.angles @ weight of each kind of pair -> precision, recall     (see `kernel`)
"""

from __future__ import annotations

import numpy as np

from reproduce import kernel, reference
from reproduce.agreement import Curves, precision_recall
from reproduce.intervals import Floats

TIMES = 4
"""How many times the documents of one source a mix has."""


def named(sources: list[str]) -> dict[str, Floats]:
    """The weights of kinds of each mix that is looked at."""
    even = [1.0] * len(sources)
    made = {
        "as sampled": kernel.mix(even),
        f"{TIMES} x the revisions": kernel.mix(even, TIMES),
        "one document a path": kernel.mix(even, 0),
    }
    return made | {heavy(one): weights_of(one, sources) for one in sources}


def heavy(source: str) -> str:
    """Name of the mix with more documents of a source."""
    return f"{TIMES} x {source}"


def weights_of(source: str, sources: list[str]) -> Floats:
    """Weights of kinds for more documents of a source."""
    return kernel.mix([float(TIMES) if one == source else 1.0 for one in sources])


def compared(found: list[Curves]) -> list[Curves]:
    """The curves that an earlier measurement has, too."""
    return [
        one for one in found
        if one.candidate.single_words and one.candidate.weighting in reference.AGREEMENT
    ]


def away(one: Curves, histograms: Floats) -> float:
    """Root of the mean square by which earlier precision and recall differ from a histogram's."""
    _, precision, recall = reference.AGREEMENT[one.candidate.weighting]
    here = [values[0, list(reference.AGREEMENT_H)] for values in precision_recall(histograms, 0.9)]
    return float(np.sqrt(np.mean((np.concatenate(here) - [*precision, *recall]) ** 2)))


def nearest(found: list[Curves], sources: list[str]) -> str:
    """The source of which more documents bring all weightings nearest to the earlier values."""

    def total(source: str) -> float:
        weights = weights_of(source, sources)
        return sum(away(one, kernel.predicted(one.angles, weights)) for one in compared(found))

    return min(sources, key=total)
