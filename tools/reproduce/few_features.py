"""Estimates of texts with few features: `python tools/reproduce/few_features.py`.

Prints tables of docs/explanation/methods.md. A pair has n features each, of which a tenth, and at
least one, differ. Features are random hashes, so that nothing depends on a tokenizer.

    equal     all features weigh the same, as in "binary"; of the projection "sign" as rows tell it
              whose sizes are known, see bits/sets.py
    no sizes  the same where sizes are not known
    by idf    weights drawn from 1 to 12, as idf are among a hundred thousand documents
    by tf     whole numbers k with a chance in proportion to k^-2.5: three of four words occur once
    both      products of the two

    bias      mean of the estimates, less the cosine
    spread    standard deviation of the distances, in those of independent bits that all differ with
              the same chance
    within    share of pairs whose cosine is within two stated errors of the estimate
    over      share whose cosine is more than two stated errors below the estimate
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
from numpy.typing import NDArray

from simindex import Recipe
from simindex.bits.sets import NUMBERS, by_sizes
from simindex.query.sketches import apart
from simindex.records.similarity import estimated, standard_error
from simindex.records.sketches import sizes_of, words_of

F64 = NDArray[np.float64]
Projection = Literal["sign", "gaussian", "ternary"]

FEATURES = (3, 5, 10, 20, 50, 100, 300)
DIFFERENT = 0.1
HEAVIEST = 12.0
TF_POWER, MOST_TF = 2.5, 50
COUNTED = ("equal", "by tf")
WEIGHTS = ("equal", "no sizes", "by idf", "by tf", "both")
PROJECTIONS: tuple[Projection, ...] = ("sign", "ternary", "gaussian")
WIDTHS = (512, 1024)


@dataclass(frozen=True, slots=True)
class Error:
    """How far estimates are from cosines."""

    cosine: float
    bias: float
    spread: float
    within: float
    over: float

    def line(self, *named: object) -> str:
        """A row of a table."""
        cells = (
            *map(str, named), f"{self.cosine:.2f}", f"{self.bias:+.3f}", f"{self.spread:.2f}",
            f"{self.within:.3f}", f"{self.over:.3f}",
        )
        return f"| {' | '.join(cells)} |"


def errors(
    features: int, weights: str, projection: Projection, bits: int, pairs: int, seed: int
) -> Error:
    """Of random pairs whose texts have so many features."""
    rng = np.random.default_rng(seed)
    hashes = rng.integers(0, 2**64, (2, pairs, features), np.uint64)
    drawn = np.ones((2, pairs, features))
    if weights in ("by idf", "both"):
        drawn = rng.uniform(1, HEAVIEST, drawn.shape)
    if weights in ("by tf", "both"):
        drawn *= np.minimum(rng.zipf(TF_POWER, drawn.shape), MOST_TF)
    same = slice(max(1, round(DIFFERENT * features)), None)
    hashes[1, :, same], drawn[1, :, same] = hashes[0, :, same], drawn[0, :, same]
    recipe = Recipe(weighting="given", projection=projection, sketch_bits=bits)
    offsets = features * np.arange(pairs + 1)
    a, b = (
        recipe.batch_features(hashes[side].ravel(), offsets, drawn[side].ravel()).sketches
        for side in (0, 1)
    )
    assert a is not None and b is not None
    distance = apart(words_of(a), words_of(b))
    counted = projection if weights in COUNTED and projection in NUMBERS else None
    seen = by_sizes(distance, sizes_of(a), sizes_of(b), bits, "cosine", counted=counted)
    norms: F64 = np.sqrt((drawn**2).sum(axis=2))
    cosine: F64 = (drawn[0, :, same] ** 2).sum(axis=1) / (norms[0] * norms[1])
    estimate = estimated(seen, bits).astype(np.float64)
    stated = standard_error(seen, bits).astype(np.float64)
    apart_by = (estimate - cosine) / stated
    share = distance.mean() / bits
    spread = distance.std() / (bits * share * (1 - share)) ** 0.5
    return Error(
        float(cosine.mean()), float((estimate - cosine).mean()), float(spread),
        float((np.abs(apart_by) <= 2).mean()), float((apart_by > 2).mean()),
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=2011)
    parser.add_argument("--projection", action="append", choices=PROJECTIONS)
    options = parser.parse_args(arguments)
    for projection in options.projection or PROJECTIONS:
        for bits in WIDTHS:
            print(f"\nprojection {projection}, {bits:,} bits of sketch\n")
            print("| features | weights | cosine | bias | spread | within | over |")
            print("|---:|---|---:|---:|---:|---:|---:|")
            for features in FEATURES:
                for weights in WEIGHTS if projection == "sign" else ("equal", *WEIGHTS[2:]):
                    found = errors(
                        features, weights, projection, bits, options.pairs, options.seed
                    )
                    print(found.line(features, weights))
    return 0


if __name__ == "__main__":
    sys.exit(main())
