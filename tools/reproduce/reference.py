"""An earlier measurement of the same pages by another program, for comparison.

64 bits of MurmurHash3 x64-128, words `\\w+` in lower case; one run, no intervals.
"""

from __future__ import annotations

H = (0, 1, 2, 3, 4, 6, 8, 10)

TFIDF_WORDS: dict[str, tuple[int, float, tuple[float, ...]]] = {
    "peps": (9_675, 1.76, (0.501, 0.699, 0.794, 0.848, 0.888, 0.931, 0.955, 0.968)),
    "rust-book": (3_086, 2.33, (0.480, 0.640, 0.739, 0.796, 0.834, 0.887, 0.919, 0.944)),
    "laravel-docs": (6_727, 1.10, (0.590, 0.787, 0.872, 0.918, 0.944, 0.971, 0.982, 0.987)),
    "gesetze": (6_412, 1.40, (0.605, 0.722, 0.805, 0.856, 0.894, 0.946, 0.973, 0.985)),
}
"""Source -> pairs, mean distance, share of consecutive revisions within each h of H."""

SHINGLES_H = (1, 2, 3, 4, 6)
SHINGLES = {
    "tf": (0.536, 0.660, 0.749, 0.808, 0.875),
    "binary": (0.464, 0.609, 0.717, 0.788, 0.872),
}
"""Weighting of 3-word shingles -> share within each h of SHINGLES_H; sources not named."""

AGREEMENT_H = (1, 2, 3, 4, 5, 6, 7, 8, 10)
AGREEMENT: dict[str, tuple[float, tuple[float, ...], tuple[float, ...]]] = {
    "tfidf": (
        6.6, (1.00, 0.99, 0.99, 0.98, 0.96, 0.91, 0.83, 0.71, 0.41),
        (0.43, 0.54, 0.64, 0.71, 0.78, 0.83, 0.88, 0.92, 0.97),
    ),
    "idf": (
        8.4, (1.00, 1.00, 1.00, 1.00, 0.99, 0.98, 0.96, 0.94, 0.88),
        (0.38, 0.50, 0.60, 0.68, 0.75, 0.82, 0.88, 0.91, 0.97),
    ),
    "tf": (
        6.4, (1.00, 0.99, 0.97, 0.89, 0.73, 0.55, 0.38, 0.25, 0.11),
        (0.12, 0.16, 0.20, 0.26, 0.34, 0.44, 0.56, 0.68, 0.88),
    ),
}
"""Weighting of single words -> crossing, precision and recall against cosine >= 0.9."""
