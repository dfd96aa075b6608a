"""Pairs that agree on a block, against numpy, at every level."""

import numpy as np
import oracle
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simindex._kernels import LEVELS, _native

LEVEL_NUMBERS = range(len(LEVELS))


def partition(bits, count):
    """`count` blocks of about equal width: uint32 (count, 2), first bit and width."""
    edges = np.arange(count + 1) * bits // count
    return np.stack([edges[:-1], np.diff(edges)], axis=1).astype(np.uint32)


def brute(rows, h):
    """All (a, b, distance) with a < b, and the bits in which they differ, (p, b)."""
    found = [np.empty((0, 3), np.int64)]
    for a in range(len(rows)):
        distance = np.bitwise_count(rows[a + 1 :] ^ rows[a]).sum(axis=1, dtype=np.int64)
        near = np.flatnonzero(distance <= h)
        found.append(np.stack([np.full_like(near, a), near + a + 1, distance[near]], axis=1))
    pairs = np.concatenate(found)
    differing = (rows[pairs[:, 0]] ^ rows[pairs[:, 1]]).astype(">u8")
    return pairs, np.unpackbits(differing.view(np.uint8), axis=1)


def first_agreeing(differing, blocks):
    """The first block without a differing bit, of each pair; -1 if there is none."""
    free = np.stack([~differing[:, s : s + w].any(axis=1) for s, w in blocks.tolist()], axis=1)
    return np.where(free.any(axis=1), free.argmax(axis=1), -1)


def ordered(a, b, distance):
    """Pairs as sorted (min, max, distance)."""
    a, b = a.astype(np.int64), b.astype(np.int64)
    pairs = np.stack([np.minimum(a, b), np.maximum(a, b), distance.astype(np.int64)], axis=1)
    return pairs[np.lexsort(pairs.T[::-1])]


