"""Forms of fingerprints, and their distance, against Python's own whole numbers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from simindex.bits.hamming import hamming, pack, to_hex, unpack
from simindex.errors import InvalidBatch

words64 = st.integers(0, 2**64 - 1)
rows = st.tuples(st.integers(0, 5), st.integers(1, 4)).flatmap(
    lambda shape: hnp.arrays(np.uint64, shape, elements=words64)
)
columns = hnp.arrays(np.uint64, st.integers(0, 6), elements=words64)


def from_hex(digits: list[str]) -> np.ndarray:
    words = np.frombuffer(bytes.fromhex("".join(digits)), dtype=">u8").astype(np.uint64)
    return words if len(digits[0]) == 16 else words.reshape(len(digits), -1)


def as_int(row: np.ndarray) -> int:
    return int("".join(f"{int(word):064b}" for word in row), 2)


@given(a=st.integers(0, 2**200), b=st.integers(0, 2**200))
def test_distance_of_numbers_is_a_number(a, b):
    assert hamming(a, b) == bin(a ^ b).count("1")
    assert type(hamming(np.uint64(5), 3)) is int


@given(a=columns, b=words64)
def test_distance_to_one_number_is_that_to_each_row(a, b):
    expected = [bin(x ^ b).count("1") for x in a.tolist()]
    assert hamming(a, b).tolist() == hamming(b, a).tolist() == expected
    assert hamming(a, b).dtype == np.uint16
    assert hamming(a[:, None], b).tolist() == hamming(a.tolist(), b).tolist() == expected


@given(a=rows)
def test_wide_rows_are_compared_whole(a):
    numbers = [as_int(row) for row in a]
    expected = [bin(x ^ y).count("1") for x, y in zip(numbers, numbers[::-1], strict=True)]
    assert hamming(a, a[::-1]).tolist() == expected
    if len(a) and a.shape[1] > 1:
        first = [bin(as_int(row) ^ as_int(a[0])).count("1") for row in a]
        assert hamming(a, a[0]).tolist() == hamming(as_int(a[0]), a).tolist() == first


def test_all_pairs_come_from_broadcasting_with_an_axis_of_words():
    a = np.arange(6, dtype=np.uint64).reshape(3, 2)
    b = np.arange(8, dtype=np.uint64).reshape(4, 2)
    table = hamming(a[:, None, :], b[None, :, :])
    assert table.tolist() == [
        [bin(as_int(x) ^ as_int(y)).count("1") for y in b] for x in a
    ]


def test_a_distance_of_all_4096_bits_fits():
    zeros = np.zeros((2, 64), dtype=np.uint64)
    assert hamming(zeros, ~zeros).tolist() == [4096, 4096]


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (np.zeros(3, dtype=np.uint64), np.zeros(4, dtype=np.uint64)),
        (np.zeros((3, 2), dtype=np.uint64), np.zeros((3, 4), dtype=np.uint64)),
        (np.zeros((3, 2), dtype=np.uint64), np.zeros(3, dtype=np.uint64)),
        (np.zeros(3, dtype=np.int64), np.zeros(3, dtype=np.uint64)),
        (np.zeros(3, dtype=np.uint64), 2**64),
        (np.zeros((3, 2), dtype=np.uint64), -1),
        (-1, 5),
        ("a", 5),
    ],
)
def test_what_cannot_be_compared_is_refused(a, b):
    for left, right in ((a, b), (b, a)):
        with pytest.raises(InvalidBatch):
            hamming(left, right)


@given(a=rows)
def test_hexadecimal_is_the_number_and_comes_back(a):
    digits = to_hex(a)
    assert [int(text, 16) for text in digits] == [as_int(row) for row in a]
    assert all(len(text) == 16 * a.shape[1] for text in digits)
    if len(a):
        back = from_hex(digits)
        assert back.dtype == np.uint64
        assert back.tolist() == (a[:, 0] if a.shape[1] == 1 else a).tolist()


@given(a=rows)
def test_unpacked_bits_are_the_binary_digits_and_pack_back(a):
    bits = unpack(a)
    assert bits.dtype == np.uint8 and bits.shape == (len(a), 64 * a.shape[1])
    for row, expected in zip(bits, a, strict=True):
        assert "".join(map(str, row.tolist())) == f"{as_int(expected):0{64 * a.shape[1]}b}"
    packed = pack(bits)
    assert packed.dtype == np.uint64
    assert packed.tolist() == (a[:, 0] if a.shape[1] == 1 else a).tolist()


def test_bits_of_a_wrong_shape_are_refused():
    for shape in ((64,), (2, 63), (2, 0)):
        with pytest.raises(InvalidBatch):
            pack(np.zeros(shape))
