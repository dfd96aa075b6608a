"""Names for the arrays that the engine passes on, by the kind and bits of their elements; and keys.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Bools = NDArray[np.bool_]
U8 = NDArray[np.uint8]
U16 = NDArray[np.uint16]
U32 = NDArray[np.uint32]
U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]
F16 = NDArray[np.float16]
F32 = NDArray[np.float32]
F64 = NDArray[np.float64]


class ByteKeys(list[bytes]):
    """Keys of bytes: a column of them is one of bytes also where there are none."""

    __slots__ = ()


def picked(keys: Any, places: Iterable[int]) -> Any:
    """The keys of a list at some places, in a list of the same type."""
    return type(keys)(keys[place] for place in places)


def no_keys(kind: str | None) -> Any:
    """A list without a key, for keys of a kind."""
    return ByteKeys() if kind == "bytes" else []


def keys_of_lists(keys: Iterable[Any], lists: Iterable[Any]) -> Any:
    """Keys from some lists, as `ByteKeys` if one of these lists is."""
    return ByteKeys(keys) if any(isinstance(one, ByteKeys) for one in lists) else list(keys)
