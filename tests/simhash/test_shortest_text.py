"""The shortest text of which a recipe finds edits: a table, and how it is looked up."""

from __future__ import annotations

from itertools import pairwise

import pages
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simindex.simhash.features import UNITS
from simindex.simhash.shortest_text import SHORTEST, SMALLEST_RADIUS, radius_for, shortest_text
from simindex.simhash.weighting import WEIGHTINGS

KINDS = sorted(SHORTEST)


def test_rows_are_of_recipes_that_can_be_and_fall_with_the_radius() -> None:
    for (unit, sizes, weighting), widths in SHORTEST.items():
        assert unit in UNITS and weighting in WEIGHTINGS and sizes == tuple(sorted(sizes))
        assert min(widths) == 64, "every recipe has the least width"
        for row in widths.values():
            assert all(before >= after > 0 for before, after in pairwise(row))


def test_the_radius_of_each_place_in_a_row() -> None:
    kind = ("word", (1,), "tfidf")
    row = SHORTEST[kind][64]
    for place, least in enumerate(row):
        assert shortest_text(64, *kind, place + 3) == least
    assert shortest_text(64, *kind, 0) == row[0]
    assert shortest_text(64, *kind, 64) == row[-1]
    assert [shortest_text(256, *kind, h) for h in (27, 28, 31, 32)] == [
        SHORTEST[kind][256][place] for place in (3, 4, 4, 5)
    ]


def test_a_width_that_is_not_in_the_table_counts_as_the_next_smaller_one() -> None:
    kind = ("word", (1,), "tfidf")
    for bits, width in ((192, 128), (320, 256), (4096, 256)):
        for h in range(3, 10):
            known = shortest_text(width, *kind, h * width // 64)
            assert shortest_text(bits, *kind, h * bits // 64) == known


@pytest.mark.parametrize(
    ("unit", "sizes", "weighting"),
    [("char", (1,), "tfidf"), ("word", (4,), "tf"), ("word", (1,), "given")],
)
def test_nothing_is_known_of_other_recipes(unit: str, sizes: tuple[int, ...], weighting: str) -> (
    None
):
    assert shortest_text(64, unit, sizes, weighting, 7) is None
    assert radius_for(64, unit, sizes, weighting, 1000) is None


@given(kind=st.sampled_from(KINDS), bits=st.sampled_from([64, 128, 256]), least=st.integers(1, 400))
def test_the_radius_for_a_length_is_the_smallest_at_which_it_is_enough(
    kind: tuple[str, tuple[int, ...], str], bits: int, least: int
) -> None:
    h = radius_for(bits, *kind, least)
    step = bits // 64
    within = [
        other for other in range(SMALLEST_RADIUS * step, 20 * step, step)
        if (shortest_text(bits, *kind, other) or 0) <= least
    ]
    assert h == min(within, default=None)


def test_the_page_on_recipes_has_the_table() -> None:
    rows = pages.table(pages.RECIPES, "Short texts", "ngram")
    assert {(pages.sizes(row["ngram"]), row["weighting"]) for row in rows} == {
        (sizes, weighting) for _, sizes, weighting in SHORTEST
    }
    for row in rows:
        kind = ("word", pages.sizes(row["ngram"]), row["weighting"])
        for name, least in row.items():
            if name not in ("ngram", "weighting"):
                h = int(name.removeprefix("radius "))
                assert int(least) == shortest_text(64, *kind, h)
