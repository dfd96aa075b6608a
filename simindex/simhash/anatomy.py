"""What a text is made of, for people: its features as text, with their weights.

The kernels never make these strings; what they count and weigh is the same.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import mmh3

from simindex.simhash.features import Unit
from simindex.simhash.idf import IdfTable
from simindex.simhash.weighting import STEP_BITS, STEPS_PER_UNIT, Weighting, sublinear_steps


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
    joiner = " " if unit == "word" else ""
    grams = [
        joiner.join(units[start : start + size])
        for size in sizes
        for start in range(len(units) - size + 1)
    ]
    if units and len(units) < sizes[0]:
        grams = [joiner.join(units)]
    weighed = []
    for gram, count in Counter(grams).items():
        idf_steps = None
        if idf is not None:
            encoded = gram.encode("utf-8", "surrogatepass")
            idf_steps = idf.step(mmh3.hash64(encoded, seed=seed, signed=False)[0])
        weighed.append(Feature(gram, count, _weight(weighting, count, idf_steps)))
    return sorted(weighed, key=lambda feature: (-feature.weight, feature.feature))


def _weight(weighting: Weighting, count: int, idf_steps: int | None) -> float:
    steps = STEPS_PER_UNIT if idf_steps is None else idf_steps
    if weighting.counting == "sublinear":
        table = sublinear_steps()
        factor = int(table[min(count, len(table) - 1)])
        steps = (steps * factor + STEPS_PER_UNIT // 2) >> STEP_BITS
    elif weighting.counting == "often":
        steps *= count
    return steps / STEPS_PER_UNIT
