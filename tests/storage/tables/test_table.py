"""Rows are sorted with what belongs to them, and the directory says where each header begins."""

from __future__ import annotations

import threading
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from siphash import siphash

from simindex.errors import CorruptFile
from simindex.storage.tables import sortedrows
from simindex.storage.tables.keys import KeyHeap, key_hash
from simindex.storage.tables.sortedrows import header_bits
from simindex.storage.tables.table import Table, sort_table

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=9)


@given(
    keys=st.one_of(st.lists(TEXT, max_size=20), st.lists(st.binary(max_size=9), max_size=20)),
    secret=st.binary(min_size=16, max_size=16),
)
def test_keys_come_back_and_hash_with_the_secret(
    keys: list[str] | list[bytes], secret: bytes
) -> None:
    heap = KeyHeap.of(keys)
    kind = "bytes" if keys and isinstance(keys[0], bytes) else "str"
    assert heap.decoded(kind) == keys  # type: ignore[arg-type]
    raw = [k if isinstance(k, bytes) else k.encode() for k in keys]
    assert heap.hashes(secret).tolist() == [list(siphash(k, secret)) for k in raw]
    assert [list(key_hash(k, secret)) for k in keys] == heap.hashes(secret).tolist()


def test_rows_are_compared_by_their_bytes() -> None:
    heap, other = KeyHeap.of(["a", "", "ab", "a"]), KeyHeap.of(["ab", "a", ""])
    rows = np.array([0, 3, 1, 2, 2, 0], np.int64)
    assert heap.equal(rows, other, np.array([1, 1, 2, 0, 1, 2], np.int64)).tolist() == [
        True, True, True, True, False, False
    ]
    damaged = KeyHeap(np.array([0, 99], np.int64), np.zeros(4, np.uint8))
    for pair in ((damaged, other), (other, damaged)):
        with pytest.raises(CorruptFile, match="keys"):
            pair[0].equal(np.zeros(1, np.int64), pair[1], np.zeros(1, np.int64))


@given(keys=st.lists(TEXT, max_size=20), data=st.data())
def test_heap_is_sliced_joined_and_gathered(keys: list[str], data: st.DataObject) -> None:
    heap = KeyHeap.of(keys)
    edges = sorted({0, len(keys), *data.draw(st.lists(st.integers(0, len(keys)), max_size=4))})
    parts = [heap.slice(a, b) for a, b in pairwise(edges)]
    assert [key for part in parts for key in part.decoded("str")] == keys
    assert KeyHeap.joined(parts).decoded("str") == keys
    order = data.draw(st.lists(st.integers(0, max(0, len(keys) - 1)), max_size=20 if keys else 0))
    assert heap.take(np.array(order, np.int64)).decoded("str") == [keys[i] for i in order]
    assert heap.slice(len(keys), len(keys)).decoded("str") == []


@pytest.mark.parametrize("offsets", [[0, 3, 99], [0, -5, 4], [4, 2, 0], [2**62, -(2**62), 3]])
def test_damaged_offsets_never_leave_the_heap(offsets: list[int]) -> None:
    heap = KeyHeap(np.array(offsets, np.int64), np.frombuffer(b"abcd", np.uint8))
    try:
        part = heap.slice(0, 2)
    except CorruptFile:
        assert sorted(offsets) != offsets
    else:
        assert len(part.data) <= 4
        assert part.offsets.min() >= -4
        assert part.offsets.max() <= 4
    with pytest.raises(CorruptFile, match="offset"):
        heap.take(np.array([0, 1], np.int64))


@settings(max_examples=60)
@given(
    words=st.lists(st.sampled_from([0, 1, 2**63, 2**63 + 1, 2**64 - 1]), max_size=40),
    width=st.sampled_from([1, 2]), keyed=st.booleans(),
)
def test_sorting_keeps_rows_whole_and_equal_words_in_order(
    words: list[int], width: int, keyed: bool
) -> None:
    count = len(words)
    rows = np.zeros((count, width), np.uint64)
    rows[:, 0] = np.array(words, np.uint64)
    rows[:, -1] = rows[:, -1] if width == 1 else np.arange(count)
    keys = KeyHeap.of([f"k{i}" for i in range(count)]) if keyed else None
    table = sort_table("t", rows, np.arange(count, dtype=np.uint64), keys, horizon=1)
    order = sorted(range(count), key=lambda i: words[i])
    assert table.ids.tolist() == order
    assert np.array_equal(table.fingerprints, rows[order].reshape(count, width))
    if keyed and table.keys is not None:
        assert table.keys.decoded("str") == [f"k{i}" for i in order]


@pytest.mark.parametrize("width", [1, 2])
@pytest.mark.parametrize("rows", [0, 1, 15, 16, 100, 5000])
@pytest.mark.parametrize("shape", ["uniform", "equal", "low", "high"])
def test_directory_is_the_first_row_of_each_header(
    width: int, rows: int, shape: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sortedrows, "_SLICE_ROWS", 64)
    rng = np.random.default_rng(rows)
    low, high = {"uniform": (0, 2**64), "equal": (7, 8), "low": (0, 9), "high": (2**64 - 9, 2**64)}[
        shape
    ]
    words = np.sort(rng.integers(low, high, rows, dtype=np.uint64))
    fingerprints = np.repeat(words[:, None], width, axis=1)
    bits = header_bits(rows)
    table = Table("t", fingerprints, words, None, horizon=0, header_bits=bits)
    borders = [header << (64 - bits) for header in range(1 << bits)]
    expected = [int(np.searchsorted(words, np.uint64(border))) for border in borders]
    assert table.directory.tolist() == [*expected, rows]
    assert table.directory.dtype == np.uint32


def test_header_width_leaves_six_to_eleven_rows() -> None:
    for rows in (*range(200), 10**6, 10**9, 2**32 - 1):
        bits = header_bits(rows)
        assert 0 <= bits <= 30
        if 16 <= rows < 2**33:
            assert 2**2.5 <= rows / 2**bits * (1 if rows >= 1 << 22 else 0.5) <= 2**3.5


def test_directory_is_loaded_once_and_computed_where_there_is_none() -> None:
    words = np.arange(64, dtype=np.uint64) << np.uint64(58)
    calls: list[int] = []

    def load() -> None:
        calls.append(1)

    table = Table(
        "t", words[:, None], words, None, horizon=0, header_bits=2, load_directory=load
    )
    threads = [threading.Thread(target=lambda: table.directory) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert calls == [1]
    assert table.directory.tolist() == [0, 16, 32, 48, 64]
