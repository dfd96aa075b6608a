"""A bounded uniform sample of appended rows with their weights.

Segments store no weights; these few rows are what the chance of a bit flip is learned from. Each
appended row draws a priority from its ordinal; the rows of lowest priority are kept, so that the
sample is uniform over all rows ever appended, and merging two samples needs nothing but a sort.
"""

from __future__ import annotations

from itertools import accumulate
from struct import Struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simindex.arrays import F16, F32, U64
from simindex.bits.splitmix import STEP, mixed
from simindex.errors import CorruptFile
from simindex.values import dataclass

RESERVOIR = Struct("<QII")
"""Rows, words of each, and nothing."""

LARGEST_WEIGHT = 60_000.0


@dataclass(frozen=True, slots=True, eq=False)
class Reservoir:
    """Rows of lowest priority: priority (r,), fingerprints (r, W), weights float16 (r, b).

    Weights are in units of their row's root mean square, since only their proportions matter.
    """

    priority: U64
    fingerprints: U64
    weights: F16

    @classmethod
    def empty(cls, words: int) -> Reservoir:
        """A sample of no rows."""
        return cls(
            np.empty(0, np.uint64), np.empty((0, words), np.uint64),
            np.empty((0, 64 * words), np.float16),
        )

    def __len__(self) -> int:
        return len(self.priority)

    @classmethod
    def drawn(cls, fingerprints: U64, weights: F32, *, first: int, size: int) -> Reservoir:
        """Those of some appended rows that may be among the `size` lowest priorities.

        `first` is the ordinal of the first row. A row is left out early when about 2 size others
        have been appended before it and its priority is above what would then be kept.
        """
        priority = draw_priorities(first, len(fingerprints))
        share = min(1.0, 2.0 * size / max(1, first + len(fingerprints)))
        chosen = np.flatnonzero(priority <= np.uint64(share * float(2**64 - 2**12)))
        if len(chosen) > size:
            chosen = np.sort(chosen[np.argpartition(priority[chosen], size - 1)[:size]])
        return cls(priority[chosen], fingerprints[chosen], in_root_mean_squares(weights[chosen]))

    @classmethod
    def merged(cls, parts: list[Reservoir], size: int) -> Reservoir:
        """The `size` rows of lowest priority of all parts, in order of priority."""
        priority = np.concatenate([part.priority for part in parts])
        order = np.argsort(priority, kind="stable")[:size]
        return cls(
            priority[order],
            np.concatenate([part.fingerprints for part in parts])[order],
            np.concatenate([part.weights for part in parts])[order],
        )

    def check(self) -> None:
        """Raises CorruptFile if a weight is not a number: no version keeps one."""
        if not np.isfinite(self.weights).all():
            raise CorruptFile(
                "the sample of weights has some that are not numbers",
                remedy="`simindex repair` drops it", path="reservoir",
            )

    def encode(self) -> bytes:
        """The sample as bytes."""
        header = RESERVOIR.pack(len(self), self.fingerprints.shape[1], 0)
        columns: tuple[NDArray[Any], ...] = (
            self.priority.astype("<u8"), self.fingerprints.astype("<u8"),
            self.weights.astype("<f2"),
        )
        return b"".join([header, *(column.tobytes() for column in columns)])

    @classmethod
    def decode(cls, name: str, payload: bytes, words: int) -> Reservoir:
        """The sample, read from bytes whose checksum is right, by the number of words of a row."""
        if len(payload) < RESERVOIR.size:
            raise CorruptFile(f"the reservoir of {name} ends too early", path=name)
        rows, found, _ = RESERVOIR.unpack_from(payload)
        if found != words:
            raise CorruptFile(
                f"the reservoir of {name} has rows of {found} words, not of {words}",
                path=name, found=found, expected=words,
            )
        # Python integers do not wrap, so a forged count cannot fold back into range.
        a, b, c, d = accumulate(
            [RESERVOIR.size, 8 * rows, 8 * rows * words, 128 * rows * words]
        )
        if d != len(payload):
            raise CorruptFile(f"the reservoir of {name} has a wrong size", path=name)
        if not rows:
            return cls.empty(words)
        raw = np.frombuffer(payload, np.uint8)
        return cls(
            raw[a:b].view("<u8"),
            raw[b:c].view("<u8").reshape(rows, words),
            raw[c:d].view("<f2").reshape(rows, 64 * words),
        )


def in_root_mean_squares(weights: F32) -> F16:
    """Rows of weights (n, b) in units of each row's root mean square; a row of zeros stays one."""
    scale = np.sqrt(np.mean(np.square(weights, dtype=np.float64), axis=1, keepdims=True))
    scale[scale == 0] = 1.0
    scaled: F16 = np.clip(weights / scale, -LARGEST_WEIGHT, LARGEST_WEIGHT).astype(np.float16)
    return scaled


def draw_priorities(first: int, count: int) -> U64:
    """uint64 (count,): a fixed pseudo-random number for each ordinal (the splitmix64 sequence)."""
    return mixed(np.arange(first, first + count, dtype=np.uint64) * STEP)
