"""The exact scan against numpy, at every level."""

import numpy as np
import pytest

from simindex._kernels import LEVELS, _native

LEVEL_NUMBERS = range(len(LEVELS))


def world(n, words, m, seed):
    """Rows in a few families, so that matches are many, and queries from the same families."""
    rng = np.random.default_rng(seed)
    families = rng.integers(0, 2**64, size=(20, words), dtype=np.uint64)

    def members(count):
        found = families[rng.integers(0, 20, count)]
        for _ in range(3):
            word = rng.integers(0, words, count)
            bit = rng.integers(0, 64, count).astype(np.uint64)
            found[np.arange(count), word] ^= np.uint64(1) << bit
        return found

    return members(n), members(m)


def brute(rows, queries, h, first):
    distance = np.bitwise_count(queries[:, None] ^ rows[None]).sum(axis=2, dtype=np.int64)
    query, row = np.nonzero(distance <= h)
    compared = len(rows) * len(queries)
    if first:
        query, at = np.unique(query, return_index=True)
        row = row[at]
        compared -= int((len(rows) - row - 1).sum())
    return query, row, distance[query, row], compared


@pytest.mark.parametrize("level", LEVEL_NUMBERS)
@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize(
    ("words", "n", "m"), [(1, 9000, 70), (1, 4113, 3), (2, 5000, 40), (3, 3001, 20), (16, 900, 30)]
)
@pytest.mark.parametrize("h", [0, 3, 6])
def test_scan_finds_what_numpy_finds(words, n, m, h, first, level):
    rows, queries = world(n, words, m, h)
    query, row, distance, compared = _native.scan(rows, queries, h, first, level)
    assert (query.dtype, row.dtype, distance.dtype) == (np.int64, np.uint32, np.uint16)
    expected = brute(rows, queries, h, first)
    assert np.array_equal(query, expected[0])
    assert np.array_equal(row, expected[1])
    assert np.array_equal(distance, expected[2])
    assert compared == expected[3]


@pytest.mark.parametrize("level", LEVEL_NUMBERS)
@pytest.mark.parametrize("words", [1, 16, 64])
def test_radius_of_the_whole_width_reports_every_pair(words, level):
    rng = np.random.default_rng(1)
    rows = rng.integers(0, 2**64, size=(100, words), dtype=np.uint64)
    queries = ~rows[:7]
    query, row, distance, compared = _native.scan(rows, queries, 64 * words, False, level)
    assert len(query) == compared == 700
    assert distance[query == row].tolist() == [64 * words] * 7


@pytest.mark.parametrize("level", LEVEL_NUMBERS)
@pytest.mark.parametrize("n", range(40))
def test_tables_of_every_small_size(n, level):
    rows = np.arange(n, dtype=np.uint64)[:, None]
    queries = np.zeros((1, 1), np.uint64)
    row = _native.scan(rows, queries, 1, False, level)[1]
    assert row.tolist() == [r for r in (0, 1, 2, 4, 8, 16, 32) if r < n]


@pytest.mark.parametrize("level", LEVEL_NUMBERS)
@pytest.mark.parametrize(("n", "m"), [(0, 3), (5, 0), (0, 0)])
def test_nothing_to_scan_gives_empty_columns(n, m, level):
    rows, queries = world(n, 1, m, 1)
    query, row, distance, compared = _native.scan(rows, queries, 64, False, level)
    assert len(query) == len(row) == len(distance) == compared == 0


def test_widths_must_agree():
    rows, queries = world(5, 2, 3, 1)
    with pytest.raises(ValueError, match="as many words"):
        _native.scan(rows, queries[:, :1].copy(), 3, False)
    with pytest.raises(ValueError, match="0 or more"):
        _native.scan(rows, queries, -1, False)


@pytest.mark.parametrize("level", LEVEL_NUMBERS)
@pytest.mark.parametrize(
    ("words", "h", "m"),
    [(4, 31, 1), (4, 31, 18), (4, 12, 16), (4, 256, 1), (2, 60, 3), (16, 200, 2)],
)
def test_wide_rows_that_are_near_in_their_first_words_alone_are_no_matches(words, h, m, level):
    """Slabs of several lines, the last of which is cut; rows within h, at h and just beyond it."""
    rng = np.random.default_rng(h)
    n = 2 * 2048 + 5
    rows = rng.integers(0, 2**64, size=(n, words), dtype=np.uint64)
    queries = rng.integers(0, 2**64, size=(m, words), dtype=np.uint64)
    alike = rng.integers(0, m, n // 2)
    rows[: n // 2, : words // 2] = queries[alike, : words // 2]
    for place in [*rng.integers(0, n, 200).tolist(), 0, 2047, 2048, n - 1]:
        differ = rng.permutation(64 * words)[: min(64 * words, h + int(rng.integers(-2, 3)))]
        bits = np.zeros(64 * words, np.bool_)
        bits[differ] = True
        flips = np.packbits(bits).view(np.uint64)
        rows[place] = queries[rng.integers(0, m)] ^ flips
    query, row, distance, compared = _native.scan(rows, queries, h, False, level)
    expected = brute(rows, queries, h, False)
    assert len(query) > 50
    assert np.array_equal(query, expected[0])
    assert np.array_equal(row, expected[1])
    assert np.array_equal(distance, expected[2])
    assert compared == n * m
