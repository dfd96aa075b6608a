"""95 % intervals by drawing pages again, because the revisions of one page are not independent."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def page_draws(strata: Ints, draws: int, seed: int) -> Floats:
    """How often each page is drawn, (draws + 1, pages); row 0 draws each page once.

    `strata` names the source of each page: as many pages of a source are drawn as it has.
    """
    rng = np.random.default_rng(seed)
    drawn = np.ones((draws + 1, len(strata)))
    for stratum in np.unique(strata).tolist():
        places = np.flatnonzero(strata == stratum)
        chance = np.full(len(places), 1 / len(places))
        drawn[1:, places] = rng.multinomial(len(places), chance, size=draws)
    return drawn


def pair_draws(drawn: Floats, first: Ints, second: Ints) -> Floats:
    """How often a pair of pages occurs in each draw: the product, for one page with itself once."""
    weights = drawn[:, first] * drawn[:, second]
    alone = first == second
    weights[:, alone] = drawn[:, first[alone]]
    return weights


def interval(values: Any) -> tuple[float, float, float]:
    """The value (row 0) and the 2.5 % and 97.5 % points of the draws after it."""
    values = np.asarray(values, dtype=np.float64)
    finite = values[1:][np.isfinite(values[1:])]
    if not len(finite):
        return float(values[0]), float("nan"), float("nan")
    low, high = np.percentile(finite, [2.5, 97.5])
    return float(values[0]), float(low), float(high)


def crossing(precision: Floats, recall: Floats) -> tuple[float, float]:
    """h at which falling precision meets rising recall, between two h by a line, and the value.

    Not a number where they do not meet; at h = 0 where recall begins above precision.
    """
    gap = precision - recall
    if not np.isfinite(gap[0]) or gap[0] <= 0:
        return (0.0, float(precision[0])) if gap[0] <= 0 else (np.nan, np.nan)
    below = np.flatnonzero(gap <= 0)
    if not len(below):
        return np.nan, np.nan
    h = int(below[0])
    part = gap[h - 1] / (gap[h - 1] - gap[h])
    return h - 1 + float(part), float(recall[h - 1] + part * (recall[h] - recall[h - 1]))
