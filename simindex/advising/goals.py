"""What a recommendation is to reach, unless asked otherwise."""

from __future__ import annotations

from simindex.values import dataclass

SIMILARITY, RECALL, PRECISION = 0.9, 0.95, 0.9

SAMPLE = 10_000
"""Documents of a sample."""

MOST_SAMPLE = 100_000
"""Each is compared with each."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The checked options of a call."""

    similarity: float
    recall: float
    precision: float
    seed: int
    threads: int | None
