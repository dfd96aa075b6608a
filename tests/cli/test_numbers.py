"""Numbers as people type them."""

from __future__ import annotations

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simindex.cli.numbers import MOST, MOST_BYTES, Count, Id, Share, Size, as_size


@pytest.mark.parametrize(
    ("typed", "number"),
    [
        ("0", 0), ("7", 7), ("10_000", 10_000), ("60,000,000", 60_000_000), ("10M", 10_000_000),
        ("1.5k", 1500), ("2 m", 2_000_000), ("8e9", 8 * 10**9), ("1.25e2", 125), ("3G", 3 * 10**9),
        ("3B", 3 * 10**9), ("1T", 10**12), (" 5 ", 5),
    ],
)
def test_counts_may_have_a_letter_an_exponent_and_separators(typed: str, number: int) -> None:
    """Letters stand for powers of 1000: M is a million."""
    assert Count().convert(typed, None, None) == number


@pytest.mark.parametrize(
    "typed", ["", "many", "-1", "1.5", "1.0005k", "1e", "inf", "nan", "1e999", "M", "1_M_", "0x10",
              "١", "10 MB", "_5", "1e400T"],
)
def test_what_is_no_count_is_refused(typed: str) -> None:
    refusal = r"is not a whole number of 0 or more(, or too large)?: give one"
    with pytest.raises(click.BadParameter, match=refusal):
        Count().convert(typed, None, None)


def test_bounds_are_kept() -> None:
    assert Count(1).convert("1", None, None) == 1
    for typed, least, most in (("0", 1, MOST), ("9", 0, 8), (str(MOST + 1), 0, MOST)):
        with pytest.raises(click.BadParameter):
            Count(least, most).convert(typed, None, None)


@given(st.integers(0, MOST))
def test_every_number_is_read_as_python_writes_it(number: int) -> None:
    for typed in (str(number), f"{number:,}", f"{number:_}"):
        assert Count().convert(typed, None, None) == number


@pytest.mark.parametrize(
    ("typed", "size"),
    [
        ("80", 80), ("1B", 1), ("64G", 64 << 30), ("64GiB", 64 << 30), ("64GB", 64 * 10**9),
        ("1.5m", 3 << 19), ("80k", 81920), ("1,024", 1024), ("10_000", 10_000), (" 2T ", 2 << 40),
    ],
)
def test_sizes_are_binary_unless_they_end_in_b(typed: str, size: int) -> None:
    assert Size().convert(typed, None, None) == size


@pytest.mark.parametrize("typed", ["", "much", "-1", "1e9", "5X", "G", "99999999T", "1.G"])
def test_what_is_no_size_is_refused(typed: str) -> None:
    with pytest.raises(click.BadParameter, match="is not a size"):
        Size().convert(typed, None, None)
    assert Size().convert(str(MOST_BYTES), None, None) == MOST_BYTES


@pytest.mark.parametrize(
    ("size_bytes", "told"),
    [
        (0, "0"), (80, "80"), (1000, "1000"), (1024, "1K"), (6 << 30, "6G"), (83_126_954, "80M"),
        (1_300_000_000, "1240M"), (64 * 10**9, "60G"), (10 << 20, "10M"), ((10 << 20) + 1, "11M"),
    ],
)
def test_sizes_are_told_as_they_are_typed(size_bytes: int, told: str) -> None:
    assert as_size(size_bytes) == told


@given(st.integers(0, MOST_BYTES))
def test_a_told_size_holds_the_bytes(size_bytes: int) -> None:
    """Somebody types it and gets no second refusal, nor much more than is needed."""
    typed = Size().convert(as_size(size_bytes), None, None)
    assert size_bytes <= typed <= 1.1 * size_bytes


def test_shares_and_ids_are_numbers() -> None:
    """A comma is not a decimal point, and an id has 64 bits."""
    assert Share().convert("0.95", None, None) == 0.95
    assert Id().convert(str(2**64 - 1), None, None) == 2**64 - 1
    with pytest.raises(click.BadParameter, match=r"give one like 0\.95"):
        Share().convert("0,95", None, None)
    for typed in ("-1", "a", "1.0", "", str(2**64), "١"):
        with pytest.raises(click.BadParameter, match="is not an id: give a whole number"):
            Id().convert(typed, None, None)
