"""How similar two documents are, by the bits in which they differ: cosine = cos(pi d / b).

Each of b bits differs with the chance p = arccos(cosine) / pi, independently of the others. So d
has the standard deviation sqrt(b p (1 - p)), and the estimate one of pi sin(pi p) sqrt(p (1 - p) /
b). Source: [PSM] section 3, after Charikar; see docs/explanation/methods.md.
"""

from __future__ import annotations

import numpy as np

from simindex.arrays import F32, U16


def estimated(distance: U16, bits: int) -> F32:
    """float32 (n,): the cosine that each distance of so many bits stands for."""
    return np.cos(np.pi * distance / bits).astype(np.float32)


def standard_error(distance: U16, bits: int) -> F32:
    """float32 (n,): of `estimated`.

    Half a bit is added, so that equal bits do not seem to be certain.
    """
    share = (distance + 0.5) / (bits + 1)
    deviation = np.sqrt(share * (1 - share) / bits)
    return (np.pi * np.abs(np.sin(np.pi * share)) * deviation).astype(np.float32)
