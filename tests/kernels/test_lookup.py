"""Look-ups by bisection, by interpolation and in a directory, against numpy's searchsorted."""

from __future__ import annotations

from typing import Any

import numpy as np
import oracle
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from simindex._kernels import _native

U64 = NDArray[np.uint64]

PATIENCE = 8
TOP = 2**64 - 1
NO_FLIP = np.zeros((1, 1), np.uint64)

words = st.integers(0, TOP)
crowded = st.integers(0, 3) | st.integers(TOP - 3, TOP) | st.sampled_from([1 << 63, 1 << 40])
quick = settings(deadline=None, max_examples=150)


def expected(rows: U64, queries: U64, flips: U64, header_bits: int) -> tuple[U64, U64]:
    """First and end row of each bucket, (m, k), by numpy, from the headers of the rows alone."""
    def headers(values: U64) -> U64:
        return values >> np.uint64(64 - header_bits) if header_bits else values & np.uint64(0)

    wanted = headers(queries[:, :1] ^ flips)
    stored = headers(rows[:, 0])
    return (
        np.searchsorted(stored, wanted, "left"), np.searchsorted(stored, wanted, "right"),
    )


def most_steps(rows: int, interpolated: bool) -> int:
    return rows.bit_length() + PATIENCE * interpolated


def agree(rows: U64, queries: U64, flips: U64, header_bits: int) -> None:
    first, end = expected(rows, queries, flips, header_bits)
    for interpolated in (False, True):
        found = _native.look_up(rows, queries, flips, header_bits, interpolated)
        assert [column.dtype for column in found] == [np.uint32, np.uint32, np.uint16, np.uint16]
        assert np.array_equal(found[0], first)
        assert np.array_equal(found[1], end)
        assert found[2].max(initial=0) <= most_steps(len(rows), interpolated)
        size = (end - first).max(initial=0)
        assert found[3].max(initial=0) <= 2 * int(size + 1).bit_length()
        assert found[2].min(initial=1) >= (len(rows) > 0)
    if header_bits <= 12:
        for directory_bits in {header_bits, 12}:
            directory = _native.header_directory(
                np.ascontiguousarray(rows[:, 0]), directory_bits
            )
            found = _native.look_up_in_directory(
                directory, directory_bits, len(rows), queries, flips, header_bits
            )
            assert np.array_equal(found[0], first)
            assert np.array_equal(found[1], end)
            assert not found[2].any() and not found[3].any()


@given(
    stored=st.lists(words | crowded, max_size=120),
    repeats=st.integers(1, 4),
    asked=st.lists(words | crowded, max_size=20),
    flips=st.lists(words | crowded, min_size=1, max_size=4),
    header_bits=st.integers(0, 64),
)
@example(stored=[], repeats=1, asked=[0, TOP], flips=[0], header_bits=64)
@example(stored=[0, TOP], repeats=4, asked=[0, TOP], flips=[0, TOP], header_bits=0)
@example(stored=[5], repeats=4, asked=[5, 4, 6], flips=[0, 1], header_bits=64)
@quick
@pytest.mark.slow
def test_buckets_are_those_of_searchsorted(
    stored: list[int], repeats: int, asked: list[int], flips: list[int], header_bits: int
) -> None:
    """Asked for: rows that are there too, and each pattern of the header's ends."""
    rows = np.sort(np.array(stored * repeats, np.uint64))[:, None]
    queries = np.array([*asked, *stored[:5]], np.uint64)[:, None]
    agree(rows, queries, np.array([flips], np.uint64), header_bits)


def shapes(n: int) -> dict[str, U64]:
    """Rows of many kinds: those that mislead interpolation among them."""
    rng = np.random.default_rng(n)
    uniform = oracle.uniform(rng, n)[:, 0]
    return {
        "uniform": uniform,
        "skewed": oracle.skewed(rng, n, templates=30)[:, 0],
        "equal": np.full(n, 12345 << 40, np.uint64),
        "zero": np.zeros(n, np.uint64),
        "top": np.full(n, TOP, np.uint64),
        "any length": uniform >> rng.integers(0, 64, n, dtype=np.uint64),
        "doubling": np.uint64(1) << rng.integers(0, 64, n, dtype=np.uint64),
        "all low but one": np.append(np.arange(n - 1, dtype=np.uint64), np.uint64(TOP)),
        "all high but one": np.append(
            np.uint64(TOP) - np.arange(n - 1, dtype=np.uint64), np.uint64(0)
        ),
        "two ends": np.where(uniform & np.uint64(1), np.uint64(TOP), np.uint64(0)),
    }


@pytest.mark.parametrize("n", [1, 2, 7, 8, 9, 255, 256, 5000])
@pytest.mark.parametrize("shape", list(shapes(2)))
def test_buckets_of_every_shape_of_rows(shape: str, n: int) -> None:
    """Steps never exceed those of bisection by more than the patience, however rows are spread."""
    stored = np.sort(shapes(n)[shape])
    rng = np.random.default_rng(3)
    near = stored[rng.integers(0, n, 60)] ^ (
        np.uint64(1) << rng.integers(0, 64, 60, dtype=np.uint64)
    )
    queries = np.concatenate([
        stored[rng.integers(0, n, 60)], near, oracle.uniform(rng, 40)[:, 0],
        np.array([0, 1, 1 << 63, TOP - 1, TOP], np.uint64),
    ])
    for header_bits in (0, 1, 5, 12, 31, 63, 64):
        agree(stored[:, None], queries[:, None], NO_FLIP, header_bits)


