"""How similar two documents are, by the bits in which they differ: cosine = cos(pi d / b).

Each of b bits differs with the chance p = arccos(cosine) / pi, independently of the others. So d
has the standard deviation sqrt(b p (1 - p)), and the estimate one of pi sin(pi p) sqrt(p (1 - p) /
b). Source: [PSM] section 3, after Charikar; see docs/explanation/methods.md.

The chance p is that of normal sums, which many features have, and with the projection "gaussian"
any number of them. Other texts of fewer than about 50 features, and those in which one feature
outweighs all others, are estimated with a bias, which the error does not include; `bits.sets` takes
it out of distances of texts without idf.

A Jaccard resemblance is cosine / (2 - cosine) for sets of equal size, and its error that of the
cosine times 2 / (2 - cosine)^2. Distances of other sets come as those of sets of equal size.
"""

from __future__ import annotations

import numpy as np

from simindex.arrays import F32, U16

MEASURES = ("cosine", "jaccard")


def estimated(distance: U16, bits: int, measure: str = "cosine") -> F32:
    """float32 (n,): the similarity that each distance of so many bits stands for."""
    cosine = np.cos(np.pi * distance / bits)
    found = cosine / (2 - cosine) if measure == "jaccard" else cosine
    return found.astype(np.float32)


def standard_error(distance: U16, bits: int, measure: str = "cosine") -> F32:
    """float32 (n,): of `estimated`.

    Half a bit is added, so that equal bits do not seem to be certain.
    """
    share = (distance + 0.5) / (bits + 1)
    deviation = np.sqrt(share * (1 - share) / bits)
    error = np.pi * np.abs(np.sin(np.pi * share)) * deviation
    if measure == "jaccard":
        error = error * 2 / (2 - np.cos(np.pi * share)) ** 2
    return error.astype(np.float32)
