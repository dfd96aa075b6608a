"""CSV, as other programs read it."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simindex.outputs.columns import Schema
from simindex.outputs.csv_table import write_csv

SCHEMA: Schema = {"query": "text", "id": "uint64", "key": "bytes", "distance": "uint16"}


def written(rows: list[tuple[Any, ...]], schema: Schema = SCHEMA) -> str:
    stream = io.StringIO()
    with write_csv(stream, schema) as write:
        for row in rows:
            write({name: [value] for name, value in zip(schema, row, strict=True)})
    return stream.getvalue()


def test_the_header_is_there_without_rows() -> None:
    assert written([]) == "query,id,key,distance\n"


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        ("a b", "a b"), ("a,b", '"a,b"'), ('say "a"', '"say ""a"""'), ("a\nb", '"a\nb"'),
        ("a\rb", '"a\rb"'), ("", '""'), ("\0", "\0"), ("é", "é"), ("\udcff", "\\udcff"),
        ('\udcff"', '"\\udcff"""'), ("=1+1", "=1+1"), (" a ", " a "), ("\x1b[1m", "\x1b[1m"),
    ],
)
def test_texts_are_quoted_where_they_must_be(value: str, cell: str) -> None:
    assert written([(value,)], {"query": "text"}) == f"query\n{cell}\n"


def test_other_values() -> None:
    kinds: Schema = {
        "key": "bytes", "keep": "bool", "id": "uint64", "weights": "float32s", "none": "text",
    }
    row = (b"\xff,", True, np.uint64(2**64 - 1), [1.5, -2.0], None)
    assert written([row], kinds).split("\n")[1] == (
        '"\\xff,",true,18446744073709551615,"[1.5, -2.0]",'
    )


CELLS = st.text(st.characters(codec="utf-8") | st.sampled_from(',"\r\n\0 ;\t'), max_size=6)


@given(st.lists(st.tuples(CELLS, st.integers(0, 2**64 - 1), CELLS, st.integers(0, 64))))
@pytest.mark.slow
def test_python_reads_the_same_back(rows: list[tuple[str, int, str, int]]) -> None:
    bytes_keys = [(query, id_, key.encode(), distance) for query, id_, key, distance in rows]
    table = list(csv.reader(io.StringIO(written(bytes_keys), newline="")))
    assert table == [list(SCHEMA), *([str(value) for value in row] for row in rows)]


def test_duckdb_reads_the_same_back(tmp_path: Path) -> None:
    """Also null apart from an empty text."""
    duckdb = pytest.importorskip("duckdb")
    rows = [("a,b", 1, b"", 0), ('"', 2**64 - 1, None, 7), ("a\nb", 3, b"k", 1), ("é\r", 4, b"", 2)]
    path = tmp_path / "found.csv"
    path.write_bytes(written(rows).encode())
    read = duckdb.sql(
        f"from read_csv('{path}', header=true, delim=',', quote='\"', escape='\"', "
        "strict_mode=false, "
        "columns={query: 'text', id: 'ubigint', key: 'text', distance: 'usmallint'}, "
        "allow_quoted_nulls=false)"
    ).fetchall()
    assert read == [
        (query, id_, None if key is None else key.decode(), distance)
        for query, id_, key, distance in rows
    ]
