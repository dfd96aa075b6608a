"""How two recipes differ, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

LABELS = {
    "bits": "width in bits", "unit": "unit", "ngram": "n-gram sizes", "weighting": "weighting",
    "seed": "seed", "min_features": "least number of features", "projection": "projection",
    "tokenizer": "tokenizer", "unicode": "Unicode version", "stemmer": "stemmer",
    "sketch_bits": "bits of a sketch",
}
"""Of the settings that are told with both values."""

LEARNED = {"documents", "features", "idf_digest"}
"""What `Recipe.fit` decides."""


def contrast(differences: Mapping[str, tuple[Any, Any]]) -> str:
    """What `Recipe.differences` found: `weighting tf instead of tfidf, seed 1 instead of 0`."""
    told = [
        f"{LABELS[name]} {_shown(one)} instead of {_shown(other)}"
        for name, (one, other) in differences.items() if name in LABELS
    ]
    if "stop_words" in differences:
        told.append("other stop words")
    if any(name in differences for name in LEARNED):
        one, other = differences.get("documents", (0, 0))
        if one == other:
            told.append("idf learned from other documents")
        else:
            told.append(f"idf {_learned(one)} instead of {_learned(other)}")
    return ", ".join(told)


def _learned(documents: int | None) -> str:
    return "not learned" if documents is None else f"learned from {documents:,} documents"


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return " and ".join(map(str, value))
    return "none" if value is None else str(value)
