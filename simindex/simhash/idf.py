"""How rare features are: the table a tfidf recipe learns from documents.

    hashes   uint64 (f,)   feature hashes, strictly ascending
    steps    uint32 (f,)   idf of each, in steps of 2^-12
    unseen   step of a feature that no document had

idf = ln((1 + N) / (1 + df)) + 1, rounded to a multiple of 2^-12: sums of such weights are exact
in any order, and the stored table, not the logarithm of the machine that reads it, decides. Counts
come from `document_frequencies`; where some of them are bounds, a step is the middle of the idf at
both bounds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from simindex._kernels import _native
from simindex.simhash.weighting import STEPS_PER_UNIT


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

    @cached_property
    def buckets(self) -> NDArray[np.uint64]:
        """The table as kernels look it up, uint64 (2^k, 8): 32 to 64 bytes a feature."""
        buckets: NDArray[np.uint64] = _native.idf_buckets(self.hashes, self.steps)
        return buckets

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in self.__dict__.items() if name != "buckets"}

    def idf(self, feature_hash: int) -> float:
        """idf of one feature; that of df = 0 if no document had it."""
        return self.step(feature_hash) / STEPS_PER_UNIT

    def step(self, feature_hash: int) -> int:
        """idf of one feature in steps."""
        row = int(np.searchsorted(self.hashes, np.uint64(feature_hash)))
        known = row < len(self) and int(self.hashes[row]) == feature_hash
        return int(self.steps[row]) if known else self.unseen


def idf_step(documents: int, containing: int, most: int | None = None) -> int:
    """idf of a feature that `containing` of `documents` have, in steps of 2^-12.

    With `most`, of one that `containing` to `most` have: the middle of the idf at both ends, which
    is wrong by no more than half of what lies between them.
    """
    rarest = math.log((1 + documents) / (1 + containing))
    commonest = rarest if most is None else math.log((1 + documents) / (1 + most))
    return round(((rarest + commonest) / 2 + 1) * STEPS_PER_UNIT)
