"""Whether an index agrees with what a command is to do with it: with its options, which in a second
run are the same; with another index, whose rows are compared or copied."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import simindex
from simindex.cli.recipes import default_recipe
from simindex.errors import InvalidOption, RecipeMismatch
from simindex.simhash.recipe_differences import LEARNED, contrast

UNSHOWN = {"key_secret": "another secret", "stop_words": "other words", "times": "no times"}
"""Options whose stored value is not shown."""


def require_agreement(
    index: simindex.Index, path: object, recipe: Mapping[str, Any], options: Mapping[str, Any], *,
    like: simindex.Recipe | None = None,
) -> None:
    """Refuses options that differ from what an index has; the same ones make a run repeatable.

    Parameters
    ----------
    recipe, options : mapping
        What was asked for of `Recipe` and `IndexOptions`, by name. How idf was to be learned does
        not matter any more.
    like : Recipe, optional
        The recipe that was asked for as a whole.

    Raises
    ------
    InvalidOption
        Names the first option that differs, with both values.
    """
    for name, given, stored in _differences(index, recipe, options, like):
        option = "-d" if name == "h" else "--" + name.replace("_", "-")
        has = UNSHOWN.get(name, "another one" if stored is None else f"{option} {_typed(stored)}")
        typed = option if name in UNSHOWN or given is None else f"{option} {_typed(given)}"
        raise InvalidOption(
            f"{path} is an index already, which keeps its own recipe and options: it has {has}",
            remedy=f"leave out {typed}, or build another index", option=name,
        )


def _differences(
    index: simindex.Index, recipe: Mapping[str, Any], options: Mapping[str, Any],
    like: simindex.Recipe | None,
) -> Iterator[tuple[str, Any, Any]]:
    """Name, value asked for and stored value of each option that differs."""
    if like is not None and like != index.recipe:
        yield "recipe", None, None
    held: Any = index.recipe
    if recipe:
        h = recipe.get("h")
        if h is not None and h != index.h:
            yield "h", h, index.h
        features = {name: value for name, value in recipe.items() if name != "h"}
        asked = default_recipe(features)  # as a new index has them, so that forms are equal
        for name in features:
            stored = getattr(held or index.options, name, None)
            if getattr(asked, name) != stored:
                yield name, getattr(asked, name), stored
    for name, value in options.items():
        stored = getattr(index.options, name)
        if value != stored:
            yield name, value, stored


def _typed(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def require_alike(
    index: simindex.Index, name: str, other: simindex.Index, others_name: str, *,
    instead: str = "", recipe_of: str | None = None,
) -> None:
    """Refuses to compare rows of two indexes whose fingerprints differ in width or recipe.

    If they have learned from other documents alone, the remedy begins with what to do `instead`.
    `recipe_of` is what `--recipe` takes for the recipe of the first one, unless it is its name.
    """
    from simindex.writing.admission import check_recipe

    bits, others = index.options.bits, other.options.bits
    if bits != others:
        raise InvalidOption(
            f"{others_name} has fingerprints of {others} bits, {name} of {bits}",
            remedy="build one of them again, with the --bits of the other", option="index",
            found=others, expected=bits,
        )
    try:
        check_recipe(other.recipe, index.recipe)
    except RecipeMismatch as error:
        differences = error.data["differences"]
        learned = differences.keys() <= LEARNED
        raise RecipeMismatch(
            f"{others_name} has another recipe than {name} ({contrast(differences)}), so their "
            "fingerprints cannot be compared",
            remedy=f"{instead if learned else ''}build {others_name} again with "
            f"--recipe {recipe_of or name}",
            differences=differences,
        ) from error
