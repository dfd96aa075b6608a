"""F1 over pairs of different pages: all paths of a collection, with a few revisions of each.

A sample of some hundred documents has few pairs of different pages at a cosine of 0.9: most of its
pairs are revisions of one page. So these take every path, and of each as few evenly spaced
revisions, of REVISIONS, as make ENOUGH pairs of different pages. Pages are told apart in two ways:

    path    also the same page of another version, or of before a move
    name    of the file (`pages.Document.page`): other texts that are nearly alike

Exact cosines of all pairs would take n^2 times the number of words. Those of KNOWN or more take
less: by Cauchy and Schwarz, words in one bucket add to a cosine no more than the product of both
lengths within it. The bound is a product of small matrices, and the cosine is computed where the
bound reaches KNOWN.

    words of a row   w0  w1  w2 | w3   w4 ...      the most frequent ones have a bucket of their own
    buckets          b0  b1  b2 | b3 = |(w3, w4, ...)|, ...
    cosine(a, b)  =  sum of products of words  <=  sum of products of buckets

    F1               of the pairs of different pages that `find_all(similarity=0.9)` finds by the
                     shell's recipe, fitted on the sample
    all candidates   the same with a radius beyond which no such pair is
    expected         F1 that independent bits have on average, by the exact cosines of the sample
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reproduce import expected, pages, truth
from simindex import Recipe, find_all

COSINE, KNOWN = 0.9, 0.75
"""That is asked for, and from which on pairs are known: those below are not found."""

ENOUGH = 1000
REVISIONS = (1, 2, 3, 6, 12, 1 << 20)
"""Of a path: the last is all."""

WIDTHS = (512, 1024)
EVERY = 0.999999
"""Recall of candidates that a radius is to have, so that sketches alone decide."""

BUCKETS = 4096
ROWS = 1024
"""Of the bound that are held at once."""

ROUNDED = 1e-4
"""That a bound of single precision may be too low."""

APART: dict[str, Callable[[pages.Document], str]] = {
    "path": lambda one: one.path, "name": lambda one: one.page,
}

Pairs = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of length 1 whose words are numbered by frequency: those of row i are
    `words[starts[i] : starts[i + 1]]`."""

    starts: Pairs
    words: Pairs
    weights: Floats

    @classmethod
    def of(cls, counted: list[Counter[str]]) -> Rows:
        """Counts times idf, as `truth.cosines` has them."""
        holding = Counter(word for counts in counted for word in counts)
        number = {word: place for place, (word, _) in enumerate(holding.most_common())}
        frequent = np.array([df for _, df in holding.most_common()])
        idf = np.log((1 + len(counted)) / (1 + frequent)) + 1
        starts = np.zeros(len(counted) + 1, np.int64)
        np.cumsum([len(counts) for counts in counted], out=starts[1:])
        words = np.array([number[word] for counts in counted for word in counts], np.int64)
        times = np.array([times for counts in counted for times in counts.values()], np.float64)
        weights = times * idf[words]
        row = np.repeat(np.arange(len(counted)), np.diff(starts))
        lengths = np.sqrt(np.bincount(row, weights**2, len(counted)))
        return cls(starts, words, weights / lengths[row])

    def bucketed(self) -> NDArray[np.float32]:
        """The length of each row within each bucket, (n, BUCKETS)."""
        own = BUCKETS // 2
        bucket = np.where(self.words < own, self.words, own + self.words % (BUCKETS - own))
        row = np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))
        count = len(self.starts) - 1
        found = np.bincount(row * BUCKETS + bucket, self.weights**2, count * BUCKETS)
        return np.sqrt(found).astype(np.float32).reshape(count, BUCKETS)

    def cosines(self, a: int, others: Pairs) -> Floats:
        """Of one row with others."""
        vector = np.zeros(int(self.words.max(initial=0)) + 1)
        mine = slice(self.starts[a], self.starts[a + 1])
        vector[self.words[mine]] = self.weights[mine]
        found = np.empty(len(others))
        for place, other in enumerate(others.tolist()):
            its = slice(self.starts[other], self.starts[other + 1])
            found[place] = vector[self.words[its]] @ self.weights[its]
        return found


def near(counted: list[Counter[str]], page: Pairs, least: float = KNOWN) -> tuple[Pairs, Floats]:
    """All pairs of different pages whose cosine is `least` or more, (p, 2), a < b, sorted, and
    their cosines (p,); by the counts of words and the number of the page of each document."""
    rows = Rows.of(counted)
    buckets = rows.bucketed()
    pairs, cosines = [np.empty((0, 2), np.int64)], [np.empty(0)]
    for first in range(0, len(counted), ROWS):
        bound = buckets[first : first + ROWS] @ buckets[first:].T
        for place, row in enumerate(bound):
            a = first + place
            others = a + 1 + np.flatnonzero(
                (row[place + 1 :] >= least - ROUNDED) & (page[a + 1 :] != page[a])
            )
            found = rows.cosines(a, others)
            kept = found >= least
            pairs.append(np.stack([np.full(kept.sum(), a), others[kept]], axis=1))
            cosines.append(found[kept])
    return np.concatenate(pairs), np.concatenate(cosines)


