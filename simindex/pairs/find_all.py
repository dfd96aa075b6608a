"""All pairs of fingerprints in memory that are within h of each other. [SHP] `find_all`.

    blocks      | 0 | 1 | 2 | 3 |       h = 3: two rows within h agree on one of 4 blocks at least
    passes        0   1   2   3         rows that agree on it form a group, and are compared

    blocks      | 0 | 1 | 2 | 3 | 4 |   or on two of 5: more passes, over smaller groups
    passes        01  02  03 .. 34

The pass of the first blocks on which a pair agrees reports it, so each pair comes once.
"""

from __future__ import annotations

from math import comb
from typing import Any

import numpy as np

from simindex._kernels import _native
from simindex.arrays import I64, U8, U32, U64
from simindex.bits.distinct_rows import distinct
from simindex.checks import require_share, require_whole
from simindex.errors import InvalidBatch, InvalidOption, TooManyMatches
from simindex.options import as_flag
from simindex.planning.similarity import Similar, require_measure, similar
from simindex.query.sketch_filter import kept_pairs
from simindex.records.arguments import as_fingerprints
from simindex.records.batch import Batch
from simindex.records.pairs import CollapsedPairs, EqualRows, Pairs
from simindex.records.sketches import words_of
from simindex.resources.memory import ANSWER_SHARE, answer_bytes
from simindex.resources.threads import thread_count
from simindex.simhash.radius import raw_radius

MAX_ROWS = 1 << 32
MAX_PASSES = 1_000_000

WORTH_THREADS = 100_000
"""Rows below which one thread is as fast."""

_FEW_ROWS = 1 << 15

_FILTERED_H = 14
"""Up to it, most rows of several words are told apart by one word made of all of them."""

# Nanoseconds, as measured: to move a row to its group in a pass, to compare two rows, or two words
# of rows that are not told apart before.
MOVE_NS = 14.0
COMPARE_NS = 0.1
_COMPARE_WORD_NS = 2.0

_PAIR_BYTES = 24
"""Memory that a pair takes while it is found and sorted, the result included: 18."""


def find_all(
    fingerprints: Any,
    *,
    h: int | None = None,
    similarity: float | None = None,
    measure: str = "cosine",
    recall: float = 1.0,
    blocks: int | None = None,
    collapse_equal: bool = False,
    threads: int | None = None,
) -> Pairs:
    """Finds every pair of rows within Hamming distance h. Exact.

    Parameters
    ----------
    fingerprints : Batch, or uint64 (n,) or (n, W)
        Fewer than 2**32 rows. They may repeat.
    h : int, optional
        Largest distance of a pair, from 0 to b. Default: that of the batch's recipe, or 3 for each
        64 bits of plain fingerprints, whose recipe is not known.
    similarity, measure, recall
        As in `Index.pairs`. The sketches of a batch decide, if it has some.
    blocks : int, optional
        Into how many blocks the bits are divided, from h + 1 to b, as in [SHP]. Rows are compared
        if they agree on blocks - h of them, which takes blocks-choose-h passes. Default: the number
        that should take the least time. The pairs are the same.
    collapse_equal : bool
        Let the first of the rows with equal fingerprints represent them. So a million equal rows
        are one group instead of 5 10**11 pairs.
    threads : int, optional
        Default: `SIMINDEX_THREADS`, or one for each processor; one below 100,000 rows.

    Returns
    -------
    Pairs
        Row numbers a < b, each pair once, ordered by (a, b), equal fingerprints included. With
        `collapse_equal` a `CollapsedPairs`: pairs of the first rows of different fingerprints, and
        `groups` with the rows that equal an earlier one.

    Raises
    ------
    InvalidBatch
        If the rows are not fingerprints, or are too many.
    InvalidOption
        If an option is out of range.
    TooManyMatches
        If the pairs would take more than a quarter of the memory. `Index.pairs` gives them in
        parts.

    Notes
    -----
    Takes 32 bytes of memory a row and 24 a pair, the 18 of the result included. Source: [SHP]
    `find_all`, section "Architecture", which sorts rows and compares neighbours; simindex
    partitions rows and compares groups.
    """
    batch = fingerprints if isinstance(fingerprints, Batch) else None
    rows = as_fingerprints(fingerprints) if batch is None else batch.rows
    n, bits = len(rows), 64 * rows.shape[1]
    if n >= MAX_ROWS:
        raise InvalidBatch(
            f"{n:,} rows: the limit of one call is {MAX_ROWS - 1:,}",
            found=n, expected=f"at most {MAX_ROWS - 1}",
        )
    collapse_equal = as_flag(collapse_equal, "collapse_equal")
    require_share(recall, "recall")
    recipe = None if batch is None else batch.recipe
    near: Similar | None = None
    if similarity is None:
        require_measure(measure, None, None)
        usual = raw_radius(bits) if recipe is None else recipe.h
        h = require_whole(usual if h is None else h, "h", 0, bits)
    else:
        near = similar(
            similarity, h=h, recall=recall, bits=bits, measure=measure,
            sketch_bits=0 if batch is None else batch.sketch_bits,
            recipe=recipe,
        )
        h = near.h
    if near is not None and batch is not None and batch.sketches is not None:
        return _kept(rows, batch.sketches, near, blocks, collapse_equal, threads)
    told = {} if near is None else {**near.told, "guarantee": near.guarantee("exact")}
    if blocks is not None:
        blocks = require_whole(blocks, "blocks", min(h + 1, bits), bits)
        if comb(blocks, h) > MAX_PASSES:
            raise InvalidOption(
                f"blocks={blocks!r}: {comb(blocks, h):,} passes for h={h}, the limit is "
                f"{MAX_PASSES:,}",
                remedy="give fewer blocks", option="blocks", found=blocks,
                expected=f"at most {MAX_PASSES} passes",
            )
    used = chosen_blocks(n, rows.shape[1], h) if blocks is None else blocks
    most = answer_bytes() // _PAIR_BYTES
    a, b, distance, first, row, pairs, too_many = _native.all_pairs(
        rows, partition(bits, max(1, used)), max(0, used - h), h, not collapse_equal, most,
        thread_count(threads, n, worth=WORTH_THREADS),
    )
    if too_many:
        limit_bytes = answer_bytes()
        raise TooManyMatches(
            f"h={h}: {pairs:,.0f} pairs or more do not fit into {limit_bytes >> 20:,} MiB, "
            f"1/{ANSWER_SHARE} of the memory",
            remedy=("" if collapse_equal else "give collapse_equal=True, ") + "give a smaller h, "
            "ask for groups with find_clusters, or append the rows to an index and take all pairs "
            "in parts, with Index.pairs",
            memory_limit=limit_bytes, found=pairs, expected=most,
        )
    if collapse_equal:
        return CollapsedPairs(a, b, distance, EqualRows(first, row), **told)
    return Pairs(a, b, distance, **told)


