"""probe and psm against brute force, at every level, also on damaged directories."""

import numpy as np
import pytest

from simindex._kernels import LEVELS, _native
from simindex.bits.vosh import plan, set_count

LEVEL_NUMBERS = range(len(LEVELS))


def directory_of(rows, bits):
    headers = rows[:, 0] >> np.uint64(64 - bits) if bits else np.zeros(len(rows), np.uint64)
    return np.searchsorted(headers, np.arange(2**bits + 1)).astype(np.uint32)


def world(n, words, m, seed, hot=0):
    """Sorted rows, and queries near some of them; `hot` rows share one header."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, 2**64, size=(n, words), dtype=np.uint64)
    if hot:
        rows[:hot] = rows[0]
        rows[:hot, -1] ^= np.uint64(1) << rng.integers(0, 40, hot).astype(np.uint64)
    rows = np.ascontiguousarray(rows[np.lexsort(rows.T[::-1])])
    if n == 0:
        return rows, rng.integers(0, 2**64, size=(m, words), dtype=np.uint64)
    queries = rows[rng.integers(0, n, m)].copy()
    for _ in range(3):
        word = rng.integers(0, words, m)
        queries[np.arange(m), word] ^= np.uint64(1) << rng.integers(0, 64, m).astype(np.uint64)
    return rows, queries


def flips_of(header_bits, count, seed, m=None):
    """Distinct masks of at most 3 header bits, 0 first; `count` of them."""
    rng = np.random.default_rng(seed)

    def some():
        found = {0: None}
        while len(found) < count:
            bits = rng.integers(0, header_bits, rng.integers(1, 4))
            found[int(np.bitwise_or.reduce(np.uint64(1) << (63 - bits).astype(np.uint64)))] = None
        return list(found)

    return np.array(some() if m is None else [some() for _ in range(m)], np.uint64)


def brute(rows, queries, header_bits, flips, h, first):
    """The contract, row by row: (query, row, distance), probes, compared."""
    shift = np.uint64(64 - header_bits)
    headers = rows[:, 0] >> shift if header_bits else np.zeros(len(rows), np.uint64)
    found, probes, compared = [], 0, 0
    for q, query in enumerate(queries):
        distances = np.bitwise_count(rows ^ query).sum(axis=1, dtype=np.int64)
        for flip in flips if flips.ndim == 1 else flips[q]:
            header = (query[0] ^ flip) >> shift if header_bits else np.uint64(0)
            bucket = np.flatnonzero(headers == header)
            near = bucket[distances[bucket] <= h]
            probes += 1
            if first and len(near):
                compared += int(near[0] - bucket[0]) + 1
                found.append((q, near[0], distances[near[0]]))
                break
            compared += len(bucket)
            found += [(q, row, distances[row]) for row in near]
    return found, probes, compared


def check(result, expected):
    query, row, distance, probes, compared = result
    assert (query.dtype, row.dtype, distance.dtype) == (np.int64, np.uint32, np.uint16)
    found = list(zip(query.tolist(), row.tolist(), distance.tolist(), strict=True))
    assert found == [tuple(int(v) for v in match) for match in expected[0]]
    assert (probes, compared) == expected[1:]


@pytest.mark.parametrize("level", LEVEL_NUMBERS)
@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("words", [1, 2, 3, 16])
@pytest.mark.slow
def test_probe_finds_what_brute_force_finds(words, first, level):
    rows, queries = world(4000, words, 60, words, hot=200)
    for directory_bits, header_bits, h in [(8, 8, 3), (9, 5, 3), (4, 1, 40 * words), (6, 0, 10)]:
        directory = directory_of(rows, directory_bits)
        flips = flips_of(header_bits, min(40, set_count(header_bits, 3) + 1), 1)
        result = _native.probe(
            rows, directory, directory_bits, header_bits, queries, flips, h, first, level)
        check(result, brute(rows, queries, header_bits, flips, h, first))


@pytest.mark.parametrize("level", LEVEL_NUMBERS)
@pytest.mark.parametrize("first", [False, True])
@pytest.mark.slow
def test_each_query_may_have_its_own_flips(first, level):
    rows, queries = world(3000, 1, 50, 7)
    flips = flips_of(10, 150, 2, m=50)
    result = _native.probe(rows, directory_of(rows, 12), 12, 10, queries, flips, 3, first, level)
    check(result, brute(rows, queries, 10, flips, 3, first))


@pytest.mark.parametrize("level", LEVEL_NUMBERS)
@pytest.mark.parametrize("start", range(9))
def test_buckets_of_every_length_and_place_in_a_cache_line(start, level):
    """Rows just before and behind the bucket match too, and must not be reported."""
    query = np.array([[0x0F0F << 48]], np.uint64)
    zero = np.zeros(1, np.uint64)
    for length in [*range(75), 200, 1000]:
        rows = np.repeat(query, start + length + 20, axis=0)
        rows[:, 0] += np.arange(len(rows), dtype=np.uint64) % 4
        directory = np.zeros(2**16 + 1, np.uint32)
        directory[0x0F0F] = start
        directory[0x0F10:] = start + length
        row, distance = _native.probe(rows, directory, 16, 16, query, zero, 1, False, level)[1:3]
        expected = [r for r in range(start, start + length) if r % 4 != 3]
        assert row.tolist() == expected
        assert distance.tolist() == [[0, 1, 1][r % 4] for r in expected]


@pytest.mark.parametrize("level", LEVEL_NUMBERS)
def test_hot_bucket_is_reported_whole(level):
    rows = np.full((100_000, 1), 5 << 60, np.uint64)
    queries = np.full((40, 1), 5 << 60 | 1, np.uint64)
    query, row, distance, probes, compared = _native.probe(
        rows, directory_of(rows, 4), 4, 4, queries, np.zeros(1, np.uint64), 3, False, level)
    assert np.array_equal(query, np.repeat(np.arange(40), 100_000))
    assert np.array_equal(row, np.tile(np.arange(100_000, dtype=np.uint32), 40))
    assert (distance == 1).all()
    assert (probes, compared) == (40, 4_000_000)


@pytest.mark.parametrize("level", LEVEL_NUMBERS)
@pytest.mark.parametrize("first", [False, True])
def test_damaged_directories_cost_recall_and_nothing_else(first, level):
    """Every reported row exists and is within h, whatever the offsets say."""
    rows, queries = world(500, 1, 200, 3)
    rng = np.random.default_rng(4)
    flips = flips_of(8, 20, 5)
    sound = directory_of(rows, 8)
    damages = [
        rng.integers(0, 2**32, 257, dtype=np.uint32),
        rng.permutation(sound),
        sound[::-1].copy(),
        np.full(257, 2**32 - 1, np.uint32),
        np.where(rng.random(257) < 0.1, np.uint32(2**31), sound),
    ]
    for directory in damages:
        query, row, distance, *_ = _native.probe(
            rows, directory, 8, 8, queries, flips, 3, first, level)
        assert (row < 500).all()
        exact = np.bitwise_count(rows[row, 0] ^ queries[query, 0])
        assert np.array_equal(exact, distance)
        assert (distance <= 3).all()
        assert (np.diff(query) >= (1 if first else 0)).all()


@pytest.mark.parametrize("level", LEVEL_NUMBERS)
@pytest.mark.parametrize(("n", "m", "k"), [(0, 3, 2), (5, 0, 2), (5, 3, 0), (0, 0, 0)])
def test_nothing_to_do_gives_empty_columns(n, m, k, level):
    rows, queries = world(n, 1, m, 1)
    query, row, distance, _, compared = _native.probe(
        rows, directory_of(rows, 3), 3, 3, queries, np.zeros(k, np.uint64), 3, False, level)
    assert len(query) == len(row) == len(distance) == compared == 0


def test_shapes_that_contradict_each_other_are_refused():
    rows, queries = world(100, 2, 4, 1)
    directory = directory_of(rows, 4)
    zero = np.zeros(1, np.uint64)
    good = [rows, directory, 4, 4, queries, zero, 3, False]

    def refused(place, value, error=ValueError):
        bad = list(good)
        bad[place] = value
        with pytest.raises(error):
            _native.probe(*bad)

    _native.probe(*good)
    refused(1, directory[:-1].copy())
    refused(2, 5)
    refused(2, 33)
    refused(2, -1)
    refused(3, 5)
    refused(3, -1)
    refused(4, queries[:, :1].copy())
    refused(5, np.zeros((3, 1), np.uint64))
    refused(6, -1)
    refused(0, rows.astype(np.int64), TypeError)
    refused(0, rows[::2], TypeError)
    refused(0, rows[:, 0], TypeError)


def test_tables_may_be_read_only():
    rows, queries = world(100, 1, 4, 1)
    directory = directory_of(rows, 4)
    masks = np.zeros(1, np.uint64)
    writable = _native.probe(rows, directory, 4, 4, queries, masks, 64, False)
    for array in (rows, directory, queries):
        array.flags.writeable = False
    found = _native.probe(rows, directory, 4, 4, queries, masks, 64, False)
    np.testing.assert_array_equal(found[1], writable[1])
    assert len(found[1]) > 0


def costs():
    p = 0.5 * np.exp(-np.arange(512) * 0.025)
    return np.log((1 - p) / p).astype(np.float32), 0.005


@pytest.mark.parametrize("level", LEVEL_NUMBERS)
@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("flips", [0, 1, 7, 16, 40, 129])
@pytest.mark.parametrize("heap", [False, True])
@pytest.mark.parametrize("words", [1, 2])
def test_psm_probes_the_own_bucket_and_then_the_masks_of_vosh(words, heap, flips, first, level):
    rows, queries = world(3000, words, 75, flips, hot=100)
    weights = np.random.default_rng(flips).normal(size=(75, 64 * words)).astype(np.float32)
    table, step = costs()
    p = plan(9, 3, flips)
    likely = (table, step)
    networks = (p.candidates[:0] if heap else p.candidates, p.sort_network, p.select_network)
    masks = _native.vosh(weights, *likely, 9, 3, p.flips, *networks, level)
    masks = np.concatenate([np.zeros((75, 1), np.uint64), masks], axis=1)
    directory = directory_of(rows, 11)
    result = _native.psm(
        rows, directory, 11, 9, queries, weights, *likely, 3, p.flips, *networks, first, level)
    check(result, brute(rows, queries, 9, masks, 3, first))


@pytest.mark.parametrize("level", LEVEL_NUMBERS)
@pytest.mark.parametrize(("n", "m"), [(0, 3), (5, 0), (0, 0)])
def test_psm_of_nothing_is_empty(n, m, level):
    rows, queries = world(n, 1, m, 1)
    table, step = costs()
    p = plan(3, 3, 7)
    result = _native.psm(
        rows, directory_of(rows, 3), 3, 3, queries, np.ones((m, 64), np.float32), table, step, 3, 7,
        p.candidates, p.sort_network, p.select_network, False, level)
    assert [len(column) for column in result[:3]] == [0, 0, 0]


def test_psm_wants_weights_for_each_query():
    rows, queries = world(50, 1, 4, 1)
    table, step = costs()
    p = plan(3, 3, 7)
    with pytest.raises(ValueError, match="a row per query"):
        _native.psm(
            rows, directory_of(rows, 3), 3, 3, queries, np.ones((3, 64), np.float32), table, step,
            3, 7, p.candidates, p.sort_network, p.select_network, False)
