"""What pandas, polars and Arrow give as columns, as numpy and Python have it.

    fingerprints, ids    `numbers`       uint64 (n,), or (n, W) of lists of W numbers
    keys                 `listed`        str or bytes
    texts                `holds_text`    a recipe reads the column itself

All of these libraries answer `__array__`, so none of them is imported. A null makes floats or
objects of numbers there; a column without one costs nothing more than its array.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simindex.errors import InvalidBatch

_OF_TEXT = ("str", "utf8", "binary", "dictionary", "categor", "enum")
"""Parts of the names of types of text."""

_NULLS = frozenset({"NAType", "NaTType"})
"""Types of the nulls of pandas."""


def is_column(values: object) -> bool:
    """Whether another library's column or table is given, which numpy can make an array of."""
    return not isinstance(values, np.ndarray) and hasattr(values, "__array__")


def numbers(column: Any) -> NDArray[Any]:
    """The array of a column; of lists of one length (n, length). Nulls make it float or object.

    Python's own numbers, as pandas has them in a column of objects, become uint64 if all can be.
    """
    array = np.asarray(column)
    if array.shape == (0,) and _may_be_of_numbers(column, array):
        return np.empty((0, _list_size(column)), np.uint64)
    if array.dtype != object or array.ndim != 1 or not len(array):
        return array
    listed: list[Any] = array.tolist()
    if all(isinstance(one, (list, tuple)) for one in listed):
        listed = [np.array(one, object) for one in listed]
    if len({getattr(one, "shape", None) for one in listed}) == 1 and hasattr(listed[0], "shape"):
        array = np.stack(listed)
    whole = array.dtype == object and all(
        isinstance(one, (int, np.integer)) and 0 <= one < 1 << 64 for one in array.flat
    )
    return array.astype(np.uint64) if whole else array


def _kind(column: Any) -> Any:
    kind = getattr(column, "dtype", None) if not hasattr(column, "type") else column.type
    return getattr(kind, "pyarrow_dtype", kind)  # of pandas


def _list_size(column: Any) -> int:
    """The length of all lists of a column, where its type says it, else 1."""
    return int(getattr(_kind(column), "list_size", 1))


def _may_be_of_numbers(column: Any, array: NDArray[Any]) -> bool:
    """Whether a column without a row says nothing of its values, or that they are lists."""
    kind = str(_kind(column)).lower()
    if array.dtype != object:
        return kind == "null"
    return "list" in kind or not any(name in kind for name in _OF_TEXT)


def listed(column: Any) -> list[Any]:
    """The values of a column as a list: str and bytes are Python's own."""
    try:
        values: list[Any] = np.asarray(column).tolist()
    except NotImplementedError:  # of pandas, for types of Arrow that it does not know
        values = list(column)
    return values


def holds_text(values: Any) -> bool:
    """Whether a list, an array or a column holds texts, by the first; of a table not.

    An empty array or column does if its type is one of text, or unknown.
    """
    if isinstance(values, (list, tuple)):
        return bool(values) and isinstance(values[0], (str, bytes))
    array = isinstance(values, np.ndarray)
    if not array and (not is_column(values) or hasattr(values, "columns")):
        return False
    if getattr(values, "ndim", 1) != 1:
        return False
    first: Any = next(iter(values), None)
    if hasattr(first, "as_py"):
        first = first.as_py()  # of an Arrow scalar
    if first is None and not len(values):
        return np.asarray(values).dtype.kind in "OUST"
    return isinstance(first, (str, bytes))


def is_null(value: object) -> bool:
    """Whether it is what a library has for a value that is missing."""
    nan = isinstance(value, (float, np.floating)) and value != value
    return value is None or nan or type(value).__name__ in _NULLS


def refuse_null(values: Sequence[Any] | NDArray[Any]) -> None:
    """Raises InvalidBatch for the first row that is null or has a null."""
    for row, value in enumerate(values):
        if any(map(is_null, value.tolist())) if isinstance(value, np.ndarray) else is_null(value):
            raise InvalidBatch(
                f"row {row} is null",
                remedy="remove rows with a null, or give them a value", row=row,
            )
