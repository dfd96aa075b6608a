"""Distances of consecutive revisions, and of unrelated pages.

Consecutive: the same path, seq s - 1 and s. Unrelated: documents of two pages drawn at random.
idf is learned from the documents of all sources together; "own idf" from the source alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from reproduce import candidates, intervals, pages
from simindex import Recipe

FIRST_REVISIONS = 15
"""Revisions of a path that are looked at: seq below this."""
UNRELATED_PAIRS = 20_000
DRAWS = 500
MOST = 64


@dataclass(slots=True)
class Distances:
    """Distances of one kind of pair under one recipe, at 64 bits.

    `drawn` is a histogram for each draw of pages, (DRAWS + 1, 65), row 0 as measured; `columns` one
    for each 64 bits of the wide fingerprint, that is for each of four sets of hash functions.
    """

    source: str
    label: str
    kind: str
    pages: int
    drawn: intervals.Floats
    columns: intervals.Floats

    @property
    def pairs(self) -> int:
        """How many pairs there are."""
        return int(self.drawn[0].sum())

    def within(self, h: int) -> tuple[float, float, float]:
        """Share of pairs within h, and its interval over pages."""
        return intervals.interval(shares(self.drawn)[:, h])

    def within_by_hash(self, h: int) -> tuple[float, float]:
        """The least and the largest share within h of the four sets of hash functions."""
        found = shares(self.columns)[:, h]
        return float(found.min()), float(found.max())

    def mean(self) -> tuple[float, float, float]:
        """Mean distance, and its interval over pages."""
        return intervals.interval(means(self.drawn))

    def mean_by_hash(self) -> tuple[float, float]:
        """The least and the largest mean of the four sets of hash functions."""
        found = means(self.columns)
        return float(found.min()), float(found.max())


def shares(histograms: intervals.Floats) -> intervals.Floats:
    """Share of each histogram's pairs at or below each distance."""
    total = histograms.sum(axis=1, keepdims=True)
    return np.asarray(np.cumsum(histograms, axis=1) / total, dtype=np.float64)


def means(histograms: intervals.Floats) -> intervals.Floats:
    """Mean distance of each histogram."""
    return np.asarray(
        histograms @ np.arange(histograms.shape[1]) / histograms.sum(axis=1), dtype=np.float64
    )


def pooled(parts: list[Distances], label: str) -> Distances:
    """All pairs of several sources; each draw is one of each source."""
    return Distances(
        "all", label, parts[0].kind, sum(one.pages for one in parts),
        np.sum([one.drawn for one in parts], axis=0),
        np.sum([one.columns for one in parts], axis=0),
    )


def measure(directory: Path, sources: list[str], seed: int) -> Iterator[Distances | str]:
    """Distances of every source and recipe; a line for a recipe that is not known."""

    def every() -> Iterator[str]:
        for source in sources:
            for document in pages.documents(directory, source):
                yield document.text

    recipes: list[tuple[str, Recipe]] = []
    for candidate in candidates.REVISIONS:
        made = candidates.recipe(candidate, every)
        if made is None:
            yield f"left out, not known to this version: {candidate.label}"
        else:
            recipes.append((candidate.label, made))
    for source in sources:
        found = list(pages.documents(directory, source, FIRST_REVISIONS))
        texts = [document.text for document in found]
        own = candidates.recipe(candidates.WORDS[0], lambda texts=texts: texts)  # type: ignore[misc]
        for label, one in [*recipes, *([("word 1, tfidf, own idf", own)] if own else [])]:
            prints = one.batch(texts).rows
            yield from of_source(found, prints, source, label, seed)


def of_source(
    found: list[pages.Document], prints: NDArray[np.uint64], source: str, label: str, seed: int
) -> Iterator[Distances]:
    """Consecutive and unrelated pairs of a source."""
    page, count = pages.numbered([document.page for document in found])
    newer = pages.consecutive(found)
    if len(prints) != len(found):
        raise SystemExit(f"{source}: {len(found) - len(prints)} documents gave no fingerprint")
    drawn = intervals.page_draws(np.zeros(count, dtype=np.int64), DRAWS, seed)
    a, b = unrelated(page, count, seed)
    for kind, first, second in (("consecutive", newer, newer - 1), ("unrelated", a, b)):
        distance = np.bitwise_count(prints[first] ^ prints[second]).astype(np.int64)
        columns = np.stack([np.bincount(one, minlength=MOST + 1) for one in distance.T])
        weights = intervals.pair_draws(drawn, page[first], page[second])
        made = np.stack(
            [np.bincount(distance[:, 0], weights=one, minlength=MOST + 1) for one in weights]
        ).astype(np.float64)
        yield Distances(source, label, kind, len(np.unique(page[first])), made,
                        columns.astype(np.float64))


def unrelated(
    page: NDArray[np.int64], count: int, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Places of pairs of documents: two pages at random, a document of each at random."""
    rng = np.random.default_rng(seed)
    order = np.argsort(page, kind="stable")
    starts = np.searchsorted(page[order], np.arange(count + 1))
    first = rng.integers(0, count, UNRELATED_PAIRS)
    second = (first + rng.integers(1, count, UNRELATED_PAIRS)) % count

    def document(pages_drawn: NDArray[np.int64]) -> NDArray[np.int64]:
        size = starts[pages_drawn + 1] - starts[pages_drawn]
        return np.asarray(order[starts[pages_drawn] + rng.integers(0, size)], dtype=np.int64)

    return document(first), document(second)

