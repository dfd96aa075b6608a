"""Groups of near-duplicates: what hangs together by pairs.

    pairs (a, b)    0-1  1-4  2-3        labels   [0 0 2 2 0]
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

I64 = NDArray[np.int64]


def connected(a: I64, b: I64, n: int) -> I64:
    """Label of each of `n` rows: the smallest row it is connected with by the pairs.

    Parameters
    ----------
    a, b : int64 (p,)
        Pairs of row numbers from 0 to n - 1, in any order.

    Returns
    -------
    int64 (n,)
        A row in no pair is its own label.

    Notes
    -----
    Every round each root hooks onto the smallest root it has a pair with, then every row is led
    to its root; O(p + n) a round, and about log2 of the longest chain rounds.
    """
    label = np.arange(n, dtype=np.int64)
    while True:
        root_a, root_b = label[a], label[b]
        if np.array_equal(root_a, root_b):
            return label
        smaller = np.minimum(root_a, root_b)
        np.minimum.at(label, np.maximum(root_a, root_b), smaller)
        while not np.array_equal(label[label], label):
            label = label[label]
