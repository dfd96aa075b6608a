"""Columns of results for other libraries: a stream of Arrow's C data interface.

pyarrow, polars, pandas, DuckDB and others call `__arrow_c_stream__` of a result. No Arrow library
is needed. Numbers are not copied; keys are packed into one buffer. Nothing is null.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simindex._kernels import _native
from simindex.arrays import ByteKeys

Column = NDArray[Any] | Sequence[str | bytes]
"""Numbers (n,), lists of w numbers (n, w), or keys of one type."""

_FORMATS = {"i8": "l", "u8": "L", "u2": "S", "f4": "f"}
"""Of Arrow, by the dtypes that results have."""


def stream(columns: Mapping[str, Column]) -> object:
    """A capsule named "arrow_array_stream", which gives all rows as one batch."""
    rows = len(next(iter(columns.values())))
    return _native.arrow_stream(rows, [_column(*named) for named in columns.items()])


def _column(name: str, column: Column) -> tuple[str, str, int, tuple[NDArray[Any], ...]]:
    """Its name, format, numbers in a row if they are a list, and buffers."""
    if not isinstance(column, np.ndarray):
        of_bytes = isinstance(column[0] if column else column, (bytes, ByteKeys))
        return name, "Z" if of_bytes else "U", 0, packed(column)
    numbers = np.ascontiguousarray(column)
    width = 0 if numbers.ndim == 1 else numbers.shape[1]
    return name, _FORMATS[numbers.dtype.str[1:]], width, (numbers.reshape(-1),)


def packed(keys: Sequence[str | bytes]) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Where each key begins and the last one ends, int64 (n + 1,), and the bytes of all."""
    encoded = [key.encode() if isinstance(key, str) else key for key in keys]
    ends = np.zeros(len(encoded) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, encoded), np.int64, len(encoded)), out=ends[1:])
    return ends, np.frombuffer(b"".join(encoded), np.uint8)
