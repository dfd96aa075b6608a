"""Regions share no row, take all rows, and never rule out a row within h."""

from __future__ import annotations

import numpy as np
import oracle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simindex.distributed import regions
from simindex.errors import InvalidOption

WORDS = st.integers(0, (1 << 64) - 1)
PREFIXES = st.text("01", max_size=64)


def starts(word: int, prefix: str) -> bool:
    return f"{word:064b}".startswith(prefix)


@settings(max_examples=40)
@given(st.lists(WORDS, max_size=30), st.integers(1, 40))
def test_balanced_prefixes_take_each_row_once(words: list[int], count: int) -> None:
    found = regions.balanced(count, np.array(words, np.uint64))
    assert len(found) == count
    assert list(found) == sorted(found)
    for word in [*words, 0, (1 << 64) - 1]:
        assert sum(starts(word, prefix) for prefix in found) == 1


def test_the_fullest_prefix_is_split() -> None:
    words = np.array([0, 1, 2, 3, 1 << 63], np.uint64)
    assert regions.balanced(3, words) == ("00", "01", "1")
    assert regions.balanced(4, np.empty(0, np.uint64)) == ("00", "01", "10", "11")


def test_rows_that_no_bit_tells_apart_end_in_an_error_not_in_a_loop() -> None:
    words = np.zeros(100, np.uint64)
    assert len(regions.balanced(66, words)) == 66
    assert max(map(len, regions.balanced(66, words))) == 64


@settings(max_examples=40)
@given(st.lists(WORDS, min_size=1, max_size=20), PREFIXES, st.integers(0, 8))
def test_within_counts_the_bits_of_a_prefix(words: list[int], prefix: str, h: int) -> None:
    rows = np.array(words, np.uint64)[:, None]
    expected = [
        sum(a != b for a, b in zip(f"{word:064b}", prefix, strict=False)) <= h for word in words
    ]
    assert regions.within(rows, prefix, h).tolist() == expected
    assert regions.inside(rows, prefix).tolist() == [starts(word, prefix) for word in words]


@settings(max_examples=40)
@given(PREFIXES, PREFIXES, st.integers(0, 100))
def test_rows_of_two_prefixes_differ_at_least_as_prefixes_do(
    one: str, other: str, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    a, b = (
        int((prefix + f"{int(oracle.uniform(rng, 1)[0, 0]):064b}")[:64], 2)
        for prefix in (one, other)
    )
    assert (a ^ b).bit_count() >= regions.apart(one, other)


@settings(max_examples=40)
@given(
    st.lists(WORDS, min_size=2, max_size=9, unique=True), st.lists(WORDS, max_size=20),
    st.integers(0, 60), st.booleans(),
)
def test_parted_regions_take_all_that_the_region_took(
    words: list[int], others: list[int], shared: int, below: bool
) -> None:
    """Also of rows that share leading bits, and of a region that was parted before."""
    mask = (1 << 64 - shared) - 1
    words = sorted({words[0] & ~mask | word & mask for word in words})
    region = ""
    while len(words) > 1:
        found = regions.parted((words[0], words[-1]), region)
        assert found is not None
        assert all(map(regions.is_region, found))
        for word in [*words, *others, 0, (1 << 64) - 1]:
            row = np.array([[word]], np.uint64)
            taken = [bool(regions.inside(row, one)[0]) for one in found]
            assert sum(taken) == regions.inside(row, region)[0]
        first, second = (
            [word for word in words if regions.inside(np.array([[word]], np.uint64), one)[0]]
            for one in found
        )
        assert first + second == words
        assert first and second
        region, words = (found[0], first) if below else (found[1], second)


def test_a_parted_region_is_a_list_of_prefixes() -> None:
    assert regions.parted((0b0010 << 60, 0b0011 << 60), "") == ("000,0010", "0011,01,1")
    assert regions.parted((0b0011 << 60, 0b01 << 62), "0011,01,1") == ("0011", "01,1")
    assert regions.said("000,0010") == "begin with 000 or 0010"
    for wrong in ("0,", ",1", "1,0", "0,01", "0,0", "0, 1", "0,3-4"):
        assert not regions.is_region(wrong)


LISTS = st.lists(st.text("01", min_size=1, max_size=5), min_size=1, max_size=5)


@settings(max_examples=60)
@given(LISTS, LISTS, WORDS, WORDS, st.integers(0, 6))
def test_no_row_within_h_of_several_prefixes_is_outside(
    one: list[str], other: list[str], word: int, second: int, h: int
) -> None:
    a, b = ",".join(one), ",".join(other)
    rows = np.array([[word]], np.uint64)
    expected = min(
        sum(x != y for x, y in zip(f"{word:064b}", prefix, strict=False)) for prefix in one
    )
    assert bool(regions.within(rows, a, h)[0]) == (expected <= h)
    if regions.inside(rows, a)[0] and regions.inside(np.array([[second]], np.uint64), b)[0]:
        assert (word ^ second).bit_count() >= regions.apart(a, b)
    assert regions.apart(a, b) == regions.apart(b, a)


def test_equal_first_words_cannot_be_parted() -> None:
    assert regions.parted((7, 7), "") is None


def test_more_shards_than_prefixes_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regions, "LONGEST", 2)
    with pytest.raises(InvalidOption, match="shards=5"):
        regions.balanced(5, np.empty(0, np.uint64))