@dataclass(frozen=True, slots=True)
class Scores:
    """What was measured on one collection, over pairs of different pages."""

    name: str
    by: str
    """What tells pages apart, one of APART."""
    revisions: int
    """Of each path, at most."""
    documents: int
    pairs: int
    """That are right."""
    found: dict[int, tuple[float, float, float]]
    """F1, precision and recall, by width."""
    sketches: dict[int, float]
    expected: dict[int, float]

    def line(self) -> str:
        """A row of the table."""
        revisions = "all" if self.revisions == REVISIONS[-1] else f"{self.revisions}"
        cells = [
            f"{self.found[width][0]:.3f} | {self.found[width][1]:.3f} / {self.found[width][2]:.3f} "
            f"| {self.sketches[width]:.3f} | {self.expected[width]:.3f}" for width in WIDTHS
        ]
        return (
            f"| {self.name} | {self.by} | {self.documents:,} | {revisions} | {self.pairs:,} | "
            f"{' | '.join(cells)} |"
        )


def measured(
    name: str, by: str, documents: list[pages.Document], seed: int,
    of_recipe: Mapping[str, Any] = MappingProxyType({}),
) -> Scores:
    """Everything of one collection, with the fewest revisions that make ENOUGH pairs, or all;
    `of_recipe` are further options of the recipe."""
    counts: dict[tuple[str, int], Counter[str]] = {}
    for revisions in REVISIONS:
        chosen = pages.sampled(documents, len(documents), revisions, seed)
        for one in chosen:
            if (one.path, one.seq) not in counts:
                counts[one.path, one.seq] = Counter(truth.words(one.text))
        page, _ = pages.numbered([APART[by](one) for one in chosen])
        pairs, cosines = near([counts[one.path, one.seq] for one in chosen], page)
        right = cosines >= COSINE - 1e-6
        if right.sum() >= ENOUGH or len(chosen) == len(documents):
            break
    texts = [one.text for one in chosen]
    wanted = _numbers(pairs[right], len(texts))
    found: dict[int, tuple[float, float, float]] = {}
    sketches: dict[int, tuple[float, float, float]] = {}
    allowed = {}
    for width in WIDTHS:
        recipe = Recipe(ngram=1, weighting="balanced-tfidf", sketch_bits=width, **of_recipe)
        batch = recipe.fit(texts).batch(texts)
        for scores, recall in ((found, 1.0), (sketches, EVERY)):
            made = find_all(batch, similarity=COSINE, recall=recall)
            a, b = made.a.astype(np.int64), made.b.astype(np.int64)
            both = np.stack([a, b], axis=1)[page[a] != page[b]]
            scores[width] = _scored(_numbers(np.sort(both, axis=1), len(texts)), wanted)
        allowed[width] = expected.f1(cosines, right, width, COSINE)
    return Scores(
        name, by, revisions, len(texts), len(wanted), found,
        {width: score[0] for width, score in sketches.items()}, allowed,
    )


def _numbers(pairs: Pairs, documents: int) -> Pairs:
    """A number of each pair, sorted."""
    return np.sort(pairs[:, 0] * documents + pairs[:, 1])


def _scored(found: Pairs, wanted: Pairs) -> tuple[float, float, float]:
    """F1, precision and recall."""
    right = len(np.intersect1d(found, wanted))
    return (
        2 * right / max(1, len(found) + len(wanted)), right / max(1, len(found)),
        right / max(1, len(wanted)),
    )


def table(collections: list[Scores]) -> str:
    """F1 by collection, of those with ENOUGH pairs, in Markdown."""
    heads = " | ".join(
        f"{width:,} bits | precision / recall | all candidates | expected" for width in WIDTHS
    )
    kept = [one for one in collections if one.pairs >= ENOUGH]
    few = [f"{one.name} by {one.by} {one.pairs:,}" for one in collections if one.pairs < ENOUGH]
    return "\n".join([
        f"| cosine >= {COSINE} | pages differ by | documents | of a path | pairs | {heads} |",
        "|---|" + "---:|" * (4 + 4 * len(WIDTHS)), *(one.line() for one in kept),
        *["", f"Fewer than {ENOUGH:,} pairs: {', '.join(few)}."] * bool(few),
    ])
