"""Wide signatures for the top-K workload, drawn from a seed, and the true nearest of some.

    clustered   random centres; a row is a centre with 10 to 25 % of its bits flipped, the share
                drawn for each row: the nearest rows still differ in a quarter of their bits
    latent      bit j is the side of the j-th random hyperplane that a point of few dimensions is
                on, as signatures of dense vectors are: near neighbours are much nearer than others

Queries are drawn as the rows are. The true top K are those of an exact scan of the package, whose
answers to the first queries are held against brute force that shares no code with it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from benchmarks.corpora import U64, oracle
from benchmarks.stopwatch import say

BITS = 1024
WORDS = BITS // 64
MEMBERS = 50
"""Rows to a centre."""
FLIPPED = (26, 64)
"""Least and most share of flipped bits, in 256ths."""
DIMENSIONS = 8
CHUNK_ROWS = 1 << 14
BRUTE_COMPARISONS = 20_000_000


@dataclass(frozen=True, slots=True)
class Signatures:
    """Rows (n, 16) and queries (m, 16) of one kind."""

    kind: str
    rows: U64
    queries: U64


def drawn(kind: str, rows: int, queries: int, seed: int) -> Signatures:
    """So many of a kind, the same for the same seed."""
    rng = np.random.default_rng([seed, rows, sorted(KINDS).index(kind)])
    every = KINDS[kind](rng, rows + queries, max(1, rows // MEMBERS))
    return Signatures(kind, every[:rows], np.ascontiguousarray(every[rows:]))


def clustered(rng: np.random.Generator, rows: int, centres: int) -> U64:
    """Centres with bits flipped."""
    centre = rng.integers(0, 1 << 64, (centres, WORDS), dtype=np.uint64)
    made = np.empty((rows, WORDS), dtype=np.uint64)
    for first in range(0, rows, CHUNK_ROWS):
        some = made[first : first + CHUNK_ROWS]
        share = rng.integers(FLIPPED[0], FLIPPED[1] + 1, len(some))
        some[:] = centre[rng.integers(0, centres, len(some))] ^ flips(rng, share)
    return made


def flips(rng: np.random.Generator, share: np.ndarray[tuple[int], np.dtype[np.int64]]) -> U64:
    """(n, 16): each bit of row i set with a chance of share[i] / 256.

    A bit is set if eight bits of chance, read as a number, are below the share; all 64 bits of a
    word at once, from the lowest place on.
    """
    below = np.zeros((len(share), WORDS), dtype=np.uint64)
    for place in range(8):
        chance = rng.integers(0, 1 << 64, below.shape, dtype=np.uint64)
        one = (share >> place & 1).astype(bool)
        below[one] |= ~chance[one]
        below[~one] &= ~chance[~one]
    return below


def latent(rng: np.random.Generator, rows: int, centres: int) -> U64:
    """Sides of hyperplanes that points of `DIMENSIONS` dimensions are on."""
    planes = rng.standard_normal((DIMENSIONS, BITS), dtype=np.float32)
    made = np.empty((rows, WORDS), dtype=np.uint64)
    for first in range(0, rows, CHUNK_ROWS):
        some = made[first : first + CHUNK_ROWS]
        points = rng.standard_normal((len(some), DIMENSIONS), dtype=np.float32)
        some[:] = np.packbits(points @ planes > 0, axis=1).view(">u8")
    return made


KINDS: dict[str, Callable[[np.random.Generator, int, int], U64]] = {
    "clustered": clustered, "latent": latent,
}


class Nearest:
    """The true K least distances of each query; ids are row numbers."""

    def __init__(self, of: Signatures, k: int) -> None:
        self.of, self.k = of, k
        n = len(of.rows)
        self.checked = max(1, min(len(of.queries), BRUTE_COMPARISONS // max(1, n)))
        say(f"  answering {self.checked:,} queries on {n:,} rows by brute force")
        self.brute = [self._brute(query) for query in of.queries[: self.checked]]
        self.kth = np.empty(0, dtype=np.int64)

    def _brute(self, query: U64) -> U64:
        distance = np.concatenate([
            oracle.distances(self.of.rows[first : first + CHUNK_ROWS], query[None])[0]
            for first in range(0, len(self.of.rows), CHUNK_ROWS)
        ])
        # By distance, equal ones by row: the sort is stable.
        nearest: U64 = np.argsort(distance, kind="stable")[: self.k].astype(np.uint64)
        return nearest

    def learn(self, ids: U64) -> None:
        """Takes the ids (m, k) of an exact search as the truth; ends the run if it is none."""
        for at, wanted in enumerate(self.brute):
            if not np.array_equal(ids[at, : len(wanted)], wanted):
                raise SystemExit("the exact top K differs from brute force")
        self.kth = self._distances(ids)[:, -1]

    def recall(self, ids: U64) -> float:
        """Share of places (m, k) taken by an id at or below the true k-th distance, each once.

        Distances are those of the rows, whatever the engine says.
        """
        order = np.sort(ids, axis=1)
        new = np.ones(ids.shape, dtype=bool)
        new[:, 1:] = order[:, 1:] != order[:, :-1]
        near = self._distances(order) <= self.kth[: len(ids), None]
        return float((near & new).mean())

    def _missing(self, ids: U64) -> np.ndarray[tuple[int, int], np.dtype[np.bool_]]:
        return np.asarray(ids >= len(self.of.rows))

    def _distances(self, ids: U64) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
        missing = self._missing(ids)
        rows = self.of.rows[np.where(missing, 0, ids).astype(np.int64)]
        apart = np.bitwise_count(rows ^ self.of.queries[: len(ids), None]).sum(axis=2, dtype=int)
        return np.where(missing, BITS + 1, apart)
