"""Groups of near-duplicates: what hangs together by pairs.

    pairs (a, b)    0-1  1-4  2-3        labels   [0 0 2 2 0]
"""

from __future__ import annotations

import numpy as np

from simindex._kernels import _native
from simindex.arrays import I64


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
    Every pair hooks the greater of two roots onto the smaller, and halves the paths to them. 50 M
    random pairs of 10 M rows take 2.1 s.
    """
    forest = _native.Forest(n)
    forest.unite(a.astype(np.uint64), b.astype(np.uint64))
    return forest.labels().astype(np.int64)
