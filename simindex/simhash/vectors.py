"""Exact cosines and resemblances of the features of many texts, by the weights of a recipe.

    texts -> hashes, counts -> weights    as the kernels weigh them    columns, weights, starts
    pairs of texts -> products of the weights of common columns, added up
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from simindex._kernels import _native
from simindex.arrays import F64, I64
from simindex.simhash.weighting import (
    STEP_BITS,
    STEPS_PER_UNIT,
    WEIGHTINGS,
    idf_shift,
    sublinear_steps,
)
from simindex.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from simindex.arrays import U32, U64
    from simindex.simhash.recipe import Recipe


@dataclass(frozen=True)
class Vectors:
    """Weights of the features of texts: those of text i are starts[i] to starts[i + 1]."""

    columns: I64
    weights: F64
    starts: I64
    width: int

    @cached_property
    def norms(self) -> F64:
        """Lengths, float64 (n,)."""
        texts = np.arange(len(self.starts) - 1)
        return np.sqrt(self._dots(self.weights, texts, texts))

    def cosines(self, a: Any, b: Any) -> F64:
        """Of pairs of texts, float64 (pairs,); 0 where a text has no features."""
        norms = self.norms
        length = norms[a] * norms[b]
        found = self._dots(self.weights, a, b)
        cosines: F64 = np.divide(found, length, out=np.zeros(len(found)), where=length > 0)
        return np.minimum(cosines, 1.0)

    def resemblances(self, a: Any, b: Any) -> F64:
        """The share of features that pairs of texts have in common, of those that one of both has,
        float64 (pairs,); 0 where both have none."""
        size = np.diff(self.starts)
        shared = self._dots(np.ones(len(self.columns)), a, b)
        either = size[a] + size[b] - shared
        resemblances: F64 = np.divide(shared, either, out=np.zeros(len(shared)), where=either > 0)
        return resemblances

    def _dots(self, weights: F64, a: Any, b: Any) -> F64:
        a, b = np.asarray(a, np.int64), np.asarray(b, np.int64)
        order = np.argsort(a, kind="stable")
        found = np.empty(len(order))
        found[order] = _native.dots(
            self.columns, weights, self.starts, self.width, a[order], b[order]
        )
        return found


def vectors_of(recipe: Recipe, texts: Sequence[str | bytes]) -> Vectors:
    """The weights that `recipe.batch` adds up, of each text; InvalidBatch for what is no text."""
    kernels = recipe._kernels
    if not kernels.plain:
        return _listed(recipe, texts)
    hashes, counts, starts = kernels.features(list(texts))
    weights = _weights(recipe, hashes, counts, starts)
    distinct, columns = np.unique(hashes, return_inverse=True)
    return Vectors(columns.astype(np.int64), weights, starts.astype(np.int64), len(distinct))


def _weights(recipe: Recipe, hashes: U64, counts: U32, starts: I64) -> F64:
    """As `weighting.anatomy` weighs one text."""
    counting = WEIGHTINGS[recipe.weighting].counting
    steps = np.full(len(hashes), STEPS_PER_UNIT, np.int64)
    if recipe.idf is not None and len(recipe.idf):
        table = recipe.idf
        rows = np.searchsorted(table.hashes, hashes).clip(max=len(table) - 1)
        known = table.hashes[rows] == hashes
        steps = np.where(known, table.steps[rows], table.unseen).astype(np.int64)
    if counting == "balanced":
        for first, end in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
            own = steps[first:end]
            shift = idf_shift(np.repeat(own, counts[first:end]).tolist())
            if shift:
                steps[first:end] = own - np.minimum(shift, np.maximum(0, own - STEPS_PER_UNIT))
    if counting == "sublinear":
        table_of = sublinear_steps()
        factors = table_of[np.minimum(counts, len(table_of) - 1)].astype(np.int64)
        steps = (steps * factors + STEPS_PER_UNIT // 2) >> STEP_BITS
    elif counting != "once":
        steps = steps * counts
    return steps / STEPS_PER_UNIT


def _listed(recipe: Recipe, texts: Sequence[str | bytes]) -> Vectors:
    """With a tokenizer, stop words or stems: by the features as text, in Python."""
    columns: dict[str, int] = {}
    of_text = [recipe.features(text) for text in texts]
    places = [
        columns.setdefault(one.feature, len(columns)) for some in of_text for one in some
    ]
    weights = [one.weight for some in of_text for one in some]
    starts = np.concatenate([[0], np.cumsum([len(some) for some in of_text])])
    return Vectors(
        np.array(places, np.int64), np.array(weights, np.float64), starts.astype(np.int64),
        len(columns),
    )
