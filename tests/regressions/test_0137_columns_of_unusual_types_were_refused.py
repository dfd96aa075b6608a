"""Three columns of other libraries: string views of pandas as keys raised NotImplementedError, a
column without rows and without a type was no column of ids, and an error for a null in a column of
small numbers did not name its row, since polars makes float32 of it."""

from __future__ import annotations

from typing import Any

import pytest

import simindex

RECIPE = simindex.Recipe()


def test_string_views_of_pandas_are_keys() -> None:
    pandas, pa = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    keys = pandas.Series(["one", "twö"], dtype=pandas.ArrowDtype(pa.string_view()))
    assert RECIPE.batch(["a b", "c d"], keys=keys).keys == ["one", "twö"]
    keys = pandas.Series(["one", None], dtype=pandas.ArrowDtype(pa.string_view()))
    with pytest.raises(simindex.InvalidBatch, match="row 1 is null"):
        RECIPE.batch(["a b", "c d"], keys=keys)


def empty_columns() -> list[Any]:
    pandas, pa = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    polars = pytest.importorskip("polars")
    return [
        pandas.Series([]), pandas.Series([], dtype="int64"), polars.Series([]),
        polars.Series([], dtype=polars.UInt64), pa.array([]), pa.array([], pa.uint64()),
        pa.chunked_array([], pa.uint64()),
    ]


def test_a_column_without_rows_is_one_of_ids() -> None:
    for column in empty_columns():
        assert RECIPE.batch([], ids=column).ids.shape == (0,)
        assert len(simindex.Batch([], ids=column)) == 0


@pytest.mark.parametrize("kind", ["UInt8", "UInt16", "Int16", "Int32", "Float32", "Null"])
def test_a_null_of_small_numbers_is_named(kind: str) -> None:
    polars = pytest.importorskip("polars")
    first = None if kind == "Null" else 1
    column = polars.Series([first, None], dtype=getattr(polars, kind))
    row = 0 if first is None else 1
    with pytest.raises(simindex.InvalidBatch, match=f"row {row} is null"):
        RECIPE.batch(["a b", "c d"], ids=column)
    with pytest.raises(simindex.InvalidBatch, match=f"row {row} is null"):
        simindex.Batch(column)
