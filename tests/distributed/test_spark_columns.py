"""Columns of Spark become rows only if each row has a value of the right type and size."""

from __future__ import annotations

from typing import Any

import numpy as np
import oracle
import pytest

import simindex
from simindex.distributed.spark_columns import (
    batch_of,
    fingerprints_column,
    require_columns,
    sketches_column,
    words_of,
)
from simindex.errors import InvalidBatch

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")

PLAIN = simindex.IndexOptions()
WIDE = simindex.IndexOptions(bits=128)
KEYED = simindex.IndexOptions(keys="str")
BYTES = simindex.IndexOptions(keys="bytes")
SKETCHED = simindex.IndexOptions(sketch_bits=128)


def table(**columns: Any) -> Any:
    return pa.table(columns)


@pytest.mark.parametrize("words", [1, 2])
@pytest.mark.parametrize("start", [0, 3])
def test_columns_have_the_bits_of_the_rows(words: int, start: int) -> None:
    """Also slices of a column, and rows without a fingerprint, which Spark drops."""
    rng = np.random.default_rng(words)
    rows = oracle.uniform(rng, 20, words)
    ids = oracle.uniform(rng, 20, 1)[:, 0]
    records = simindex.Batch(rows, sketch=oracle.uniform(rng, 20, 2), features=ids % 99).sketches
    assert records is not None
    missing = np.arange(20) % 5 == 1
    made = table(
        fingerprint=fingerprints_column(rows, missing), id=pa.array(ids.view(np.int64)),
        sketch=sketches_column(records, missing),
    )
    held = made.filter(made.column("fingerprint").is_valid()).slice(start)
    found = batch_of(held, simindex.IndexOptions(bits=64 * words, sketch_bits=128))
    assert held.column("sketch").null_count == 0 < made.column("sketch").null_count
    assert np.array_equal(found.rows, rows[~missing][start:])
    assert found.ids is not None and np.array_equal(found.ids, ids[~missing][start:])
    assert np.array_equal(found.sketches, records[~missing][start:])
    assert np.array_equal(words_of(held, simindex.IndexOptions(bits=64 * words)), found.rows)


def test_keys_of_texts_and_of_bytes_are_kept() -> None:
    assert batch_of(table(fingerprint=[1, -1], key=["a", "b"]), KEYED).keys == ["a", "b"]
    made = batch_of(table(fingerprint=[1, -1], key=[b"\xff", b""]), BYTES)
    assert made.keys == [b"\xff", b""] and made.rows.tolist() == [[1], [2**64 - 1]]


@pytest.mark.parametrize(
    ("options", "columns", "column", "row", "message"),
    [
        (WIDE, {"fingerprint": [[1, 2], [3], [4, 5, 6]], "id": [5, 6, 7]}, "fingerprint", 1,
         r"'fingerprint' of row 1 of a block \(id 6\) does not have the 2 numbers of 128 bits"),
        (WIDE, {"fingerprint": [[1, 2], [1, 2, 3, 4]], "id": [5, 6]}, "fingerprint", 1, "128 bits"),
        (WIDE, {"fingerprint": [[1, 2], [3, None]], "id": [5, 6]}, "fingerprint", 1, "has a null"),
        (WIDE, {"fingerprint": [[1, 2], None], "id": [5, 6]}, "fingerprint", 1, "is null"),
        (PLAIN, {"fingerprint": [1, None], "id": [5, 6]}, "fingerprint", 1, "is null"),
        (PLAIN, {"fingerprint": [1, 2, 3], "id": [5, 6, None]}, "id", 2, "'id' of row 2 .* null"),
        (KEYED, {"fingerprint": [1, 2], "key": [None, "b"]}, "key", 0, "'key' of row 0 .* null"),
        (SKETCHED, {"fingerprint": [1, 2], "id": [5, 6], "sketch": [b"." * 17, b"." * 16]},
         "sketch", 1, "17 bytes of 128 bits"),
        (SKETCHED, {"fingerprint": [1, 2], "id": [5, 6], "sketch": [None, b"." * 17]}, "sketch", 0,
         "is null"),
    ],
)
def test_the_first_bad_row_is_named(
    options: Any, columns: Any, column: str, row: int, message: str
) -> None:
    for call in (batch_of, words_of):
        with pytest.raises(InvalidBatch, match=message) as raised:
            call(table(**columns), options)
        assert (raised.value.data["column"], raised.value.data["row"]) == (column, row)


def test_numbers_that_are_no_words_are_refused() -> None:
    with pytest.raises(InvalidBatch, match="'fingerprint' is double"):
        batch_of(table(fingerprint=[1.5, 2.0], id=[1, 2]), PLAIN)


@pytest.mark.parametrize(
    ("options", "kinds", "message"),
    [
        (PLAIN, {"fingerprint": "bigint"}, "no column 'id', but fingerprint"),
        (PLAIN, {"fingerprint": "double", "id": "bigint"}, "is DOUBLE, not BIGINT or ARRAY"),
        (PLAIN, {"fingerprint": "int", "id": "bigint"}, "'fingerprint' is INT"),
        (WIDE, {"fingerprint": "bigint", "id": "bigint"}, "not ARRAY<BIGINT> for .* 128 bits"),
        (WIDE, {"fingerprint": "array<int>", "id": "bigint"}, "is ARRAY<INT>"),
        (PLAIN, {"fingerprint": "bigint", "id": "decimal(20,0)"}, "'id' is DECIMAL"),
        (KEYED, {"fingerprint": "bigint", "key": "binary"}, "'key' is BINARY, not STRING"),
        (BYTES, {"fingerprint": "bigint", "key": "string"}, "'key' is STRING, not BINARY"),
        (SKETCHED, {"fingerprint": "bigint", "id": "int"}, "no column 'sketch'"),
        (SKETCHED, {"fingerprint": "bigint", "id": "int", "sketch": "string"}, "not BINARY"),
    ],
)
def test_types_are_refused_by_the_schema(options: Any, kinds: Any, message: str) -> None:
    with pytest.raises(InvalidBatch, match=message):
        require_columns(kinds, options)


def test_the_types_of_the_page_are_taken() -> None:
    require_columns({"fingerprint": "bigint", "id": "smallint", "x": "date"}, PLAIN)
    require_columns({"fingerprint": "array<bigint>", "key": "string collate UTF8_LCASE"}, KEYED)
    require_columns({"fingerprint": "array<bigint>", "id": "bigint"}, WIDE)
