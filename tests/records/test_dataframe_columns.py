"""Columns of pandas, polars and Arrow are taken as arrays and lists are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simindex
from simindex.errors import InvalidBatch
from simindex.records import dataframe_columns

WORDS = [5, 2**64 - 1, 9]
NAMES = ["a", "b", "ü"]
TEXTS = [f"the text of number {number}, which is one of three here" for number in range(3)]


def _pandas(values: list[Any], kind: str | None) -> Any:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    if kind and None in values:  # has none but as a float
        kind = "float64"
    return pandas.Series(values, dtype=kind or object, index=[7, 8, 9][: len(values)])


def _nullable(values: list[Any], kind: str | None) -> Any:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    return pandas.Series(values, dtype="UInt64" if kind else "string")


def _polars(values: list[Any], kind: str | None) -> Any:
    polars = pytest.importorskip("polars", reason="polars is not installed")
    return polars.Series(values, dtype=polars.UInt64 if kind else polars.String)


def _arrow(values: list[Any], kind: str | None) -> Any:
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    return pyarrow.array(values, pyarrow.uint64() if kind else pyarrow.string())


def _chunked(values: list[Any], kind: str | None) -> Any:
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    chunks = [_arrow(values[:1], kind), _arrow(values[1:], kind)]
    return pyarrow.chunked_array(chunks, type=chunks[0].type)


Maker = Callable[[list[Any], str | None], Any]
every = pytest.mark.parametrize("made", [_pandas, _nullable, _polars, _arrow, _chunked])


@every
def test_fingerprints_and_names_are_those_of_the_list(made: Maker, tmp_path: Path) -> None:
    words, names = made(WORDS, "uint64"), made(NAMES, None)
    with simindex.open(tmp_path / "k.sim", "c") as index:
        index.append(words, keys=names)
        index.commit()
        assert index.query(words, h=0).keys() == NAMES
        assert index.top(words, k=1).keys() == [[name] for name in NAMES]
        assert index.contains(keys=names).all()
        assert index.delete(keys=made(NAMES[:2], None)) == 2
    with simindex.open(tmp_path / "i.sim", "c") as index:
        assert index.append(words, ids=words).tolist() == WORDS
        assert len(index.ingest(words, ids=words, h=0)) == 3
        assert index.contains(ids=words).all()
        assert index.delete(ids=words) == 3
    assert simindex.find_all(made([5, 5, 9], "uint64"), h=0).a.tolist() == [0]


@every
def test_texts_are_asked_as_the_list_is(made: Maker, tmp_path: Path) -> None:
    with simindex.open(tmp_path / "i.sim", "c") as index:
        index.append(simindex.Recipe().batch(made(TEXTS, None), keys=made(NAMES, None)))
        index.commit()
        asked = made([TEXTS[2], "", TEXTS[0]], None)
        assert list(index.query(asked)) == list(index.query([TEXTS[2], "", TEXTS[0]]))
        assert index.query(asked, h=0).query.tolist() == [0, 2]
        assert len(index.query(made([], None))) == 0


@every
def test_a_null_is_refused_with_its_row(made: Maker, tmp_path: Path) -> None:
    words, names = made([1, None], "uint64"), made(["a", None], None)
    rows = np.arange(2, dtype=np.uint64)
    with simindex.open(tmp_path / "i.sim", "c") as index:
        batch = simindex.Recipe().batch
        for call in (
            lambda: index.append(words), lambda: index.append(rows, ids=words),
            lambda: index.append(rows, keys=names), lambda: index.query(words),
            lambda: index.delete(keys=names), lambda: index.query(names),
            lambda: batch(TEXTS[:2], keys=names), lambda: batch(names),
        ):
            with pytest.raises(InvalidBatch, match=r"(row|text) 1 is null") as caught:
                call()
            assert caught.value.remedy is not None
            assert {caught.value.data.get("row"), caught.value.data.get("position")} & {1}
        with pytest.raises(InvalidBatch, match="row 0 is null"):
            index.query(made([None, "a"], None))


@pytest.mark.parametrize("library", ["polars", "pyarrow", "pandas"])
def test_rows_of_several_words_come_back_as_they_went(library: str) -> None:
    """The column that a batch gives other libraries."""
    module = pytest.importorskip(library, reason=f"{library} is not installed")
    rows = np.arange(6, dtype=np.uint64).reshape(3, 2)
    if library == "pandas":
        column = module.DataFrame(rows)
    else:
        table = (module.DataFrame if library == "polars" else module.table)(simindex.Batch(rows))
        column = table["fingerprint"]
    assert simindex.Batch(column).rows.tolist() == rows.tolist()


@pytest.mark.parametrize("made", [_arrow, _chunked])
def test_a_column_of_signed_numbers_is_refused_with_a_way_out(made: Maker) -> None:
    signed = made([1, 2], "uint64").cast("int64")
    with pytest.raises(InvalidBatch, match="int64, not uint64") as caught:
        simindex.Batch(signed)
    assert "numpy.asarray" in str(caught.value.remedy)
    assert len(simindex.Batch(np.asarray(signed).view(np.uint64))) == 2


def test_tables_are_no_columns_of_text(tmp_path: Path) -> None:
    """Their iteration gives the names of columns."""
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = pandas.DataFrame({"text": TEXTS})
    assert not dataframe_columns.holds_text(frame)
    with simindex.open(tmp_path / "i.sim", "c", options=simindex.IndexOptions(
        recipe=simindex.Recipe()
    )) as index, pytest.raises(InvalidBatch, match="not uint64"):
        index.query(frame)


def test_what_holds_text() -> None:
    for values in (["a"], (b"a",), np.array(["a"]), np.array([b"a"]), np.array(["a"], object),
                   np.array([], "U3")):
        assert dataframe_columns.holds_text(values)
    for values in ([], [5], "a", np.array("a"), np.array([["a"]]), np.arange(2), {"a": 1}, {"a"},
                   None, 5):
        assert not dataframe_columns.holds_text(values)


@pytest.mark.parametrize("value", [None, float("nan"), np.float64("nan")])
def test_nulls_of_all_libraries(value: Any) -> None:
    assert dataframe_columns.is_null(value)
    assert not any(map(dataframe_columns.is_null, ["", 0, 0.0, b"", np.uint64(0)]))


def empty_columns() -> list[tuple[Any, int]]:
    """Columns without a row that may have been one of fingerprints, and of how many words."""
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    pyarrow = pytest.importorskip("pyarrow")
    lists = pyarrow.list_(pyarrow.uint64(), 2)
    return [
        (pyarrow.array([], lists), 2), (pyarrow.chunked_array([], lists), 2),
        (pyarrow.array([], pyarrow.list_(pyarrow.uint64())), 1), (pyarrow.nulls(0), 1),
        (pandas.Series([], dtype=pandas.ArrowDtype(lists)), 2),
        (pandas.Series([], dtype=object), 1), (polars.Series([]), 1),
        (polars.Series([], dtype=polars.List(polars.UInt64)), 1),
        (polars.Series([], dtype=polars.Array(polars.UInt64, 3)), 3),
    ]


def test_an_empty_column_of_lists_has_no_fingerprints() -> None:
    for column, words in empty_columns():
        assert simindex.Batch(column).rows.shape == (0, words)


def test_an_empty_column_of_texts_is_none_of_fingerprints() -> None:
    polars, pyarrow = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    for column in (pyarrow.array([], pyarrow.string()), polars.Series([], dtype=polars.String)):
        with pytest.raises(InvalidBatch, match="of texts"):
            simindex.Batch(column)


def test_columns_of_objects_may_hold_numbers_and_lists() -> None:
    pandas = pytest.importorskip("pandas")
    words = pandas.Series([[1, 2], [3, 2**64 - 1]])
    assert simindex.Batch(words).rows.tolist() == [[1, 2], [3, 2**64 - 1]]
    numbers = pandas.Series([5, 2**64 - 1], dtype=object)
    batch = simindex.Batch(numbers, ids=numbers)
    assert batch.fingerprints.tolist() == [5, 2**64 - 1]
    assert batch.ids is not None and batch.ids.tolist() == [5, 2**64 - 1]
    for refused in ([[1, 2], [3]], [5, -1], [1.5, 2], [[1, -2], [3, 4]], [5, "6"]):
        with pytest.raises(InvalidBatch):
            simindex.Batch(pandas.Series(refused, dtype=object))


def test_a_column_that_its_library_cannot_convert_is_refused() -> None:
    polars = pytest.importorskip("polars")
    with pytest.raises(InvalidBatch, match="128-bit"):
        simindex.Batch(polars.Series([1, 2], dtype=polars.Int128))


def test_texts_that_are_stored_once_are_asked_as_the_list_is() -> None:
    """Of categories, and of runs; polars has them as views, which pyarrow cannot take texts of."""
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    pyarrow = pytest.importorskip("pyarrow")
    texts = [TEXTS[0], TEXTS[1], TEXTS[0]]
    recipe = simindex.Recipe()
    wanted = recipe.batch(texts).fingerprints.tolist()
    runs = pyarrow.RunEndEncodedArray.from_arrays(pyarrow.array([1, 2, 3], pyarrow.int32()), texts)
    for column in (
        polars.Series(texts, dtype=polars.Categorical), pandas.Series(texts, dtype="category"),
        polars.Series(texts, dtype=polars.Enum(TEXTS)), runs,
        polars.Series(["x", *texts], dtype=polars.Categorical).slice(1),
        pyarrow.array(["x", *texts]).dictionary_encode().slice(1),
    ):
        assert recipe.batch(column).fingerprints.tolist() == wanted
    with pytest.raises(InvalidBatch, match="text 1 is null"):
        recipe.batch(polars.Series([*TEXTS[:1], None], dtype=polars.Categorical))


def test_no_fingerprints_are_of_any_width(tmp_path: Path) -> None:
    with simindex.open(
        tmp_path / "w.sim", "n", options=simindex.IndexOptions(bits=128)
    ) as index:
        for none in ([], np.empty(0, np.uint64)):
            assert len(index.query(none, h=3)) == len(index.top(none, k=3)) == 0