def _kept(
    rows: U64, sketches: U8, near: Similar, blocks: int | None, collapse: bool, threads: int | None
) -> Pairs:
    """The pairs whose sketches are near enough; rows are equal if their sketches are, too."""
    told = {**near.told, "guarantee": near.guarantee("exact")}
    if not collapse:
        found = find_all(rows, h=near.h, blocks=blocks, threads=threads)
        places, distance = kept_pairs(sketches, _numbers(found.a), _numbers(found.b), near)
        return Pairs(found.a[places], found.b[places], distance, **told)
    first, number = distinct(np.hstack([rows, words_of(sketches)]))
    leader = first[number]
    later = np.flatnonzero(leader != np.arange(len(rows)))
    later = later[np.argsort(leader[later], kind="stable")]
    heads = np.sort(first)
    found = find_all(rows[heads], h=near.h, blocks=blocks, threads=threads)
    a, b = heads[found.a], heads[found.b]
    places, distance = kept_pairs(sketches, a, b, near)
    groups = EqualRows(leader[later], later)
    return CollapsedPairs(a[places], b[places], distance, groups, **told)


def _numbers(column: I64 | U64) -> I64:
    return column.astype(np.int64, copy=False)


def chosen_blocks(rows: int, words: int, h: int) -> int:
    """Blocks that should take least time; 0 to compare every row with every other one.

    h + 1, unless so few rows are compared that they stay in the cache, or blocks are so narrow that
    their groups hold most pairs several times. More blocks never were faster: groups that are large
    are divided further while they are compared.
    """
    cheap = words == 1 or h <= _FILTERED_H
    if h >= 64 * words or (cheap and rows <= _FEW_ROWS):
        return 0
    compare_ns = COMPARE_NS if cheap else _COMPARE_WORD_NS * words
    shared = rows / 2.0 ** min(64 * words // (h + 1), 64)
    by_blocks_ns = (h + 1) * (MOVE_NS + shared / 2 * compare_ns)
    return h + 1 if by_blocks_ns < rows / 2 * compare_ns else 0


def partition(bits: int, blocks: int) -> U32:
    """First bit and width of blocks of about equal width: uint32 (blocks, 2)."""
    edges = np.arange(blocks + 1, dtype=np.int64) * bits // blocks
    return np.stack([edges[:-1], np.diff(edges)], axis=1).astype(np.uint32)
