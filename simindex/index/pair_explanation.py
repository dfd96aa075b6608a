"""Two documents of an index beside each other, by text or by name; see `Index.explain_pair`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from simindex.checks import require
from simindex.errors import InvalidBatch, InvalidOption
from simindex.index.documents import document
from simindex.planning.pair_explanation import nearness
from simindex.simhash.comparison import compared, each_row

if TYPE_CHECKING:
    from simindex.index.handle import Handle
    from simindex.records.batch import Batch
    from simindex.records.pair_explanation import PairExplanation


def explained_pair(
    handle: Handle, texts: tuple[Any, Any], ids: Any, keys: Any, *, h: int | None, usual: int,
    similarity: float | None, measure: str,
) -> PairExplanation:
    """Of two texts, two names, or one of each; `usual` is the radius if none is given."""
    own = handle.options
    near = nearness(h, similarity, measure, own.bits, own.sketch_bits, handle.recipe)
    names = _names(ids, keys)
    rows = [
        _row_of_text(handle, text, side) if text is not None else _rows_of_name(handle, name, side)
        for side, text, name in zip("ab", texts, names, strict=True)
    ]
    recipe = handle.recipe
    if any(text is not None for text in texts):
        recipe = handle.recipe_of_texts()
    decoded = [text.decode() if isinstance(text, bytes) else text for text in texts]
    return compared(
        recipe, decoded, _nearest(*rows), h=usual if h is None else h, bits=own.bits,
        names=(names[0], names[1]), near=near,
    )


def _names(ids: Any, keys: Any) -> list[Any]:
    if ids is not None and keys is not None:
        raise InvalidOption(
            "both ids and keys are given", remedy="give one of them", option="ids",
        )
    given = ids if keys is None else keys
    if given is None:
        return [None, None]
    option = "ids" if keys is None else "keys"
    two = not isinstance(given, (str, bytes)) and hasattr(given, "__len__") and len(given) == 2
    require(two, option, given, "two names, one for each document")
    return [one.item() if isinstance(one, np.generic) else one for one in given]


def _row_of_text(handle: Handle, text: Any, side: str) -> Batch | None:
    if not isinstance(text, (str, bytes)):
        kind = type(text).__name__
        raise InvalidBatch(
            f"{side} is a {kind}, not a text", remedy="give str, or bytes of UTF-8", found=kind,
            expected="str or bytes",
        )
    recipe = handle.recipe_of_texts()
    if recipe is None:
        raise InvalidBatch(
            "this index has no recipe that turns texts into fingerprints",
            remedy="give two ids or keys",
        )
    return each_row(recipe.batch([text], threads=1), 1)[0]


def _rows_of_name(handle: Handle, name: Any, side: str) -> Batch:
    if name is None:
        raise InvalidOption(
            f"document {side} has neither a text nor a name",
            remedy=f"give {side}, or two ids or keys", option=side,
        )
    found = document(handle, name)
    if found is None:
        raise InvalidOption(
            f"the index has no document {name!r}",
            remedy="check the name, or give the text", option=side, found=name,
        )
    return found


def _nearest(a: Batch | None, b: Batch | None) -> Sequence[Batch | None]:
    """Of documents of several rows the two that are nearest."""
    if a is None or b is None:
        return [None if one is None else one.take(np.array([0])) for one in (a, b)]
    best = (1 << 30, 0, 0)
    wide = b.rows.reshape(len(b), -1)
    for row, one in enumerate(a.rows.reshape(len(a), -1)):
        distances = np.bitwise_count(wide ^ one).sum(axis=1)
        other = int(distances.argmin())
        best = min(best, (int(distances[other]), row, other))
    return [a.take(np.array([best[1]])), b.take(np.array([best[2]]))]
