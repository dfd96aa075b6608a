"""Rows of a batch as columns of Spark, which has no unsigned numbers, and back.

    fingerprint   BIGINT, the same 64 bits; of more bits ARRAY<BIGINT>, W numbers each
    id            BIGINT, the same 64 bits; smaller whole numbers as they are
    key           STRING, or BINARY for keys="bytes"
    sketch        BINARY, 8 S + 1 bytes: a record of `records.sketches`

`require_columns` looks at types alone, before any job starts. `words_of` and `batch_of` look at
values, in a task: none is converted before it is known that each row has one. All of them raise
InvalidBatch, which names the column.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simindex.arrays import U8, U64
from simindex.errors import InvalidBatch, MissingExtra
from simindex.options import IndexOptions
from simindex.records.batch import Batch
from simindex.records.sketches import record_bytes

try:
    import pyarrow as pa
    import pyarrow.compute as pc
except ImportError as _error:
    raise MissingExtra(
        f"columns of Spark need pyarrow ({_error})", remedy="pip install 'simindex[spark]'",
        extra="spark",
    ) from _error

FINGERPRINT, SKETCH = "fingerprint", "sketch"

WHOLE = ("bigint", "int", "smallint", "tinyint")
"""Types of Spark that a number of 64 bits can hold."""

Names = tuple[str, ...]


def columns_of(options: IndexOptions) -> Names:
    """The columns that rows with these options have."""
    named = FINGERPRINT, "key" if options.keyed else "id"
    return (*named, SKETCH) if options.sketch_bits else named


def type_of_keys(options: IndexOptions) -> str:
    """What Spark calls the type of the keys of an index."""
    return "binary" if options.key_kind == "bytes" else "string"


def require_columns(kinds: Mapping[str, str], options: IndexOptions) -> None:
    """Raises InvalidBatch unless a DataFrame has the columns of these options, each of its type.

    `kinds` are the types of its columns, as Spark writes them.
    """
    lists = ("array<bigint>",)
    expected = {
        FINGERPRINT: ("bigint", *lists) if options.bits == 64 else lists, "id": WHOLE,
        "key": (type_of_keys(options),), SKETCH: ("binary",),
    }
    for name in columns_of(options):
        require_named(kinds, name, "rename the column, or make it with with_fingerprints")
        found = kinds[name].partition(" ")[0]  # without the collation of a string
        if found not in expected[name]:
            wanted = " or ".join(kind.upper() for kind in expected[name])
            of = f" for fingerprints of {options.bits} bits" if name == FINGERPRINT else ""
            raise InvalidBatch(
                f"the column {name!r} is {kinds[name].upper()}, not {wanted}{of}",
                remedy="give the plan the options of these rows, or convert the column",
                found=kinds[name], expected=wanted, column=name,
            )


def require_named(kinds: Mapping[str, str], name: str, remedy: str) -> None:
    """Raises InvalidBatch unless a DataFrame has a column of this name."""
    if name not in kinds:
        raise InvalidBatch(
            f"the DataFrame has no column {name!r}, but {', '.join(kinds)}", remedy=remedy,
            found=[*kinds], expected=name,
        )


def words_of(table: Any, options: IndexOptions) -> U64:
    """The fingerprints of a table or a record batch of Arrow, uint64 (n, W), once all its columns
    are checked: InvalidBatch names the first row without a value, or with one of another size."""
    name = columns_of(options)[1]
    _require_each(_column(table, name).is_valid(), table, name, "is null")
    if options.sketch_bits:
        _require_records(table, options.sketch_bits // 64)
    return _words(table, options.bits)


def batch_of(table: Any, options: IndexOptions) -> Batch:
    """The rows of a table or a record batch of Arrow. Raises InvalidBatch as `words_of` does."""
    rows = words_of(table, options)
    sketch = _records(table, options.sketch_bits // 64) if options.sketch_bits else None
    named = _column(table, columns_of(options)[1])
    if options.keyed:
        return Batch(rows, keys=named.to_pylist(), sketch=sketch)
    ids = np.asarray(named.cast(pa.int64()), np.int64).view(np.uint64)
    return Batch(rows, ids=ids, sketch=sketch)


def fingerprints_column(rows: U64, missing: NDArray[np.bool_]) -> Any:
    """A column of fingerprints, null where they are missing."""
    values = rows.view(np.int64)
    if rows.shape[1] == 1:
        return pa.array(values[:, 0], mask=missing)
    offsets = np.arange(len(rows) + 1, dtype=np.int32) * rows.shape[1]
    return pa.ListArray.from_arrays(
        pa.array(offsets), pa.array(values.reshape(-1)), mask=pa.array(missing)
    )


def sketches_column(records: U8, missing: NDArray[np.bool_]) -> Any:
    """A column of records of sketches, null where they are missing."""
    fixed = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(records.shape[1]), len(records), [None, pa.py_buffer(records)]
    )
    return pc.if_else(pa.array(missing), None, fixed.cast(pa.binary()))


def _words(table: Any, bits: int) -> U64:
    """Fingerprints, uint64 (n, W)."""
    column = _column(table, FINGERPRINT)
    _require_each(column.is_valid(), table, FINGERPRINT, "is null")
    values = column
    if pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
        lengths = pc.list_value_length(column)
        _require_each(
            pc.equal(lengths, bits // 64), table, FINGERPRINT,
            f"does not have the {bits // 64} numbers of {bits} bits",
        )
        values = column.flatten()
    if not pa.types.is_int64(values.type):
        raise InvalidBatch(
            f"the column {FINGERPRINT!r} is {column.type}, not int64 or lists of it",
            found=str(column.type), expected="int64", column=FINGERPRINT,
        )
    if values.null_count:
        whole = values.is_valid().to_numpy(zero_copy_only=False).reshape(len(column), -1)
        _require_each(pa.array(whole.all(axis=1)), table, FINGERPRINT, "has a null")
    return np.asarray(values, np.int64).view(np.uint64).reshape(len(column), bits // 64)


def _require_records(table: Any, words: int) -> None:
    column, size = _column(table, SKETCH), record_bytes(words)
    _require_each(column.is_valid(), table, SKETCH, "is null")
    _require_each(
        pc.equal(pc.binary_length(column), size), table, SKETCH,
        f"does not have the {size} bytes of {64 * words} bits and a size",
    )


def _records(table: Any, words: int) -> U8:
    """Records of sketches, uint8 (n, 8 S + 1), of a column that was checked."""
    column, size = _column(table, SKETCH).cast(pa.large_binary()), record_bytes(words)
    if not len(column):
        return np.empty((0, size), np.uint8)
    _, offsets, data = column.buffers()
    start = int(np.frombuffer(offsets, np.int64)[column.offset])
    return np.frombuffer(data, np.uint8)[start : start + len(column) * size].reshape(-1, size)


def _column(table: Any, name: str) -> Any:
    column = table.column(name)
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _require_each(fit: Any, table: Any, name: str, otherwise: str) -> None:
    """Raises InvalidBatch for the first row that does not fit, and tells it by what names it."""
    told = np.asarray(fit)
    if told.all():
        return
    row = int(np.argmin(told))
    known = {
        other: table.column(other)[row].as_py() for other in ("id", "key")
        if other in table.schema.names and other != name
    }
    said = "".join(f" ({other} {value!r})" for other, value in known.items())
    raise InvalidBatch(
        f"the column {name!r} of row {row} of a block{said} {otherwise}",
        remedy="correct the row, or remove it from the DataFrame", row=row, column=name, **known,
    )
