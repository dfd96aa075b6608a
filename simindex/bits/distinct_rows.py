"""Which rows are equal, and which values occur."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from simindex.arrays import I64, U64


def distinct(rows: U64) -> tuple[I64, I64]:
    """First row of each distinct one, and the number of each row's distinct one.

    `rows` is uint64 (n, W); both are int64, (d,) and (n,). Distinct rows ascend. What a signal
    handler raises meanwhile arrives as it is, which it does not from `np.unique` of several words.
    O(n log n).
    """
    if rows.shape[1] == 1:
        _, found, numbers = np.unique(rows[:, 0], return_index=True, return_inverse=True)
        return found.astype(np.int64), numbers.reshape(-1).astype(np.int64)
    order = np.lexsort(rows.T[::-1])
    ordered = rows[order]
    begins = np.ones(len(rows), np.bool_)
    begins[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    number = np.empty(len(rows), np.int64)
    number[order] = np.cumsum(begins) - 1
    return order[begins].astype(np.int64), number


def distinct_values(values: NDArray[Any]) -> NDArray[Any]:
    """The integers that occur, ascending. `np.unique` would first import `numpy.ma`, for 8 ms."""
    ordered = np.sort(values)
    first = np.ones(len(ordered), np.bool_)
    first[1:] = ordered[1:] != ordered[:-1]
    return ordered[first]
