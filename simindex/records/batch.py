"""What enters the package: a batch of fingerprints, with the ids or keys and weights of its rows.

Data travels as columns, not as objects. This module checks shape, dtype and contiguity once, where
data enters. Inside the package arrays are trusted.

    Batch    fingerprints (n,) or (n, W)   ids or keys (n,)   weights (n, b)   sketch (n, S)
             skipped
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simindex.arrays import F32, I64, U64
from simindex.checks import is_whole
from simindex.errors import InvalidBatch
from simindex.options import MAX_BITS, MAX_KEY_BYTES
from simindex.records import arrow, columns

MAX_UTF8_BYTES = 4
"""Of a character."""

MANY_KEYS = 16
"""Fewer are looked at one by one, which takes less time."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """A text that got no fingerprint, and why."""

    position: int
    """Place among the given texts, from 0."""
    key: Any
    """Its id or key, or None."""
    reason: str
    """`"empty"` or `"too few features: 2 < 4"`."""


def as_fingerprints(values: Any, *, bits: int | None = None) -> U64:
    """Fingerprints as uint64 (n, W), C-contiguous, without a copy where that is possible.

    `bits` is the width asked for, or None to take it from the array: (n,) is 64 bits, (n, W) is
    64 W. Raises InvalidBatch on another dtype, shape or width.
    """
    if not isinstance(values, np.ndarray) or values.dtype != np.uint64:
        values = _as_words(values, bits)
    if values.ndim == 1:
        values = values[:, None]
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
    if columns.holds_text(values) or isinstance(values, (str, bytes)):
        raise _no_array(values, " of texts" * (not isinstance(values, (str, bytes))), texts(bits))
    if isinstance(values, (list, tuple)) and all(map(is_whole, values)):
        try:
            return np.array([int(value) for value in values], dtype=np.uint64)
        except (OverflowError, ValueError) as error:
            raise InvalidBatch("a fingerprint is not from 0 to 2**64 - 1") from error
    column = columns.is_column(values)
    if not column and not isinstance(values, np.ndarray):
        first = values[0] if isinstance(values, (list, tuple)) else values
        path = isinstance(first, PathLike)
        raise _no_array(
            values, "", "a path is not read: give the text, path.read_text()" if path else
            "give an array, a list of numbers, or a batch of texts, recipe.batch(texts)"
        )
    array = columns.numbers(values) if column else values
    if array.dtype != np.uint64:
        if column:
            columns.refuse_null(array)
        remedy = "make it an array with numpy.asarray first, then " if column else ""
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


class Batch:
    """Fingerprints of some documents, with their ids or keys and their bit weights.

    Parameters
    ----------
    fingerprints : uint64 (n,) or (n, W)
        Bit 63 of word 0 comes first. An array, a list of numbers, or a column of pandas, polars or
        Arrow, as ids and keys may be; (n, W) also as a column of lists of W numbers.
    ids : integers (n,), optional
        Numbers from 0 to 2**64 - 1. They need not be unique.
    keys : sequence or column of str, or of bytes, optional
        Names instead of ids, all of one type, at most 65,535 bytes each. A str is stored as UTF-8,
        so it may not contain a lone surrogate.
    weights : float32 (n, b), optional
        The sums W whose signs are the bits, in any unit. Column 0 belongs to bit 63 of word 0. A
        weight of 0 or more means a bit of 1.
    recipe, skipped
        `Recipe.batch` sets them: the Recipe, and the texts that got no fingerprint.
    features : int64 (n,), optional
        `Recipe.batch` sets it with `count_features`: the distinct features of each text, up to that
        number.
    sketch : uint64 (n, S), optional
        Further bits of each document, S words of 64. `Recipe.batch` sets it where the recipe has
        ``sketch_bits``.

    Raises
    ------
    InvalidBatch
        If a dtype, shape, length or value is wrong, or a value is null. The error has the first
        such row.
    """

    __slots__ = ("_rows", "features", "ids", "keys", "recipe", "sketch", "skipped", "weights")

    def __init__(
        self,
        fingerprints: Any,
        *,
        ids: Any = None,
        keys: Sequence[str] | Sequence[bytes] | None = None,
        weights: Any = None,
        recipe: Any = None,
        skipped: Sequence[Skipped] = (),
        features: I64 | None = None,
        sketch: Any = None,
    ) -> None:
        self._rows = as_fingerprints(fingerprints)
        n = len(self._rows)
        check_one_kind(ids, keys)
        self.ids: U64 | None = None if ids is None else as_ids(ids, n)
        self.keys: list[str] | list[bytes] | None = None if keys is None else as_keys(keys, n)
        self.weights: F32 | None = None if weights is None else _as_weights(weights, self._rows)
        self.recipe: Any = recipe
        self.skipped: tuple[Skipped, ...] = tuple(skipped)
        self.features: I64 | None = features
        self.sketch: U64 | None = None if sketch is None else as_sketch(sketch, n)

    @classmethod
    def checked(
        cls,
        rows: U64,
        *,
        ids: U64 | None,
        keys: list[str] | list[bytes] | None,
        weights: F32 | None,
        recipe: Any,
        features: I64 | None = None,
        sketch: U64 | None = None,
    ) -> Batch:
        """A batch of arrays that a kernel has made, or another batch, and of names that were
        checked: a document takes a third of the time that `Batch` takes to look at all of them."""
        batch = cls.__new__(cls)
        batch._rows, batch.ids, batch.keys, batch.weights = rows, ids, keys, weights
        batch.recipe, batch.skipped = recipe, ()
        batch.features, batch.sketch = features, sketch
        return batch

    @property
    def fingerprints(self) -> U64:
        """uint64 (n,) for 64 bits, else (n, W)."""
        return self._rows[:, 0] if self._rows.shape[1] == 1 else self._rows

    @property
    def rows(self) -> U64:
        """The fingerprints as uint64 (n, W), also for 64 bits."""
        return self._rows

    @property
    def bits(self) -> int:
        """Width b of a fingerprint."""
        return int(self._rows.shape[1]) * 64

    @property
    def sketch_bits(self) -> int:
        """Width of a sketch; 0 if there is none."""
        return 0 if self.sketch is None else int(self.sketch.shape[1]) * 64

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        named = "keys" if self.keys is not None else "ids" if self.ids is not None else "no ids"
        weighted = "with" if self.weights is not None else "without"
        sketched = f" and {self.sketch_bits} of sketch" if self.sketch is not None else ""
        return f"<Batch of {len(self)} x {self.bits} bits{sketched}, {named}, {weighted} weights>"

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The columns `id` or `key`, `fingerprint`, `weights`, `features` and `sketch`, if
        given."""
        named: dict[str, arrow.Column] = {}
        if self.ids is not None:
            named["id"] = self.ids
        if self.keys is not None:
            named["key"] = self.keys
        named["fingerprint"] = self.fingerprints
        if self.weights is not None:
            named["weights"] = self.weights
        if self.features is not None:
            named["features"] = self.features
        if self.sketch is not None:
            named["sketch"] = self.sketch
        return arrow.stream(named)

    def take(self, rows: NDArray[np.intp]) -> Batch:
        """The batch of the given rows, in the given order."""
        keys: Any = None if self.keys is None else [self.keys[i] for i in rows.tolist()]
        return Batch.checked(
            self._rows[rows],
            ids=None if self.ids is None else self.ids[rows],
            keys=keys,
            weights=None if self.weights is None else self.weights[rows],
            recipe=self.recipe,
            features=None if self.features is None else self.features[rows],
            sketch=None if self.sketch is None else self.sketch[rows],
        )


