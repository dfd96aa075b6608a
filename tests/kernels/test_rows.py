"""Sorting, header directories, gathering and the order of results, against numpy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from simindex._kernels import LEVELS, _native

U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]

words = st.integers(0, 2**64 - 1)
quick = settings(deadline=None, max_examples=80)


def u64(values: object) -> U64:
    return np.array(values, np.uint64)


def i64(values: object) -> I64:
    return np.array(values, np.int64)


def templates_with_flips(rng: np.random.Generator, n: int, templates: int) -> U64:
    """Words near a few templates, each with up to 3 bits flipped: near-duplicates."""
    base = rng.integers(0, 2**64, templates, np.uint64)[rng.integers(0, templates, n)]
    for _ in range(3):
        flip = np.uint64(1) << rng.integers(0, 64, n, np.uint64)
        base = np.where(rng.random(n) < 0.5, base ^ flip, base)
    return base


def key_shapes(n: int) -> dict[str, U64]:
    rng = np.random.default_rng(n)
    uniform = rng.integers(0, 2**64, n, np.uint64)
    return {
        "uniform": uniform,
        "ascending": np.sort(uniform),
        "descending": np.sort(uniform)[::-1].copy(),
        "equal": np.full(n, 2**63 + 5, np.uint64),
        "two values": uniform >> np.uint64(63),
        "few values": uniform % np.uint64(50),
        "one template": templates_with_flips(rng, n, 1),
        "many templates": templates_with_flips(rng, n, n // 100 + 1),
        "any length": uniform >> rng.integers(0, 64, n, np.uint64),
        "half equal": np.where(rng.random(n) < 0.5, uniform, np.uint64(1)),
        "only the lowest byte differs": (uniform & np.uint64(255)) | np.uint64(7 << 40),
        "ascending but for the last": np.append(np.sort(uniform[1:]), np.uint64(0)),
        "each bit alone": np.uint64(1) << rng.integers(0, 64, n, np.uint64),
    }


# 32 and 33 rows: insertion and the first pass; 2^17: digits of 8 bits and more.
@pytest.mark.parametrize("n", [1, 2, 31, 32, 33, 300, 5000, 1 << 17])
@pytest.mark.parametrize("shape", list(key_shapes(2)))
def test_sorting_is_that_of_a_stable_argsort(n: int, shape: str) -> None:
    keys = key_shapes(n)[shape]
    before = keys.copy()
    order = np.argsort(keys, kind="stable")
    rows = _native.sort_rows(keys)
    assert rows.dtype == np.int64
    assert np.array_equal(rows, order)
    payload = np.arange(n, dtype=np.uint64) * np.uint64(3)
    sorted_keys, sorted_payload = _native.sort_pairs(keys, payload)
    assert np.array_equal(sorted_keys, keys[order])
    assert np.array_equal(sorted_payload, payload[order])
    assert np.array_equal(keys, before)


@given(
    keys=st.lists(words | st.integers(0, 3) | st.sampled_from([2**64 - 1, 2**63]), max_size=400),
    repeats=st.integers(1, 5),
)
@quick
def test_sorting_small_lists(keys: list[int], repeats: int) -> None:
    array = np.tile(u64(keys), repeats)
    assert np.array_equal(_native.sort_rows(array), np.argsort(array, kind="stable"))


def test_keys_and_payload_of_different_length_are_refused() -> None:
    with pytest.raises(ValueError, match="length"):
        _native.sort_pairs(u64([1, 2]), u64([1]))


def searched_directory(first_words: U64, header_bits: int) -> NDArray[np.uint32]:
    """The directory by binary search of every header."""
    headers = first_words >> np.uint64(64 - header_bits) if header_bits else first_words * 0
    wanted = np.arange((1 << header_bits) + 1, dtype=np.uint64)
    found = np.searchsorted(headers, wanted, side="left")
    found[-1] = len(first_words)
    return found.astype(np.uint32)


@given(values=st.lists(words | st.integers(0, 9), max_size=200), header_bits=st.integers(0, 12))
@quick
def test_header_directory_equals_a_binary_search(values: list[int], header_bits: int) -> None:
    first_words = np.sort(u64(values))
    directory = _native.header_directory(first_words, header_bits)
    assert directory.dtype == np.uint32
    assert np.array_equal(directory, searched_directory(first_words, header_bits))


@pytest.mark.parametrize("header_bits", [0, 1, 9, 16])
def test_header_directory_of_many_rows(header_bits: int) -> None:
    first_words = np.sort(key_shapes(20_000)["many templates"])
    directory = _native.header_directory(first_words, header_bits)
    assert np.array_equal(directory, searched_directory(first_words, header_bits))


def test_header_directory_of_unsorted_words_still_rises_to_the_number_of_rows() -> None:
    first_words = key_shapes(3000)["uniform"]
    directory = _native.header_directory(first_words, 8).astype(np.int64)
    assert directory[0] == 0
    assert directory[-1] == 3000
    assert np.all(np.diff(directory) >= 0)


@pytest.mark.parametrize("header_bits", [-1, 33])
def test_header_bits_beyond_32_are_refused(header_bits: int) -> None:
    with pytest.raises(ValueError, match="header_bits"):
        _native.header_directory(u64([1]), header_bits)


@pytest.mark.parametrize("width", [0, 1, 2, 3, 4, 7, 64])
@given(data=st.data())
@settings(deadline=None, max_examples=30)
def test_taken_rows_equal_fancy_indexing(width: int, data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 40))
    order = i64(data.draw(st.lists(st.integers(0, n - 1), max_size=100)))
    values = np.random.default_rng(n).integers(0, 2**64, (n, width), np.uint64)
    taken = _native.take_rows(values, order)
    assert taken.shape == (len(order), width)
    assert np.array_equal(taken, values[order])
    if width == 1:
        column = values[:, 0].copy()
        at = _native.take_at(column, order.astype(np.uint32))
        assert np.array_equal(at, column[order])


@pytest.mark.parametrize("row", [-1, 5, 2**40, -(2**63)])
@pytest.mark.parametrize("place", [0, 50, 99])
def test_taking_a_row_that_is_not_there_is_refused(row: int, place: int) -> None:
    order = np.zeros(100, np.int64)
    order[place] = row
    for width in (1, 2, 3):
        with pytest.raises(ValueError, match="not there"):
            _native.take_rows(np.zeros((5, width), np.uint64), order)
    if 0 <= row < 2**32:
        with pytest.raises(ValueError, match="not there"):
            _native.take_at(np.zeros(5, np.uint64), order.astype(np.uint32))
    with pytest.raises(ValueError, match="not there"):
        _native.take_bytes(np.arange(6), np.zeros(5, np.uint8), order)


def test_taking_from_nothing() -> None:
    none = np.zeros(0, np.int64)
    assert _native.take_rows(np.zeros((0, 2), np.uint64), none).shape == (0, 2)
    assert len(_native.take_at(np.zeros(0, np.uint64), np.zeros(0, np.uint32))) == 0
    with pytest.raises(ValueError, match="not there"):
        _native.take_at(np.zeros(0, np.uint64), np.zeros(1, np.uint32))
    with pytest.raises(ValueError, match="not there"):
        _native.take_rows(np.zeros((0, 2), np.uint64), np.zeros(1, np.int64))


@given(strings=st.lists(st.binary(max_size=30), max_size=30), data=st.data())
@quick
def test_taken_bytes_are_the_strings_in_the_new_order(
    strings: list[bytes], data: st.DataObject
) -> None:
    picks = st.lists(st.integers(0, len(strings) - 1), max_size=90) if strings else st.just([])
    order = data.draw(picks)
    lead = data.draw(st.binary(max_size=3))
    heap = np.frombuffer(lead + b"".join(strings) + b"rest", np.uint8)
    offsets = np.cumsum([len(lead), *map(len, strings)], dtype=np.int64)
    taken_offsets, taken = _native.take_bytes(offsets, heap, i64(order))
    expected = [strings[i] for i in order]
    assert taken_offsets.tolist() == np.cumsum([0, *map(len, expected)]).tolist()
    assert taken.tobytes() == b"".join(expected)


@pytest.mark.parametrize(
    "offsets", [[], [0, 4, 3, 5], [-1, 2], [0, 11], [0, 2**62], [5, -(2**63)], [2**63 - 1]]
)
def test_damaged_offsets_are_refused(offsets: list[int]) -> None:
    with pytest.raises(ValueError, match="offsets"):
        _native.take_bytes(i64(offsets), np.zeros(10, np.uint8), np.zeros(0, np.int64))


def check_arranged(query: I64, ids: U64, distance: NDArray[np.uint16], queries: int) -> None:
    """Columns come in the order of numpy's stable sort, and the order with them."""
    expected = np.lexsort((ids, distance, query))
    pairs = set(zip(query.tolist(), distance.tolist(), ids.tolist(), strict=True))
    for with_order, threads in ((True, 1), (False, 1), (True, 3), (False, 2)):
        *columns, order, repeated = _native.arrange(
            query, ids, distance, queries, with_order, threads
        )
        assert order.dtype == np.int64
        assert np.array_equal(order, expected if with_order else [])
        for column, before in zip(columns, (query, ids, distance), strict=True):
            assert column.dtype == before.dtype
            assert np.array_equal(column, before[expected])
        assert repeated == (len(pairs) < len(query))


