"""Exact cosines of tf-idf words, with numpy alone and nothing of the package.

    text -> words `\\w+` of the case-folded text; runs of Han, Kana and Thai as pairs of letters
         -> counts (documents x words of at least two documents) -> times idf -> rows of length 1

idf is ln((1 + N) / (1 + df)) + 1 of these documents. A word of a single document adds to its row's
length and to no cosine, so it has no column.
"""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
from numpy.typing import NDArray

_WORDS = re.compile(r"\w+")
_UNSPACED = (
    "\u0e01-\u0e3a\u0e40-\u0e4e\u3005-\u3007\u3031-\u3035\u303b\u303c\u3041-\u3096\u3099-\u309f"
    "\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f"
    "\U00020000-\U0003ffff"
)
_PIECES = re.compile(f"[{_UNSPACED}]+|[^{_UNSPACED}]+")

Cosines = NDArray[np.float32]


def words(text: str) -> list[str]:
    """The words of a text; of scripts without spaces overlapping pairs of letters."""
    found: list[str] = []
    for word in _WORDS.findall(text.casefold()):
        if word.isascii():
            found.append(word)
            continue
        for piece in _PIECES.findall(word):
            if len(piece) > 1 and _PIECES.match(piece[0] + "a").end() == 1:  # type: ignore[union-attr]
                found += [piece[place : place + 2] for place in range(len(piece) - 1)]
            else:
                found.append(piece)
    return found


def cosines(texts: list[str]) -> Cosines:
    """Cosine of each text with each, float32 (n, n)."""
    counted = [Counter(words(text)) for text in texts]
    containing = Counter(word for counts in counted for word in counts)
    idf = {
        word: float(np.log((1 + len(texts)) / (1 + df)) + 1) for word, df in containing.items()
    }
    column = {word: place for place, word in enumerate(w for w, df in containing.items() if df > 1)}
    rows = np.zeros((len(texts), len(column)), dtype=np.float32)
    for row, counts in zip(rows, counted, strict=True):
        weights = {word: count * idf[word] for word, count in counts.items()}
        length = np.sqrt(sum(weight * weight for weight in weights.values())) or 1.0
        for word, weight in weights.items():
            if word in column:
                row[column[word]] = weight / length
    return np.asarray(rows @ rows.T, dtype=np.float32)