def check_one_kind(ids: Any, keys: Any) -> None:
    """Refuses ids and keys of the same rows with InvalidBatch."""
    if ids is not None and keys is not None:
        raise InvalidBatch(
            "both ids and keys are given, and the id of a key follows from it",
            remedy="give ids or keys, not both",
        )


def as_sketch(sketch: Any, n: int) -> U64:
    """The sketches as uint64 (n, S); InvalidBatch names what is none."""
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
    return rows


def as_ids(ids: Any, n: int | None) -> U64:
    """The ids as uint64 (n,); InvalidBatch names what is none."""
    array = as_array(ids, "ids")
    if array.dtype.kind in "fO" and isinstance(ids, (list, tuple)) and all(
        isinstance(value, (int, np.integer)) for value in ids
    ):  # numpy makes floats or objects of a list that spans more than int64 and uint64
        array = np.array([_as_id(row, int(value)) for row, value in enumerate(ids)], np.uint64)
    if array.dtype.kind not in "iu" and not (array.size == 0 and array.ndim == 1):
        if columns.is_column(ids):
            columns.refuse_null(array)
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
        return columns.numbers(values) if columns.is_column(values) else np.asarray(values)
    except ValueError as error:
        raise InvalidBatch(f"{name} are not an array: {error}") from error


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
        column = columns.is_column(keys)
        listed = columns.listed(keys) if column else list(keys)
    except TypeError as error:
        raise InvalidBatch(
            f"keys must be a sequence of str or bytes, not {type(keys).__name__}",
            found=type(keys).__name__,
        ) from error
    if n is not None and len(listed) != n:
        raise InvalidBatch(
            f"{n} fingerprints but {len(listed)} keys", found=len(listed), expected=n
        )
    kind = bytes if listed and isinstance(listed[0], bytes) else str
    if len(listed) >= MANY_KEYS and _all_fit(listed, kind):
        return listed
    for row, key in enumerate(listed):
        if type(key) is not kind:
            if not isinstance(key, kind):
                if column:
                    columns.refuse_null(listed[: row + 1])
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


def _as_weights(weights: Any, rows: U64) -> F32:
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


