"""From which length on a recipe finds nine of ten edits of one word, as a table.

    (unit, sizes, weighting)    width    distinct features, for radius 3, 4, 5 ... of each 64 bits
    word   (1,)  tfidf          64       220, 140, 90 ...

A text of fewer features has a fingerprint, and its copies are found. But one changed word often
moves it farther than the radius. What has no row was not measured, and nothing is said of its
texts. `python tools/reproduce/quality.py --data DIR --only lengths` prints the rows: 2,000 slices
of English news for each length, one word of each replaced by another.
"""

from __future__ import annotations

from collections.abc import Sequence

SMALLEST_RADIUS = 3
"""Of each 64 bits: that of the first number of a row."""

SHORTEST: dict[tuple[str, tuple[int, ...], str], dict[int, tuple[int, ...]]] = {
    # (unit, n-gram sizes, weighting): {width in bits: distinct features by radius}
    ("word", (1,), "balanced-tfidf"): {
        64: (220, 140, 90, 55, 45, 30, 25, 20, 20, 15, 15, 10),
        128: (200, 110, 80, 55, 40, 30, 25, 20, 15, 15, 10),
        256: (180, 100, 70, 45, 35, 25, 20, 20, 15, 15, 10),
    },
    ("word", (1,), "tfidf"): {
        64: (220, 140, 90, 55, 45, 30, 25, 20, 20, 15, 15, 10),
        128: (200, 110, 80, 55, 40, 30, 25, 20, 15, 15, 10),
        256: (180, 100, 70, 45, 35, 25, 20, 20, 15, 15, 10),
    },
    ("word", (1,), "idf"): {
        64: (260, 160, 90, 70, 45, 35, 25, 20, 20, 15, 15, 10),
        128: (260, 140, 80, 55, 40, 30, 25, 20, 15, 15, 10),
        256: (220, 120, 80, 50, 35, 30, 25, 20, 15, 15, 10),
    },
    ("word", (1,), "binary"): {
        64: (220, 100, 70, 45, 30, 25, 20, 15, 15, 10),
        128: (160, 90, 55, 35, 30, 20, 15, 15, 10),
        256: (140, 80, 45, 30, 25, 20, 15, 10),
    },
    ("word", (1, 2), "sublinear"): {
        64: (320, 320, 200, 140, 100, 70, 55, 45, 35, 30, 25, 20, 20, 15),
        128: (320, 260, 160, 110, 80, 55, 45, 35, 30, 25, 20, 20, 15, 15),
        256: (320, 220, 140, 90, 70, 50, 40, 35, 25, 25, 20, 20, 15, 15),
    },
    ("word", (2,), "tf"): {
        64: (320, 240, 140, 100, 70, 50, 40, 30, 25, 20, 20, 15, 10),
        128: (320, 200, 120, 80, 55, 40, 30, 25, 20, 20, 15, 15, 10),
        256: (300, 160, 100, 70, 45, 35, 30, 20, 20, 15, 15, 10),
    },
    ("word", (3,), "tf"): {
        64: (320, 320, 240, 160, 110, 80, 55, 45, 40, 30, 25, 20, 20, 15),
        128: (320, 320, 180, 120, 90, 60, 50, 40, 30, 30, 20, 20, 15, 15),
        256: (320, 260, 160, 110, 70, 55, 40, 35, 30, 25, 20, 20, 15, 15),
    },
}
"""320 is the longest that was measured. In the table it means 320 or more."""


def shortest_text(
    bits: int, unit: str, sizes: Sequence[int], weighting: str, h: int
) -> int | None:
    """Distinct features from which on such a recipe finds nine of ten edits of one word within h.

    None where that was not measured. A width that the table lacks counts as the next smaller one,
    its radius in proportion.
    """
    widths = SHORTEST.get((unit, tuple(sizes), weighting))
    if widths is None:
        return None
    width = max(known for known in widths if known <= bits)
    place = h * width // bits * 64 // width - SMALLEST_RADIUS
    row = widths[width]
    return row[min(max(place, 0), len(row) - 1)]


def radius_for(
    bits: int, unit: str, sizes: Sequence[int], weighting: str, features: int
) -> int | None:
    """The smallest radius at which texts of so many features are long enough; None if none is."""
    row = SHORTEST.get((unit, tuple(sizes), weighting), {}).get(bits, ())
    enough = (place for place, least in enumerate(row) if least <= features)
    place = next(enough, None)
    return None if place is None else (place + SMALLEST_RADIUS) * bits // 64