ROWS = st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=30)


@settings(max_examples=40)
@given(ROWS, st.integers(1, 40), st.booleans())
def test_ranges_take_each_row_once(words: list[tuple[int, int]], count: int, known: bool) -> None:
    rows = np.array(words, np.uint64)
    found = regions.ranges(count, 128, rows if known else None)
    assert len(found) == count
    assert all(map(regions.is_region, found))
    taken = np.stack([regions.inside(rows, region) for region in found])
    assert taken.sum(axis=0).tolist() == [1] * len(rows)
    assert regions.places_in(rows, found).tolist() == np.argmax(taken, axis=0).tolist()


@settings(max_examples=40)
@given(ROWS, st.integers(0, 128), st.integers(0, 128), st.integers(0, 8), st.integers(0, 100))
def test_no_row_within_h_is_outside(
    words: list[tuple[int, int]], one: int, other: int, h: int, seed: int
) -> None:
    rows = np.array(words, np.uint64)
    region = f"{min(one, other)}-{max(one, other)}"
    near = oracle.flip(np.random.default_rng(seed), rows, h)
    stored = regions.inside(rows, region)
    assert regions.within(near, region, h)[stored].all()
    ones = [a.bit_count() + (b >> 1).bit_count() for a, b in words]
    low, high = min(one, other), max(one, other)
    assert stored.tolist() == [low <= count <= high for count in ones]
    assert regions.within(rows, region, h).tolist() == [
        low - h <= count <= high + h for count in ones
    ]


def test_ranges_are_apart_by_what_is_between_them() -> None:
    assert regions.apart("0-29", "33-64") == regions.apart("33-64", "0-29") == 4
    assert regions.apart("0-31", "32-64") == 1
    assert regions.apart("0-31", "31-64") == regions.apart("0-64", "3-4") == 0
    assert regions.apart("0-31", "0101") == regions.apart("", "7-9") == 0


def test_a_range_is_halved_where_its_rows_are() -> None:
    held = np.zeros(65, np.int64)
    held[[10, 20, 21]] = [5, 4, 1]
    assert regions.halved(held, "3-30") == ("3-10", "11-30")
    held[[10, 21]] = [1, 2]
    assert regions.halved(held, "3-30") == ("3-20", "21-30")
    held[[20, 21]] = 0
    assert regions.halved(held, "3-30") is None


def test_more_shards_than_numbers_of_ones_are_refused() -> None:
    assert len(regions.ranges(64, 64, None)) == 64
    with pytest.raises(InvalidOption, match="shards=65"):
        regions.ranges(65, 64, None)
