"""What a recommendation is to reach, unless asked otherwise."""

from __future__ import annotations

from simindex.values import dataclass

SIMILARITY, RECALL, PRECISION = 0.9, 0.95, 0.9

SAMPLE = 10_000
"""Documents of a sample."""

MOST_SAMPLE = 100_000
"""Each is compared with each."""

LEAST_PAIRS = 20
"""Similar pairs of a sample that recommend something. Where one of fewer is missed, the interval of
the misses is wider than from 1 % to 24 %, and the least radius that finds them all may be 0."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The checked options of a call."""

    similarity: float
    recall: float
    precision: float
    seed: int
    threads: int | None
