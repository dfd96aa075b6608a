"""Exact cosines of weighted texts, without the package: what its fingerprints are held against.

    text -> n-grams of `\\w+` of the case-folded text, or of its characters with white space joined
         -> counts (documents x features, sparse) -> weights -> rows of length 1

A feature is a 64-bit mix of its units' numbers, so two features are taken for one about once in
10^6 collections of this size. Han, Kana and Thai runs are whole words here, not pairs of
letters as the recipe takes them: few pages quote them and none is written in them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

_WORDS = re.compile(r"\w+")
_MIX = np.uint64(0x9E3779B97F4A7C15)
_FREQUENT_SHARE = 0.02  # features of more documents are multiplied as dense columns
_BLOCK_ROWS = 500

Codes = NDArray[np.uint64]


@dataclass(slots=True)
class Units:
    """The units of some texts as numbers, text by text."""

    texts: list[Codes]


def word_units(texts: list[str]) -> Units:
    """Words, numbered as they occur."""
    numbers: dict[str, int] = {}
    return Units(
        [
            np.array(
                [
                    numbers.setdefault(word, len(numbers) + 1)
                    for word in _WORDS.findall(text.casefold())
                ],
                dtype=np.uint64,
            )
            for text in texts
        ]
    )


def char_units(texts: list[str]) -> Units:
    """Code points, white space joined."""
    return Units(
        [
            np.frombuffer(
                " ".join(text.casefold().split()).encode("utf-32-le", "surrogatepass"), dtype="<u4"
            ).astype(np.uint64)
            for text in texts
        ]
    )


def ngrams(units: Codes, sizes: tuple[int, ...]) -> Codes:
    """A code for each n-gram; a text shorter than the smallest size is one n-gram, itself."""
    made = []
    for size in sizes:
        n = min(size, len(units)) if size == min(sizes) else size
        if n == 0 or n > len(units):
            continue
        codes = np.full(len(units) - n + 1, n, dtype=np.uint64)
        for place in range(n):
            codes = (codes ^ units[place : len(units) - n + 1 + place]) * _MIX
            codes ^= codes >> np.uint64(29)
        made.append(codes)
    return np.concatenate(made) if made else np.empty(0, dtype=np.uint64)


def counts(units: Units, sizes: tuple[int, ...]) -> Any:
    """Documents x features: how often each occurs, a scipy CSR matrix of float32."""
    from scipy import sparse

    features, values, ends = [], [], [0]
    for text in units.texts:
        some, count = np.unique(ngrams(text, sizes), return_counts=True)
        features.append(some)
        values.append(count.astype(np.float32))
        ends.append(ends[-1] + len(some))
    names, columns = np.unique(np.concatenate(features), return_inverse=True)
    return sparse.csr_matrix(
        (np.concatenate(values), columns.astype(np.int32), np.array(ends)),
        shape=(len(units.texts), len(names)),
    )


def weighted(counted: Any, weighting: str) -> Any:
    """The rows of `counts` as weights of length 1; idf is that of these documents."""
    made = counted.astype(np.float64)
    if weighting in ("binary", "idf"):
        made.data[:] = 1
    elif weighting in ("sublinear", "sublinear-tfidf"):
        made.data = 1 + np.log(made.data)
    if weighting in ("idf", "tfidf", "sublinear-tfidf"):
        made.data *= inverse_frequency(counted)[made.indices]
    lengths = np.sqrt(np.asarray(made.multiply(made).sum(axis=1)).ravel())
    made.data /= np.repeat(lengths, np.diff(made.indptr))
    return made.astype(np.float32)


def inverse_frequency(counted: Any) -> NDArray[np.float64]:
    """idf of each feature: ln((1 + N) / (1 + df)) + 1."""
    containing = np.bincount(counted.indices, minlength=counted.shape[1])
    return np.asarray(np.log((1 + counted.shape[0]) / (1 + containing)) + 1, dtype=np.float64)


def cosine_blocks(rows: Any) -> Iterator[tuple[int, int, NDArray[np.float32]]]:
    """(first, last, cosines of rows first..last with the rows from `first` on), block by block.

    Features of many documents are multiplied as dense columns, the others as sparse ones; a feature
    of a single document adds to no cosine.
    """
    containing = np.bincount(rows.indices, minlength=rows.shape[1])
    often = containing > max(2, _FREQUENT_SHARE * rows.shape[0])
    columns = rows.tocsc()
    dense = np.ascontiguousarray(columns[:, np.flatnonzero(often)].toarray())
    rare = columns[:, np.flatnonzero(~often & (containing > 1))].tocsr()
    for first in range(0, rows.shape[0], _BLOCK_ROWS):
        last = min(first + _BLOCK_ROWS, rows.shape[0])
        cosines = dense[first:last] @ dense[first:].T
        cosines += (rare[first:last] @ rare[first:].T.tocsr()).toarray()
        yield first, last, cosines
