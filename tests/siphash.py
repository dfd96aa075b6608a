"""The hash of keys by its specification, in Python alone; nothing of ours.

Aumasson and Bernstein, "SipHash: a fast short-input PRF" (2012), with two rounds a word and four at
the end, and the 128-bit output of the authors' reference implementation.
"""

from __future__ import annotations

import struct

WORD = 2**64 - 1


def siphash(text: bytes, secret: bytes) -> tuple[int, int]:
    """SipHash-2-4 with 128 bits by its specification, one word and one round at a time."""
    k0, k1 = struct.unpack("<2Q", secret)
    v0, v1 = k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D ^ 0xEE
    v2, v3 = k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573

    def left(value: int, places: int) -> int:
        return (value << places | value >> (64 - places)) & WORD

    def rounds(count: int) -> None:
        nonlocal v0, v1, v2, v3
        for _ in range(count):
            v0 = (v0 + v1) & WORD
            v1 = left(v1, 13) ^ v0
            v0 = left(v0, 32)
            v2 = (v2 + v3) & WORD
            v3 = left(v3, 16) ^ v2
            v0 = (v0 + v3) & WORD
            v3 = left(v3, 21) ^ v0
            v2 = (v2 + v1) & WORD
            v1 = left(v1, 17) ^ v2
            v2 = left(v2, 32)

    padded = text + bytes(7 - len(text) % 8) + bytes([len(text) % 256])
    for (word,) in struct.iter_unpack("<Q", padded):
        v3 ^= word
        rounds(2)
        v0 ^= word
    v2 ^= 0xEE
    rounds(4)
    first = v0 ^ v1 ^ v2 ^ v3
    v1 ^= 0xDD
    rounds(4)
    return first, v0 ^ v1 ^ v2 ^ v3


def key_id(key: str | bytes, secret: bytes | None) -> int:
    """The id of a key in an index with that secret."""
    assert secret is not None
    raw = key if isinstance(key, bytes) else key.encode("utf-8", "surrogatepass")
    return siphash(raw, secret)[0]
