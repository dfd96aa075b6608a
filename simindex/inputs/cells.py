"""Cells of Arrow columns: what they take once they are decoded, and as values of Python.

A column can be far smaller than its cells: a dictionary has one text for many rows, a run one for
all, and a view may show the same bytes again. So sizes are counted before any cell is decoded.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

VALUE_BYTES = 64
"""What a value takes in Python beside its characters."""

FAR_BYTES = 1 << 50
"""Stands for more than any memory."""

FREE_VALUES = 1 << 20
"""So many values in lists may have no bytes."""

Sizes = npt.NDArray[np.int64]


def sizes_of(array: Any) -> Sizes:
    """Bytes that each cell takes once it is decoded, at least its characters. int64 (n,)."""
    import pyarrow as pa
    from pyarrow import compute, types

    kind, count = array.type, len(array)
    if isinstance(array, pa.ExtensionArray):
        return sizes_of(array.storage)
    if types.is_string_view(kind) or types.is_binary_view(kind):
        views = np.frombuffer(array.buffers()[1], np.int32).reshape(-1, 4)
        lengths = views[array.offset : array.offset + count, 0]
        return np.asarray(lengths, np.int64).clip(0) + VALUE_BYTES
    if _is_text(kind):
        found = _numbers(compute.binary_length(array))
        return found.clip(0, FAR_BYTES) + VALUE_BYTES
    if types.is_dictionary(kind):
        return _taken(sizes_of(array.dictionary), array.indices)
    if types.is_run_end_encoded(kind):
        ends = _numbers(array.run_ends)
        at = np.searchsorted(ends, np.arange(count) + array.offset, side="right")
        values = sizes_of(array.values)
        if not len(values):
            return _same(count, 0)
        return np.asarray(values[at.clip(0, len(values) - 1)], np.int64)
    if types.is_struct(kind):
        total = _same(count, VALUE_BYTES)
        for part in array.flatten():
            total = total + sizes_of(part)
        return total
    if types.is_fixed_size_list(kind):
        starts = (np.arange(count, dtype=np.int64) + array.offset) * kind.list_size
        return _of_lists(array, array.values, starts, starts + kind.list_size)
    if types.is_list(kind) or types.is_large_list(kind) or types.is_map(kind):
        offsets = _numbers(array.offsets)
        values = array.values if not types.is_map(kind) else _entries(array)
        return _of_lists(array, values, offsets[:-1], offsets[1:])
    if hasattr(array, "sizes"):  # views of lists
        starts = _numbers(array.offsets)
        return _of_lists(array, array.values, starts, starts + _numbers(array.sizes))
    if types.is_union(kind):
        return _of_union(array)
    return _same(count, _of_each(kind))


def _of_union(array: Any) -> Sizes:
    """Sizes of values of several kinds, each of which is in the array of its kind."""
    kind, count = array.type, len(array)
    found = _same(count, VALUE_BYTES)
    if not count:
        return found
    span = slice(array.offset, array.offset + count)
    _, codes, *places = array.buffers()
    of_each = np.frombuffer(codes, np.int8)[span]
    at = np.arange(count, dtype=np.int64)  # `field` gives the part of a sparse one
    if kind.mode == "dense":
        at = np.frombuffer(places[0], np.int32)[span].astype(np.int64)
    for place, code in enumerate(kind.type_codes):
        sizes, chosen = sizes_of(array.field(place)), of_each == code
        if len(sizes):
            found[chosen] += sizes[at[chosen].clip(0, len(sizes) - 1)]
    return found


def _is_text(kind: Any) -> bool:
    from pyarrow import types

    return any(
        test(kind) for test in (
            types.is_string, types.is_large_string, types.is_binary, types.is_large_binary,
        )
    )


def _entries(array: Any) -> Any:
    import pyarrow as pa

    return pa.StructArray.from_arrays([array.keys, array.items], ["key", "value"])


def _same(count: int, size: int) -> Sizes:
    return np.full(count, size, np.int64)


def _numbers(column: Any) -> Sizes:
    """Whole numbers of an Arrow column, 0 for null.

    From its buffers: `to_numpy` and `fill_null` import pandas, where it is installed, in 0.4 s.
    """
    valid, data = column.buffers()
    start, stop = column.offset, column.offset + len(column)
    if data is None or not len(column):
        return _same(len(column), 0)
    found = np.frombuffer(data, str(column.type), stop)[start:].astype(np.int64)
    if column.null_count and valid is not None:
        bits = np.unpackbits(np.frombuffer(valid, np.uint8), count=stop, bitorder="little")
        found[bits[start:] == 0] = 0
    return found


def _taken(sizes: Sizes, indices: Any) -> Sizes:
    at = _numbers(indices)
    if not len(sizes):
        return _same(len(at), VALUE_BYTES)
    # One out of range is found when the cells are validated.
    return np.asarray(sizes[at.clip(0, len(sizes) - 1)], np.int64)


def _of_each(kind: Any) -> int:
    """What a cell of a kind takes, all of which take the same: such as a number, or null."""
    from pyarrow import types

    return VALUE_BYTES + (kind.byte_width if types.is_fixed_size_binary(kind) else 0)


def _of_lists(array: Any, values: Any, starts: Sizes, ends: Sizes) -> Sizes:
    """Sizes of lists, of values from a place of all to another.

    A list of values without bytes takes no space, whatever its length.
    """
    from pyarrow import types

    count = len(starts)
    if not count:
        return _same(0, 0)
    lengths = (ends - starts).clip(0)
    if types.is_null(values.type) or types.is_primitive(values.type) or (
        types.is_fixed_size_binary(values.type)
    ):
        inner = lengths.clip(0, FAR_BYTES >> 20) * _of_each(values.type)
        return np.asarray(inner + VALUE_BYTES, np.int64)
    # Places out of range are found when the cells are validated.
    starts = starts.clip(0, len(values))
    ends = np.maximum(ends.clip(0, len(values)), starts)
    first, last = int(starts.min()), int(ends.max())
    if last - first > max(FREE_VALUES, 8 * array.get_total_buffer_size()):
        return _same(count, FAR_BYTES)
    sizes = sizes_of(values.slice(first, last - first)).clip(0, FAR_BYTES >> 20)
    sums = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    found = sums[ends - first] - sums[starts - first]
    return np.asarray(found + VALUE_BYTES * (1 + lengths), np.int64)


def slices(sizes: Sizes, most_bytes: int, most_rows: int) -> Iterator[tuple[int, int]]:
    """Spans of rows that take no more together, or a row alone that does."""
    sums = np.cumsum(sizes)
    start, before = 0, 0
    while start < len(sizes):
        end = int(np.searchsorted(sums, before + most_bytes, side="right"))
        end = min(max(end, start + 1), start + most_rows)
        yield start, end
        start, before = end, int(sums[end - 1])


def cell_of(column: Any, at: int) -> Any:
    """A column of one cell of a column that may be damaged; its text, where it is in a dictionary.

    Nothing is followed that has not been looked at. IndexError if there is no such text.
    """
    from pyarrow import nulls, types

    cell = column.slice(at, 1)
    while types.is_dictionary(cell.type):
        (place,) = cell.indices.to_pylist()
        if place is None:
            return nulls(1, cell.type.value_type)
        if not 0 <= place < len(cell.dictionary):
            raise IndexError(f"there is no text {place} in a dictionary of {len(cell.dictionary)}")
        cell = cell.dictionary.slice(place, 1)
    return cell


def values_of(column: Any) -> list[Any]:
    """The cells of a column; those that Python has no value for as text, or None.

    Such are times beyond the year 9999 or of nanoseconds.
    """
    from pyarrow import ArrowException

    try:
        return list(column.to_pylist())
    except (ArrowException, ValueError, OverflowError, ImportError):
        return [_value(cell) for cell in column]


def _value(cell: Any) -> Any:
    import pyarrow as pa

    refused = (pa.ArrowException, ValueError, OverflowError, ImportError)
    try:
        return cell.as_py()
    except refused:
        pass
    try:
        text = str(cell.cast(pa.string()).as_py())
    except refused:
        return None
    return text.replace(" ", "T", 1) if pa.types.is_timestamp(cell.type) else text
