"""What callers give, as arrays and lists that the package trusts: fingerprints, ids, keys, weights.

Shape, dtype, contiguity and values are checked once, where data enters.
"""

from __future__ import annotations

from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simindex.arrays import F32, I64, U8, U64, ByteKeys
from simindex.checks import is_whole
from simindex.errors import InvalidBatch
from simindex.options import MAX_BITS, MAX_KEY_BYTES
from simindex.records import dataframe_columns
from simindex.records.sketches import packed, size_codes

MAX_UTF8_BYTES = 4
"""Of a character."""

MANY_KEYS = 16
"""Fewer are looked at one by one, which takes less time."""


def as_fingerprints(values: Any, *, bits: int | None = None) -> U64:
    """Fingerprints as uint64 (n, W), C-contiguous, without a copy where that is possible.

    `bits` is the width asked for, or None to take it from the array: (n,) is 64 bits, (n, W) is
    64 W. Raises InvalidBatch on another dtype, shape or width.
    """
    if not isinstance(values, np.ndarray) or values.dtype != np.uint64:
        values = _as_words(values, bits)
    if values.ndim == 1:
        words = bits // 64 if bits is not None and not len(values) else 1
        values = values.reshape(-1, words)
    if values.ndim != 2 or values.shape[1] == 0:
        raise InvalidBatch(
            f"fingerprints have shape {values.shape}, not (n,) or (n, W)",
            found=values.shape, expected="(n,) or (n, W)",
        )
    if bits is not None and values.shape[1] * 64 != bits:
        raise InvalidBatch(
            f"fingerprints are {values.shape[1] * 64} bits wide, not {bits}",
            found=values.shape[1] * 64, expected=bits,
        )
    return _contiguous(values)


def _as_words(values: Any, bits: int | None) -> NDArray[Any]:
    """A uint64 array of what is none yet: numbers in a list, a column of another library."""
    if isinstance(values, np.uint64):  # one element of an array
        return np.array([values])
    column = dataframe_columns.is_column(values)
    array = as_array(values, "fingerprints") if column else values
    empty = column and not len(array) and array.dtype == np.uint64
    if isinstance(values, (str, bytes)) or (not empty and dataframe_columns.holds_text(values)):
        raise _no_array(values, " of texts" * (not isinstance(values, (str, bytes))), texts(bits))
    if isinstance(values, (list, tuple)) and all(map(is_whole, values)):
        try:
            return np.array([int(value) for value in values], dtype=np.uint64)
        except (OverflowError, ValueError) as error:
            raise InvalidBatch("a fingerprint is not from 0 to 2**64 - 1") from error
    if not column and not isinstance(values, np.ndarray):
        first = values[0] if isinstance(values, (list, tuple)) else values
        path = isinstance(first, PathLike)
        raise _no_array(
            values, "", "a path is not read: give the text, path.read_text()" if path else
            "give an array, a list of numbers, or a batch of texts, recipe.batch(texts)"
        )
    if array.dtype != np.uint64:
        if column:
            dataframe_columns.refuse_null(array)
        remedy = "make it an array with numpy.asarray first, then " * (
            column and array.dtype != object
        )
        raise InvalidBatch(
            f"fingerprints are {array.dtype}, not uint64",
            remedy=remedy + conversion(array.dtype, array.shape),
            found=str(array.dtype), expected="uint64",
        )
    return array


def texts(bits: int | None) -> str:
    """What to give instead of texts, in words that hold for any index of this width, and without.
    """
    width = "" if bits in (None, 64) else f"bits={bits}"
    return (
        "a recipe makes fingerprints of texts: give recipe.batch(texts, keys=keys), where recipe "
        f"is index.recipe, or simindex.Recipe({width}) for an index without rows"
    )


def _no_array(values: Any, of: str, remedy: str | None) -> InvalidBatch:
    kind = type(values).__name__
    return InvalidBatch(
        f"fingerprints must be a uint64 array, not {kind}{of}", remedy=remedy, found=kind,
        expected="uint64 (n,) or (n, W)",
    )


def conversion(dtype: np.dtype[Any], shape: tuple[int, ...]) -> str:
    """How to make fingerprints of an array of another dtype, in words."""
    if dtype.newbyteorder("=") == np.uint64:
        return "their bytes are in another order: convert them with .astype(numpy.uint64)"
    if dtype == np.int64:
        return "read the same bits as unsigned ones: .view(numpy.uint64)"
    if dtype == np.uint8 and len(shape) == 2 and shape[1] % 8 == 0 and shape[1]:
        return (
            "these are bytes of codes, 8 to a word: "
            'numpy.ascontiguousarray(codes).view(">u8").astype(numpy.uint64)'
        )
    if dtype == np.uint8 and len(shape) == 2:
        return (
            "these are bytes of codes, whose number must be a multiple of 8: pad each with zeros, "
            'numpy.pad(codes, ((0, 0), (0, -codes.shape[1] % 8))).view(">u8").astype(numpy.uint64)'
        )
    if dtype == np.bool_:
        return (
            "pack the bits into words, whose number must be a multiple of 64: "
            'numpy.packbits(bits, axis=1).view(">u8").astype(numpy.uint64)'
        )
    return "give one unsigned number of 64 bits for each 64 bits of a fingerprint"


