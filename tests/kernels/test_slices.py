"""Slice lists hold each row once a slice, under the value it has there, in ascending order."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from simindex._kernels import _native

U64 = NDArray[np.uint64]
U32 = NDArray[np.uint32]

WIDTHS = (64, 128, 192, 256, 1024, 4096)


def slice_values(rows: U64, width: int) -> NDArray[np.int64]:
    """(n, s): the bits of each slice as a number, read bit by bit from the top of word 0 on."""
    bits = np.unpackbits(rows.astype(">u8").view(np.uint8), axis=1).astype(np.int64)
    powers = 1 << np.arange(width - 1, -1, -1)
    return bits.reshape(len(rows), rows.shape[1] * 64 // width, width) @ powers


def expected_lists(rows: U64, width: int) -> tuple[U32, U32]:
    """(starts, numbers) by counting and a stable sort of each slice."""
    values = slice_values(rows, width)
    slices = rows.shape[1] * 64 // width
    starts = np.zeros((slices, (1 << width) + 1), np.uint32)
    numbers = np.zeros((slices, len(rows)), np.uint32)
    for number in range(slices):
        counts = np.bincount(values[:, number], minlength=1 << width)
        starts[number, 1:] = np.cumsum(counts)
        numbers[number] = np.argsort(values[:, number], kind="stable")
    return starts, numbers


def shaped(shape: str, n: int, words: int, seed: int = 0) -> U64:
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, 2**64, (n, words), np.uint64)
    if shape == "equal":
        rows[:] = rows[:1]
    elif shape == "few templates":
        rows = rows[rng.integers(0, min(n, 3) or 1, n)] if n else rows
        rows ^= np.uint64(1) << rng.integers(0, 64, rows.shape, np.uint64)
    elif shape == "half equal":
        rows[: n // 2] = 2**64 - 1
    elif shape == "sorted":
        rows = rows[np.argsort(rows[:, 0])]
    return rows


SHAPES = ("uniform", "equal", "few templates", "half equal", "sorted")


def equal(found: tuple[U32, U32], expected: tuple[U32, U32]) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(found, expected, strict=True))


@pytest.mark.parametrize("width", [8, 16])
@pytest.mark.parametrize("bits", WIDTHS)
@pytest.mark.parametrize("n", [0, 1, 300])
@pytest.mark.slow
def test_lists_are_those_of_a_stable_sort(bits: int, width: int, n: int) -> None:
    for shape in SHAPES:
        rows = shaped(shape, n, bits // 64, seed=bits + n)
        found = _native.slice_lists(rows, width, 0, bits // width)
        assert equal(found, expected_lists(rows, width)), shape


@pytest.mark.parametrize("width", [8, 16])
@pytest.mark.parametrize("block_rows", [1, 999, 4096])
@pytest.mark.slow
def test_blocks_and_threads_change_nothing(width: int, block_rows: int) -> None:
    for shape in SHAPES:
        rows = shaped(shape, 5000, 6)
        whole = expected_lists(rows, width)
        for threads in (1, 2, 5):
            found = _native.slice_lists(rows, width, 0, 384 // width, threads, block_rows)
            assert equal(found, whole), (shape, threads)


@settings(max_examples=60)
@given(
    n=st.integers(0, 600), words=st.integers(1, 9), width=st.sampled_from([8, 16]),
    shape=st.sampled_from(SHAPES), seed=st.integers(0, 99), block_rows=st.integers(1, 700),
    data=st.data(),
)
@pytest.mark.slow
def test_some_slices_are_those_of_all(
    n: int, words: int, width: int, shape: str, seed: int, block_rows: int, data: Any
) -> None:
    """Whatever is asked of a builder, in whatever order, and in parts."""
    rows = shaped(shape, n, words, seed)
    starts, numbers = expected_lists(rows, width)
    all_slices = words * 64 // width
    most = data.draw(st.integers(0, all_slices))
    builder = _native.SliceBuilder(rows, width, most, block_rows)
    for _ in range(3):
        count = data.draw(st.integers(0, most))
        first = data.draw(st.integers(0, all_slices - count))
        wanted = starts[first : first + count], numbers[first : first + count]
        assert equal(builder.lists(first, count), wanted)
        assert equal(_native.slice_lists(rows, width, first, count, 2, block_rows), wanted)
    number = data.draw(st.integers(0, all_slices - 1))
    begins = _native.slice_starts(rows, width, number, block_rows)
    assert np.array_equal(begins, starts[number])
    begin = data.draw(st.integers(0, n))
    size = data.draw(st.integers(0, n - begin))
    part = _native.slice_part(rows, width, number, begins, begin, size, block_rows)
    assert np.array_equal(part, numbers[number, begin : begin + size])


@pytest.mark.slow
def test_a_builder_outlives_its_name_and_keeps_its_rows() -> None:
    rows = shaped("uniform", 3000, 4)
    expected = expected_lists(rows, 16)
    builder = _native.SliceBuilder(rows.copy(), 16, 16)
    found = builder.lists(0, 16)
    del builder
    gc.collect()
    assert equal(found, expected)


def test_a_builder_may_be_asked_for_more_of_the_same() -> None:
    """Columns that were turned for fewer words are not taken for those of more."""
    rows = shaped("uniform", 500, 4)
    starts, numbers = expected_lists(rows, 16)
    builder = _native.SliceBuilder(rows, 16, 16)
    for first, count in ((0, 1), (0, 16), (4, 2), (4, 12), (0, 16), (0, 3)):
        wanted = starts[first : first + count], numbers[first : first + count]
        assert equal(builder.lists(first, count), wanted), (first, count)


def test_parts_of_other_starts_touch_no_other_memory() -> None:
    """Starts that are not the rows' own give wrong numbers, and each of them is a row's."""
    rows = shaped("uniform", 1000, 2)
    rng = np.random.default_rng(3)
    for low, high in ((0, 2**32), (2**32 - 3, 2**32), (0, 1)):
        starts = rng.integers(low, high, (1 << 16) + 1).astype(np.uint32)
        part = _native.slice_part(rows, 16, 3, starts, 400, 500)
        assert part.shape == (500,)
        assert int(part.max(initial=0)) < 1000


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((12, 0, 1), "slice_bits"),
        ((32, 0, 1), "slice_bits"),
        ((16, 0, 9), "do not have these slices"),
        ((16, 8, 1), "do not have these slices"),
        ((16, -1, 1), "do not have these slices"),
        ((16, 2**62, 2**62), "do not have these slices"),
        ((16, 0, -1), "do not have these slices"),
        ((16, 0, 1, 0), "threads"),
        ((16, 0, 1, 1, 0), "block_rows"),
        ((16, 0, 1, 1, 2**24 + 1), "block_rows"),
    ],
)
def test_what_cannot_be_is_refused(arguments: tuple[int, ...], words: str) -> None:
    rows = shaped("uniform", 10, 2)
    with pytest.raises(ValueError, match=words):
        _native.slice_lists(rows, *arguments)


def test_arrays_of_other_kinds_are_refused() -> None:
    rows = shaped("uniform", 10, 2)
    for wrong in (rows.astype(np.int64), rows[:, ::-1], rows[:, 0]):
        with pytest.raises(TypeError):
            _native.slice_lists(wrong, 16, 0, 1)
    starts = _native.slice_starts(rows, 16, 0)
    for some, begin, size in ((starts[:-1], 0, 1), (starts, -1, 1), (starts, 5, 6)):
        with pytest.raises(ValueError, match=r"starts|begin"):
            _native.slice_part(rows, 16, 0, some, begin, size)
    builder = _native.SliceBuilder(rows, 16, 2)
    with pytest.raises(ValueError, match="no memory for so many"):
        builder.lists(0, 3)
    with pytest.raises(ValueError, match="do not have"):
        builder.lists(7, 2)
