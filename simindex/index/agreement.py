"""Options that a caller gives, compared with those of the index."""

from __future__ import annotations

from pathlib import Path

from simindex.errors import InvalidOption, RecipeMismatch
from simindex.options import IndexOptions
from simindex.simhash.recipe import Recipe
from simindex.writing.admission import check_recipe


def check_agreement(
    path: Path, options: IndexOptions, recipe: Recipe | None, asked: IndexOptions
) -> None:
    """Refuses options that are not those stored: InvalidOption, or RecipeMismatch."""
    differences = options.differences(asked)
    if differences:
        name, (mine, theirs) = next(iter(differences.items()))
        if name == "key_secret":
            raise InvalidOption(
                f"the index at {path} hashes keys with another secret (option key_secret): leave "
                "the option out, or build a new index",
                option=name, differences=differences,
            )
        raise InvalidOption(
            f"the index at {path} has {name}={mine!r}, not {theirs!r}: "
            "leave the option out, or "
            + ("run `simindex compact --structures`" if name == "structures"
               else "build a new index"),
            option=name, differences=differences,
        )
    if asked.recipe is not None:
        if recipe is None:
            raise RecipeMismatch(
                f"the index at {path} has no recipe: leave it out of the options; an "
                "empty index takes that of the first batch",
                differences={"recipe": (repr(asked.recipe), None)},
            )
        check_recipe(asked.recipe, recipe)