def check_one_kind(ids: Any, keys: Any) -> None:
    """Refuses ids and keys of the same rows with InvalidBatch."""
    if ids is not None and keys is not None:
        raise InvalidBatch(
            "both ids and keys are given, and the id of a key follows from it",
            remedy="give ids or keys, not both",
        )


def as_sketch(sketch: Any, n: int, features: Any = None) -> U8:
    """The records of sketches uint64 (n, S), or those of another batch; `features` are the sizes of
    their documents. InvalidBatch names what is none."""
    if isinstance(sketch, np.ndarray) and sketch.dtype == np.uint8 and sketch.ndim == 2:
        if sketch.shape[1] % 8 != 1 or len(sketch) != n:
            raise InvalidBatch(
                f"records of sketches have the shape {sketch.shape}",
                remedy="give those of `Batch.sketches`, one for each row", found=sketch.shape,
            )
        return np.ascontiguousarray(sketch)
    try:
        rows = as_fingerprints(sketch)
    except InvalidBatch as error:
        raise InvalidBatch(f"as a sketch, {error.what}", remedy=error.remedy) from error
    if len(rows) != n:
        raise InvalidBatch(
            f"{n} fingerprints but {len(rows)} sketches", found=len(rows), expected=n
        )
    if rows.shape[1] * 64 > MAX_BITS:
        raise InvalidBatch(
            f"sketches are {rows.shape[1] * 64} bits wide", found=rows.shape[1] * 64,
            expected=f"at most {MAX_BITS}",
        )
    return packed(rows, None if features is None else size_codes(features))


def as_features(features: Any, n: int) -> I64:
    """The numbers of features as int64 (n,); InvalidBatch names what is none."""
    array = as_array(features, "features")
    if array.shape != (n,) or array.dtype.kind not in "iu" or (n and int(array.min()) < 0):
        raise InvalidBatch(
            "features are not the numbers of features of each row",
            remedy="give one whole number for each row, 0 where it is not known",
            found=f"{array.dtype} {array.shape}", expected=f"integers ({n},)",
        )
    return array.astype(np.int64)


def as_ids(ids: Any, n: int | None) -> U64:
    """The ids as uint64 (n,); InvalidBatch names what is none."""
    array = as_array(ids, "ids")
    if array.shape == (0, 1) and dataframe_columns.is_column(ids):  # without a type
        array = array.reshape(0)
    if array.dtype.kind in "fO" and isinstance(ids, (list, tuple)) and all(
        isinstance(value, (int, np.integer)) for value in ids
    ):  # numpy makes floats or objects of a list that spans more than int64 and uint64
        array = np.array([_as_id(row, int(value)) for row, value in enumerate(ids)], np.uint64)
    if array.dtype.kind not in "iu" and not (array.size == 0 and array.ndim == 1):
        if dataframe_columns.is_column(ids):
            dataframe_columns.refuse_null(array)
        raise InvalidBatch(
            f"ids must be whole numbers from 0 to 2**64 - 1, not {array.dtype}",
            remedy="give names as keys=", found=str(array.dtype), expected="uint64",
        )
    if array.ndim != 1 or (n is not None and len(array) != n):
        raise InvalidBatch(
            f"ids have shape {array.shape}" + (f", for {n} fingerprints" if n is not None else ""),
            found=array.shape, expected=(n,),
        )
    if array.dtype.kind == "i" and len(array) and int(array.min()) < 0:
        row = int(np.argmax(array < 0))
        raise InvalidBatch(f"the id of row {row} is negative: {int(array[row])}", row=row)
    return _contiguous(array, np.uint64)


def as_array(values: Any, name: str) -> NDArray[Any]:
    """What a caller gave as an array; InvalidBatch names it if it is none."""
    try:
        if dataframe_columns.is_column(values):
            return dataframe_columns.numbers(values)
        return np.asarray(values)
    except MemoryError:
        raise
    except Exception as error:  # each library has errors of its own
        if not _is_of_values(error, values):
            raise
        raise InvalidBatch(f"{name} are not an array: {error}") from error


def _is_of_values(error: Exception, values: object) -> bool:
    """Whether Python or a library of the values raised it; else it is a signal handler's own."""
    if isinstance(error, OSError) and error.errno is None:
        return False
    origin, library = (type(one).__module__.partition(".")[0] for one in (error, values))
    return origin in ("builtins", "numpy", "pyarrow", library)


