"""Records of sketches: the bits of a row beside its fingerprint, and how many features it has.

    a record    | w0 | w1 | ... | w(S-1) | size |     uint8 (8 S + 1,): little-endian words, a byte

    size        0          not known
                1 .. 255   about 2^((size - 1) / 8) distinct features, nearest by the ratio: up to
                           3.7 G, within 4.5 %

So codes that differ by d stand for sizes of the ratio 2^(d / 8). FROZEN: files have records as they
are here, and a kernel makes them, too (`_kernels/src/simhash/sizes.hpp`).

Columns of records travel as uint8 (n, 8 S + 1): what moves rows never looks into one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from simindex.arrays import I64, U8, U64

STEPS = 8
"""Codes from a size to twice the size."""

MOST_CODE = 255

NOT_KNOWN = 0


def record_bytes(words: int) -> int:
    """Bytes of the record of a sketch of so many words; 0 where rows have no sketch."""
    return 8 * words + 1 if words else 0


def size_codes(features: NDArray[np.integer]) -> U8:
    """uint8 (n,): the codes of numbers of features, `NOT_KNOWN` for 0."""
    steps = np.round(STEPS * np.log2(np.maximum(features, 1).astype(np.float64)))
    codes = np.where(features > 0, 1 + np.minimum(steps, MOST_CODE - 1), NOT_KNOWN)
    return codes.astype(np.uint8)


def numbers_of(codes: U8) -> I64:
    """int64 (n,): about how many features codes stand for; 0 where that is not known."""
    powers = np.round(np.exp2((codes.astype(np.float64) - 1) / STEPS)).astype(np.int64)
    return np.where(codes == NOT_KNOWN, 0, powers)


def packed(words: U64, sizes: U8 | None) -> U8:
    """uint8 (n, 8 S + 1): the records of sketches uint64 (n, S), and of sizes if they are known."""
    records = np.empty((len(words), record_bytes(words.shape[1])), np.uint8)
    little = np.ascontiguousarray(words, "<u8")
    records[:, :-1] = little.view(np.uint8).reshape(len(words), 8 * words.shape[1])
    records[:, -1] = NOT_KNOWN if sizes is None else sizes
    return records


def words_of(records: U8) -> U64:
    """uint64 (n, S): the bits of some records, copied."""
    bits = np.ascontiguousarray(records[:, :-1]).view("<u8")
    return bits.astype(np.uint64, copy=False).reshape(len(records), records.shape[1] // 8)


def sizes_of(records: U8) -> U8:
    """uint8 (n,): the sizes of some records."""
    return records[:, -1]
