"""Options that are given for an index which is there already: they are those that it stores."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simindex.errors import InvalidOption, RecipeMismatch
from simindex.simhash.recipe_differences import contrast

if TYPE_CHECKING:
    from pathlib import Path

    from simindex.options import IndexOptions
    from simindex.simhash.recipe import Recipe


def check_agreement(
    path: Path, options: IndexOptions, recipe: Recipe | None, asked: IndexOptions
) -> None:
    """Refuses options that are not those stored: InvalidOption, or RecipeMismatch."""
    differences = options.differences(asked)
    if differences:
        name, (mine, theirs) = next(iter(differences.items()))
        if name == "key_secret":
            raise InvalidOption(
                f"the index at {path} uses another secret for its keys (option key_secret)",
                remedy="leave the option out, or build a new index", option=name,
                differences=differences,
            )
        raise InvalidOption(
            f"the index at {path} has {name}={mine!r}, not {theirs!r}",
            remedy="leave the option out, or "
            + ("run `simindex compact --structures`" if name == "structures"
               else "build a new index"),
            option=name, differences=differences,
        )
    if asked.recipe is not None:
        if recipe is None:
            raise RecipeMismatch(
                f"the index at {path} has no recipe",
                remedy="leave it out of the options; an empty index takes the recipe of the "
                "first batch",
                differences={"recipe": (repr(asked.recipe), None)},
            )
        if asked.recipe.identity != recipe.identity:
            differences = asked.recipe.differences(recipe)
            raise RecipeMismatch(
                f"the options have another recipe than the index at {path}: "
                f"{contrast(differences)}",
                remedy="leave it out of the options; `index.recipe` is the stored one",
                differences=differences,
            )
        if asked.recipe.h != recipe.h:
            raise InvalidOption(
                f"the index at {path} has the radius h={recipe.h}, and the recipe in the options "
                f"has h={asked.recipe.h}",
                remedy=f"leave the recipe out of the options, or give it h={recipe.h}; calls such "
                "as `query` take another h",
                option="h", differences={"h": (recipe.h, asked.recipe.h)},
            )
