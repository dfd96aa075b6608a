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
from simindex.arrays import U8
from simindex.bits.sets import NUMBERS, Counted, by_sizes
from simindex.query.sketch_filter import apart
from simindex.records.estimate import estimated, standard_error
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


def drawn(
    features: int, weights: str, projection: Projection, bits: int, pairs: int, seed: int
) -> tuple[U8, U8, F64]:
    """Records of the sketches of random pairs whose texts have so many features, and the weights of
    these, (2, pairs, features): features at the same place are the same ones but for the first."""
    rng = np.random.default_rng(seed)
    hashes = rng.integers(0, 2**64, (2, pairs, features), np.uint64)
    given: F64 = np.ones((2, pairs, features))
    if weights in ("by idf", "both"):
        given = rng.uniform(1, HEAVIEST, given.shape)
    if weights in ("by tf", "both"):
        given *= np.minimum(rng.zipf(TF_POWER, given.shape), MOST_TF)
    same = shared(features)
    hashes[1, :, same], given[1, :, same] = hashes[0, :, same], given[0, :, same]
    recipe = Recipe(weighting="given", projection=projection, sketch_bits=bits)
    offsets = features * np.arange(pairs + 1)
    a, b = (
        recipe.batch_features(hashes[side].ravel(), offsets, given[side].ravel()).sketches
        for side in (0, 1)
    )
    assert a is not None and b is not None
    return a, b, given


def shared(features: int) -> slice:
    """The places of the features that both texts of a pair have."""
    return slice(max(1, round(DIFFERENT * features)), None)


def cosines(given: F64) -> F64:
    """Of pairs with these weights, (pairs,)."""
    norms: F64 = np.sqrt((given**2).sum(axis=2))
    both = given[0, :, shared(given.shape[2])]
    found: F64 = (both**2).sum(axis=1) / (norms[0] * norms[1])
    return found


def simulated(
    features: int, weights: str, projection: Projection, bits: int, pairs: int, seed: int
) -> tuple[F64, F64, F64]:
    """Distances, cosines, and the effective number of features of the text that has less."""
    a, b, given = drawn(features, weights, projection, bits, pairs, seed)
    number = (given**2).sum(axis=2) ** 2 / (given**4).sum(axis=2)
    distance = apart(words_of(a), words_of(b)).astype(np.float64)
    return distance, cosines(given), number.min(axis=0)


def errors(
    features: int, weights: str, projection: Projection, bits: int, pairs: int, seed: int
) -> Error:
    """Of random pairs whose texts have so many features."""
    a, b, given = drawn(features, weights, projection, bits, pairs, seed)
    cosine = cosines(given)
    distance = apart(words_of(a), words_of(b))
    counted = None
    if weights in COUNTED and projection in NUMBERS:
        counted = Counted(projection, alike=weights == "equal")
    seen = by_sizes(distance, sizes_of(a), sizes_of(b), bits, "cosine", counted=counted)
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
