"""How the catalog's values are packed, sealed and cut into parts.

1. Every value is sealed: payload, then the CRC-32C of database, key and payload. LMDB itself has no
   checksums.
2. A payload of `meta`, `pending` and `tombstones` is stored in parts of at most 128 KiB, the size
   of a page of headers, so that LMDB, which needs one stretch of pages for each value, finds the
   space of old ones again.

       key              number of parts u4 | CRC-32C of the whole payload | first part
       key, part u4 BE  further parts
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgpack
import numpy as np

from simindex._kernels import _native
from simindex.errors import CorruptFile, raised_by_a_handler
from simindex.storage.tables.structure import UNDECODABLE

MAX_HEAD_ITEMS = 1 << 20

PART_BYTES = 1 << 17

PARTED = ("meta", "pending", "tombstones")


def seal(database: str, key: bytes, payload: bytes) -> bytes:
    """The value that is stored: payload and checksum."""
    return payload + checksum(database, key, payload).to_bytes(4, "little")


def checksum(database: str, key: bytes, payload: bytes) -> int:
    """CRC-32C over database, key and payload, each ended."""
    prefix = np.frombuffer(database.encode() + b"\0" + key + b"\0", np.uint8)
    return _native.crc32c(np.frombuffer(payload, np.uint8), _native.crc32c(prefix))


def unseal(database: str, key: bytes, value: bytes | None, expected: int | None = None) -> bytes:
    """The payload, once its checksum holds and is the one its parent named."""
    if value is None:
        raise _damaged(database, key, "the catalog has no record {}")
    payload, stored = value[:-4], int.from_bytes(value[-4:], "little")
    if len(value) < 4 or checksum(database, key, payload) != stored:
        raise _damaged(database, key, "the catalog's record {} is damaged")
    if expected is not None and stored != expected:
        raise _damaged(
            database, key, "the catalog's record {} is not the one that its head names"
        )
    return payload


def _damaged(database: str, key: bytes, what: str) -> CorruptFile:
    name = f"{database}/{_printable(key)}"
    return CorruptFile(what.format(name), path=name)


def _printable(key: bytes) -> str:
    return key.decode() if key.isascii() and key.decode().isprintable() else key.hex()


def part_key(key: bytes, part: int) -> bytes:
    """The key of a further part; the first part has the key itself."""
    return key + part.to_bytes(4, "big")


def parts(key: bytes, payload: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Keys and payloads of the parts of a payload; the first part comes last."""
    count = max(1, -(-len(payload) // PART_BYTES))
    for part in range(1, count):
        start = part * PART_BYTES
        yield part_key(key, part), payload[start : start + PART_BYTES]
    whole = _native.crc32c(np.frombuffer(payload, np.uint8))
    first = count.to_bytes(4, "little") + whole.to_bytes(4, "little")
    yield key, first + payload[:PART_BYTES]


def joined(
    database: str, key: bytes, expected: int, get: Callable[[str, bytes], bytes | None]
) -> bytes:
    """The payload whose parts `get` reads, once the first is the `expected` one and all agree."""
    first = unseal(database, key, get(database, key), expected)
    count = int.from_bytes(first[:4], "little")
    found = [first[8:]]
    for part in range(1, count):
        further = part_key(key, part)
        found.append(unseal(database, further, get(database, further)))
    payload = b"".join(found)
    crc = _native.crc32c(np.frombuffer(payload, np.uint8))
    if count < 1 or crc != int.from_bytes(first[4:8], "little"):
        raise _damaged(database, key, "the catalog's record {} is not complete")
    return payload


def pack(value: Any) -> bytes:
    """msgpack of plain values."""
    packed: bytes = msgpack.packb(value, use_bin_type=True)
    return packed


def unpack(name: str, payload: bytes) -> Any:
    """Plain values back, within bounds; CorruptFile if they are none."""

    left = MAX_HEAD_ITEMS

    def refuse(code: int, data: bytes) -> Any:
        raise ValueError(f"unexpected extension {code}")

    def counted(value: Any) -> Any:
        # A list or map of one byte takes 64 in memory.
        nonlocal left
        left -= 1
        if left < 0:
            raise ValueError(f"more than {MAX_HEAD_ITEMS} lists and maps")
        return value

    hook = counted if len(payload) > MAX_HEAD_ITEMS else None  # each takes a byte
    try:
        return msgpack.unpackb(
            payload,
            raw=False,
            strict_map_key=True,
            ext_hook=refuse,
            list_hook=hook,
            object_hook=hook,
            max_array_len=MAX_HEAD_ITEMS,
            max_map_len=1 << 16,
        )
    except UNDECODABLE as error:
        if raised_by_a_handler(error):
            raise
        raise CorruptFile(f"the catalog's record {name} cannot be decoded", path=name) from error
