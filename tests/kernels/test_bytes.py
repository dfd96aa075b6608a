"""Checksums and hashes of bytes, against a checksum written bit by bit and against mmh3."""

from __future__ import annotations

import errno
import os
import struct
import sys
from pathlib import Path

import mmh3
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from simindex._kernels import LEVELS, _native

levels = pytest.mark.parametrize("level", range(-1, len(LEVELS)))


def bitwise_crc32c(data: bytes, initial: int = 0) -> int:
    """CRC-32C by its definition, one bit at a time."""
    register = ~initial & 0xFFFFFFFF
    for byte in data:
        register ^= byte
        for _ in range(8):
            register = (register >> 1) ^ (0x82F63B78 if register & 1 else 0)
    return ~register & 0xFFFFFFFF


def as_bytes(data: bytes) -> NDArray[np.uint8]:
    return np.frombuffer(data, np.uint8)


def noise(size: int, seed: int = 1) -> bytes:
    return np.random.default_rng(seed).bytes(size)


@levels
def test_crc32c_gives_the_published_check_values(level: int) -> None:
    """The check value of the polynomial, and the examples of RFC 3720, section B.4."""
    assert _native.crc32c(as_bytes(b"123456789"), level=level) == 0xE3069283
    assert _native.crc32c(as_bytes(bytes(32)), level=level) == 0x8A9136AA
    assert _native.crc32c(as_bytes(b"\xff" * 32), level=level) == 0x62A8AB43
    assert _native.crc32c(as_bytes(bytes(range(32))), level=level) == 0x46DD794E


@levels
def test_crc32c_of_every_short_length_at_every_alignment(level: int) -> None:
    data = noise(90)
    array = as_bytes(data)
    for start in range(9):
        for size in range(len(data) - start):
            expected = bitwise_crc32c(data[start : start + size])
            assert _native.crc32c(array[start : start + size], level=level) == expected


@levels
def test_crc32c_of_lengths_around_the_interleaved_stretches(level: int) -> None:
    """384 and 6144 bytes are the rounds of the three registers."""
    data = noise(13_000, 2)
    for size in (127, 128, 383, 384, 385, 767, 768, 6143, 6144, 6145, 6144 + 391, 12_288, 13_000):
        assert _native.crc32c(as_bytes(data[:size]), level=level) == bitwise_crc32c(data[:size])


@levels
@given(data=st.binary(max_size=900), cut=st.integers(0, 900))
@settings(deadline=None, max_examples=60)
def test_crc32c_continues_from_the_sum_of_what_came_before(
    level: int, data: bytes, cut: int
) -> None:
    head, tail = data[:cut], data[cut:]
    first = _native.crc32c(as_bytes(head), level=level)
    assert _native.crc32c(as_bytes(tail), first, level) == bitwise_crc32c(data)


def test_crc32c_of_nothing_is_what_came_before() -> None:
    assert _native.crc32c(np.zeros(0, np.uint8), 0xDEADBEEF) == 0xDEADBEEF


@levels
@pytest.mark.parametrize("size", [0, 1, 63, 64, 65, 128, 200])
def test_chunk_sums_depend_on_the_seed_and_the_place(level: int, size: int) -> None:
    data = noise(size, 3)
    seed, first = 2**64 - 5, 2**63 + 1
    sums = _native.crc32c_chunks(as_bytes(data), 64, seed, first, level)
    expected = [
        bitwise_crc32c(data[at : at + 64], bitwise_crc32c(struct.pack("<QQ", seed, first + i)))
        for i, at in enumerate(range(0, size, 64))
    ]
    assert sums.dtype == np.uint32
    assert sums.tolist() == expected


def test_equal_chunks_in_other_places_have_other_sums() -> None:
    sums = _native.crc32c_chunks(np.zeros(640, np.uint8), 64, 7)
    assert len(set(sums.tolist())) == 10
    assert not np.any(sums == _native.crc32c_chunks(np.zeros(640, np.uint8), 64, 8))


@pytest.mark.parametrize("chunk_bytes", [0, -1])
def test_chunks_without_a_size_are_refused(chunk_bytes: int) -> None:
    with pytest.raises(ValueError, match="chunk_bytes"):
        _native.crc32c_chunks(np.zeros(4, np.uint8), chunk_bytes, 0)


def test_a_chunk_longer_than_the_data_is_one_chunk() -> None:
    assert len(_native.crc32c_chunks(np.zeros(4, np.uint8), 2**62, 0)) == 1


@given(strings=st.lists(st.binary(max_size=70)), seed=st.integers(0, 2**32 - 1))
@settings(deadline=None)
def test_murmur3_equals_mmh3(strings: list[bytes], seed: int) -> None:
    offsets = np.cumsum([0, *map(len, strings)], dtype=np.int64)
    hashes = _native.murmur3(as_bytes(b"".join(strings)), offsets, seed)
    assert hashes.dtype == np.uint64
    assert hashes.shape == (len(strings), 2)
    assert [tuple(row) for row in hashes.tolist()] == [
        mmh3.hash64(text, seed, signed=False) for text in strings
    ]


def test_murmur3_of_every_length_up_to_100() -> None:
    data = noise(5050, 4)
    offsets = np.cumsum([0, *range(101)], dtype=np.int64)
    hashes = _native.murmur3(as_bytes(data), offsets)
    for size, begin in enumerate(offsets[:-1].tolist()):
        text = data[begin : begin + size]
        assert tuple(hashes[size].tolist()) == mmh3.hash64(text, 0, signed=False)


@pytest.mark.parametrize("offsets", [[], [-1, 2], [0, 3, 2], [0, 11], [11], [0, 2**62]])
def test_murmur3_refuses_offsets_that_do_not_fit_the_data(offsets: list[int]) -> None:
    with pytest.raises(ValueError, match="offsets"):
        _native.murmur3(np.zeros(10, np.uint8), np.array(offsets, np.int64))


@pytest.mark.parametrize(
    "data", [np.zeros(4, np.int8), np.zeros(8, np.uint8)[::2], np.zeros((2, 2), np.uint8)]
)
def test_arrays_of_another_kind_are_refused_not_copied(data: NDArray[np.uint8]) -> None:
    with pytest.raises(TypeError):
        _native.crc32c(data)


def test_memory_that_cannot_be_written_is_read() -> None:
    data = as_bytes(bytes(100))
    assert not data.flags.writeable
    offsets = np.array([0, 100], np.int64)
    offsets.setflags(write=False)
    assert _native.crc32c(data) == bitwise_crc32c(bytes(100))
    assert len(_native.crc32c_chunks(data, 10, 0)) == 10
    assert len(_native.murmur3(data, offsets)) == 1


def test_write_back_returns_what_went_wrong(tmp_path: Path) -> None:
    """An errno, or 0; the bytes are the file's either way."""
    path = tmp_path / "file"
    path.write_bytes(bytes(range(256)) * 64)
    with path.open("r+b") as file:
        for wait in (False, True):
            assert _native.write_back(file.fileno(), 0, 1 << 14, wait) == 0
    assert path.read_bytes() == bytes(range(256)) * 64
    if sys.platform == "linux":
        assert _native.write_back(file_descriptor_of_nothing(), 0, 1, True) == errno.EBADF


def file_descriptor_of_nothing() -> int:
    fd = os.open(os.devnull, os.O_RDONLY)
    os.close(fd)
    return fd
