"""What an index stores of its rows, in words."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

KEYS: dict[bool | str, str] = {
    False: "none: rows have ids alone", "str": "texts", "bytes": "bytes", True: "texts or bytes",
}
"""By the option `keys` of an index."""


def features_of(recipe: dict[str, Any] | None) -> str:
    """What texts are compared by."""
    if recipe is None:
        return "an unknown recipe: it was built from fingerprints"
    sizes = recipe["ngram"] if isinstance(recipe["ngram"], (list, tuple)) else [recipe["ngram"]]
    unit = "word" if recipe["unit"] == "word" else "character"
    phrases = "single words" if (unit, list(sizes)) == ("word", [1]) else (
        f"{' and '.join(map(str, sizes))} {unit}s in a row"
    )
    others = [f"weighting {recipe['weighting']}"]
    others += [f"stemmer {recipe['stemmer']}"] if recipe.get("stemmer") else []
    others += ["without stop words"] if recipe.get("stop_words") else []
    return f"{phrases}, {', '.join(others)}"


def moment(time: int) -> str:
    """A time of a row, of seconds since 1970."""
    return f"{datetime.fromtimestamp(time, UTC):%Y-%m-%d %H:%M:%S} UTC"
