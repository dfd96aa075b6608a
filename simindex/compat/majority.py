"""Fingerprints of many documents, each bit that of most features of a document.

    texts -> features -> hashes, each feature hashed once -> Batch

simhash-py, simhash of PyPI and text-dedup make such fingerprints, of other features and by other
hashes. Where ones and zeros are as many, a bit is 0, while `RECIPE` alone gives 1. So each document
gets HALF a feature more, of zeros.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from simindex.arrays import U64
from simindex.errors import InvalidBatch
from simindex.records.batch import Batch
from simindex.simhash.recipe import Recipe

RECIPE: Recipe = Recipe(64, weighting="given", projection="sign")
"""The recipe of the batches: 64 bits, for features that are hashed already."""

HALF = 0.5


def of_hashes(hashes: U64, offsets: Any, **names: Any) -> Batch:
    """The fingerprints of documents whose features are hashed.

    Parameters
    ----------
    hashes : uint64 (f,)
        Document by document.
    offsets : integers (n + 1,)
        Document i has the hashes offsets[i] to offsets[i + 1]. One without hashes is left out, and
        is in `skipped`.
    names
        `ids` or `keys` of the documents, and `threads`, as `Recipe.batch_features` takes them.

    Raises
    ------
    InvalidBatch
        As `Recipe.batch_features` does.
    """
    ends = np.asarray(offsets, np.int64)
    some = np.diff(ends) > 0
    last = ends[1:][some]
    return RECIPE.batch_features(
        np.insert(hashes, last, 0),
        ends + np.concatenate([[0], np.cumsum(some)]),
        np.insert(np.ones(len(hashes)), last, HALF),
        **names,
    )


def of_texts(
    texts: Iterable[str], features: Callable[[str], Iterable[str]],
    hashed: Callable[[bytes], int], **names: Any,
) -> Batch:
    """The fingerprints of texts, by the features of each and the hash of a feature in UTF-8.

    Raises InvalidBatch, with the position of a text that is not a str or has half of a surrogate
    pair. Keeps each distinct feature of all texts in memory until it returns.
    """
    if isinstance(texts, str):
        raise InvalidBatch("texts is a single str", remedy="give a list of texts", found="str")
    known = _Known(hashed)
    hashes, offsets = array("Q"), [0]
    for position, text in enumerate(texts):
        if not isinstance(text, str):
            raise InvalidBatch(
                f"text {position} is {type(text).__name__}, not str",
                remedy="decode bytes first", position=position, found=type(text).__name__,
                expected="str",
            )
        try:
            hashes.extend(map(known.__getitem__, features(text)))
        except UnicodeEncodeError as error:
            raise InvalidBatch(
                f"text {position} has half of a surrogate pair, which UTF-8 cannot hold",
                remedy='replace it: text.encode("utf-8", "replace").decode()', position=position,
            ) from error
        offsets.append(len(hashes))
    return of_hashes(np.array(hashes, np.uint64), offsets, **names)


def windows(letters: str, width: int) -> list[str]:
    """Every `width` characters that follow each other; all of them where they are fewer."""
    return [letters[at : at + width] for at in range(max(len(letters) - width + 1, 1))]


class _Known(dict[str, int]):
    """Hashes of features, each made when it is first looked up."""

    def __init__(self, hashed: Callable[[bytes], int]) -> None:
        super().__init__()
        self._hashed = hashed

    def __missing__(self, feature: str) -> int:
        value = self[feature] = self._hashed(feature.encode())
        return value