def families(rng, n, words, flips, repeats):
    """Rows of a few families, some of them several times over."""
    rows = oracle.skewed(rng, n, words, templates=max(1, n // 40), flips=flips)
    again = rng.random(n) < repeats
    rows[again] = rows[rng.integers(0, max(1, n // 50), again.sum())]
    return rows


FEW_BITS = np.uint64(0x8001_0300_0070_000F)

WORLDS = {
    "uniform": lambda rng, n, words: oracle.uniform(rng, n, words),
    "families": lambda rng, n, words: families(rng, n, words, 4, 0.0),
    "repeated": lambda rng, n, words: families(rng, n, words, 3, 0.5),
    "few bits": lambda rng, n, words: oracle.uniform(rng, n, words) & FEW_BITS,
}


@pytest.mark.parametrize("level", LEVEL_NUMBERS)
@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize(
    ("words", "n", "h", "count"),
    [
        (1, 1500, 3, 4), (1, 1500, 0, 1), (1, 700, 7, 8), (1, 700, 3, 7), (1, 300, 40, 41),
        (1, 300, 64, 64), (2, 900, 3, 4), (3, 500, 10, 11), (16, 300, 5, 6), (16, 200, 40, 41),
    ],
)
@pytest.mark.slow
def test_every_block_finds_its_own_pairs(world, words, n, h, count, level, rng):
    rows = WORLDS[world](rng, n, words)
    blocks = partition(64 * words, count)
    pairs, differing = brute(rows, h)
    of = first_agreeing(differing, blocks)
    for block in range(count):
        found = _native.block_pairs(rows, blocks, block, h, 1, level)
        assert [column.dtype for column in found] == [np.uint32, np.uint32, np.uint16]
        assert np.array_equal(ordered(*found), pairs[of == block])


@pytest.mark.parametrize("level", LEVEL_NUMBERS)
@pytest.mark.parametrize("words", [1, 2])
@pytest.mark.slow
def test_large_groups_are_cut_further(words, level, rng):
    """Rows that agree on the block are many, so groups are partitioned, and rows repeat in them."""
    rows = families(rng, 6000, words, 9, 0.1)
    rows[:, 0] |= np.uint64(0xFFFF_0000_0000_0000)
    blocks = partition(64 * words, 4 * words)[:4]
    pairs, differing = brute(rows, 3)
    of = first_agreeing(differing, blocks)
    for block in range(4):
        found = _native.block_pairs(rows, blocks, block, 3, 1, level)
        assert np.array_equal(ordered(*found), pairs[of == block])


@given(st.data())
@pytest.mark.slow
def test_blocks_of_any_widths(data):
    words = data.draw(st.sampled_from([1, 1, 2, 5, 64]))
    n = data.draw(st.integers(0, 60))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    rows = families(rng, n, words, data.draw(st.integers(0, 64)), data.draw(st.floats(0, 1)))
    bits = 64 * words
    edges = data.draw(st.lists(st.integers(0, bits), min_size=2, max_size=12, unique=True))
    edges = np.array(sorted(edges), np.uint32)
    blocks = np.ascontiguousarray(np.stack([edges[:-1], np.diff(edges)], axis=1))
    h = data.draw(st.integers(0, bits) | st.integers(0, 9))
    pairs, differing = brute(rows, h)
    of = first_agreeing(differing, blocks)
    threads = data.draw(st.integers(1, 3))
    level = data.draw(st.sampled_from(list(LEVEL_NUMBERS)))
    for block in range(len(blocks)):
        found = _native.block_pairs(rows, blocks, block, h, threads, level)
        assert np.array_equal(ordered(*found), pairs[of == block])


@pytest.mark.parametrize("n", [0, 1])
def test_few_rows_have_no_pairs(n):
    found = _native.block_pairs(np.zeros((n, 1), np.uint64), partition(64, 4), 0, 3)
    assert [len(column) for column in found] == [0, 0, 0]


def test_what_makes_no_sense_is_refused():
    rows = np.zeros((3, 1), np.uint64)
    blocks = partition(64, 4)
    for bad, message in [
        ((rows, blocks, 4, 3), "one of the blocks"),
        ((rows, blocks, 0, -1), "0 or more"),
        ((rows, blocks[::-1].copy(), 0, 3), "ascending"),
        ((rows, blocks + np.array([1, 0], np.uint32), 0, 3), "within the rows"),
        ((rows, blocks, 0, 3, 0), "1 or more"),
        ((np.zeros((3, 0), np.uint64), blocks, 0, 3), "words wide"),
    ]:
        with pytest.raises(ValueError, match=message):
            _native.block_pairs(*bad)


@pytest.mark.parametrize("level", LEVEL_NUMBERS)
@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize(
    ("words", "n", "h", "count", "threads"),
    [(1, 1200, 3, 4, 3), (1, 1200, 3, 6, 1), (2, 800, 5, 6, 3), (1, 500, 9, 9, 1)],
)
@pytest.mark.slow
def test_all_choices_of_blocks_give_every_pair_once(world, words, n, h, count, threads, level, rng):
    rows = WORLDS[world](rng, n, words)
    pairs, _ = brute(rows, h)
    blocks = partition(64 * words, count)
    a, b, distance, first, row, number, too_many = _native.all_pairs(
        rows, blocks, count - h, h, True, 1 << 40, threads, level
    )
    assert np.array_equal(np.stack([a, b, distance], axis=1), pairs)
    assert (len(first), len(row), number, too_many) == (0, 0, len(pairs), False)
    a, b, distance, first, row, number, too_many = _native.all_pairs(
        rows, blocks, count - h, h, False, 1 << 40, threads, level
    )
    _, earliest = np.unique(rows, axis=0, return_index=True)
    repeats = np.setdiff1d(np.arange(n), earliest)
    assert np.array_equal(np.sort(row), repeats)
    assert np.array_equal(rows[first], rows[row])
    assert np.isin(first, earliest).all()
    distinct = pairs[~np.isin(pairs[:, :2], repeats).any(axis=1)]
    assert np.array_equal(np.stack([a, b, distance], axis=1), distinct)
    assert (number, too_many) == (len(distinct), False)


@pytest.mark.parametrize("n", [30, 100, 2016, 90_000])
def test_many_pairs_are_sorted_whatever_their_numbers_take(n, rng):
    """As one number or in buckets of the lower row, in an odd or even number of passes."""
    few = min(n, 2016)
    one, other = np.triu_indices(64, 1)
    rows = oracle.uniform(rng, n)
    place = np.sort(rng.permutation(n)[:few])
    near = (np.uint64(1) << one.astype(np.uint64)) | (np.uint64(1) << other.astype(np.uint64))
    rows[place, 0] = near[:few]
    a, b, distance, *_ = _native.all_pairs(rows, partition(64, 5), 1, 4, True, 1 << 40)
    low, high = np.triu_indices(few, 1)
    assert np.array_equal(a, place[low])
    assert np.array_equal(b, place[high])
    assert np.array_equal(
        distance, np.bitwise_count(near[low] ^ near[high]).astype(np.uint16)
    )


@pytest.mark.parametrize("world", ["families", "repeated"])
def test_more_pairs_than_asked_for_are_left_out(world, rng):
    rows = WORLDS[world](rng, 3000, 1)
    blocks = partition(64, 4)
    found = _native.block_pairs(rows, blocks, 0, 3)
    assert len(found[0]) > 1000
    assert _native.block_pairs(rows, blocks, 0, 3, most=len(found[0]) - 1) is None
    again = _native.block_pairs(rows, blocks, 0, 3, most=len(found[0]))
    assert np.array_equal(ordered(*again), ordered(*found))
    *columns, number, too_many = _native.all_pairs(rows, blocks, 1, 3, True, 1000)
    assert too_many
    assert number > 1000
    assert [len(column) for column in columns] == [0] * 5