def _contiguous(array: NDArray[Any], dtype: Any = None) -> NDArray[Any]:
    """As kernels take it, C-contiguous and aligned: parts of a file or a buffer may be neither."""
    array = np.ascontiguousarray(array, dtype)
    return array if array.flags.aligned else array.copy()  # `np.require` takes six times as long


def _as_id(row: int, value: int) -> int:
    if not 0 <= value < 1 << 64:
        raise InvalidBatch(f"the id of row {row} is not from 0 to 2**64 - 1: {value}", row=row)
    return value


def as_keys(keys: Any, n: int | None) -> list[str] | list[bytes]:
    """The keys as a list of one type, each within its length; InvalidBatch names the first not."""
    try:
        if isinstance(keys, (str, bytes)) or not hasattr(keys, "__len__"):
            raise TypeError
        column = dataframe_columns.is_column(keys)
        listed = dataframe_columns.listed(keys) if column else list(keys)
    except TypeError as error:
        raise InvalidBatch(
            f"keys must be a sequence of str or bytes, not {type(keys).__name__}",
            found=type(keys).__name__,
        ) from error
    if n is not None and len(listed) != n:
        raise InvalidBatch(
            f"{n} fingerprints but {len(listed)} keys", found=len(listed), expected=n
        )
    of_bytes = isinstance(keys, ByteKeys) or (bool(listed) and isinstance(listed[0], bytes))
    kind = bytes if of_bytes else str
    if of_bytes:
        listed = ByteKeys(listed)
    if len(listed) >= MANY_KEYS and _all_fit(listed, kind):
        return listed
    for row, key in enumerate(listed):
        if type(key) is not kind:
            if not isinstance(key, kind):
                if column:
                    dataframe_columns.refuse_null(listed[: row + 1])
                raise InvalidBatch(
                    f"the key of row {row} is {type(key).__name__}, not {kind.__name__}: "
                    "keys are str or bytes, of one type",
                    row=row, found=type(key).__name__, expected=kind.__name__,
                )
            # Of a class such as `numpy.str_`: as a plain one.
            key = listed[row] = str.__str__(key) if isinstance(key, str) else bytes(key)
        size = len(key) if isinstance(key, bytes) or key.isascii() else _utf8_bytes(key, row)
        if size > MAX_KEY_BYTES:
            raise InvalidBatch(
                f"the key of row {row} is longer than {MAX_KEY_BYTES} bytes", row=row
            )
    return listed


def _all_fit(listed: list[Any], kind: type) -> bool:
    """Whether it is clear at once that all keys are of one kind and can be stored."""
    if not {kind}.issuperset(map(type, listed)):
        return False
    if max(map(len, listed), default=0) > MAX_KEY_BYTES // MAX_UTF8_BYTES:
        return False
    if kind is bytes or all(map(str.isascii, listed)):
        return True
    try:
        "".join(listed).encode()
    except UnicodeEncodeError:
        return False
    return True


def _utf8_bytes(key: str, row: int) -> int:
    """Length of a key as it is stored."""
    try:
        return len(key.encode())
    except UnicodeEncodeError as error:
        lost = f"U+{ord(key[error.start]):04X}"
        raise InvalidBatch(
            f"the key of row {row} has half of a surrogate pair, {lost}, at character "
            f"{error.start}, which UTF-8 cannot represent",
            remedy='correct the text, or give keys of bytes to an index created with keys="bytes"',
            row=row, found=lost, offset=error.start,
        ) from error


def as_weights(weights: Any, rows: U64) -> F32:
    """The weights as float32 (n, b), as many as fingerprints; InvalidBatch names what is none."""
    array = as_array(weights, "weights")
    expected = (len(rows), rows.shape[1] * 64)
    if array.dtype.kind not in "fiu":
        raise InvalidBatch(
            f"weights are {array.dtype}, not float32", found=str(array.dtype), expected="float32"
        )
    if array.shape != expected:
        raise InvalidBatch(
            f"weights have shape {array.shape}, not {expected} as the fingerprints need",
            found=array.shape, expected=expected,
        )
    with np.errstate(over="ignore"):  # what is too large becomes infinite, and is refused
        array = _contiguous(array, np.float32)
    if not _all_finite(array):
        row = int(np.argmax(~np.isfinite(array).all(axis=1)))
        raise InvalidBatch(f"the weights of row {row} are not finite", row=row)
    return array


def _all_finite(array: F32) -> bool:
    # In slices: the temporary of one isfinite over a million rows would be 64 MB.
    return all(
        bool(np.isfinite(array[start : start + 65_536]).all())
        for start in range(0, len(array), 65_536)
    )
