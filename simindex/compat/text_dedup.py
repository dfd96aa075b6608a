"""The fingerprints of `python -m text_dedup.simhash`, of text-dedup 0.4, for an index.

    from simindex.compat.text_dedup import batch

    text      "One and" -> the set of "One", "ne ", "e a" … in lower case, each hashed by XXH3
    a bit     1 where more than half of these hashes have a 1

It takes the package xxhash, which text-dedup brings. text-dedup itself is not needed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from simindex.checks import require_whole
from simindex.compat.majority import of_texts, windows
from simindex.errors import MissingExtra
from simindex.records.batch import Batch

SHORTEST = 5
"""Characters of the shortest text that has features."""


def batch(texts: Iterable[str], ngram: int = 3, **names: Any) -> Batch:
    """The fingerprints of many texts, which are those of text-dedup with `--f 64`.

    Parameters
    ----------
    texts : iterable of str
    ngram : int
        Characters of a feature, as `--ngram` says them.
    names
        `ids` or `keys` of the texts, and `threads`, as `Recipe.batch` takes them.

    Returns
    -------
    Batch
        A text of less than 5 characters is left out, and is in `skipped`.

    Raises
    ------
    MissingExtra
        If xxhash is not installed.
    InvalidBatch
        If a text is not a str, or has half of a surrogate pair.
    InvalidOption
        If ngram is not a whole number from 1.
    """
    width = require_whole(ngram, "ngram", 1, 1 << 20)
    try:
        from xxhash import xxh3_64_intdigest
    except ImportError as error:
        raise MissingExtra(
            f"fingerprints of text-dedup need an optional package ({error})",
            remedy="pip install xxhash", package="xxhash",
        ) from error

    def features(text: str) -> set[str]:
        return {part.lower() for part in windows(text, width)} if len(text) >= SHORTEST else set()

    return of_texts(texts, features, xxh3_64_intdigest, **names)
