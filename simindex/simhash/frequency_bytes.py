"""Document frequencies as bytes: how processes send them and files keep them.

    | magic | version | header length | header (msgpack) | hashes | counts | digest |
      8 B     u32       u32             plain values       u64 f    u32 f    16 B

Numbers are little-endian; the digest is BLAKE2b-128 of everything before it.
"""

from __future__ import annotations

from hashlib import blake2b
from struct import Struct
from typing import Any

import msgpack
import numpy as np
from numpy.typing import NDArray

from simindex.checks import is_int
from simindex.errors import CorruptFile, FormatTooNew

MAGIC = b"SIMDOCFR"
VERSION = 1
MOST_DOCUMENTS = (1 << 32) - 1  # a count is a uint32
_PREFIX = Struct("<8sII")
_DIGEST_BYTES = 16
_MOST_HEADER_BYTES = 4096


def packed(
    values: dict[str, Any], hashes: NDArray[np.uint64], counts: NDArray[np.uint32]
) -> bytes:
    """Header values and the table as bytes."""
    header: bytes = msgpack.packb(values)
    parts = [
        _PREFIX.pack(MAGIC, VERSION, len(header)),
        header,
        hashes.astype("<u8").tobytes(),
        counts.astype("<u4").tobytes(),
    ]
    digest = blake2b(digest_size=_DIGEST_BYTES)
    for part in parts:
        digest.update(part)
    return b"".join([*parts, digest.digest()])


def unpacked(content: bytes) -> tuple[dict[str, Any], NDArray[np.uint64], NDArray[np.uint32]]:
    """Header values, hashes and counts, which fit each other; `max_features` is not checked.

    Raises
    ------
    CorruptFile
        If the bytes are not what was written.
    FormatTooNew
        If a newer version wrote them.
    """
    if len(content) < _PREFIX.size + _DIGEST_BYTES:
        raise CorruptFile(
            f"document frequencies of {len(content)} bytes are cut off", found=len(content)
        )
    magic, version, header_bytes = _PREFIX.unpack_from(content)
    if magic != MAGIC:
        raise CorruptFile("these bytes are no document frequencies", found=magic, expected=MAGIC)
    if version > VERSION:
        raise FormatTooNew(
            f"the document frequencies have format {version}, this version reads {VERSION}: "
            "install a newer one",
            found=version, expected=VERSION,
        )
    body, end = _PREFIX.size + header_bytes, len(content) - _DIGEST_BYTES
    if blake2b(memoryview(content)[:end], digest_size=_DIGEST_BYTES).digest() != content[end:]:
        raise CorruptFile("the checksum of the document frequencies does not match their bytes")
    if version < 1 or header_bytes > _MOST_HEADER_BYTES or body > end:
        raise CorruptFile(
            "the header of the document frequencies does not fit", found=header_bytes
        )
    try:
        values = msgpack.unpackb(content[_PREFIX.size : body])
        source, most_features = values["source"], values["max_features"]
        numbers = (values["features"], values["documents"], values["forgotten"])
    except (KeyError, TypeError, ValueError, msgpack.UnpackException) as error:
        raise invalid(error) from error
    if not (
        isinstance(source, str) and is_int(most_features)
        and all(is_int(number) and 0 <= number <= MOST_DOCUMENTS for number in numbers)
        and numbers[0] <= most_features and end - body == 12 * numbers[0]
    ):  # fmt: skip
        raise CorruptFile(
            "the header of the document frequencies does not describe their content", found=values
        )
    features, documents, forgotten = numbers
    hashes = np.frombuffer(content, dtype="<u8", count=features, offset=body).astype(np.uint64)
    counts = np.frombuffer(
        content, dtype="<u4", count=features, offset=body + 8 * features
    ).astype(np.uint32)
    most = documents - forgotten
    if (
        most < 0 or bool((hashes[1:] <= hashes[:-1]).any())
        or bool(((counts < 1) | (counts > most)).any())
    ):  # fmt: skip
        raise CorruptFile("document frequencies are out of order or out of range")
    return values, hashes, counts


def invalid(error: Exception) -> CorruptFile:
    """Of a header whose values are none of document frequencies."""
    return CorruptFile(f"the header of the document frequencies is not valid: {error}")