@given(
    matches=st.lists(
        st.tuples(st.integers(0, 6), st.integers(0, 3) | words, st.integers(0, 4)), max_size=80
    ),
    spare=st.sampled_from([0, 1, 100, 10**12]),
)
@quick
def test_arranged_results_equal_lexsort(matches: list[tuple[int, int, int]], spare: int) -> None:
    """Few matches of 10^12 queries are not sorted by counting."""
    query = i64([m[0] for m in matches])
    ids = u64([m[1] for m in matches])
    distance = np.array([m[2] for m in matches], np.uint16)
    for queries in (query, np.sort(query)):
        check_arranged(queries, ids, distance, 7 + spare)


@pytest.mark.parametrize("lists", [1, 3])
@pytest.mark.parametrize("per_query", [1, 5, 3000])
def test_arranging_lists_that_are_each_grouped_by_query(lists: int, per_query: int) -> None:
    rng = np.random.default_rng(per_query)
    query = np.sort(rng.integers(0, 6000 // per_query, (lists, 6000)), axis=1).reshape(-1)
    ids = rng.integers(0, 500, len(query)).astype(np.uint64)
    distance = rng.integers(0, 4, len(query)).astype(np.uint16)
    check_arranged(query, ids, distance, 6000)


@pytest.mark.parametrize("queries", [40_000, 10**6, 2**40, 2**62])
def test_matches_in_no_order_of_queries_are_distributed(queries: int) -> None:
    rng = np.random.default_rng(queries % 1000)
    query = rng.integers(0, queries, 30_000)
    query[rng.integers(0, 30_000, 9000)] = queries - 1  # one of them has many
    query[rng.integers(0, 30_000, 900)] = 0
    ids = rng.integers(0, 20_000, len(query)).astype(np.uint64)
    check_arranged(query, ids, rng.integers(0, 4, len(query)).astype(np.uint16), queries)


@pytest.mark.parametrize("query", [-1, 3, 2**62, -(2**63)])
@pytest.mark.parametrize("place", [0, 4, 9])
def test_a_query_number_out_of_range_is_refused(query: int, place: int) -> None:
    queries = np.zeros(10, np.int64)
    queries[place] = query
    with pytest.raises(ValueError, match="query"):
        _native.arrange(queries, np.zeros(10, np.uint64), np.zeros(10, np.uint16), 3)


def test_result_columns_of_different_length_are_refused() -> None:
    with pytest.raises(ValueError, match="length"):
        _native.arrange(i64([0]), u64([0, 1]), np.zeros(1, np.uint16), 1)


def test_no_threads_are_refused() -> None:
    with pytest.raises(ValueError, match="threads"):
        _native.arrange(i64([0]), u64([0]), np.zeros(1, np.uint16), 1, True, 0)


def test_arrays_that_cannot_be_written_are_read() -> None:
    def frozen(values: NDArray[np.generic]) -> NDArray[np.generic]:
        values.setflags(write=False)
        return values

    keys, order = frozen(u64([3, 1, 2])), frozen(i64([1, 2, 0]))
    assert _native.sort_rows(keys).tolist() == [1, 2, 0]
    assert _native.sort_pairs(keys, keys)[0].tolist() == [1, 2, 3]
    assert _native.header_directory(frozen(u64([1, 2, 3])), 1).tolist() == [0, 3, 3]
    assert _native.take_rows(frozen(u64([[3], [1], [2]])), order).tolist() == [[1], [2], [3]]
    assert _native.take_at(keys, frozen(np.array([1], np.uint32))).tolist() == [1]
    heap = frozen(np.frombuffer(b"abc", np.uint8))
    assert _native.take_bytes(frozen(i64([0, 1, 2, 3])), heap, order)[1].tobytes() == b"bca"
    distance = frozen(np.zeros(3, np.uint16))
    assert _native.arrange(frozen(i64([0, 0, 0])), keys, distance, 1)[3].tolist() == [1, 2, 0]


@pytest.mark.parametrize("dtype", [np.int64, np.uint32, np.float64])
def test_keys_of_another_dtype_are_refused_not_converted(dtype: type) -> None:
    with pytest.raises(TypeError):
        _native.sort_rows(np.zeros(3, dtype))


@pytest.mark.parametrize("level", range(len(LEVELS)))
@pytest.mark.parametrize("words", [1, 2, 8, 9, 64])
def test_records_of_sketches_are_compared_without_their_sizes(level: int, words: int) -> None:
    """Pairs of any rows, some often, at any alignment; sizes differ all the time."""
    rng = np.random.default_rng(words)
    some, others = (rng.integers(0, 256, (n, 8 * words + 1), dtype=np.uint8) for n in (37, 20))
    one, other = rng.integers(0, 37, 500), rng.integers(0, 20, 500)
    expected = np.bitwise_count(some[one, :-1] ^ others[other, :-1]).sum(axis=1)
    found = _native.record_distances(some, one, others, other, level)
    assert found.tolist() == expected.tolist()
    assert len(_native.record_distances(some, one[:0], others, other[:0], level)) == 0


def test_records_that_do_not_fit_are_refused() -> None:
    records, rows = np.zeros((3, 9), np.uint8), np.zeros(2, np.int64)
    for wrong in (
        (records, rows + 3, records, rows), (records, rows, records, rows - 1),
        (records, rows, records, rows[:1]), (records, rows, np.zeros((3, 17), np.uint8), rows),
        (np.zeros((3, 8), np.uint8), rows, np.zeros((3, 8), np.uint8), rows),
    ):
        with pytest.raises(ValueError, match=r"record|row|length"):
            _native.record_distances(*wrong)
