"""Fingerprints and sums by the definition, with regex, mmh3 and numpy; nothing of the package.

A feature's hash gives the draws its vector is made of; weights are whole numbers, of units or of
steps of 2^-12. Slow: for a sample of documents.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from functools import cache
from statistics import NormalDist
from typing import Any

import mmh3
import numpy as np
from numpy.typing import NDArray

U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]

STEP = 1 << 12
GOLDEN = 0x9E3779B97F4A7C15


def regex() -> Any:
    """The module; SystemExit says how to get it."""
    try:
        import regex as module
    except ImportError as error:
        raise SystemExit("results are checked with regex: pip install regex") from error
    return module


@cache
def _unspaced() -> Any:
    scripts = ("Han", "Hiragana", "Katakana", "Thai")
    letter = "".join(rf"\p{{Script_Extensions={name}}}" for name in scripts)
    return regex().compile(rf"((?:[{letter}]\p{{M}}*)+)")


def words(text: str) -> list[str]:
    r"""Matches of `\w+`, letters of scripts without spaces in overlapping pairs."""
    found: list[str] = []
    for word in regex().findall(r"\w+", text.casefold()):
        if word.isascii():
            found.append(word)
            continue
        for place, piece in enumerate(_unspaced().split(word)):
            # What was split at stands at odd places.
            if place % 2 and len(piece) > 1:
                found += [piece[i : i + 2] for i in range(len(piece) - 1)]
            elif piece:
                found.append(piece)
    return found


def features(text: str, unit: str, sizes: Sequence[int]) -> Counter[bytes]:
    """The n-grams of a text in UTF-8, and how often it has each."""
    if unit == "word":
        units, joiner = words(text), " "
    else:
        units, joiner = list(" ".join(text.casefold().split())), ""
    grams = [units[i : i + n] for n in sizes for i in range(len(units) - n + 1)]
    if units and len(units) < min(sizes):
        grams = [units]
    return Counter(joiner.join(gram).encode("utf-8", "surrogatepass") for gram in grams)


def frequencies(texts: Sequence[str], unit: str, sizes: Sequence[int]) -> Counter[bytes]:
    """In how many texts each feature occurs."""
    counted: Counter[bytes] = Counter()
    for text in texts:
        counted.update(features(text, unit, sizes).keys())
    return counted


def weight(weighting: str, count: int, idf: int) -> int:
    """What a feature counts: units, or steps where there is idf or a logarithm."""
    once = weighting in ("binary", "idf")
    if weighting.startswith("sublinear"):
        steps = round((1 + math.log(count)) * STEP)
        return (steps * idf + STEP // 2) // STEP if weighting.endswith("tfidf") else steps
    return (1 if once else count) * (idf if weighting.endswith("idf") else 1)


def balanced(steps: Sequence[int], counts: Sequence[int]) -> list[int]:
    """The idf of a document's features, lowered where its common features are rare elsewhere.

    The mean of the second and third tenth of all occurrences, and of ten of idf 1, decides.
    """
    repeated = np.repeat([STEP, *steps], [10, *counts])
    tenths = np.sort(np.repeat(repeated, 10))
    n = len(repeated)
    rarer = int(tenths[n : 3 * n].sum() + n) // (2 * n) - STEP
    shift = max(0, min(rarer, 2 * (rarer - round(math.log(2) * STEP))))
    return [max(STEP, step - shift) for step in steps]


def idf_step(documents: int, containing: int) -> int:
    """idf of a feature that `containing` of the documents have, in steps."""
    return round((math.log((1 + documents) / (1 + containing)) + 1) * STEP)


def draw(hashes: U64, index: int) -> U64:
    """The hash itself, or that output of SplitMix64 started at it."""
    if index == 0:
        return hashes
    z = hashes + np.uint64(index * GOLDEN % 2**64)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def columns(words: U64) -> I64:
    """The bits of some words, the top one first: int64 (n, 64)."""
    return np.unpackbits(words.astype(">u8").view(np.uint8).reshape(-1, 8), axis=1).astype(np.int64)


@cache
def quantiles() -> I64:
    """65,536 normal variates of equal chance, in steps."""
    inverse = NormalDist().inv_cdf
    return np.array([round(STEP * inverse((i + 0.5) / 65536)) for i in range(65536)])


def vectors(hashes: U64, projection: str, word: int) -> I64:
    """64 columns of the features' random vectors: int64 (n, 64)."""
    if projection == "sign":
        return 2 * columns(draw(hashes, word)) - 1
    if projection == "ternary":
        present = draw(hashes, 3 * word + 1) & draw(hashes, 3 * word + 2)
        return columns(present) * (2 * columns(draw(hashes, 3 * word)) - 1)
    fields = [
        (draw(hashes, 16 * word + c // 4) >> np.uint64(16 * (c % 4))) & np.uint64(0xFFFF)
        for c in range(64)
    ]
    return quantiles()[np.stack(fields, axis=1).astype(np.int64)]


def simhash(
    text: str, *, unit: str, sizes: Sequence[int], weighting: str, projection: str, bits: int,
    df: Counter[bytes], documents: int,
) -> tuple[U64, NDArray[np.float32]]:
    """Fingerprint (b / 64,) and sums (b,) of one text, of which every feature is counted in df."""
    found = features(text, unit, sizes)
    hashes = np.array(
        [mmh3.hash64(feature, signed=False)[0] for feature in found], dtype=np.uint64
    )
    steps = [idf_step(documents, df[feature]) if documents else STEP for feature in found]
    if weighting.startswith("balanced"):
        steps = balanced(steps, list(found.values()))
    weights = np.array([
        weight(weighting, count, step) for count, step in zip(found.values(), steps, strict=True)
    ])
    sums = np.concatenate(
        [weights @ vectors(hashes, projection, word) for word in range(bits // 64)]
    )
    ones = sums > 0 if projection == "ternary" else sums >= 0
    fingerprint = np.packbits(ones).view(">u8").astype(np.uint64)
    stepped = 1.0 if weighting in ("tf", "binary") else 1 / STEP
    if projection == "gaussian":
        stepped /= STEP
    return fingerprint, (sums * stepped).astype(np.float32)
