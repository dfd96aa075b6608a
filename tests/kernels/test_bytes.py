"""Checksums and hashes of bytes, against definitions written out in Python and against mmh3."""

from __future__ import annotations

import errno
import hashlib
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
from siphash import siphash

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


COUNTING = bytes(range(16))
"""The secret of the published test vectors."""


def siphashes(strings: list[bytes], secret: bytes, start: int = 0) -> list[tuple[int, int]]:
    """What the kernel makes of strings that begin `start` bytes into their data."""
    offsets = np.cumsum([start, *map(len, strings)], dtype=np.int64)
    data = as_bytes(noise(start, 5) + b"".join(strings) + noise(3, 6))
    hashes = _native.siphash(data, offsets, as_bytes(secret))
    assert hashes.dtype == np.uint64
    assert hashes.shape == (len(strings), 2)
    return [(int(first), int(second)) for first, second in hashes]


def test_siphash_gives_the_published_vectors() -> None:
    """Those of the authors for 128 bits: the bytes 0, 1, 2, ..., of every length below 64.

    All of them are compared by their digest, three of them in full.
    """
    messages = [bytes(range(size)) for size in range(64)]
    made = [struct.pack("<2Q", *pair) for pair in siphashes(messages, COUNTING)]
    assert made[0].hex() == "a3817f04ba25a8e66df67214c7550293"
    assert made[1].hex() == "da87c1d86b99af44347659119b22fc45"
    assert made[63].hex() == "5150d1772f50834a503e069a973fbd7c"
    digest = "ecfaa9fe47ff788fa834a9863ea2715a2880cd37d2b8c3c194402838428119b9"
    assert hashlib.sha256(b"".join(made)).hexdigest() == digest


@given(
    strings=st.lists(st.binary(max_size=70)), secret=st.binary(min_size=16, max_size=16),
    start=st.integers(0, 9),
)
@settings(deadline=None, max_examples=60)
def test_siphash_equals_its_specification(
    strings: list[bytes], secret: bytes, start: int
) -> None:
    assert siphashes(strings, secret, start) == [siphash(text, secret) for text in strings]


def test_siphash_of_every_length_up_to_300_at_every_alignment() -> None:
    """Beyond 255, where the last byte of the last word starts anew."""
    strings = [noise(size, size) for size in range(301)]
    expected = [siphash(text, COUNTING) for text in strings]
    for start in range(8):
        assert siphashes(strings, COUNTING, start) == expected


def test_siphash_of_one_key_is_that_of_a_heap() -> None:
    for text in (b"", b"a", noise(7), noise(60), noise(256)):
        assert _native.siphash_key(text, COUNTING) == siphash(text, COUNTING)


def test_siphash_of_nothing() -> None:
    assert siphashes([], COUNTING) == []
    assert siphashes([], COUNTING, 4) == []
    nothing = np.zeros(0, np.uint8)
    hashes = _native.siphash(nothing, np.zeros(3, np.int64), as_bytes(COUNTING))
    assert [tuple(row) for row in hashes.tolist()] == [siphash(b"", COUNTING)] * 2


@pytest.mark.parametrize("offsets", [[], [-1, 2], [0, 3, 2], [0, 11], [11], [0, 2**62]])
def test_siphash_refuses_offsets_that_do_not_fit_the_data(offsets: list[int]) -> None:
    with pytest.raises(ValueError, match="offsets"):
        _native.siphash(np.zeros(10, np.uint8), np.array(offsets, np.int64), as_bytes(COUNTING))


@pytest.mark.parametrize("size", [0, 8, 15, 17, 32])
def test_siphash_takes_secrets_of_16_bytes(size: int) -> None:
    with pytest.raises(ValueError, match="secret"):
        _native.siphash(np.zeros(10, np.uint8), np.zeros(2, np.int64), np.zeros(size, np.uint8))
    with pytest.raises(ValueError, match="secret"):
        _native.siphash_key(b"a", bytes(size))


@given(data=st.data(), strings=st.lists(st.sampled_from([b"", b"a", b"b", b"ab"]), min_size=1))
def test_equal_bytes_are_those_of_python(data: st.DataObject, strings: list[bytes]) -> None:
    """Of two heaps in two orders, one of which begins within its data."""
    others = [*data.draw(st.permutations(strings)), b"abc"]
    size = data.draw(st.integers(0, 20))
    rows = data.draw(st.lists(st.integers(0, len(strings) - 1), min_size=size, max_size=size))
    other = data.draw(st.lists(st.integers(0, len(others) - 1), min_size=size, max_size=size))
    equal = _native.equal_bytes(
        np.cumsum([0, *map(len, strings)], dtype=np.int64), as_bytes(b"".join(strings)),
        np.array(rows, np.int64),
        np.cumsum([2, *map(len, others)], dtype=np.int64), as_bytes(b"zz" + b"".join(others)),
        np.array(other, np.int64),
    )
    assert equal.dtype == np.uint8
    assert equal.tolist() == [
        strings[a] == others[b] for a, b in zip(rows, other, strict=True)
    ]


@pytest.mark.parametrize(
    ("offsets", "row"),
    [
        ([0, 2], 1), ([0, 2], -1), ([0, 2], 2**62), ([], 0), ([0], 0), ([-1, 2], 0), ([3, 2], 0),
        ([0, 11], 0), ([11, 11], 0), ([0, 2**62], 0), ([-(2**63), 2**63 - 1], 0),
    ],
)
@pytest.mark.parametrize("first", [True, False])
def test_equal_bytes_follows_no_offset_out_of_its_heap(
    offsets: list[int], row: int, first: bool
) -> None:
    hostile = (np.array(offsets, np.int64), np.zeros(10, np.uint8), np.array([row], np.int64))
    sound = (np.array([0, 4], np.int64), np.zeros(10, np.uint8), np.zeros(1, np.int64))
    heaps = (*hostile, *sound) if first else (*sound, *hostile)
    with pytest.raises(ValueError, match="string"):
        _native.equal_bytes(*heaps)


def test_equal_bytes_reads_only_the_offsets_of_the_rows_named() -> None:
    """A damaged offset elsewhere does not concern them."""
    offsets = np.array([0, 2, -7, 2**60, 4, 6], np.int64)
    data = as_bytes(b"abcdab")
    one, four = np.array([0], np.int64), np.array([4], np.int64)
    assert _native.equal_bytes(offsets, data, one, offsets, data, four).tolist() == [1]


def test_equal_bytes_takes_as_many_rows_of_both() -> None:
    offsets, data = np.zeros(2, np.int64), np.zeros(0, np.uint8)
    rows = np.zeros(2, np.int64)
    with pytest.raises(ValueError, match="length"):
        _native.equal_bytes(offsets, data, rows, offsets, data, rows[:1])


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
    assert len(_native.siphash(data, offsets, as_bytes(COUNTING))) == 1


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
