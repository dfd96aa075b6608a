"""Search over slice lists against a literal [ISSL] of numpy, at every level."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simindex._kernels import LEVELS, _native

LEVEL_NUMBERS = range(len(LEVELS))
NO_ID = 2**64 - 1
NO_ROW = 2**32 - 1


def slice_values(rows, width):
    """(n, s): slice i is bits i*w to i*w + w - 1, from the top of word 0."""
    return rows.astype(">u8").view(np.uint8 if width == 8 else ">u2").astype(np.int64)


def slice_lists(rows, width):
    """starts (s, 2^w + 1) and numbers (s, n), numbers of one list ascending."""
    values = slice_values(rows, width).T
    numbers = np.argsort(values, axis=1, kind="stable").astype(np.uint32)
    starts = np.zeros((len(values), 2**width + 1), np.uint32)
    for at, some in zip(starts, values, strict=True):
        at[1:] = np.cumsum(np.bincount(some, minlength=2**width))
    return starts, numbers


def checked(rows, ids, width):
    return _native.CheckedSlices(rows, ids, *slice_lists(rows, width))


def scores(rows, query, width, max_error):
    """[ISSL] section 2: w - e for each slice that differs in e <= max_error bits."""
    errors = np.bitwise_count(slice_values(rows, width) ^ slice_values(query[None], width))
    return np.where(errors <= max_error, width - errors.astype(np.int64), 0).sum(axis=1)


def top(rows, ids, queries, width, k, max_error, rerank, dead=None):
    """Sections 2 and 3, literally: the R rows of highest score, reranked by distance.

    Of the rows listed, or of all if R is no less than their number.
    """
    live = np.arange(len(rows)) if dead is None else np.flatnonzero(dead == 0)
    found_ids = np.full((len(queries), k), NO_ID, np.uint64)
    found = np.full((len(queries), k), 64 * rows.shape[1] + 1, np.uint16)
    for q, query in enumerate(queries):
        errors = np.bitwise_count(slice_values(rows, width) ^ slice_values(query[None], width))
        listed = (errors <= max_error).any(axis=1) | (rerank >= len(rows))
        some = live[listed[live]]
        score = scores(rows[some], query, width, max_error)
        chosen = some[np.lexsort((some, -score))[:rerank]]
        distance = np.bitwise_count(rows[chosen] ^ query).sum(axis=1, dtype=np.int64)
        best: dict[int, int] = {}
        for name, far in zip(ids[chosen].tolist(), distance.tolist(), strict=True):
            best[name] = min(far, best.get(name, far))
        for place, (far, name) in enumerate(sorted((f, i) for i, f in best.items())[:k]):
            found[q, place], found_ids[q, place] = far, name
    return found_ids, found


def within(rows, queries, width, h, max_error):
    """(query, row, distance) of rows within h that share a list with the query."""
    for q, query in enumerate(queries):
        distance = np.bitwise_count(rows ^ query).sum(axis=1, dtype=np.int64)
        errors = np.bitwise_count(slice_values(rows, width) ^ slice_values(query[None], width))
        near = (distance <= h) & (errors <= max_error).any(axis=1)
        for row in np.flatnonzero(near):
            yield q, int(row), int(distance[row])


def world(seed, n, words, m, flips=0.15, centres=5):
    """Rows and queries around a few centres, with repeated ids."""
    rng = np.random.default_rng(seed)
    middle = rng.integers(0, 2**64, size=(centres, words), dtype=np.uint64)

    def members(count):
        noise = rng.random((count, 64 * words)) < flips * rng.random((count, 1))
        noise = np.packbits(noise, axis=1).view(">u8").astype(np.uint64)
        return middle[rng.integers(0, centres, count)] ^ noise

    return members(n), rng.integers(0, max(1, n), n).astype(np.uint64), members(m)


@pytest.mark.parametrize("level", LEVEL_NUMBERS)
@pytest.mark.parametrize(("width", "words", "max_error"), [
    (8, 1, 0), (8, 1, 2), (8, 2, 1), (8, 3, 8), (8, 5, 1), (8, 64, 1),
    (16, 1, 1), (16, 2, 2), (16, 4, 0), (16, 9, 1), (16, 16, 1), (16, 16, 3), (16, 64, 1),
])
def test_top_is_that_of_the_paper(width, words, max_error, level):
    rows, ids, queries = world(width * words + max_error, 700, words, 12)
    for rerank in (1, 40, 699, 700, 10_000):
        expected = top(rows, ids, queries, width, 7, max_error, rerank)
        found = _native.top_slices(
            checked(rows, ids, width), queries, 7, max_error, rerank, level=level
        )
        assert np.array_equal(found[1], expected[1])
        assert np.array_equal(found[0], expected[0])
