"""Binary codes as FAISS and other indexes of bits take them: uint8 (n, b / 8), 8 bits in a byte.

    fingerprint   bit 63 of word 0 comes first            uint64 (n, W)
    code          the same bits in the same order, bit 7 of byte 0 first: `numpy.packbits`

The order changes no distance. FAISS itself is not needed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from simindex.arrays import U8, U64
from simindex.errors import InvalidBatch
from simindex.records.arguments import as_fingerprints

WORD_BYTES = 8


def from_codes(codes: Any) -> U64:
    """Fingerprints of codes, such as `faiss.vector_to_array` gives them.

    Parameters
    ----------
    codes : uint8 (n, b / 8)
        b a multiple of 64. Codes of other widths are to be padded with zeros, which changes no
        distance: `numpy.pad(codes, ((0, 0), (0, -codes.shape[1] % 8)))`.

    Returns
    -------
    uint64 (n, W)
        W = b / 64. A copy.

    Raises
    ------
    InvalidBatch
        If the dtype or the shape is another one.
    """
    found = np.asarray(codes)
    if found.dtype != np.uint8 or found.ndim != 2:
        raise InvalidBatch(
            f"codes are {found.dtype} of shape {found.shape}, not uint8 (n, b / 8)",
            remedy="give 8 bits in each byte, as numpy.packbits(bits, axis=1) does",
            found=str(found.dtype), expected="uint8",
        )
    width = found.shape[1]
    if not width or width % WORD_BYTES:
        raise InvalidBatch(
            f"codes of {8 * width} bits are not a multiple of 64 bits",
            remedy="pad each with zeros: numpy.pad(codes, ((0, 0), (0, -codes.shape[1] % 8)))",
            found=8 * width, expected="a multiple of 64",
        )
    return np.ascontiguousarray(found).view(">u8").astype(np.uint64)


def to_codes(fingerprints: Any) -> U8:
    """Codes of fingerprints: of `Batch.fingerprints`, or an array.

    Parameters
    ----------
    fingerprints : uint64 (n,) or (n, W)

    Returns
    -------
    uint8 (n, 8 W)
        What `faiss.IndexBinary.add` and `search` take. A copy.

    Raises
    ------
    InvalidBatch
        As `Batch` does.
    """
    rows = as_fingerprints(fingerprints)
    return rows.astype(">u8").view(np.uint8).reshape(len(rows), WORD_BYTES * rows.shape[1])
