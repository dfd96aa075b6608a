"""Estimates of real short texts, and of heavy features: `python tools/reproduce/short_texts.py`.

Prints figures of docs/explanation/methods.md. Two parts:

    --data DIR   texts of consecutive words of documents, until so many are different; of a tenth of
                 these, and at least one, each is exchanged for another word of the collection.
                 Share of pairs whose cosine is within two stated errors, before and after sums of
                 few features were counted (bits/sets.py)
    without      simulated pairs of `few_features`: deviation of the estimate beside that of
                 independent bits, by the effective number of features, (sum of w^2)^2 / sum of w^4
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

from reproduce import few_features, pages, truth
from reproduce.few_features import F64
from simindex import Recipe
from simindex.bits.sets import by_sizes
from simindex.query.sketch_filter import apart
from simindex.records.estimate import estimated, standard_error
from simindex.records.sketches import sizes_of, words_of
from simindex.simhash.weighting import WEIGHTINGS, WeightingName, counted_of

FEATURES = (5, 10, 20, 50)
DOCUMENTS, PAIRS, BITS, MANY_BITS = 300, 1000, 512, 4096
WEIGHTED: tuple[WeightingName, ...] = (
    "binary", "tf", "sublinear", "idf", "tfidf", "sublinear-tfidf", "balanced-tfidf",
)
KINDS = ("by idf", "by tf", "both")
NUMBERS = (1, 1.5, 2, 3, 5, 8, 12, 20, 40, 100)
COSINES = (0.6, 0.8, 0.9, 0.97)


def exchanged(texts: list[str], features: int, rng: np.random.Generator) -> (
    tuple[list[str], list[str]]
):
    """Texts of so many different words, and the same with a tenth of these exchanged."""
    words = [truth.words(text) for text in texts]
    every = [word for some in words for word in some]
    ones: list[str] = []
    others: list[str] = []
    while len(ones) < PAIRS:
        some = words[rng.integers(len(words))]
        at = rng.integers(max(1, len(some) - 3 * features))
        taken: list[str] = []
        seen: dict[str, str] = {}
        for word in some[at:]:
            if word not in seen and len(seen) == features:
                break
            seen[word] = word
            taken.append(word)
        if len(seen) < features:
            continue
        for gone in rng.choice(sorted(seen), max(1, round(features / 10)), replace=False).tolist():
            fresh = every[rng.integers(len(every))]
            while fresh in seen or fresh in seen.values():
                fresh = every[rng.integers(len(every))]
            seen[gone] = fresh
        ones.append(" ".join(taken))
        others.append(" ".join(seen[word] for word in taken))
    return ones, others


def cosine(recipe: Recipe, one: str, other: str) -> float:
    """Of the weights that a recipe gives the features of two texts."""
    a, b = ({of.feature: of.weight for of in recipe.features(text)} for text in (one, other))
    across = sum(weight * b.get(feature, 0.0) for feature, weight in a.items())
    squares = [sum(weight * weight for weight in side.values()) for side in (a, b)]
    return float(across / (squares[0] * squares[1]) ** 0.5)


def within(recipe: Recipe, ones: list[str], others: list[str]) -> tuple[float, float]:
    """Share within two stated errors: by the law for many features, and as rows are told."""
    made = [recipe.batch(side).sketches for side in (ones, others)]
    a, b = made
    assert a is not None and b is not None
    true = np.array([cosine(recipe, *pair) for pair in zip(ones, others, strict=True)])
    distance = apart(words_of(a), words_of(b))
    shares = []
    for counted in (None, counted_of(recipe)):
        seen = by_sizes(distance, sizes_of(a), sizes_of(b), BITS, "cosine", counted=counted)
        off = np.abs(estimated(seen, BITS) - true)
        shares.append(float((off <= 2 * standard_error(seen, BITS)).mean()))
    return shares[0], shares[1]


def of_texts(name: str, documents: list[pages.Document], seed: int) -> list[str]:
    """Lines of a table, one for each weighting and projection."""
    rng = np.random.default_rng(seed)
    texts = [one.text for one in pages.sampled(documents, DOCUMENTS, 1, seed)]
    pairs = {features: exchanged(texts, features, rng) for features in FEATURES}
    lines = []
    for weighting in WEIGHTED:
        for projection in few_features.PROJECTIONS[:2]:
            recipe = Recipe(
                ngram=1, weighting=weighting, projection=projection, sketch_bits=BITS,
            )
            if WEIGHTINGS[weighting].idf:
                recipe = recipe.fit(texts)
            cells = " | ".join(
                ", ".join(f"{share:.3f}" for share in within(recipe, *pairs[features]))
                for features in FEATURES
            )
            lines.append(f"| {name} | {weighting} | {projection} | {cells} |")
    return lines


def by_effective_number(seed: int) -> list[str]:
    """Lines of a table, one for each range of effective numbers and of cosines."""
    found: dict[str, list[F64]] = {}
    for kind in KINDS:
        parts = [
            few_features.simulated(features, kind, "sign", MANY_BITS, 1500, seed)
            for features in few_features.FEATURES if features > 3
        ]
        found[kind] = [
            np.concatenate([part[at] for part in parts]) for at in range(3)
        ]
    lines = []
    for least, most in pairwise(NUMBERS):
        for low, high in pairwise(COSINES):
            cells = []
            for distance, true, number in found.values():
                some = (number >= least) & (number < most) & (true >= low) & (true < high)
                if some.sum() < 40:
                    cells.append("-")
                    continue
                off = np.cos(np.pi * distance[some] / MANY_BITS) - true[some]
                own = standard_error(distance[some].astype(np.uint16), MANY_BITS)
                more = max(0.0, float((off**2 - own**2).mean())) ** 0.5
                cells.append(f"{off.mean():+.3f}, {more:.3f}")
            lines.append(f"| {least} to {most} | {low} to {high} | {' | '.join(cells)} |")
    return lines


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="directory of *.jsonl.zst")
    parser.add_argument("--only", action="append", help="sources of it; may be given again")
    parser.add_argument("--seed", type=int, default=5)
    options = parser.parse_args(arguments)
    if options.data is None:
        print(f"| effective number | cosine | {' | '.join(KINDS)} |\n|---|---|---:|---:|---:|")
        print("\n".join(by_effective_number(options.seed)))
        return 0
    print(f"| collection | weighting | projection | {' | '.join(map(str, FEATURES))} |")
    print("|---|---|---|" + "---:|" * len(FEATURES))
    for source in options.only or pages.sources(options.data):
        documents = list(pages.documents(options.data, source, 1))
        print("\n".join(of_texts(source, documents, options.seed)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
