"""Codes keep the order of bits, every distance, and come back as they were."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import simindex
from simindex.compat.faiss import from_codes, to_codes
from simindex.errors import InvalidBatch

WIDTHS = (1, 2, 4, 16)


def codes_of(seed: int, n: int, words: int) -> NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, 256, (n, 8 * words), dtype=np.uint8)


@given(st.integers(0, 9), st.integers(0, 20), st.sampled_from(WIDTHS))
def test_codes_come_back(seed: int, n: int, words: int) -> None:
    codes = codes_of(seed, n, words)
    rows = from_codes(codes)
    assert rows.dtype == np.uint64
    assert rows.shape == (n, words)
    assert rows.flags.c_contiguous
    assert np.array_equal(to_codes(rows), codes)


@given(st.integers(0, 9), st.sampled_from(WIDTHS))
def test_bits_keep_their_order(seed: int, words: int) -> None:
    """Bit 63 of word 0 comes first, as bit 7 of byte 0 does."""
    codes = codes_of(seed, 3, words)
    rows = from_codes(codes).tolist()
    bits = [[int(bit) for word in row for bit in f"{word:064b}"] for row in rows]
    assert bits == np.unpackbits(codes, axis=1).tolist()


def test_parts_of_arrays_and_a_dimension_of_words_are_taken() -> None:
    codes = codes_of(1, 10, 2)
    assert np.array_equal(from_codes(codes[::2]), from_codes(codes)[::2])
    assert np.array_equal(from_codes(codes[:, :8]), from_codes(codes)[:, :1])
    assert to_codes(np.array([1], np.uint64)).tolist() == [[0] * 7 + [1]]
    assert to_codes(simindex.Batch([1, 2]).fingerprints).shape == (2, 8)


@pytest.mark.parametrize(
    ("codes", "said"),
    [
        (np.zeros((2, 8), np.int8), "codes are int8"),
        (np.zeros(8, np.uint8), r"of shape \(8,\)"),
        (np.zeros((2, 9), np.uint8), "codes of 72 bits"),
        (np.zeros((2, 0), np.uint8), "codes of 0 bits"),
        ("text", "not uint8"),
    ],
)
def test_what_is_no_code_is_refused(codes: object, said: str) -> None:
    with pytest.raises(InvalidBatch, match=said) as raised:
        from_codes(codes)
    assert raised.value.remedy


def test_distances_are_those_of_faiss() -> None:
    faiss = pytest.importorskip("faiss", reason="faiss-cpu is not installed")
    rng = np.random.default_rng(2)
    rows = rng.integers(0, 2**64, (500, 2), dtype=np.uint64)
    asked = rows[:20].copy()
    asked[:, 1] ^= np.uint64(5)
    flat = faiss.IndexBinaryFlat(128)
    flat.add(to_codes(rows))
    limits, distances, found = flat.range_search(to_codes(asked), 41)
    expected = {
        (query, int(found[at]), int(distances[at]))
        for query in range(len(asked)) for at in range(limits[query], limits[query + 1])
    }
    one, other = asked[:, None, :], rows[None, :, :]
    apart = np.bitwise_count(one ^ other).sum(axis=2)
    own = {(int(q), int(r), int(apart[q, r])) for q, r in np.argwhere(apart <= 40)}
    assert own == expected
    assert np.array_equal(from_codes(faiss.vector_to_array(flat.xb).reshape(500, 16)), rows)
