"""The functions of simhash-py 0.4 ([SHP]), with the same results.

    import simindex.compat.simhash_py as simhash

    unsigned_hash         64 bits of MD5
    shingle               overlapping lists of tokens
    compute               the fingerprint of a document's hashes
    batch                 those of many documents, for an index
    RECIPE                the recipe of these batches
    num_differing_bits    Hamming distance
    find_all              all pairs of different fingerprints within a distance
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator
from itertools import chain, islice, tee
from operator import index
from typing import Any, TypeVar

import numpy as np

from simindex.checks import require_whole
from simindex.compat.majority import RECIPE as RECIPE
from simindex.compat.majority import of_hashes
from simindex.errors import InvalidBatch
from simindex.pairs.find_all import find_all as all_pairs
from simindex.records.arguments import as_fingerprints
from simindex.records.batch import Batch

Token = TypeVar("Token")

LARGEST = 2**64 - 1
"""Of the numbers that are hashes and fingerprints."""


def unsigned_hash(obj: bytes) -> int:
    """The first 8 bytes of the MD5 of some bytes, as a number, highest byte first."""
    return int.from_bytes(hashlib.md5(obj, usedforsecurity=False).digest()[:8], "big")


def shingle(tokens: Iterable[Token], window: int = 4) -> Iterator[list[Token]]:
    """Every `window` tokens that follow each other; none of fewer tokens.

    Raises InvalidOption if the window is not a whole number from 1.
    """
    width = require_whole(window, "window", 1)
    copies = [islice(copy, start, None) for start, copy in enumerate(tee(tokens, width))]
    return map(list, zip(*copies, strict=False))


def compute(hashes: Iterable[int]) -> int:
    """The fingerprint of the hashes of a document: a bit is 1 if it is 1 in more than half of them.

    No hashes give 0. Raises InvalidBatch for one that is not from 0 to 2**64 - 1.
    """
    listed = list(hashes)
    return int(batch([listed]).rows[0, 0]) if listed else 0


def batch(documents: Iterable[Iterable[int]], **names: Any) -> Batch:
    """The fingerprints of many documents, each given by its hashes, as `Recipe.batch` returns them.

    The fingerprints are those of `compute`. A document without hashes is left out, and is in
    `skipped`. `ids` or `keys` name the documents. Raises InvalidBatch as `compute` does.
    """
    offsets: list[int] = [0]
    listed: list[Collection[int]] = []
    for hashes in documents:
        held = hashes if isinstance(hashes, Collection) else list(hashes)
        listed.append(held)
        offsets.append(offsets[-1] + len(held))
    return of_hashes(_unsigned(chain.from_iterable(listed)), offsets, **names)


def num_differing_bits(a: int, b: int) -> int:
    """In how many bits two fingerprints differ.

    Raises InvalidBatch for one that is not from 0 to 2**64 - 1.
    """
    try:
        first, second = index(a), index(b)
    except TypeError as error:
        raise _no_hash() from error
    if not (0 <= first <= LARGEST and 0 <= second <= LARGEST):
        raise _no_hash()
    return (first ^ second).bit_count()


def find_all(
    hashes: Iterable[int], number_of_blocks: int, different_bits: int
) -> list[tuple[int, int]]:
    """All pairs of different fingerprints that differ in at most so many bits.

    Each pair is a tuple (a, b) with a < b, and the pairs are sorted; simhash-py returns them in any
    order. Equal fingerprints count once.

    Raises
    ------
    InvalidBatch
        If one is not from 0 to 2**64 - 1.
    InvalidOption
        If there are not more blocks than bits, or more than 64.

    Notes
    -----
    Takes the time and memory of `simindex.find_all`, which returns arrays with the distances, and
    also the pairs of equal ones.
    """
    rows = np.unique(_unsigned(hashes))
    found = all_pairs(rows, h=different_bits, blocks=number_of_blocks)
    return list(zip(rows[found.a].tolist(), rows[found.b].tolist(), strict=True))


def _unsigned(values: Iterable[int]) -> Any:
    listed = list(values)
    if not listed:
        return np.empty(0, np.uint64)
    try:
        return as_fingerprints(listed)[:, 0]
    except InvalidBatch as error:
        raise _no_hash(**error.data) from error


def _no_hash(**data: Any) -> InvalidBatch:
    return InvalidBatch(
        "a hash is not a whole number from 0 to 2**64 - 1",
        remedy="make hashes with unsigned_hash, or take them modulo 2**64", **data,
    )