@pytest.mark.parametrize("width", [2, 3, 64])
@pytest.mark.slow
def test_wide_rows_are_looked_up_by_their_first_word(width: int) -> None:
    rng = np.random.default_rng(width)
    rows = oracle.skewed(rng, 900, width, templates=20)
    rows = np.ascontiguousarray(rows[np.argsort(rows[:, 0], kind="stable")])
    queries = np.ascontiguousarray(rows[::9] ^ np.uint64(1 << 60))
    for header_bits in (0, 8, 12, 64):
        agree(rows, queries, np.array([[0, 1 << 60, 1 << 63]], np.uint64), header_bits)


def test_each_query_may_have_flips_of_its_own() -> None:
    rng = np.random.default_rng(1)
    rows = np.sort(oracle.uniform(rng, 3000), axis=0)
    queries, flips = oracle.uniform(rng, 50), oracle.uniform(rng, 50, 7)
    agree(rows, queries, flips, 9)
    agree(rows, queries, flips[:, :0].copy(), 9)
    agree(rows, queries[:0], flips[:0], 9)


def test_interpolation_touches_few_of_uniform_rows_and_never_many() -> None:
    rng = np.random.default_rng(4)
    rows = np.sort(oracle.uniform(rng, 1 << 17), axis=0)
    queries = oracle.uniform(rng, 4000)
    bisected = _native.look_up(rows, queries, NO_FLIP, 14, False)[2]
    jumped = _native.look_up(rows, queries, NO_FLIP, 14, True)[2]
    assert bisected.mean() > 16
    assert jumped.mean() < 7
    # All but one below 2^24: plain interpolation would touch one after the other, from the front.
    low = np.sort(oracle.uniform(rng, 1 << 17)[:, 0] >> np.uint64(40))
    low[-1] = TOP
    asked = low[rng.integers(0, len(low), 1000)][:, None]
    misled = _native.look_up(low[:, None], asked, NO_FLIP, 64, True)[2]
    assert misled.max() <= most_steps(1 << 17, True)
    assert misled.mean() > 10


def test_rows_out_of_order_give_rows_that_are_there() -> None:
    rng = np.random.default_rng(5)
    rows, queries = oracle.uniform(rng, 777), oracle.uniform(rng, 500)
    for interpolated in (False, True):
        first, end, steps, _ = _native.look_up(rows, queries, NO_FLIP, 3, interpolated)
        assert (first <= end).all() and (end <= 777).all()
        assert steps.max() <= most_steps(777, interpolated)


def test_a_damaged_directory_leads_nowhere_else() -> None:
    rng = np.random.default_rng(6)
    directory = rng.integers(0, 2**32, 17, dtype=np.uint32)
    first, end, _, _ = _native.look_up_in_directory(
        directory, 4, 100, oracle.uniform(rng, 500), NO_FLIP, 4
    )
    assert (first <= end).all() and (end <= 100).all()


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"rows": np.zeros((3, 2), np.uint64)}, "words"),
        ({"flips": np.zeros((3, 1), np.uint64)}, "flips"),
        ({"flips": np.zeros((0, 1), np.uint64)}, "flips"),
        ({"header_bits": -1}, "header_bits"),
        ({"header_bits": 65}, "header_bits"),
        ({"rows": np.zeros((3, 0), np.uint64), "queries": np.zeros((2, 0), np.uint64)}, "words"),
        ({"rows": np.zeros(25, np.uint8)[1:].view(np.uint64)[:, None]}, "aligned"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(change: dict[str, Any], match: str) -> None:
    given = {
        "rows": np.zeros((3, 1), np.uint64), "queries": np.zeros((2, 1), np.uint64),
        "flips": NO_FLIP, "header_bits": 4, "interpolated": True, **change,
    }
    with pytest.raises(ValueError, match=match):
        _native.look_up(**given)


@pytest.mark.parametrize(
    ("entries", "directory_bits", "rows", "header_bits", "match"),
    [
        (17, 3, 9, 3, "entries"), (17, 4, -1, 3, "rows"), (17, 4, 1 << 32, 3, "rows"),
        (17, 4, 9, 5, "header_bits"), (17, 4, 9, -1, "header_bits"),
        (17, 33, 9, 3, "directory_bits"), (17, -1, 9, 3, "directory_bits"),
    ],
)
def test_a_directory_that_does_not_fit_is_refused(
    entries: int, directory_bits: int, rows: int, header_bits: int, match: str
) -> None:
    with pytest.raises(ValueError, match=match):
        _native.look_up_in_directory(
            np.zeros(entries, np.uint32), directory_bits, rows, np.zeros((2, 1), np.uint64),
            NO_FLIP, header_bits,
        )
