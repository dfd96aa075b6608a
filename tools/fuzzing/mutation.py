"""Mutations of bytes from a seed: bits, numbers, stretches, and parts of other inputs."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

NUMBERS = (
    0, 1, 2, 7, 63, 64, 65, 127, 128, 255, 256, 4095, 4096, 65535, 65536, (1 << 31) - 1, 1 << 31,
    (1 << 32) - 1, 1 << 32, (1 << 61) + 1, (1 << 63) - 1, 1 << 63, (1 << 64) - 1,
)
"""Numbers at which sizes and counts wrap, and their neighbours."""


def mutated(rng: Random, inputs: Sequence[bytes]) -> bytes:
    """One of the inputs with one to eight things changed."""
    data = bytearray(rng.choice(inputs))
    for _ in range(1 << rng.randrange(4)):
        _change(rng, data, inputs)
    return bytes(data)


def _change(rng: Random, data: bytearray, inputs: Sequence[bytes]) -> None:
    # Headers come first: half of all changes are made among the first bytes that are not 0.
    end = len(data) if rng.random() < 0.5 else min(len(data), 400)
    at = rng.randrange(end + 1)
    size = min(1 << rng.randrange(10), len(data) - at)
    match rng.randrange(9):
        case 0 | 1 if at < len(data):
            data[at] ^= 1 << rng.randrange(8)
        case 2 if at < len(data):
            data[at] = rng.randrange(256)
        case 3 | 4:
            width = rng.choice((1, 2, 4, 8))
            number = rng.choice(NUMBERS) if rng.random() < 0.8 else rng.getrandbits(64)
            at -= at % width
            data[at : at + width] = (number & ((1 << 8 * width) - 1)).to_bytes(
                width, rng.choice(("little", "big"))
            )
        case 5:
            del data[at : at + size]
        case 6:
            data[at:at] = data[at : at + size]
        case 7:
            other = rng.choice(inputs)
            start = rng.randrange(len(other) + 1)
            data[at : at + size] = other[start : start + size]
        case 8 if rng.random() < 0.1:
            del data[at:]
        case _:
            data[at : at + size] = bytes([rng.choice((0, 0x80, 0xFF))]) * size
