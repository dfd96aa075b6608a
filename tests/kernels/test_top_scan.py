"""The exact top K against numpy, at every level: ties, documents of many rows, dead rows, slabs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from simindex._kernels import LEVELS, _native
from simindex.arrays import U64

levels = pytest.mark.parametrize("level", range(len(LEVELS)))
NO_ID, NO_ROW = 2**64 - 1, 2**32 - 1
Places = tuple[U64, NDArray[np.uint16], NDArray[np.uint32]]


def flipped(rng: np.random.Generator, rows: U64, share: float) -> U64:
    """Rows with each bit flipped by chance."""
    flips = rng.random((len(rows), rows.shape[1] * 64), np.float32) < share
    return rows ^ np.packbits(flips, axis=1).view(np.uint64)


def clustered(
    rng: np.random.Generator, n: int, m: int, words: int, centres: int = 7, share: float = 0.15
) -> tuple[U64, U64]:
    """Rows and queries of the same clusters."""
    middle = rng.integers(0, 2**64, (centres, words), np.uint64)
    return (
        flipped(rng, middle[rng.integers(0, centres, n)], share),
        flipped(rng, middle[rng.integers(0, centres, m)], share),
    )


def brute(rows: U64, ids: U64, queries: U64, k: int, dead: NDArray[np.uint8] | None) -> Places:
    """Per id the nearest live row, the first of several; then the k nearest ids."""
    m, bits = len(queries), rows.shape[1] * 64
    found: Places = (
        np.full((m, k), NO_ID, np.uint64),
        np.full((m, k), bits + 1, np.uint16),
        np.full((m, k), NO_ROW, np.uint32),
    )
    live = np.arange(len(rows)) if dead is None else np.flatnonzero(dead == 0)
    for q, query in enumerate(queries):
        distance = np.bitwise_count(rows[live] ^ query).sum(axis=1, dtype=np.int64)
        order = np.lexsort((live, distance, ids[live]))
        first = np.ones(len(order), np.bool_)
        first[1:] = ids[live[order[1:]]] != ids[live[order[:-1]]]
        best = order[first]
        best = best[np.lexsort((ids[live[best]], distance[best]))][:k]
        for column, values in zip(
            found, (ids[live[best]], distance[best], live[best]), strict=True
        ):
            column[q, : len(best)] = values
    return found


def check(found: Places, expected: Places) -> None:
    for column, wanted in zip(found, expected, strict=True):
        assert column.dtype == wanted.dtype
        np.testing.assert_array_equal(column, wanted)


@levels
@pytest.mark.parametrize("m", [1, 3, 70])
@pytest.mark.parametrize(
    ("words", "n"),
    [(1, 3000), (2, 1500), (3, 1025), (4, 1024), (5, 511), (7, 1300), (8, 513), (9, 600),
     (16, 1537), (33, 600), (63, 520), (64, 1100)],
)  # fmt: skip
def test_every_width_gives_what_numpy_gives(words: int, n: int, m: int, level: int) -> None:
    rng = np.random.default_rng(words)
    rows, queries = clustered(rng, n, m, words)
    ids = rng.permutation(n).astype(np.uint64)
    check(
        _native.top_scan(rows, ids, queries, 10, None, 1, level),
        brute(rows, ids, queries, 10, None),
    )


@levels
@pytest.mark.parametrize("words", [1, 16])
@pytest.mark.parametrize("n", [0, 1, 2, 63, 64, 65, 127, 129, 255, 257, 511, 512, 513, 1023, 1030])
def test_tables_of_any_length(n: int, words: int, level: int) -> None:
    rng = np.random.default_rng(n)
    rows, queries = clustered(rng, n, 20, words)
    ids = rng.integers(0, 2**64, n, np.uint64)
    for k in (1, 5, 70):
        check(
            _native.top_scan(rows, ids, queries, k, None, 1, level),
            brute(rows, ids, queries, k, None),
        )


@given(
    seed=st.integers(0, 2**20), n=st.integers(0, 2000), m=st.sampled_from([1, 4, 11, 12, 33, 300]),
    words=st.sampled_from([1, 1, 2, 3, 4, 16]), k=st.sampled_from([1, 2, 10, 64, 65, 100, 3000]),
    documents=st.sampled_from([1, 3, 40, 10**6]), templates=st.sampled_from([1, 2, 40, 5000]),
    share=st.sampled_from([0.0, 0.02, 0.2]), deleted=st.sampled_from([None, 0.0, 0.3, 0.99, 1.0]),
    threads=st.integers(1, 3), level=st.integers(0, len(LEVELS) - 1),
)  # fmt: skip
@settings(deadline=None, max_examples=150)
@pytest.mark.slow
def test_hot_templates_and_documents_of_many_rows(
    seed: int, n: int, m: int, words: int, k: int, documents: int, templates: int, share: float,
    deleted: float | None, threads: int, level: int,
) -> None:  # fmt: skip
    rng = np.random.default_rng(seed)
    rows, queries = clustered(rng, n, m, words, templates, share)
    ids = rng.integers(0, documents, n).astype(np.uint64) << np.uint64(44)
    dead = None if deleted is None else (rng.random(n) < deleted).astype(np.uint8) * np.uint8(200)
    check(
        _native.top_scan(rows, ids, queries, k, dead, threads, level),
        brute(rows, ids, queries, k, dead),
    )


@levels
def test_any_number_of_threads_gives_the_same_bytes(level: int) -> None:
    """Equal rows of equal documents lie in the parts of all threads."""
    rng = np.random.default_rng(3)
    rows, queries = clustered(rng, 9000, 40, 2, 3, 0.05)
    ids = rng.integers(0, 300, len(rows)).astype(np.uint64)
    for m in (1, 40):
        one = _native.top_scan(rows, ids, queries[:m], 12, None, 1, level)
        check(one, brute(rows, ids, queries[:m], 12, None))
        for threads in (2, 3, 16):
            many = _native.top_scan(rows, ids, queries[:m], 12, None, threads, level)
            for column, same in zip(one, many, strict=True):
                assert column.tobytes() == same.tobytes()


@levels
@pytest.mark.parametrize("m", [1, 30])
def test_the_farthest_rows_are_nearest_where_there_are_no_others(m: int, level: int) -> None:
    """Distances reach the whole width, which is a count that needs every plane."""
    for words in (1, 2, 4, 16, 64):
        rng = np.random.default_rng(words)
        queries = np.repeat(rng.integers(0, 2**64, (1, words), np.uint64), m, axis=0)
        rows = np.repeat(~queries[:1], 600, axis=0)
        ids = np.arange(600, dtype=np.uint64)[::-1].copy()
        found = _native.top_scan(rows, ids, queries, 3, None, 1, level)
        assert found[0].tolist() == [[0, 1, 2]] * m
        assert found[1].tolist() == [[64 * words] * 3] * m
        assert found[2].tolist() == [[599, 598, 597]] * m


@levels
@pytest.mark.parametrize("m", [1, 30])
def test_equal_rows_go_by_id_and_each_document_once(m: int, level: int) -> None:
    rng = np.random.default_rng(5)
    rows = np.repeat(rng.integers(0, 2**64, (1, 16), np.uint64), 5000, axis=0)
    ids = rng.integers(0, 50, len(rows)).astype(np.uint64)
    queries = np.repeat(rows[:1], m, axis=0)
    found = _native.top_scan(rows, ids, queries, 60, None, 1, level)
    check(found, brute(rows, ids, queries, 60, None))
    assert found[0][0, :51].tolist() == [*range(50), NO_ID]


@levels
@pytest.mark.parametrize("m", [1, 30])
def test_a_later_row_of_a_document_may_be_nearer(m: int, level: int) -> None:
    """Rows come nearer and nearer, of a few documents in turn."""
    rows = np.zeros((3000, 8), np.uint64)
    bits = np.zeros((3000, 512), np.uint8)
    for i in range(3000):
        bits[i, : 512 - i // 6] = 1
    rows = np.packbits(bits, axis=1).view(np.uint64)
    ids = (np.arange(3000) % 25).astype(np.uint64)
    queries = np.zeros((m, 8), np.uint64)
    for k in (1, 20, 30, 100):
        check(
            _native.top_scan(rows, ids, queries, k, None, 1, level),
            brute(rows, ids, queries, k, None),
        )


@pytest.mark.slow
def test_queries_that_pass_over_the_rows_in_parts() -> None:
    rng = np.random.default_rng(8)
    rows, queries = clustered(rng, 700, 4100, 1)
    ids = rng.permutation(len(rows)).astype(np.uint64)
    found = _native.top_scan(rows, ids, queries, 3, None, 2)
    check(found, brute(rows, ids, queries, 3, None))


def test_no_queries_give_no_places() -> None:
    rows = np.zeros((4, 2), np.uint64)
    found = _native.top_scan(rows, np.arange(4, dtype=np.uint64), rows[:0], 3)
    assert [column.shape for column in found] == [(0, 3)] * 3


def test_arrays_that_do_not_belong_together_are_refused() -> None:
    rows = np.zeros((4, 2), np.uint64)
    ids = np.arange(4, dtype=np.uint64)
    for message, given_, more in (
        ("ids", (rows, ids[:3], rows, 1), {}),
        ("as many words", (rows, ids, np.zeros((4, 1), np.uint64), 1), {}),
        ("k:", (rows, ids, rows, 0), {}),
        ("k:", (rows, ids, rows, -1), {}),
        ("k:", (rows, ids, rows, 2**61), {}),
        ("dead", (rows, ids, rows, 1), {"dead": np.zeros(3, np.uint8)}),
        ("threads", (rows, ids, rows, 1), {"threads": 0}),
        ("words wide", (rows[:, :0].copy(), ids, rows[:, :0].copy(), 1), {}),
    ):
        with pytest.raises(ValueError, match=message):
            _native.top_scan(*given_, **more)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        _native.top_scan(rows.astype(np.int64), ids, rows, 1)  # type: ignore[arg-type]
