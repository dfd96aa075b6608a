"""The recipes that the text workloads measure, and what is asked of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks import texttruth
from simindex import Batch, Recipe

CHECKED = 25
"""Documents that are compared with the definition."""


@dataclass(frozen=True, slots=True)
class Measured:
    """A recipe, how many documents a second it must reach, and what part of them is enough."""

    options: Mapping[str, Any]
    asked: int | None = None
    part: float = 1.0

    def fitted(self, texts: Sequence[str]) -> Recipe:
        """The recipe, with the idf of these texts if it has any."""
        recipe = Recipe(**self.options)
        return recipe if recipe.fitted else recipe.fit(texts)


GRAMS = (1, 2, 3)
RECIPES: dict[str, Measured] = {
    "tf, words 1-3": Measured({"ngram": GRAMS}, 40_000),
    "tf-idf, words": Measured({"ngram": 1, "weighting": "tfidf"}, 100_000),
    "balanced tf-idf, words": Measured({"ngram": 1, "weighting": "balanced-tfidf"}, 100_000),
    "tf, words 1-3, 1024 bits": Measured({"ngram": GRAMS, "bits": 1024}, 8_000, 0.5),
    "tf, words 1-3, 4096 bits": Measured({"ngram": GRAMS, "bits": 4096}, None, 0.1),
    "binary, words 1-3": Measured({"ngram": GRAMS, "weighting": "binary"}),
    "sublinear tf-idf, words": Measured({"ngram": 1, "weighting": "sublinear-tfidf"}),
    "tf, 5 characters": Measured({"unit": "char", "ngram": 5}),
    "ternary, tf, words 1-3": Measured({"ngram": GRAMS, "projection": "ternary"}),
    "ternary, tf-idf, words, 1024 bits": Measured(
        {"ngram": 1, "weighting": "tfidf", "bits": 1024, "projection": "ternary"}, None, 0.5
    ),
    "gaussian, tf, words 1-3": Measured({"ngram": GRAMS, "projection": "gaussian"}, None, 0.1),
}
"""64 bits and random signs unless the name says otherwise."""


def check(name: str, texts: Sequence[str], batch: Batch) -> str:
    """Says how many documents equal the definition, bit for bit; SystemExit if one differs.

    `batch` holds the fingerprints of the first documents, and idf is that of all `texts`.
    """
    recipe = batch.recipe
    sample = range(len(batch))[:: max(1, len(batch) // CHECKED)][:CHECKED]
    df: Counter[bytes] = Counter()
    if recipe.idf is not None:
        df = texttruth.frequencies(texts, recipe.unit, recipe.sizes)
    for row in sample:
        fingerprint, weights = texttruth.simhash(
            texts[row], unit=recipe.unit, sizes=recipe.sizes, weighting=recipe.weighting,
            projection=recipe.projection, bits=recipe.bits, df=df,
            documents=0 if recipe.idf is None else len(texts),
        )
        assert batch.weights is not None
        if not (
            np.array_equal(batch.rows[row], fingerprint)
            and np.array_equal(batch.weights[row], weights)
        ):
            raise SystemExit(f"{name}: document {row} differs from the definition")
    return f"equal to regex + mmh3 on {len(sample)} of {len(sample)} documents"
