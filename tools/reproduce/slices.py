"""What slice lists look at for a query, counted from the signatures themselves: [ISSL] section 2.

    signatures (n, b) -> slices of 16 bits (n, b / 16) -> bits that differ from the query's slices
        a list is looked into    if its value differs from the query's slice in at most e bits
        a row is covered         if it is in one such list or more
        its score                sum over such lists of 16 - bits that differ
        results                  the R highest scores, of these the 10 of least whole distance; only
                                 covered rows are candidates, unless R is all rows

No list is built: brute force, which the package's own search is held against.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import comb

import numpy as np
from numpy.typing import NDArray

U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]
F64 = NDArray[np.float64]

WIDTH = 16
ERRORS = range(WIDTH + 1)
RESULTS = 10
RERANKED = (10, 100, 1000)
"""R: with 10, results are the highest scores themselves, as in [ISSL] section 3."""
AMONG = (10, 100)
"""Figures 1 and 2: results that are among the true top 10, and among the true top 100."""

PAPER_COVERED = (
    .0062, .0713, .3476, .7962, .9893, 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1.
)  # fmt: skip
"""[ISSL] Table 1, by max error: share of the Wall Street Journal collection."""


def lists_checked() -> list[int]:
    """Lists of one slice that differ in at most e bits, for each e: [ISSL] Table 1."""
    return list(accumulate(comb(WIDTH, errors) for errors in ERRORS))


def covered_if_even(slices: int) -> F64:
    """(17,) share covered of signatures whose bits are even and independent."""
    chance = np.array(lists_checked()) / 2**WIDTH
    return np.asarray(1 - (1 - chance) ** slices)


def slices_of(signatures: U64) -> NDArray[np.uint16]:
    """(n, b / 16): slice i is bits 16 i to 16 i + 15, counted from the top of word 0."""
    return np.ascontiguousarray(signatures).astype(">u8").view(">u2").astype(np.uint16)


@dataclass(frozen=True, slots=True)
class Looked:
    """What one query finds, for every max error."""

    covered: F64
    """(17,) share of rows that are in a list that is read."""
    read: F64
    """(17,) share of the entries of all lists that are read: the work."""
    found: NDArray[np.int64]
    """(17, R, 2) how many of the 10 results are among the true top 10, and top 100."""
    results: NDArray[np.int64]
    """(17, R, 10) rows of the results, by (distance, row); -1 where there is none."""
    distances: I64
    """Of the true nearest 100, ascending."""
    mean_distance: float
    """Of all rows."""


def looked(rows: NDArray[np.uint16], query: NDArray[np.uint16]) -> Looked:
    """One query against the slices of all rows."""
    n, slices = rows.shape
    apart = np.bitwise_count(rows ^ query)
    distance = apart.sum(axis=1, dtype=np.int64)
    nearest = np.sort(distance)[: max(AMONG)]
    limits = [int(nearest[min(most, n) - 1]) for most in AMONG]
    covered, read = np.empty(len(ERRORS)), np.empty(len(ERRORS))
    found = np.zeros((len(ERRORS), len(RERANKED), len(AMONG)), dtype=np.int64)
    results = np.full((len(ERRORS), len(RERANKED), RESULTS), -1, dtype=np.int64)
    score, hits = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    for errors in ERRORS:
        some = (apart == errors).sum(axis=1)
        hits += some
        score += (WIDTH - errors) * some
        covered[errors], read[errors] = (hits > 0).mean(), hits.sum() / (n * slices)
        # By score, equal ones by row: the sort is stable.
        order = np.argsort(-score, kind="stable")[: max(RERANKED)]
        inside = order[hits[order] > 0]
        for at, most in enumerate(RERANKED):
            chosen = (order if most >= n else inside)[:most]
            best = chosen[np.lexsort((chosen, distance[chosen]))][:RESULTS]
            results[errors, at, : len(best)] = best
            found[errors, at] = [(distance[best] <= limit).sum() for limit in limits]
    return Looked(covered, read, found, results, nearest, float(distance.mean()))


@dataclass(frozen=True, slots=True)
class Curves:
    """Means over queries of one collection."""

    name: str
    documents: int
    ones: float
    """Share of bits that are 1."""
    queries: tuple[Looked, ...]

    @property
    def covered(self) -> F64:
        """(17,) mean share of rows covered."""
        return np.asarray(np.mean([one.covered for one in self.queries], axis=0))

    @property
    def read(self) -> F64:
        """(17,) mean share of entries read."""
        return np.asarray(np.mean([one.read for one in self.queries], axis=0))

    @property
    def found(self) -> F64:
        """(17, R, 2) mean number of results among the true ones."""
        return np.asarray(np.mean([one.found for one in self.queries], axis=0))

    @property
    def mean_distance(self) -> float:
        """Between queries and rows."""
        return float(np.mean([one.mean_distance for one in self.queries]))

    def nth(self, place: int) -> float:
        """Mean distance of the n-th nearest row, the query's own the first; nan beyond the rows."""
        at = [one.distances for one in self.queries]
        return float(np.mean([one[place - 1] if place <= len(one) else np.nan for one in at]))


def measure(name: str, signatures: U64, queries: Sequence[int]) -> Curves:
    """Searches for so many of the documents in their own collection, each with its own row."""
    rows = slices_of(signatures)
    return Curves(
        name, len(rows), float(np.bitwise_count(signatures).mean()) / 64,
        tuple(looked(rows, rows[query]) for query in queries),
    )
