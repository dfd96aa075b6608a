"""Search over slice lists against a literal [ISSL] of numpy, at every level."""

from __future__ import annotations

from math import comb

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

    Of the rows listed, or of all if R is not less than their number.
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


def expect_top(found, expected, rows, queries):
    """The places of the oracle, each with the first row that is so near."""
    assert np.array_equal(found[1], expected[1])
    assert np.array_equal(found[0], expected[0])
    assert np.array_equal(found[2] == NO_ROW, found[0] == NO_ID)
    q, place = np.nonzero(found[2] != NO_ROW)
    distance = np.bitwise_count(rows[found[2][q, place]] ^ queries[q]).sum(axis=1)
    assert np.array_equal(distance, found[1][q, place])


# Few rows are scored one after the other, more by lists: both ways are among these.
@pytest.mark.parametrize("level", LEVEL_NUMBERS)
@pytest.mark.parametrize(("width", "words", "max_error", "n"), [
    (8, 1, 0, 900), (8, 1, 1, 5000), (8, 1, 2, 900), (8, 2, 1, 5000), (8, 3, 8, 500),
    (8, 5, 1, 3000), (8, 64, 0, 500), (8, 300, 0, 60), (16, 1, 1, 5000), (16, 2, 2, 900),
    (16, 4, 0, 4000),
    (16, 9, 1, 4000), (16, 16, 1, 3000), (16, 16, 3, 300), (16, 64, 1, 1200), (16, 1, 16, 300),
])
@pytest.mark.parametrize("flips", [0.1, 0.7])
@pytest.mark.slow
def test_top_is_that_of_the_paper(width, words, max_error, n, flips, level):
    rows, ids, queries = world(width * words + max_error, n, words, 6, flips, centres=40)
    slices = checked(rows, ids, width)
    for rerank in (1, 40, n // 3, n - 1, n, 10 * n):
        expected = top(rows, ids, queries, width, 7, max_error, rerank)
        found = _native.top_slices(slices, queries, 7, max_error, rerank, level=level)
        expect_top(found, expected, rows, queries)
        listed = sum(comb(width, errors) for errors in range(max_error + 1))
        assert found[3] == len(queries) * len(slice_values(rows[:1], width)[0]) * listed
        assert found[6] == 0


@given(st.data())
@pytest.mark.slow
def test_top_of_any_table(data):
    width = data.draw(st.sampled_from([8, 16]))
    words = data.draw(st.integers(1, 3))
    n = data.draw(st.sampled_from([0, 1, 2, 30, 1000, 2500]))
    m = data.draw(st.sampled_from([0, 1, 3, 40]))
    flips = data.draw(st.sampled_from([0.0, 0.1, 0.5, 1.0]))
    centres = data.draw(st.sampled_from([1, 10, 300]))
    rows, ids, queries = world(data.draw(st.integers(0, 99)), n, words, m, flips, centres)
    max_error = data.draw(st.integers(0, 2 if n > 30 else width))
    rerank = data.draw(st.integers(1, max(1, n + 1)))
    k = data.draw(st.sampled_from([1, 3, 10, 70, 3000]))
    dead = None
    if data.draw(st.booleans()):
        share = data.draw(st.sampled_from([0.0, 0.3, 1.0]))
        dead = (np.random.default_rng(n).random(n) < share).astype(np.uint8)
    found = _native.top_slices(
        checked(rows, ids, width), queries, k, max_error, rerank, dead,
        threads=data.draw(st.integers(1, 3)), level=data.draw(st.sampled_from(LEVEL_NUMBERS)),
    )
    expect_top(found, top(rows, ids, queries, width, k, max_error, rerank, dead), rows, queries)


@pytest.mark.parametrize(("width", "words"), [(8, 1), (8, 4), (16, 2), (16, 16)])
@pytest.mark.parametrize("level", LEVEL_NUMBERS)
def test_with_all_errors_the_score_is_the_distance(width, words, level):
    """So that the rows reranked are the nearest ones, and the top K is the true one."""
    rows, ids, queries = world(3, 2000, words, 20, 0.5, centres=300)
    found = _native.top_slices(checked(rows, ids, width), queries, 5, width, 1900, level=level)
    expected = top(rows, ids, queries, width, 5, width, len(rows))
    assert np.array_equal(found[1], expected[1])
    assert np.array_equal(found[0], expected[0])
    assert np.array_equal(
        width * words * (64 // width) - scores(rows, queries[0], width, width),
        np.bitwise_count(rows ^ queries[0]).sum(axis=1, dtype=np.int64),
    )


@pytest.mark.slow
def test_results_depend_on_neither_threads_nor_company():
    """Nor on groups of queries, of which the second begins when the first has filled its memory."""
    rng = np.random.default_rng(11)
    rows = rng.integers(0, 2**64, (300_000, 1), np.uint64)
    ids = rng.integers(0, 2**40, len(rows)).astype(np.uint64)
    queries = rows[rng.integers(0, len(rows), 1100)] ^ np.uint64(1 << 40 | 1 << 3)
    slices = checked(rows, ids, 8)
    for rerank in (200_000, 300):
        together = _native.top_slices(slices, queries, 10, 0, rerank)
        for threads in (2, 3):
            split = _native.top_slices(slices, queries, 10, 0, rerank, threads=threads)
            assert all(map(np.array_equal, together[:3], split[:3]))
            assert together[3:] == split[3:]
        for q in range(0, 1100, 50):
            alone = _native.top_slices(slices, queries[q : q + 1], 10, 0, rerank)
            for column in range(3):
                assert np.array_equal(alone[column][0], together[column][q])


@pytest.mark.parametrize("rerank", [10, 200, 49_999])
def test_equal_rows_are_taken_by_row_number(rerank):
    """All rows stand in the same lists, more than are followed."""
    rows = np.full((50_000, 4), 7, np.uint64)
    ids = np.arange(50_000, dtype=np.uint64)[::-1].copy()
    queries = np.full((2, 4), 7, np.uint64)
    found = _native.top_slices(checked(rows, ids, 16), queries, 3, 1, rerank)
    assert found[2].tolist() == [[rerank - 1, rerank - 2, rerank - 3]] * 2
    assert found[1].tolist() == [[0, 0, 0]] * 2
    dead = np.zeros(50_000, np.uint8)
    dead[: 50_000 - 5] = 1
    found = _native.top_slices(checked(rows, ids, 16), queries, 3, 1, rerank, dead)
    assert found[0].tolist() == [[0, 1, 2]] * 2


@pytest.mark.parametrize(("n", "rerank"), [(3000, 2900), (3000, 20), (3000, 3000)])
@pytest.mark.parametrize("m", [1, 40])
def test_row_numbers_out_of_range_are_never_followed(n, rerank, m):
    rng = np.random.default_rng(2)
    rows = rng.integers(0, 2**64, (n, 1), np.uint64)
    ids = np.arange(n, dtype=np.uint64)
    starts, numbers = slice_lists(rows, 8)
    for number in (n, 8191, 8192, 2**31, 2**32 - 1):
        damaged = numbers.copy()
        damaged[3, :] = number
        slices = _native.CheckedSlices(rows, ids, starts, damaged)
        found = _native.top_slices(slices, rows[:m].copy(), 4, 0, rerank)
        if rerank < n:  # else lists are not looked at
            assert found[6] >= m
            assert (found[2] == NO_ROW).all()
        else:
            assert found[6] == 0
        for first in (False, True):
            near = _native.slices_within(slices, rows[:m].copy(), 7, 0, first)
            assert near[6] >= m
            assert len(near[0]) == 0


@pytest.mark.parametrize("level", LEVEL_NUMBERS)
@pytest.mark.parametrize(("width", "words", "n", "h", "max_error"), [
    (8, 1, 3000, 7, 0), (8, 1, 5000, 9, 1), (8, 1, 900, 20, 1), (8, 2, 3000, 40, 0),
    (16, 4, 6000, 15, 0), (16, 4, 6000, 31, 1), (16, 4, 6000, 30, 1), (16, 4, 6000, 80, 1),
    (16, 16, 2000, 100, 1), (16, 16, 300, 300, 2), (16, 2, 400, 128, 16), (8, 64, 400, 600, 1),
])
def test_rows_within_h_that_share_a_list(width, words, n, h, max_error, level):
    rows, ids, queries = world(h, n, words, 9, 0.5, centres=30)
    slices = checked(rows, ids, width)
    wanted = list(within(rows, queries, width, h, max_error))
    query, row, distance, name, lists, compared, damaged = _native.slices_within(
        slices, queries, h, max_error, False, level
    )
    assert list(zip(query.tolist(), row.tolist(), distance.tolist(), strict=True)) == wanted
    assert np.array_equal(name, ids[row])
    assert damaged == 0 and lists > 0 and compared >= len(wanted)
    if max_error >= h // len(slice_values(rows[:1], width)[0]):
        near = np.bitwise_count(queries[:, None] ^ rows).sum(axis=2, dtype=np.int64) <= h
        assert len(wanted) == near.sum()
    first = _native.slices_within(slices, queries, h, max_error, True, level)
    lowest = {}
    for q, r, d in wanted:
        lowest.setdefault(q, (q, r, d))
    assert list(zip(*(column.tolist() for column in first[:3]), strict=True)) == list(
        lowest.values()
    )


@pytest.mark.parametrize(("h", "max_error"), [(15, 0), (7, 0), (30, 1), (31, 1), (31, 2), (30, 2)])
def test_rows_that_only_the_last_slice_looked_at_finds(h, max_error):
    """Rows one error beyond max_error in every slice but one, up to h in all."""
    rng = np.random.default_rng(h)
    rows = rng.integers(0, 2**64, (8000, 4), np.uint64)
    query = rng.integers(0, 2**64, (1, 4), np.uint64)
    for row in range(50):
        left, slices = h, slice_values(query, 16)[0]
        for place in range(16):
            errors = min(left, max_error + 1)
            for bit in rng.choice(16, errors, replace=False):
                slices[place] ^= 1 << bit
            left -= errors
        rows[row] = slices.astype(">u2").view(">u8")
    slices = checked(rows, np.arange(8000, dtype=np.uint64), 16)
    _, row, distance, _, _, compared, _ = _native.slices_within(
        slices, query, h, max_error, False
    )
    assert compared < 8000  # by lists
    assert row.tolist() == list(range(50))
    assert distance.tolist() == [h] * 50


@pytest.mark.slow
def test_a_million_equal_rows_are_each_found_once():
    rows = np.full((1_000_000, 2), 5, np.uint64)
    starts, numbers = slice_lists(rows, 16)
    slices = _native.CheckedSlices(rows, np.arange(10**6, dtype=np.uint64), starts, numbers)
    row, compared = (_native.slices_within(slices, rows[:2], 3, 0, False)[i] for i in (1, 5))
    assert np.array_equal(row, np.tile(np.arange(10**6, dtype=np.uint32), 2))
    assert compared == 2 * 10**6
    assert _native.slices_within(slices, rows[:3], 3, 0, True)[1].tolist() == [0, 0, 0]


@pytest.mark.slow
def test_most_near_rows_of_clusters_are_found():
    """Rows and queries differ from 400 centres in 10 to 25 % of 1,024 bits."""
    rng = np.random.default_rng(6)
    centres = rng.integers(0, 2**64, (400, 16), np.uint64)

    def members(count):
        noise = rng.random((count, 1024), np.float32) < rng.uniform(0.1, 0.25, (count, 1))
        return centres[rng.integers(0, 400, count)] ^ np.packbits(noise, axis=1).view(np.uint64)

    rows, queries = members(20_000), members(200)
    slices = checked(rows, np.arange(20_000, dtype=np.uint64), 16)
    exact = _native.top_scan(rows, np.arange(20_000, dtype=np.uint64), queries, 10)[1]
    for max_error, rerank, recall in ((1, 2000, 0.95), (2, 256, 0.98)):
        found = _native.top_slices(slices, queries, 10, max_error, rerank)[1]
        assert (found <= exact[:, 9:]).mean() >= recall


def test_lists_must_fit_the_rows():
    rows = np.arange(6, dtype=np.uint64).reshape(3, 2)
    ids = np.zeros(3, np.uint64)
    starts, numbers = slice_lists(rows, 8)
    with pytest.raises(ValueError, match="one for each row"):
        _native.CheckedSlices(rows, ids[:2].copy(), starts, numbers)
    with pytest.raises(ValueError, match="one for each row, of each slice"):
        _native.CheckedSlices(rows, ids, starts, numbers[:, :2].copy())
    with pytest.raises(ValueError, match="of all slices"):
        _native.CheckedSlices(rows, ids, starts[:15].copy(), numbers[:15].copy())
    with pytest.raises(ValueError, match=r"2\*\*8"):
        _native.CheckedSlices(rows, ids, starts[:, :200].copy(), numbers)
    for place, value in ((0, 1), (256, 2), (256, 4), (100, 9), (3, 0)):
        wrong = starts.copy()
        wrong[15, place] = value
        if np.array_equal(wrong, starts):
            continue
        with pytest.raises(ValueError, match="ascend"):
            _native.CheckedSlices(rows, ids, wrong, numbers)


def test_options_beyond_the_slices_are_refused():
    rows, ids, queries = world(1, 50, 2, 3)
    for width in (8, 16):
        slices = checked(rows, ids, width)
        for max_error in (-1, width + 1):
            with pytest.raises(ValueError, match="max_error"):
                _native.top_slices(slices, queries, 3, max_error, 9)
            with pytest.raises(ValueError, match="max_error"):
                _native.slices_within(slices, queries, 3, max_error, False)
        for wrong in ({"k": 0}, {"rerank": 0}, {"threads": 0}):
            options = {"k": 3, "max_error": 1, "rerank": 9, **wrong}
            with pytest.raises(ValueError, match=next(iter(wrong))):
                _native.top_slices(slices, queries, **options)
        with pytest.raises(ValueError, match="as many words"):
            _native.top_slices(slices, queries[:, :1].copy(), 3, 1, 9)
        with pytest.raises(ValueError, match="dead"):
            _native.top_slices(slices, queries, 3, 1, 9, np.zeros(49, np.uint8))
        with pytest.raises(ValueError, match="h: 0"):
            _native.slices_within(slices, queries, -1, 1, False)
