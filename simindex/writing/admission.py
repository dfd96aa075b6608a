"""What may enter an index: a batch that fits its width, its kind of names and its recipe."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from simindex.arrays import U64
from simindex.errors import InvalidBatch, RecipeMismatch
from simindex.options import IndexOptions, KeyKind
from simindex.records.arguments import as_fingerprints, as_ids, as_keys
from simindex.records.batch import Batch
from simindex.simhash.recipe import Recipe
from simindex.simhash.recipe_differences import contrast


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
        raise InvalidBatch(
            "a Batch has its own ids, keys and weights", remedy="leave these arguments out"
        )
    else:
        batch = given
        if batch.keys is not None:
            as_keys(batch.keys, len(batch))  # whose list may have changed since it was made
    _require_fit(batch, options, recipe)
    return batch


def _require_fit(batch: Batch, options: IndexOptions, recipe: Recipe | None) -> None:
    """Refuses a batch of another width, kind of names or recipe than the index's."""
    if batch.bits != options.bits:
        raise InvalidBatch(
            f"the batch has fingerprints of {batch.bits} bits, the index of {options.bits}",
            found=batch.bits, expected=options.bits,
        )
    if not options.keyed:
        # Of an index that was not told, the first row says whether rows have keys.
        if batch.keys is not None and (batch.keys or options.keys is not None):
            raise has_no_keys()
    else:
        if batch.keys is None:
            raise InvalidBatch("this index has keys", remedy="give keys=...")
        _require_type(batch.keys, options)
    check_recipe(batch.recipe, recipe)
    require_sketch(batch, options)


def has_no_keys() -> InvalidBatch:
    """Says that the keys of a batch do not fit the index."""
    return InvalidBatch(
        "this index has no keys",
        remedy="give ids=..., or create the index with IndexOptions(keys=True)",
    )


def require_names_of_skipped(batch: Batch, options: IndexOptions) -> None:
    """Refuses a checked batch whose texts without a fingerprint have names of another kind than the
    index's, which `Index.replace` deletes."""
    names: list[Any] = [one.key for one in batch.skipped if one.key is not None]
    if batch.keys is None:
        as_ids(names, None)
        return
    for one in batch.skipped:
        if one.key is not None and not isinstance(one.key, (str, bytes)):
            raise InvalidBatch(
                f"the key of the skipped text {one.position} is {type(one.key).__name__}, not a "
                "str or bytes", remedy="give keys of the type that the index has",
                row=one.position, found=type(one.key).__name__,
            )
    checked = as_keys(names, None)
    if options.keyed:
        _require_type(checked, options)


def checked_document(
    given: Any, key: Any, options: IndexOptions, recipe: Recipe | None
) -> Batch | None:
    """One document as a batch that fits the index; None for a text that has no fingerprint.

    A text needs the index's recipe; `key` is the row's key or id, where a batch brings none. Raises
    InvalidBatch or RecipeMismatch if it is not one document, or does not fit.
    """
    named: dict[str, Any] = {}
    if key is not None:
        named = {"keys": [key]} if options.keyed else {"ids": [key]}
    if isinstance(given, (str, bytes)):
        if recipe is None:
            raise InvalidBatch(
                "this index has no recipe that turns a text into a fingerprint",
                remedy="give a Batch of one, or create the index with IndexOptions(recipe=...)",
            )
        if options.keyed and key is None:
            raise InvalidBatch("this index has keys", remedy="give key=...")
        batch = recipe.fingerprint(given, **named)
        if not len(batch):
            return None
        _require_fit(batch, options, recipe)
        return batch
    if not isinstance(given, Batch):
        raise InvalidBatch(
            f"{type(given).__name__} is not a document",
            remedy="give a text, or a Batch of one", found=type(given).__name__,
        )
    if not named:
        batch = given
    elif given.ids is not None or given.keys is not None:
        raise InvalidBatch(
            "the batch has a key for its row already", remedy="leave the argument key out"
        )
    else:
        batch = Batch(
            given.rows, weights=given.weights, recipe=given.recipe, skipped=given.skipped,
            sketch=given.sketches, features=given.features, **named,
        ) if len(given) else given
    if len(batch) == 0 and len(batch.skipped) == 1:
        return None
    if len(batch) != 1:
        raise InvalidBatch(
            f"the batch has {len(batch)} rows",
            remedy="give one row, or use Index.ingest for many", found=len(batch), expected=1,
        )
    return checked_batch(batch, options, recipe)


