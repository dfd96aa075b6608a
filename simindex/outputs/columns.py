"""Columns of results, and their values as text.

    Schema     {"query": "text", "id": "uint64", "key": "bytes", "distance": "uint16"}
    Columns    {"query": [...],  "id": array,    "key": [...],   "distance": array}    some rows
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from numpy.typing import NDArray

Kind = Literal["text", "bytes", "uint64", "int64", "uint16", "bool", "float64", "float32s"]
"""Of the values of a column; any may be None. `float32s` are lists of numbers."""

Schema = Mapping[str, Kind]
"""The kinds of columns by their names, in order."""

Columns = Mapping[str, "NDArray[Any] | Sequence[Any]"]
"""The same columns with the values of some rows."""

Write = Callable[[Columns], None]
"""Adds rows to an output."""

_HALVES = "[\ud800-\udfff]"
"""Of surrogate pairs: Python has one for each byte of a path that is not UTF-8."""

_encode = json.JSONEncoder(ensure_ascii=False, separators=(", ", ": ")).encode


def kind_of_keys(keys: Any) -> Kind:
    """The kind of a column of keys, by the option `keys` of their index."""
    return "bytes" if keys == "bytes" else "text"


def key_text(key: str | bytes | None) -> str | None:
    """A stored key as text; bytes that are not UTF-8 become ``\\xNN``."""
    return key.decode("utf-8", "backslashreplace") if isinstance(key, bytes) else key


def encodable(text: str) -> str:
    """A text that UTF-8 can hold, as JSON escapes it: paths may have bytes that are not UTF-8."""
    return text if text.isascii() else re.sub(_HALVES, lambda half: f"\\u{ord(half[0]):04x}", text)


def as_json_line(record: Mapping[str, Any]) -> str:
    """A JSON object without a line end."""
    return encodable(_encode(record))


def plain(column: NDArray[Any] | Sequence[Any]) -> list[Any]:
    """The values of a column as Python has them, keys as text."""
    import numpy as np

    if isinstance(column, np.ndarray):
        numbers: list[Any] = column.tolist()
        return numbers
    return [key_text(value) if isinstance(value, bytes) else value for value in column]
