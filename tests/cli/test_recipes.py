"""The recipe of a command: its defaults, and the same in the documentation."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pages
import pytest

import simindex
from simindex.cli.prepared_documents import LEAST_DOCUMENTS
from simindex.cli.recipes import default_recipe

Run = Callable[..., Any]


def test_the_page_on_recipes_has_the_defaults(run: Run) -> None:
    shell, python = pages.table(pages.RECIPES, "The defaults", "where")
    assert "simindex build" in shell["where"] and "Recipe()" in python["where"]
    assert f"fewer than {LEAST_DOCUMENTS} documents" in python["where"]
    texts = (f"page {n} says something of its own: {n * n}" for n in range(LEAST_DOCUMENTS))
    lines = "".join(json.dumps({"id": text, "text": text}) + "\n" for text in texts)
    run("build", "i.sim", "-", input=lines)
    with simindex.open("i.sim", "r") as index:
        built = index.recipe
    assert built is not None
    for row, recipe in ((shell, built), (python, simindex.Recipe())):
        assert pages.sizes(row["ngram"]) == recipe.sizes
        assert row["weighting"] == recipe.weighting
        assert (int(row["bits"]), int(row["radius"])) == (recipe.bits, recipe.h)


@pytest.mark.parametrize(
    ("given", "sizes", "weighting"),
    [
        ({}, (1,), "balanced-tfidf"),
        ({"weighting": "idf"}, (1,), "idf"),
        ({"weighting": "tf"}, (1, 2), "tf"),
        ({"ngram": 1}, (1,), "balanced-tfidf"),
        ({"ngram": 3}, (3,), "tfidf"),
        ({"ngram": (1, 2)}, (1, 2), "tfidf"),
        ({"ngram": 1, "weighting": "tf"}, (1,), "tf"),
        ({"unit": "char"}, (5,), "tfidf"),
        ({"unit": "char", "weighting": "binary"}, (5,), "binary"),
    ],
    ids=str,
)
def test_what_is_not_asked_for_fits_what_is(
    given: dict[str, Any], sizes: tuple[int, ...], weighting: str
) -> None:
    recipe = default_recipe(given)
    assert (recipe.sizes, recipe.weighting) == (sizes, weighting)
