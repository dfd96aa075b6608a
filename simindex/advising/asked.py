"""What a recommendation is to reach, unless asked otherwise."""

from __future__ import annotations

SIMILARITY, RECALL, PRECISION = 0.9, 0.95, 0.9

SAMPLE = 10_000
"""Documents of a sample."""

MOST_SAMPLE = 100_000
"""Each is compared with each."""
