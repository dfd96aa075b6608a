"""Sketches beside MinHash of datasketch: F1 over all pairs of a sample, against two truths.

    cosine      exact cosine of tf-idf words, 0.9 or more (truth.py)
    Jaccard     exact resemblance of the sets of three consecutive words, 0.8 or more

    simindex    `find_all(similarity=)` of the shell's recipe, and with measure="jaccard" of binary
                features of three words. It takes the threshold as it is
    MinHash     the share of equal permutations, for Jaccard 0.8 or more; for the cosine from the
                threshold on that has the best mean F1 over all other collections

    expected    F1 that independent bits, or independent permutations, have on average, by the exact
                resemblances of a collection: what widths allow

Needs datasketch.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reproduce import expected, truth
from simindex import Recipe, find_all

WIDTHS = (512, 1024, 2048)
PERMUTATIONS = (128, 256)
COSINE, RESEMBLANCE = 0.9, 0.8
ENOUGH = 1000
"""Pairs of different pages over which an F1 says something."""

NOT_FOUND = 0.4
"""Resemblance of pairs that no sketch takes for RESEMBLANCE."""
SHINGLE_WORDS = 3
PORTION = 20_000
"""Shingles that are columns at once."""
PLACES = np.arange(0.3, 1.0, 0.01)
"""Thresholds that MinHash may take for a cosine."""

Matrix = NDArray[np.float32]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Collection:
    """A sample: what is right, and what each way finds or estimates, of each with each."""

    name: str
    apart: Bools
    """Pairs of different pages, (n, n), above the diagonal."""
    right: dict[str, Bools]
    found: dict[tuple[str, int], Bools]
    """By truth and width."""
    estimated: dict[int, Matrix]
    """By the number of permutations."""
    expected: dict[int, float]
    """F1 at the resemblance, by the width or the number of permutations."""

    def f1(self, found: Bools, of: str, *, different: bool = False) -> float:
        """Of all pairs, or of those of different pages; nan where these are too few."""
        among = self.apart if different else np.triu(np.ones_like(self.apart), 1)
        right, found = self.right[of] & among, found & among
        if different and right.sum() < ENOUGH:
            return float("nan")
        return float(2 * (right & found).sum() / max(1, right.sum() + found.sum()))


def collection(name: str, texts: list[str], pages: list[str]) -> Collection:
    """Everything of one collection."""
    shingled = [_shingles(text) for text in texts]
    page = np.unique(pages, return_inverse=True)[1]
    resemblance = _resemblances(shingled)
    right = {
        "cosine": truth.cosines(texts) >= COSINE - 1e-6,
        "jaccard": resemblance >= RESEMBLANCE - 1e-6,
    }
    found = {}
    for width in WIDTHS:
        found["cosine", width] = _matrix(len(texts), find_all(
            recipe_of("cosine", width, texts).batch(texts), similarity=COSINE
        ))
        found["jaccard", width] = _matrix(len(texts), find_all(
            recipe_of("jaccard", width, texts).batch(texts), similarity=RESEMBLANCE,
            measure="jaccard",
        ))
    apart = np.triu(page[:, None] != page[None, :], 1)
    estimated = {number: _minhashes(shingled, number) for number in PERMUTATIONS}
    of_all = resemblance[np.triu_indices(len(texts), 1)]
    allowed = {width: expected_f1(of_all, width) for width in WIDTHS}
    allowed |= {number: expected_minhash_f1(of_all, number) for number in PERMUTATIONS}
    return Collection(name, apart, right, found, estimated, allowed)


def recipe_of(truth_of: str, width: int, texts: list[str], seed: int = 0) -> Recipe:
    """The recipe that is measured against a truth."""
    if truth_of == "jaccard":
        return Recipe(ngram=SHINGLE_WORDS, weighting="binary", sketch_bits=width, seed=seed)
    words = Recipe(ngram=1, weighting="balanced-tfidf", sketch_bits=width, seed=seed)
    return words.fit(texts)


def resemblances_of(texts: list[str]) -> Matrix:
    """Exact, of each with each."""
    return _resemblances([_shingles(text) for text in texts])


def expected_f1(resemblances: Matrix, width: int) -> float:
    """F1 of independent bits on average, at RESEMBLANCE, as sets of equal size have it.
    Resemblances are those of all pairs."""
    near = resemblances[resemblances > NOT_FOUND].astype(np.float64)
    return expected.f1(
        2 * near / (1 + near), near >= RESEMBLANCE - 1e-6, width, RESEMBLANCE, measure="jaccard",
        recipe=Recipe(weighting="binary"),
    )


def expected_minhash_f1(resemblances: Matrix, permutations: int) -> float:
    """The same of MinHash."""
    near = resemblances[resemblances > NOT_FOUND].astype(np.float64)
    return expected.minhash_f1(near, near >= RESEMBLANCE - 1e-6, permutations, RESEMBLANCE)


def _matrix(texts: int, pairs: Any) -> Bools:
    found = np.zeros((texts, texts), np.bool_)
    found[pairs.a, pairs.b] = True
    return found


def _shingles(text: str) -> set[str]:
    words = truth.words(text)
    each = range(max(1, len(words) - SHINGLE_WORDS + 1))
    return {" ".join(words[at : at + SHINGLE_WORDS]) for at in each}


def _resemblances(sets: list[set[str]]) -> Matrix:
    """Of each with each. A shingle that a single text has is in no intersection."""
    holding = Counter(shingle for shingles in sets for shingle in shingles)
    number: dict[str, int] = {}
    for shingle, texts in holding.items():
        if texts > 1:
            number[shingle] = len(number)
    held = [
        np.sort([number[shingle] for shingle in shingles if shingle in number]).astype(np.int64)
        for shingles in sets
    ]
    shared = np.zeros((len(sets), len(sets)), np.float32)
    for first in range(0, len(number), PORTION):
        columns = np.zeros((len(sets), PORTION), np.float32)
        for row, numbers in zip(columns, held, strict=True):
            low, high = np.searchsorted(numbers, (first, first + PORTION))
            row[numbers[low:high] - first] = 1
        shared += columns @ columns.T
    size = np.array([len(shingles) for shingles in sets], np.float32)
    either = size[:, None] + size[None, :] - shared
    return np.asarray(shared / np.maximum(either, 1), np.float32)


def _minhashes(sets: list[set[str]], permutations: int) -> Matrix:
    from datasketch import MinHash

    made = []
    for shingles in sets:
        one = MinHash(num_perm=permutations)
        one.update_batch([shingle.encode() for shingle in shingles])
        made.append(one.hashvalues)
    values = np.stack(made)
    return np.stack([(values == row).mean(axis=1, dtype=np.float32) for row in values])


def tables(collections: list[Collection]) -> str:
    """F1 by collection, against both truths, in Markdown."""
    ways = [f"{width:,} bits" for width in WIDTHS] + [f"MinHash {one}" for one in PERMUTATIONS]
    heads = " | ".join(ways)
    lines = []
    for title, of, different in (
        (f"cosine >= {COSINE}", "cosine", False),
        (f"the same, pairs of different pages, where there are {ENOUGH:,}", "cosine", True),
        (f"Jaccard >= {RESEMBLANCE}", "jaccard", False),
    ):
        lines += [f"| {title} | pairs | {heads} |", "|---|" + "---:|" * (1 + len(ways))]
        scores = []
        for one in collections:
            score = [one.f1(one.found[of, width], of, different=different) for width in WIDTHS]
            for number in PERMUTATIONS:
                least = RESEMBLANCE
                if of == "cosine":
                    others = [other for other in collections if other is not one]
                    least = _threshold(others, number)
                estimates = one.estimated[number] >= least - 1e-6
                score.append(one.f1(estimates, of, different=different))
            if np.isnan(score).any():
                continue
            among = one.apart if different else np.triu(np.ones_like(one.apart), 1)
            scores.append(score)
            cells = " | ".join(f"{value:.3f}" for value in score)
            lines.append(f"| {one.name} | {int((one.right[of] & among).sum()):,} | {cells} |")
        if scores:
            mean = " | ".join(f"{value:.3f}" for value in np.mean(scores, axis=0))
            lines.append(f"| mean | | {mean} |")
        lines.append("")
    lines += [
        f"| Jaccard >= {RESEMBLANCE}, expected | {heads} |", "|---|" + "---:|" * len(ways),
    ]
    for one in collections:
        cells = " | ".join(f"{one.expected[width]:.3f}" for width in (*WIDTHS, *PERMUTATIONS))
        lines.append(f"| {one.name} | {cells} |")
    return "\n".join([*lines, ""])


def _threshold(others: list[Collection], permutations: int) -> float:
    """Of an estimated resemblance that stands for the cosine in other collections."""
    if not others:
        return RESEMBLANCE
    means = [
        np.mean([one.f1(one.estimated[permutations] >= least, "cosine") for one in others])
        for least in PLACES
    ]
    return float(PLACES[int(np.argmax(means))])
