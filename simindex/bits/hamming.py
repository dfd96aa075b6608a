"""Bits of fingerprints: how many differ, and their forms for people and for arithmetic.

    fingerprint of W words   | word 0          | word 1          | ...
    column                     0 1 2 ...    63   64 ...
    bit of the word           63 62 61 ...   0   63 ...
    hexadecimal              16 digits for each word, word 0 first
"""

from __future__ import annotations

from typing import Any, overload

import numpy as np

from simindex.arrays import U8, U16, U64
from simindex.checks import is_whole
from simindex.errors import InvalidBatch
from simindex.records.arguments import as_fingerprints


@overload
def hamming(a: int, b: int) -> int: ...
@overload
def hamming(a: Any, b: Any) -> int | U16: ...
def hamming(a: Any, b: Any) -> int | U16:
    """Number of bits in which fingerprints differ.

    Parameters
    ----------
    a, b : int, or uint64 (n,), or uint64 (..., W)
        An int is one fingerprint of any width. If one side has two axes or more, its last axis is
        that of the words. A side of one axis is then one fingerprint if W > 1, and n of them
        otherwise.

    Returns
    -------
    int, or uint16 of the broadcast shape without the axis of words

    Raises
    ------
    InvalidBatch
        If an int is negative or too wide, or if dtypes, widths or shapes do not fit.
    """
    if is_whole(a) and is_whole(b):
        if a < 0 or b < 0:
            raise InvalidBatch(f"a fingerprint may not be negative: {min(a, b)}")
        return (int(a) ^ int(b)).bit_count()
    left, right = _as_array(a), _as_array(b)
    axes = max(1 if array is None else array.ndim for array in (left, right))
    widths = {array.shape[-1] for array in (left, right) if array is not None and array.ndim > 1}
    if len(widths) > 1:
        raise InvalidBatch(
            f"fingerprints of {min(widths) * 64} and of {max(widths) * 64} bits", found=widths
        )
    words = widths.pop() if axes > 1 else 1
    try:
        differing = _as_rows(a, left, words) ^ _as_rows(b, right, words)
    except ValueError as error:
        raise InvalidBatch(
            f"fingerprints of shapes {np.shape(a)} and {np.shape(b)} cannot be compared"
        ) from error
    return np.asarray(np.bitwise_count(differing).sum(axis=-1, dtype=np.uint16))


def to_hex(fingerprints: Any) -> list[str]:
    """Each fingerprint as 16 hexadecimal digits a word; takes uint64 (n,) or (n, W)."""
    rows = as_fingerprints(fingerprints)
    return ["".join(f"{word:016x}" for word in row) for row in rows.tolist()]


def unpack(fingerprints: Any) -> U8:
    """Bits of uint64 (n,) or (n, W) fingerprints as uint8 (n, b), top bit of word 0 first."""
    rows = as_fingerprints(fingerprints)
    return np.unpackbits(rows.astype(">u8").view(np.uint8), axis=1)


def pack(bits: Any) -> U64:
    """Fingerprints of bits (n, b), any dtype, true or false: the inverse of `unpack`.

    Returns uint64 (n,) for b = 64, else (n, b / 64). Raises InvalidBatch if b is not a positive
    multiple of 64.
    """
    array = np.asarray(bits)
    if array.ndim != 2 or array.shape[1] == 0 or array.shape[1] % 64 != 0:
        raise InvalidBatch(
            f"bits have shape {array.shape}, not (n, b) with b a multiple of 64",
            found=array.shape, expected="(n, b)",
        )
    rows = np.packbits(array.astype(np.bool_), axis=1).view(">u8").astype(np.uint64)
    return rows[:, 0] if rows.shape[1] == 1 else rows


def _as_array(value: Any) -> U64 | None:
    """The operand as uint64 with at least one axis; None for an int."""
    if is_whole(value):
        return None
    if isinstance(value, np.ndarray) and value.dtype == np.uint64 and value.ndim > 1:
        return value
    return as_fingerprints(value)[:, 0] if np.ndim(value) < 2 else as_fingerprints(value)


def _as_rows(value: Any, array: U64 | None, words: int) -> U64:
    """The operand with `words` as its last axis."""
    if array is None:
        if not 0 <= value < 1 << (64 * words):
            raise InvalidBatch(f"{value} is not a fingerprint of {64 * words} bits", found=value)
        return np.frombuffer(int(value).to_bytes(8 * words, "big"), dtype=">u8").astype(np.uint64)
    if array.ndim > 1:
        return array
    return array[:, None] if words == 1 else array[None, :]
