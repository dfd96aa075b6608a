"""What an index without rows has yet to learn: the first texts bring their recipe.

    simindex.open(path, "c")         no recipe, unless the options name one
    the first rows are texts'        their recipe is that of the index
    the first rows are fingerprints  it has none for good, and takes no texts
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simindex.index.index import Index
    from simindex.simhash.recipe import Recipe


def awaits_recipe(index: Index) -> bool:
    """Whether the first texts will bring its recipe: no row came yet, and it was made without."""
    return index.recipe is None and index._handle.no_rows


def recipe_of_texts(index: Index) -> Recipe | None:
    """How texts that are asked for become fingerprints; None where rows came without a recipe.

    Where no row came yet it is the default recipe, by which nothing is found.
    """
    return index._handle.recipe_of_texts() if index.recipe is None else index.recipe


def takes_str_keys(index: Index) -> bool:
    """Whether rows may be added with keys that are str: it has such keys, or the first rows decide.
    """
    return index.options.keys == "str" or index._handle.undecided
