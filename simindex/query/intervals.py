"""How sure a measured recall is."""

from __future__ import annotations

from math import sqrt

CONFIDENCE_Z = 1.959963984540054
"""Standard deviations that hold 95% of a normal distribution."""


def wilson(share: float, trials: float) -> tuple[float, float]:
    """Wilson's interval of 95% for a share measured in some independent trials.

    It stays within 0 and 1, and has a width where the share itself is 0 or 1. Trials that depend on
    each other count as fewer, so the number need not be whole. No trial gives (0, 1).
    """
    if trials <= 0:
        return 0.0, 1.0
    z2 = CONFIDENCE_Z**2 / trials
    middle = share + z2 / 2
    half = sqrt(z2 * (share * (1 - share) + z2 / 4))
    low, high = (middle - half) / (1 + z2), (middle + half) / (1 + z2)
    return max(0.0, min(low, share)), min(1.0, max(high, share))  # rounding must not part them
