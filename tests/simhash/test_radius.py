"""The radius recommended for a recipe: a table that covers what recipes can be."""

from __future__ import annotations

from typing import get_args

import pages
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simindex.options import MAX_BITS
from simindex.simhash import radius
from simindex.simhash.features import MOST_NGRAM, UNITS
from simindex.simhash.radius import RADII, UNLISTED, raw_radius, recommended_radius
from simindex.simhash.recipe import Recipe
from simindex.simhash.weighting import WEIGHTINGS, WeightingName

WIDTHS = range(64, MAX_BITS + 1, 64)


def test_every_row_is_of_a_recipe_that_can_be() -> None:
    for (unit, sizes, weighting), row in RADII.items():
        assert unit in UNITS and weighting in WEIGHTINGS and sizes == tuple(sorted(set(sizes)))
        assert sizes and sizes[0] >= 1 and sizes[-1] <= MOST_NGRAM[unit]
        assert 64 in row, "every row begins at the least width"
        assert all(width in WIDTHS and 0 <= h <= width for width, h in row.items())


def test_what_has_no_row_has_the_radius_of_raw_fingerprints() -> None:
    assert [raw_radius(bits) for bits in (64, 128, 4096)] == [3, 6, 192]
    for bits in (64, 256):
        assert recommended_radius(bits, "word", (1,), "given") == raw_radius(bits)
        assert recommended_radius(bits, "char", (16,), "binary") == raw_radius(bits)


def test_of_several_sizes_the_smallest_radius_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(RADII, ("word", (1,), "tf"), {64: 2})
    monkeypatch.setitem(RADII, ("word", (2,), "tf"), {64: 8})
    assert recommended_radius(64, "word", (1, 2), "tf") == 2
    monkeypatch.setitem(RADII, ("word", (1, 2), "tf"), {64: 5})
    assert recommended_radius(64, "word", (1, 2), "tf") == 5
    assert recommended_radius(64, "word", (2, 5), "tf") == UNLISTED


def test_a_width_counts_if_its_row_has_it_and_else_in_proportion(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(RADII, ("word", (1,), "tfidf"), {64: 7, 256: 30})
    found = [recommended_radius(b, "word", (1,), "tfidf") for b in (64, 128, 192, 256, 320, 512)]
    assert found == [7, 14, 21, 30, 37, 60]


@given(
    bits=st.sampled_from(WIDTHS), unit=st.sampled_from(sorted(UNITS)),
    sizes=st.sets(st.integers(1, 5), min_size=1), weighting=st.sampled_from(sorted(WEIGHTINGS)),
)
def test_a_recipe_has_the_recommended_radius_unless_it_is_given(
    bits: int, unit: str, sizes: set[int], weighting: str
) -> None:
    options = {"bits": bits, "unit": unit, "ngram": sizes, "weighting": weighting}
    recipe = Recipe(**options)  # type: ignore[arg-type]
    assert recipe.h == recommended_radius(bits, unit, recipe.sizes, weighting)
    assert 0 <= recipe.h <= bits
    assert Recipe(**options, h=recipe.h + 1).h == recipe.h + 1  # type: ignore[arg-type]


def test_the_weightings_of_the_table_are_all_that_weigh_texts() -> None:
    """Single words, which most recipes are, have a row for each."""
    single = ("word", (1,))
    named = {weighting for *kind, weighting in radius.RADII if tuple(kind) == single}
    assert named == set(get_args(WeightingName)) - {"given"}


def test_the_page_on_recipes_has_the_table() -> None:
    said = {
        (row["unit"], pages.sizes(row["ngram"]), weighting): {64: int(row["radius of 64 bits"])}
        for row in pages.table(pages.RECIPES, "The radius of each recipe", "unit")
        for weighting in row["weighting"].split(", ")
    }
    assert said == RADII
