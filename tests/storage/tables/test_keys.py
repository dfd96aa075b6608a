"""Keys come back, hash with the secret, and never leave their heap."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from siphash import siphash

from simindex.errors import CorruptFile
from simindex.storage.tables import keys as keys_module
from simindex.storage.tables.keys import KeyHeap, key_hash

FEW_OR_NOT = (0, 1 << 60)
"""In one way all rows are few, in the other none."""

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
    for few in FEW_OR_NOT:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(keys_module, "FEW", few)
            taken = heap.take(np.array(order, np.int64))
        assert taken.decoded("str") == [keys[i] for i in order]
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
    for few in FEW_OR_NOT:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(keys_module, "FEW", few)
            with pytest.raises(CorruptFile, match="offset"):
                heap.take(np.array([0, 1], np.int64))


def test_few_rows_are_taken_without_a_look_at_all_offsets() -> None:
    """A key of a match would else cost half a nanosecond for each row of its segment."""
    offsets = 3 * np.arange(5000, dtype=np.int64)
    offsets[4000] = -1  # which the kernel would find
    heap = KeyHeap(offsets, np.frombuffer(b"abc" * 5000, np.uint8))
    assert heap.take(np.array([7, 8], np.int64)).decoded("str") == ["abc", "abc"]
