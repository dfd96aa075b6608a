"""How rare features are: the table a tfidf recipe learns from documents.

    hashes   uint64 (f,)   feature hashes, strictly ascending
    steps    uint32 (f,)   idf of each, in steps of 2^-12
    unseen   step of a feature that no document had

idf = ln((1 + N) / (1 + df)) + 1, rounded to a multiple of 2^-12: sums of such weights are exact
in any order, and the stored table, not the logarithm of the machine that reads it, decides.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simindex.errors import InvalidOption
from simindex.simhash.features import Unit, document_features, prepared_slices

STEPS_PER_UNIT = 1 << 12
"""An idf of 1 in steps; the kernel knows the same number."""

_MERGE_FEATURES = 1 << 20  # hashes that collect before they are merged into the table: 8 MB


@dataclass(frozen=True, eq=False)
class IdfTable:
    """idf of features by ascending hash; see the module's drawing."""

    documents: int
    """Number N of documents it was learned from."""
    hashes: NDArray[np.uint64]
    steps: NDArray[np.uint32]
    unseen: int

    def __len__(self) -> int:
        return len(self.hashes)

    @cached_property
    def digest(self) -> str:
        """Hexadecimal BLAKE2b-128 of the table's content."""
        made = blake2b(digest_size=16)
        made.update(self.documents.to_bytes(8, "little") + self.unseen.to_bytes(8, "little"))
        made.update(self.hashes.astype("<u8").tobytes())
        made.update(self.steps.astype("<u4").tobytes())
        return made.hexdigest()

    def idf(self, feature_hash: int) -> float:
        """idf of one feature; that of df = 0 if no document had it."""
        row = int(np.searchsorted(self.hashes, np.uint64(feature_hash)))
        if row < len(self) and int(self.hashes[row]) == feature_hash:
            return int(self.steps[row]) / STEPS_PER_UNIT
        return self.unseen / STEPS_PER_UNIT


def idf_step(documents: int, containing: int) -> int:
    """idf of a feature that `containing` of `documents` have, in steps of 2^-12."""
    return round((math.log((1 + documents) / (1 + containing)) + 1) * STEPS_PER_UNIT)


def learn_idf(texts: Iterable[Any], unit: Unit, sizes: tuple[int, ...], seed: int) -> IdfTable:
    """The table of some documents, read once.

    Every text counts as a document, also one without features. Time O(features log), memory
    12 bytes for each distinct feature, three times that while two parts are merged.

    Raises
    ------
    InvalidBatch
        If a text is neither str nor UTF-8; carries its position.
    InvalidOption
        If there is no text.
    """
    counted = _DocumentFrequencies()
    documents = 0
    for part in prepared_slices(texts, unit):
        counted.add(document_features(part, unit, sizes, seed))
        documents += len(part)
    if documents == 0:
        raise InvalidOption("idf is learned from documents, and none were given: fit on some texts")
    hashes, frequencies = counted.merged()
    # One logarithm for each df that occurs, by the C library: numpy's differs between processors.
    occurring, inverse = np.unique(frequencies, return_inverse=True)
    steps = np.array([idf_step(documents, df) for df in occurring.tolist()], dtype=np.uint32)
    return IdfTable(documents, hashes, steps[inverse], idf_step(documents, 0))


class _DocumentFrequencies:
    """Document frequency by hash: a sorted table and what came since, merged when that is larger.

    Each merge at least doubles what was pending, so a hash is sorted O(log) times in all.
    """

    def __init__(self) -> None:
        self._hashes = np.empty(0, dtype=np.uint64)
        self._counts = np.empty(0, dtype=np.uint32)
        self._pending: list[NDArray[np.uint64]] = []
        self._pending_features = 0

    def add(self, hashes: NDArray[np.uint64]) -> None:
        """Count each hash once for every time it stands in `hashes`."""
        self._pending.append(hashes)
        self._pending_features += len(hashes)
        if self._pending_features > max(_MERGE_FEATURES, len(self._hashes) // 2):
            self._merge()

    def merged(self) -> tuple[NDArray[np.uint64], NDArray[np.uint32]]:
        """Distinct hashes, ascending, and their frequencies."""
        self._merge()
        return self._hashes, self._counts

    def _merge(self) -> None:
        if not self._pending:
            return
        new, counts = np.unique(np.concatenate(self._pending), return_counts=True)
        self._pending, self._pending_features = [], 0
        hashes = np.concatenate((self._hashes, new))
        order = np.argsort(hashes, kind="stable")
        hashes = hashes[order]
        both = np.concatenate((self._counts, counts.astype(np.uint32)))[order]
        first = np.ones(len(hashes), dtype=np.bool_)
        np.not_equal(hashes[1:], hashes[:-1], out=first[1:])
        starts = np.flatnonzero(first)
        self._hashes = hashes[starts]
        self._counts = (
            np.add.reduceat(both, starts, dtype=np.uint32) if len(starts) else both
        )
