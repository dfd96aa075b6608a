"""Options of a run that adds to an index are those of the index, or they are refused by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import simindex
from simindex.cli.agreement import require_agreement
from simindex.errors import InvalidOption

MADE = simindex.Recipe(bits=128, ngram=(1, 2), weighting="binary", h=9)


@pytest.fixture
def index(tmp_path: Path) -> Any:
    options = simindex.IndexOptions(keys="str", recipe=MADE, batch_rows=5000)
    with simindex.open(tmp_path / "i.sim", "n", options=options) as opened:
        yield opened


def refused(index: Any, *asked: Any, **like: Any) -> InvalidOption | None:
    try:
        require_agreement(index, "i.sim", *asked, **like)
    except InvalidOption as error:
        return error
    return None


@pytest.mark.parametrize(
    ("recipe", "options"),
    [
        ({}, {}), ({"bits": 128}, {}), ({"ngram": (1, 2), "h": 9}, {"batch_rows": 5000}),
        ({"weighting": "binary", "unit": "word", "seed": 0}, {"structures": ("psm",)}),
    ],
)
def test_the_same_options_are_accepted(
    index: Any, recipe: dict[str, Any], options: dict[str, Any]
) -> None:
    assert refused(index, recipe, options) is None
    assert refused(index, {}, {}, like=MADE) is None


@pytest.mark.parametrize(
    ("recipe", "options", "has", "typed"),
    [
        ({"bits": 64}, {}, "--bits 128", "--bits 64"), ({"h": 3}, {}, "-d 9", "-d 3"),
        ({"ngram": 2}, {}, "--ngram 1,2", "--ngram 2"),
        ({}, {"batch_rows": 1}, "--batch-rows 5000", "--batch-rows 1"),
        ({}, {"key_secret": bytes(16)}, "another secret", "--key-secret,"),
        ({"stop_words": frozenset({"a"})}, {}, "other words", "--stop-words,"),
    ],
)
def test_another_option_is_refused_with_what_the_index_has(
    index: Any, recipe: dict[str, Any], options: dict[str, Any], has: str, typed: str
) -> None:
    error = refused(index, recipe, options)
    assert error is not None
    assert f"it has {has}" in error.what
    assert f"leave out {typed}" in str(error.remedy)


def test_another_recipe_is_refused_as_a_whole(index: Any) -> None:
    assert "leave out --recipe" in str(refused(index, {}, {}, like=simindex.Recipe()))