def kind_of_keys(given: Any, keys: Any) -> KeyKind | None:
    """What keys rows have, by the first: those of a batch, or the `keys` given with it."""
    if isinstance(given, Batch) and given.keys is not None:
        keys = given.keys
    first: Any = next(iter(keys), None) if isinstance(keys, Iterable) else None
    if hasattr(first, "as_py"):
        first = first.as_py()  # of an Arrow scalar
    if isinstance(first, str):
        return "str"
    return "bytes" if isinstance(first, bytes) else None


def checked_names(
    ids: Any, keys: Any, options: IndexOptions
) -> tuple[U64 | None, list[str] | list[bytes] | None]:
    """The ids or the keys that name rows, once they are of the index's kind."""
    if (ids is None) == (keys is None):
        given = "neither ids nor keys are" if ids is None else "ids and keys are both"
        raise InvalidBatch(f"{given} given", remedy="give one of the two")
    if options.keyed and keys is None:
        raise InvalidBatch("this index has keys", remedy="give keys=...")
    if not options.keyed and ids is None:
        raise InvalidBatch("this index has no keys", remedy="give ids=...")
    if ids is not None:
        return as_ids(ids, None), None
    listed = as_keys(keys, None)
    _require_type(listed, options)
    return None, listed


def names_of_any_kind(ids: Any, keys: Any, options: IndexOptions) -> int:
    """How many ids or keys are given, where no row has said yet which of them rows have."""
    either = replace(options, keys=kind_of_keys(None, keys) or keys is not None)
    checked_ids, checked_keys = checked_names(ids, keys, either)
    return len(checked_keys or ()) if checked_ids is None else len(checked_ids)


def _require_type(keys: list[str] | list[bytes], options: IndexOptions) -> None:
    """Refuses keys, which are alike, of another type than the index's."""
    if keys and type(keys[0]).__name__ != options.keys:
        raise InvalidBatch(
            f"the keys are {type(keys[0]).__name__}, this index has {options.keys} keys",
            found=type(keys[0]).__name__, expected=options.keys,
        )


def require_sketch(batch: Batch, options: IndexOptions) -> None:
    """Refuses a batch whose sketches are of another width than those of the index."""
    found, expected = batch.sketch_bits, options.sketch_bits
    if found == expected or not len(batch):
        return
    if not expected:
        what = f"the batch has sketches of {found} bits, and this index stores none"
        remedy = (
            "leave the sketch out, or create the index with IndexOptions(sketch_bits="
            f"{found}) or a recipe that has sketch_bits={found}"
        )
    else:
        has = f"sketches of {found} bits" if found else "no sketches"
        what = f"the batch has {has}, and this index stores sketches of {expected} bits"
        remedy = "make the batch with index.recipe, or give Batch(..., sketch=...) of this width"
    raise InvalidBatch(what, remedy=remedy, found=found, expected=expected)


def check_recipe(recipe: Recipe | None, own: Recipe | None) -> None:
    """Raises RecipeMismatch, with the differences, unless the recipes are one or unknown."""
    if recipe is None or own is None or recipe is own or recipe.identity == own.identity:
        return
    differences = recipe.differences(own)
    raise RecipeMismatch(
        f"another recipe than that of the index made the batch: {contrast(differences)}",
        remedy="make it with index.recipe", differences=differences,
    )
