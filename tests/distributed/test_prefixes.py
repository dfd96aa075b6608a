"""Prefixes share no row, take all rows, and never rule out a row within h."""

from __future__ import annotations

import numpy as np
import oracle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simindex.distributed import prefixes
from simindex.errors import InvalidOption

WORDS = st.integers(0, (1 << 64) - 1)
PREFIXES = st.text("01", max_size=64)


def starts(word: int, prefix: str) -> bool:
    return f"{word:064b}".startswith(prefix)


@settings(max_examples=40)
@given(st.lists(WORDS, max_size=30), st.integers(1, 40))
def test_balanced_prefixes_take_each_row_once(words: list[int], count: int) -> None:
    found = prefixes.balanced(count, np.array(words, np.uint64))
    assert len(found) == count
    assert list(found) == sorted(found)
    for word in [*words, 0, (1 << 64) - 1]:
        assert sum(starts(word, prefix) for prefix in found) == 1


def test_the_fullest_prefix_is_split() -> None:
    words = np.array([0, 1, 2, 3, 1 << 63], np.uint64)
    assert prefixes.balanced(3, words) == ("00", "01", "1")
    assert prefixes.balanced(4, np.empty(0, np.uint64)) == ("00", "01", "10", "11")


def test_rows_that_no_bit_tells_apart_end_in_an_error_not_in_a_loop() -> None:
    words = np.zeros(100, np.uint64)
    assert len(prefixes.balanced(66, words)) == 66
    assert max(map(len, prefixes.balanced(66, words))) == 64


@settings(max_examples=40)
@given(st.lists(WORDS, min_size=1, max_size=20), PREFIXES, st.integers(0, 8))
def test_within_counts_the_bits_of_a_prefix(words: list[int], prefix: str, h: int) -> None:
    rows = np.array(words, np.uint64)[:, None]
    expected = [
        sum(a != b for a, b in zip(f"{word:064b}", prefix, strict=False)) <= h for word in words
    ]
    assert prefixes.within(rows, prefix, h).tolist() == expected
    assert prefixes.begins(rows, prefix).tolist() == [starts(word, prefix) for word in words]


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
    assert (a ^ b).bit_count() >= prefixes.apart(one, other)


@settings(max_examples=40)
@given(st.lists(WORDS, min_size=2, max_size=9, unique=True))
def test_parted_prefixes_take_all_rows_between(words: list[int]) -> None:
    found = prefixes.parted((min(words), max(words)), "")
    assert found is not None
    for word in words:
        assert sum(starts(word, prefix) for prefix in found) == 1
    assert starts(min(words), found[0])
    assert starts(max(words), found[1])


def test_equal_first_words_cannot_be_parted() -> None:
    assert prefixes.parted((7, 7), "") is None


def test_more_shards_than_prefixes_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prefixes, "LONGEST", 2)
    with pytest.raises(InvalidOption, match="shards=5"):
        prefixes.balanced(5, np.empty(0, np.uint64))
