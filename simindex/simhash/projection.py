"""Onto which random vectors the features of a document are summed: W_j = sum of v_ij w_i.

    sign       v is +1 or -1                       [PSM] Algorithm 1, equation (2)
    gaussian   v is normal, mean 0, variance 1     [PSM] equation (4), after Charikar
    ternary    v is +1 or -1 with chance 1/8 each, else 0, and a sum of 0 gives a bit of 0: TopSig,
               the signatures that [ISSL] section 1 indexes

v of a feature comes from its hash alone, so vectors are never stored; `_kernels` draws them.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


ProjectionName = Literal["sign", "gaussian", "ternary"]
PROJECTIONS: tuple[ProjectionName, ...] = ("sign", "gaussian", "ternary")
"""By the number the kernels know them by."""

QUANTILES = 1 << 16
QUANTILE_STEPS = 1 << 12
"""A normal variate of 1 in steps."""


@cache
def normal_quantiles() -> NDArray[np.int16]:
    """Values of equal chance of a normal variate, in steps of 2^-12: int16 (65536,), ascending.

    None lies within 10^-5 of where rounding changes, so every C library gives the same.
    """
    from statistics import NormalDist

    import numpy as np

    inverse = NormalDist().inv_cdf
    upper = [
        round(QUANTILE_STEPS * inverse((place + 0.5) / QUANTILES))
        for place in range(QUANTILES // 2, QUANTILES)
    ]
    return np.array([-value for value in reversed(upper)] + upper, dtype=np.int16)
