"""Documents drawn from a seed: weights, fingerprints, and rewrites as queries.

A slice is a million documents with weights of a standard normal distribution. The last tenth of it
rewrites the first tenth, so that an index can learn which bits flip. Queries are rewrites of stored
documents, and as many documents that resemble none. A rewrite is as the tests' oracle makes it:
flips follow |W| as on revisions of real pages.

    slice s    originals 0 .. 9r/10 | rewrites of 0 .. r/10     ids s r + 0 .. r
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

U64 = NDArray[np.uint64]
F32 = NDArray[np.float32]
I64 = NDArray[np.int64]

SLICE_ROWS = 1_000_000
H = 3


def _load_oracle() -> Any:
    path = Path(__file__).resolve().parents[2] / "tests" / "oracle.py"
    spec = importlib.util.spec_from_file_location("oracle", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not there: run the benchmark from a source tree")
    module = importlib.util.module_from_spec(spec)
    # Registered first: dataclasses look their module up while it is being executed.
    sys.modules["oracle"] = module
    spec.loader.exec_module(module)
    return module


oracle: Any = _load_oracle()
"""The tests' brute force and generators, which import nothing of the package."""


@dataclass(frozen=True, slots=True)
class Corpus:
    """`rows` documents and `queries` questions about them, the same for the same seed."""

    rows: int
    queries: int = 1_000_000
    seed: int = 2011
    slice_rows: int = SLICE_ROWS
    h: int = H
    """How far a rewrite may be from its document."""

    @property
    def name(self) -> str:
        """What files of the corpus are called."""
        return f"corpus-{self.rows}-{self.queries}-{self.seed}" + f"-h{self.h}" * (self.h != H)

    def slices(self) -> Iterator[tuple[int, F32]]:
        """(first id, weights) of each slice: float32 (r, 64); 256 MB for a million."""
        for first in range(0, self.rows, self.slice_rows):
            yield first, self.weights_from(first)

    def weights_from(self, first: int) -> F32:
        """The weights of the slice that begins at a row."""
        rng = np.random.default_rng([self.seed, first])
        rows = min(self.slice_rows, self.rows - first)
        rewrites = rows // 10
        weights: F32 = oracle.normal_weights(rng, rows)
        rewritten, of = oracle.near_duplicates(rng, weights[:rewrites], self.h)
        weights[rows - rewrites :][of] = rewritten
        return weights

    def questions_about(self, first: int, weights: F32) -> tuple[F32, I64]:
        """Rewrites of some documents of a slice, and the ids they were made of."""
        rng = np.random.default_rng([self.seed, first, 1])
        slices = -(-self.rows // self.slice_rows)
        wanted = -(-self.queries // 2 // slices)
        chosen = np.sort(rng.choice(len(weights), min(wanted, len(weights)), replace=False))
        rewritten, of = oracle.near_duplicates(rng, weights[chosen], self.h)
        return rewritten, chosen[of] + first

    def mixed(self, rewritten: F32, partner: I64) -> tuple[F32, I64]:
        """The rewrites, with documents that resemble none, in random order; their partner is -1."""
        rng = np.random.default_rng([self.seed, 2])
        others: F32 = oracle.normal_weights(rng, self.queries - min(len(rewritten), self.queries))
        weights = np.concatenate([rewritten[: self.queries], others])
        partner = np.concatenate([partner[: self.queries], np.full(len(others), -1)])
        order = rng.permutation(len(weights))
        return weights[order], partner[order]


def fingerprints_only(
    rows: int, seed: int = 2011, *, start: int = 0
) -> Iterator[tuple[int, U64]]:
    """(first id, fingerprints (r,)) of uniformly random slices, where no weights are asked for."""
    for first in range(start, rows, SLICE_ROWS):
        rng = np.random.default_rng([seed, first, 3])
        yield first, oracle.uniform(rng, min(SLICE_ROWS, rows - first))[:, 0]
