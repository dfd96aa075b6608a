"""What the bits of the fingerprint would add to the sketch: F1 of 512 bits, and of 512 + 64.

A pair is a candidate within the radius of the 64 bits. It is kept by the distance of the sketches,
or else by the sum of both distances, each with the threshold of as many bits. Truths and recipes
are those of `minhash`. Each recipe has several seeds, because a single one tells little: F1 differs
by up to 0.02 from seed to seed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reproduce import minhash, truth
from simindex.bits.cosine import cosine_of_jaccard, threshold
from simindex.planning.similarity import similar
from simindex.records.sketches import words_of

SEEDS = 8
WIDTHS = (512, 1024)

Bools = NDArray[np.bool_]
Words = NDArray[np.uint64]
Distances = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Added:
    """F1 of each seed, by the sketch alone and with the fingerprint."""

    alone: NDArray[np.float64]
    both: NDArray[np.float64]

    def cells(self) -> str:
        """Means, and how many seeds gained and lost."""
        gained, lost = (self.both > self.alone).sum(), (self.both < self.alone).sum()
        return f"{self.alone.mean():.4f} | {self.both.mean():.4f} | {gained} / {lost}"


def collection(texts: list[str], seeds: int = SEEDS) -> dict[tuple[str, int], Added]:
    """By truth and width of the sketch, over all pairs of some texts."""
    upper = np.triu_indices(len(texts), 1)
    resemblances = minhash.resemblances_of(texts)[upper]
    right = {
        "cosine": truth.cosines(texts)[upper] >= minhash.COSINE - 1e-6,
        "jaccard": resemblances >= minhash.RESEMBLANCE - 1e-6,
    }
    return {
        (of, width): _measured(texts, of, width, right[of], seeds)
        for of in right for width in WIDTHS
    }


def _measured(texts: list[str], of: str, width: int, right: Bools, seeds: int) -> Added:
    cosine = minhash.COSINE if of == "cosine" else cosine_of_jaccard(minhash.RESEMBLANCE)
    h = similar(cosine, h=None, recall=1.0, bits=64, sketch_bits=width).h
    scores = []
    for seed in range(seeds):
        batch = minhash.recipe_of(of, width, texts, seed).batch(texts)
        near = _apart(batch.rows.reshape(len(texts), -1))
        assert batch.sketches is not None
        sketched = _apart(words_of(batch.sketches))
        scores.append([
            _f1((near <= h) & (sketched <= threshold(cosine, width)), right),
            _f1((near <= h) & (near + sketched <= threshold(cosine, width + 64)), right),
        ])
    return Added(*np.array(scores).T)


def _apart(rows: Words) -> Distances:
    """Of all pairs of rows (n, W)."""
    found = np.zeros((len(rows), len(rows)), np.int64)
    for word in rows.T:
        found += np.bitwise_count(word[:, None] ^ word[None, :])
    return found[np.triu_indices(len(rows), 1)]


def _f1(found: Bools, right: Bools) -> float:
    return float(2 * (found & right).sum() / max(1, found.sum() + right.sum()))


def table(collections: list[tuple[str, dict[tuple[str, int], Added]]]) -> str:
    """In Markdown."""
    lines = [
        "| collection | truth | sketch | F1 by the sketch | with the fingerprint "
        "| seeds that gain / lose |",
        "|---|---|---:|---:|---:|---:|",
    ]
    for name, found in collections:
        lines += [
            f"| {name} | {of} | {width:,} | {added.cells()} |"
            for (of, width), added in found.items()
        ]
    for of, width in collections[0][1] if collections else ():
        all_of = [found[of, width] for _, found in collections]
        mean = Added(
            np.concatenate([one.alone for one in all_of]),
            np.concatenate([one.both for one in all_of]),
        )
        lines.append(f"| mean | {of} | {width:,} | {mean.cells()} |")
    return "\n".join(lines)

