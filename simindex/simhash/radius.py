"""How many bits near-duplicates may differ in: the radius recommended for a recipe, as a table.

    (unit, sizes, weighting)    of 64 bits    of wider fingerprints
    word   (1,)   tfidf         7             as many for each 64 bits, unless the row has the width

A recipe of several sizes that has no row gets the smallest radius of its sizes. What has no row,
such as weights of the caller's own, gets `UNLISTED`, as do fingerprints without a recipe.
Tokenizers, stop words and stems do not count: they change which words there are.
"""

from __future__ import annotations

from collections.abc import Sequence

UNLISTED = 3
"""Of each 64 bits: the radius where nothing was measured. It is strict, so it loses copies."""

RADII: dict[tuple[str, tuple[int, ...], str], dict[int, int]] = {
    # (unit, n-gram sizes, weighting): {width in bits: radius}
    ("word", (1,), "tfidf"): {64: 7},
    ("word", (1,), "balanced-tfidf"): {64: 7},
    ("word", (1,), "sublinear-tfidf"): {64: 8},
    ("word", (1,), "idf"): {64: 8},
    ("word", (1,), "sublinear"): {64: 6},
    ("word", (1,), "binary"): {64: 7},
    ("word", (1,), "tf"): {64: 3},  # function words bring strangers near: precision .76 at 6
    ("word", (1, 2), "sublinear"): {64: 7},
    ("word", (2,), "tfidf"): {64: 8},
    ("word", (2,), "sublinear-tfidf"): {64: 8},
    ("word", (2,), "idf"): {64: 8},
    ("word", (2,), "sublinear"): {64: 8},
    ("word", (2,), "binary"): {64: 8},
    ("word", (2,), "tf"): {64: 8},
    ("word", (3,), "tfidf"): {64: 8},
    ("word", (3,), "sublinear-tfidf"): {64: 8},
    ("word", (3,), "idf"): {64: 8},
    ("word", (3,), "sublinear"): {64: 8},
    ("word", (3,), "binary"): {64: 8},
    ("word", (3,), "tf"): {64: 8},
    ("char", (3,), "tfidf"): {64: 4},
    ("char", (3,), "tf"): {64: 3},
    ("char", (3,), "binary"): {64: 6},
    ("char", (5,), "tfidf"): {64: 6},
    ("char", (5,), "tf"): {64: 3},
    ("char", (5,), "binary"): {64: 6},
}
"""The defaults by the measurements of docs/how-to/choosing-a-recipe.md. The others are near where
precision and recall meet in docs/explanation/recipes-compared.md, or below where strangers come
near, and at most 8."""


def recommended_radius(bits: int, unit: str, sizes: Sequence[int], weighting: str) -> int:
    """The radius for fingerprints of so many bits that such features make."""
    row = RADII.get((unit, tuple(sizes), weighting))
    if row is not None:
        return _of_row(row, bits)
    return min(_of_row(RADII.get((unit, (size,), weighting), {}), bits) for size in sizes)


def raw_radius(bits: int) -> int:
    """The radius for fingerprints of so many bits of which no recipe is known."""
    return _of_row({}, bits)


def _of_row(row: dict[int, int], bits: int) -> int:
    """The radius at a width, in proportion to the widest that the row has up to it."""
    width = max((width for width in row if width <= bits), default=64)
    return row.get(width, UNLISTED) * bits // width
