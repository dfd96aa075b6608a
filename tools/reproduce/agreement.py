"""Precision and recall of "distance <= h" against "exact cosine >= c", over all pairs of a sample.

    cells    (page, page) x (width, cosine class, distance) -> pairs
    draws    weight of each (page, page) x cells -> curves, one a draw of pages
    angles   what the cosines alone lead to expect, see `kernel`

Every weighting is compared with its own cosine. This measures how well the fingerprint represents
the weighted text, not whether that weighting is a good idea. `strangers` measures the latter: pairs
of different pages within h.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reproduce import intervals, kernel, pages, vectors
from reproduce.candidates import BITS, Candidate

THRESHOLDS = (0.8, 0.9, 0.95)
WIDTHS = (64, 128, 256)
DRAWS = 200
COSINE_BINS = 50


@dataclass(slots=True)
class Sample:
    """The documents compared and what is made of them once."""

    documents: list[pages.Document]
    path: NDArray[np.int64]
    page: NDArray[np.int64]
    source: NDArray[np.int64]
    drawn: intervals.Floats
    _units: dict[str, vectors.Units]
    _counts: dict[tuple[str, tuple[int, ...]], Any]

    @property
    def texts(self) -> list[str]:
        """The texts in order."""
        return [document.text for document in self.documents]

    def counts(self, candidate: Candidate) -> Any:
        """Feature counts of a candidate; the last features made are kept for the next."""
        key = (candidate.unit, candidate.sizes)
        if key not in self._counts:
            if candidate.unit not in self._units:
                make = vectors.word_units if candidate.unit == "word" else vectors.char_units
                self._units[candidate.unit] = make(self.texts)
            self._counts.clear()
            self._counts[key] = vectors.counts(self._units[candidate.unit], candidate.sizes)
        return self._counts[key]


def sample(documents: list[pages.Document], sources: list[str], seed: int) -> Sample:
    """The documents, with their pages drawn again DRAWS times source by source."""
    path, _ = pages.numbered([f"{one.source}/{one.path}" for one in documents])
    page, count = pages.numbered([f"{one.source}/{one.page}" for one in documents])
    source = np.array([sources.index(one.source) for one in documents], dtype=np.int64)
    of_page = np.zeros(count, dtype=np.int64)
    of_page[page] = source
    return Sample(documents, path, page, source, intervals.page_draws(of_page, DRAWS, seed), {}, {})


@dataclass(slots=True)
class Curves:
    """What one candidate gave; the histograms' last axes are cosine class and distance.

    Class c holds cosines of at least THRESHOLDS[c - 1], below the next; class 0 the others.
    """

    candidate: Candidate
    histograms: dict[int, intervals.Floats]  # width -> (DRAWS + 1, classes, width + 1)
    by_source: intervals.Floats  # (sources, DRAWS + 1, classes, 65), pairs within a source
    strangers: intervals.Floats  # (sources, 65), 64 bits, pairs of different pages of a source
    by_cosine: intervals.Floats  # (COSINE_BINS, 65), 64 bits, all pairs
    columns: intervals.Floats  # (hash sets, classes, 65), each 64 bits of the wide one
    angles: intervals.Floats  # (kinds, classes, kernel.ANGLES)

    def precision(self, width: int, threshold: float) -> intervals.Floats:
        """(draws, h): share of the pairs within h that reach the cosine."""
        return precision_recall(self.histograms[width], threshold)[0]

    def recall(self, width: int, threshold: float) -> intervals.Floats:
        """(draws, h): share of the pairs that reach the cosine that are within h."""
        return precision_recall(self.histograms[width], threshold)[1]

    def crossing(self, width: int, threshold: float) -> tuple[Any, Any]:
        """(value, low, high) of the h where the curves meet, and of their value there."""
        return crossings(self.histograms[width], threshold)


def crossings(histograms: intervals.Floats, threshold: float) -> tuple[Any, Any]:
    """(value, low, high) of the h where the curves meet, and of their value there."""
    precision, recall = precision_recall(histograms, threshold)
    met = np.array([intervals.crossing(p, r) for p, r in zip(precision, recall, strict=True)])
    return intervals.interval(met[:, 0]), intervals.interval(met[:, 1])


def cosine_class(cosines: NDArray[np.float32]) -> NDArray[np.int64]:
    """How many of THRESHOLDS each cosine reaches."""
    return np.digitize(cosines, np.array(THRESHOLDS) - 1e-6).astype(np.int64)


def precision_recall(
    histograms: intervals.Floats, threshold: float
) -> tuple[intervals.Floats, intervals.Floats]:
    """(draws, h) each, of histograms (draws, classes, distances); 0 / 0 is not a number."""
    first = THRESHOLDS.index(threshold) + 1
    right = np.cumsum(histograms[:, first:].sum(axis=1), axis=1)
    found = np.cumsum(histograms.sum(axis=1), axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return right / found, right / right[:, -1:]


def measure(candidate: Candidate, prints: NDArray[np.uint64], of: Sample) -> Curves:
    """All pairs of the sample under a candidate, whose fingerprints are BITS wide."""
    if prints.shape != (len(of.documents), BITS // 64):
        raise SystemExit(f"{candidate.label}: not every document has a fingerprint")
    rows = vectors.weighted(of.counts(candidate), candidate.weighting)
    collected = _Cells(of)
    n = len(of.documents)
    for first, last, cosines in vectors.cosine_blocks(rows):
        upper = np.arange(n - first)[None, :] > np.arange(last - first)[:, None]
        a, b = np.nonzero(upper)
        collected.add(a + first, b + first, cosines[upper], prints)
    return collected.curves(candidate)


class _Cells:
    """Counts of pairs by (pages, width, class, distance), and the other columns of `Curves`."""

    def __init__(self, of: Sample) -> None:
        self._of = of
        self._pages = of.drawn.shape[1]
        self._keys: dict[int, list[NDArray[np.int64]]] = {width: [] for width in WIDTHS}
        self._sizes: dict[int, list[NDArray[np.int64]]] = {width: [] for width in WIDTHS}
        sources = int(of.source.max()) + 1
        self._strangers = np.zeros((sources, 65))
        self._by_cosine = np.zeros((COSINE_BINS, 65))
        self._columns = np.zeros((BITS // 64, 4, 65))
        self._angles = np.zeros((2 * sources + 1, 4, kernel.ANGLES))

    def add(
        self, a: NDArray[np.intp], b: NDArray[np.intp], cosines: NDArray[np.float32],
        prints: NDArray[np.uint64],
    ) -> None:
        of = self._of
        reached = cosine_class(cosines)
        sources = len(self._strangers)
        kind = kernel.kinds(of.source[a], of.source[b], of.path[a] == of.path[b], sources)
        self._angles += kernel.cells(kind, reached, cosines, (2 * sources + 1, 4))
        low = np.minimum(of.page[a], of.page[b])
        high = np.maximum(of.page[a], of.page[b])
        both = low * self._pages + high
        distance = np.zeros(len(a), dtype=np.int64)
        for word in range(BITS // 64):
            of_word = np.bitwise_count(prints[a, word] ^ prints[b, word]).astype(np.int64)
            self._columns[word] += _histogram(reached, of_word, 4)
            distance += of_word
            width = 64 * (word + 1)
            if width == 64:
                place = np.clip((cosines * COSINE_BINS).astype(np.int64), 0, COSINE_BINS - 1)
                self._by_cosine += _histogram(place, distance, COSINE_BINS)
                apart = (low != high) & (of.source[a] == of.source[b])
                self._strangers += _histogram(
                    of.source[a[apart]], distance[apart], len(self._strangers)
                )
            if width in WIDTHS:
                # Beyond a quarter of the width only what reaches a cosine is asked for.
                kept = (reached > 0) | (distance <= width // 4)
                key = (both[kept] * 4 + reached[kept]) * (width + 1) + distance[kept]
                keys, sizes = np.unique(key, return_counts=True)
                self._keys[width].append(keys)
                self._sizes[width].append(sizes)

    def curves(self, candidate: Candidate) -> Curves:
        of = self._of
        of_page = np.zeros(self._pages, dtype=np.int64)
        of_page[of.page] = of.source
        histograms = {}
        by_source = np.zeros((len(self._strangers), DRAWS + 1, 4, 65))
        for width in WIDTHS:
            keys, inverse = np.unique(np.concatenate(self._keys[width]), return_inverse=True)
            sizes = np.zeros(len(keys))
            np.add.at(sizes, inverse, np.concatenate(self._sizes[width]))
            both, cell = np.divmod(keys, 4 * (width + 1))
            pair, place = np.unique(both, return_inverse=True)
            first, second = np.divmod(pair, self._pages)
            weights = intervals.pair_draws(of.drawn, first, second)
            histograms[width] = _drawn(weights, place, cell, sizes, width)
            if width == 64:
                inside = of_page[first] == of_page[second]
                for source in range(len(by_source)):
                    one = (weights * (inside & (of_page[first] == source)))
                    by_source[source] = _drawn(one, place, cell, sizes, width)
        return Curves(
            candidate, histograms, by_source, self._strangers, self._by_cosine, self._columns,
            self._angles,
        )


def _histogram(
    rows: NDArray[np.int64], distance: NDArray[np.int64], height: int
) -> intervals.Floats:
    flat = np.bincount(rows * 65 + distance, minlength=height * 65)
    return np.asarray(flat.reshape(height, 65), dtype=np.float64)


def _drawn(
    weights: intervals.Floats, place: NDArray[np.intp], cell: NDArray[np.int64],
    sizes: intervals.Floats, width: int,
) -> intervals.Floats:
    from scipy import sparse

    cells = sparse.csr_matrix((sizes, (place, cell)), shape=(weights.shape[1], 4 * (width + 1)))
    return np.asarray(cells.T @ weights.T).T.reshape(len(weights), 4, width + 1)
