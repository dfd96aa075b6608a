"""Bars as SVG."""

from __future__ import annotations

from xml.etree.ElementTree import Element, fromstring

import pytest

from simindex.reporting.charts import bars, rounded, short


def drawn(values: list[tuple[str, int]], told: str = "") -> Element:
    return fromstring(bars(values, told=told, across="x"))  # noqa: S314 - it was made here


@pytest.mark.parametrize(("number", "told"), [
    (0, "0"), (999, "999"), (1000, "1 k"), (1234, "1.2 k"), (12_345, "12 k"), (999_999, "1000 k"),
    (3.4e9, "3.4 G"), (2e12, "2 T"),
])
def test_numbers_are_short(number: float, told: str) -> None:
    assert short(number) == told


@pytest.mark.parametrize(("number", "top"), [
    (0, 2), (1, 2), (3, 4), (5, 6), (7, 10), (10, 10), (11, 20), (61, 100), (169, 200),
    (10**9, 10**9),
])
def test_the_axis_ends_at_a_round_number(number: int, top: int) -> None:
    assert rounded(number) == top


def test_bars_are_as_high_as_their_values() -> None:
    svg = drawn([("<a>", 50), ("b", 100), ("c", 0)], "&")
    heights = [float(one.attrib["height"]) for one in svg.iter("rect")]
    assert heights[1] == pytest.approx(2 * heights[0]) and heights[2] == 0
    assert svg.attrib["aria-label"] == "&"
    assert [one.text for one in svg.iter("title")] == ["<a>: 50", "b: 100", "c: 0"]


def test_small_values_are_seen() -> None:
    svg = drawn([("a", 1), ("b", 10**9)])
    assert all(float(one.attrib["height"]) >= 1.5 for one in svg.iter("rect"))


def test_many_bars_have_no_numbers_that_touch() -> None:
    few, many = (bars([(str(n), n) for n in range(count)], told="", across="") for count in (9, 10))
    assert "value" in few and "value" not in many
    assert bars([], told="", across="") == ""
