"""What a method is: it decides where to look; a kernel decides what matches, by exact distance.

So precision is always 1, and methods differ in recall, memory and time only.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class TablePlan:
    """How one table is searched."""

    method: str
    """`"psm"` or `"scan"`."""
    header_bits: int
    """Width t of the headers probed; 0 for a scan."""
    flips: int
    """Flip sets tried beside the query itself."""
    exact: bool
    """Whether every row within h is found: all flip sets are tried, or all rows compared."""
    nanoseconds: float
    """Expected time of one query, by the model."""


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """Rows of one table within h, by query: `query` int64, `row` uint32, `distance` uint16."""

    query: NDArray[np.int64]
    row: NDArray[np.uint32]
    distance: NDArray[np.uint16]
    probes: int
    compared: int
