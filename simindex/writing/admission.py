"""What may enter an index: a batch that fits its width, its kind of names and its recipe."""

from __future__ import annotations

from typing import Any

from simindex.errors import InvalidBatch, RecipeMismatch
from simindex.options import IndexOptions
from simindex.records.batch import Batch, as_fingerprints, as_keys
from simindex.simhash.recipe import Recipe


def checked_batch(
    given: Any,
    options: IndexOptions,
    recipe: Recipe | None,
    *,
    ids: Any = None,
    keys: Any = None,
    weights: Any = None,
) -> Batch:
    """The batch an append or a replacement was given, once it fits the index.

    Raises
    ------
    InvalidBatch
        If width, ids or keys do not fit; RecipeMismatch if another recipe made it.
    """
    if not isinstance(given, Batch):
        rows = as_fingerprints(given, bits=options.bits)
        batch = Batch(rows, ids=ids, keys=keys, weights=weights)
    elif ids is not None or keys is not None or weights is not None:
        raise InvalidBatch("a Batch carries its ids, keys and weights: give none beside it")
    else:
        batch = given
        if batch.keys is not None:
            as_keys(batch.keys, len(batch))  # whose list may have changed since it was made
    if batch.bits != options.bits:
        raise InvalidBatch(
            f"the batch is {batch.bits} bits wide, the index {options.bits}",
            found=batch.bits, expected=options.bits,
        )
    if not options.keyed:
        if batch.keys is not None:
            raise InvalidBatch(
                "this index has no keys: give ids=, or create it with IndexOptions(keys=True)"
            )
    else:
        if batch.keys is None:
            raise InvalidBatch("this index has keys: give keys=")
        _require_type(batch.keys, options)
    check_recipe(batch.recipe, recipe)
    return batch


def checked_keys(keys: Any, options: IndexOptions) -> list[str] | list[bytes]:
    """The keys as a list, once they are of the index's type."""
    listed = as_keys(keys, None)
    _require_type(listed, options)
    return listed


def _require_type(keys: list[str] | list[bytes], options: IndexOptions) -> None:
    """Refuses keys, which are alike, of another type than the index's."""
    if keys and type(keys[0]).__name__ != options.keys:
        raise InvalidBatch(
            f"the keys are {type(keys[0]).__name__}, this index has {options.keys} keys",
            found=type(keys[0]).__name__, expected=options.keys,
        )


def check_recipe(recipe: Recipe | None, own: Recipe | None) -> None:
    """Raises RecipeMismatch, with the differences, unless the recipes are one or unknown."""
    if recipe is None or own is None or recipe.identity == own.identity:
        return
    differences = recipe.differences(own)
    shown = ", ".join(
        f"{name}: {theirs!r} != {mine!r}" for name, (theirs, mine) in differences.items()
    )
    raise RecipeMismatch(
        f"the batch was made by another recipe than the index's ({shown}): "
        "make it with index.recipe",
        differences=differences,
    )
