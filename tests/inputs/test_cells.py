"""What cells of Arrow columns take once they are decoded, however small the column is."""

from __future__ import annotations

import tracemalloc
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simindex.inputs.cells import VALUE_BYTES, cell_of, sizes_of, slices, values_of

TEXTS = ["a", None, "five5", "a text of some words", ""]

COLUMNS = {
    "text": pa.array(TEXTS), "large": pa.array(TEXTS, pa.large_string()),
    "view": pa.array(TEXTS).cast(pa.string_view()),
    "binary": pa.array([None if one is None else one.encode() for one in TEXTS]),
    "dictionary": pa.array(TEXTS).dictionary_encode(),
    "runs": pa.RunEndEncodedArray.from_arrays(
        pa.array([2, 5], pa.int32()), pa.array(["a text of some words", "b"])
    ),
    "list": pa.array([["a", "bc"], None, [], ["a text"], [None]]),
    "struct": pa.array([{"a": "one", "n": 1}, None, {"a": "a text"}, {}, {"a": ""}]),
    "map": pa.array([[("k", "v")], None, [], [("a", "text"), ("b", "c")], []],
                    pa.map_(pa.string(), pa.string())),
    "number": pa.array([1, None, 3, 4, 5]),
}


def characters(value: Any) -> int:
    if isinstance(value, (str, bytes)):
        return len(value)
    if isinstance(value, dict):
        return sum(map(characters, value.values()))
    if isinstance(value, (list, tuple)):
        return sum(map(characters, value))
    return 0


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("start", [0, 2])
def test_no_cell_is_larger_than_it_is_counted(name: str, start: int) -> None:
    column = COLUMNS[name].slice(start)
    sizes = sizes_of(column)
    held = [characters(value) for value in column.to_pylist()]
    assert len(sizes) == len(held)
    assert all(size >= least for size, least in zip(sizes.tolist(), held, strict=True))
    assert int(sizes.max()) < 2000


def test_a_small_column_of_large_cells_is_counted_in_full() -> None:
    text = "x" * 1_000_000
    column = pa.DictionaryArray.from_arrays(pa.array([0] * 1000, pa.int32()), pa.array([text]))
    assert int(sizes_of(column).sum()) >= 1_000_000_000


@given(st.lists(st.integers(0, 50), max_size=20), st.integers(1, 60), st.integers(1, 8))
def test_slices_hold_every_row_and_no_more_than_may_be(
    sizes: list[int], most_bytes: int, most_rows: int
) -> None:
    import numpy as np

    spans = list(slices(np.array(sizes, np.int64), most_bytes, most_rows))
    assert [row for start, end in spans for row in range(start, end)] == list(range(len(sizes)))
    for start, end in spans:
        assert end - start <= most_rows
        assert end - start == 1 or sum(sizes[start:end]) <= most_bytes


def test_values_that_python_has_none_of_are_texts() -> None:
    far = pa.array([0, 400_000_000_000, None], pa.timestamp("s"))
    first, other, nothing = values_of(far)
    assert first == datetime(1970, 1, 1) and nothing is None
    assert isinstance(other, str) and "T" in other
    fine = values_of(pa.array([1], pa.timestamp("ns")))
    assert str(fine[0]).startswith("1970-01-01")


@pytest.mark.parametrize("mode", ["sparse", "dense"])
def test_a_union_has_the_sizes_of_its_values(mode: str) -> None:
    values = [1, "a" * 100, "b" * 7, 2, "", 3]
    codes = pa.array([int(isinstance(one, str)) for one in values], pa.int8())
    if mode == "sparse":
        union = pa.UnionArray.from_sparse(codes, [
            pa.array([one if isinstance(one, int) else None for one in values]),
            pa.array([one if isinstance(one, str) else None for one in values]),
        ])
    else:
        union = pa.UnionArray.from_dense(codes, pa.array([0, 0, 1, 1, 2, 2], pa.int32()), [
            pa.array([1, 2, 3]), pa.array(["a" * 100, "b" * 7, ""]),
        ])
    characters = [len(one) if isinstance(one, str) else 0 for one in values]
    for start, stop in ((0, 6), (1, 5), (3, 3)):
        sizes = sizes_of(union.slice(start, stop - start)).tolist()
        assert sizes == [2 * VALUE_BYTES + size for size in characters[start:stop]]


def runs(text: str, length: int) -> pa.Array:
    return pa.RunEndEncodedArray.from_arrays(pa.array([length], pa.int32()), pa.array([text]))


FREE = {
    "null": pa.nulls(1 << 30),
    "runs": runs("text", 1 << 30),
}


@pytest.mark.parametrize("name", ["null", "runs"])
def test_a_list_of_what_takes_no_space_is_too_long_and_no_memory_is_taken(name: str) -> None:
    offsets = pa.array([0, 3, 1 << 30], pa.int32())
    tracemalloc.start()
    sizes = sizes_of(pa.ListArray.from_arrays(offsets, FREE[name]))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert sizes[1] >= 1 << 35 and peak < 1 << 20


def test_numbers_in_lists_are_counted_by_their_number() -> None:
    column = pa.array([[1, 2, 3], None, [], [None] * 100])
    assert sizes_of(column).tolist() == [256, 64, 64, 6464]


@pytest.mark.parametrize("part", [(0, 4), (1, 2), (2, 2), (3, 1), (4, 0)])
def test_parts_of_lists_are_as_large_as_in_the_whole(part: tuple[int, int]) -> None:
    texts = [["a", "bc"], [], ["a text of some words"] * 9, [None]]
    start, count = part
    for kind in (pa.list_(pa.string()), pa.large_list(pa.string()), pa.list_view(pa.string())):
        whole = sizes_of(pa.array(texts, kind)).tolist()
        assert sizes_of(pa.array(texts, kind).slice(start, count)).tolist() == (
            whole[start : start + count]
        )


def test_a_cell_is_taken_of_a_dictionary_that_is_damaged_elsewhere() -> None:
    """pyarrow follows what a damaged dictionary says, and ends the process."""
    offsets = np.array([0, 3, 1 << 30, 6], np.int32)
    texts = pa.Array.from_buffers(
        pa.string(), 3, [None, pa.py_buffer(offsets), pa.py_buffer(b"onetwo")]
    )
    column = pa.DictionaryArray.from_arrays(
        pa.array([0, None, 1], pa.int32()), texts, safe=False
    )
    assert cell_of(column, 0).to_pylist() == ["one"]
    assert cell_of(column, 1).to_pylist() == [None]
    with pytest.raises(pa.ArrowInvalid):
        cell_of(column, 2).validate(full=True)


def test_a_cell_that_is_not_in_its_dictionary_is_an_error() -> None:
    for place in (-1, 2, 1 << 30):
        column = pa.DictionaryArray.from_arrays(
            pa.array([place], pa.int32()), pa.array(["a", "b"]), safe=False
        )
        with pytest.raises(IndexError, match="no text"):
            cell_of(column, 0)
