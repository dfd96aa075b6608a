"""CSV: rows become documents, also around broken ones."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simindex.inputs.csv_table import read_table
from simindex.inputs.document import Document, Intake, Source

CELLS = st.text(
    st.characters(exclude_categories=("Cs",), exclude_characters="\r"), max_size=20
)  # fmt: skip


def documents_of(data: bytes, intake: Intake, limit: int = 1 << 20) -> list[Document]:
    return list(
        read_table(
            io.BytesIO(data), Source(path="t.csv", name="t.csv", intake=intake, limit=limit)
        )
    )


@given(
    st.lists(st.tuples(CELLS.filter(bool), CELLS, CELLS)),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
)
def test_what_the_csv_module_writes_is_read_back(
    rows: list[tuple[str, str, str]], end: str, marked: bool
) -> None:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator=end)
    writer.writerow(["id", "text", "other"])
    writer.writerows(rows)
    data = (b"\xef\xbb\xbf" if marked else b"") + out.getvalue().encode()
    documents = documents_of(data, Intake())
    assert [document.text for document in documents] == [text for _, text, _ in rows]
    assert [document.key for document in documents] == [key for key, _, _ in rows]
    assert [document.fields["other"] for document in documents] == [row[2] for row in rows]  # type: ignore[index]


def test_rows_are_named_by_file_and_first_line_without_a_key() -> None:
    data = b'text\n"one\ntwo"\nthree\n\nfour\n'
    documents = documents_of(data, Intake())
    assert [(document.key, document.text) for document in documents] == [
        ("t.csv:2", "one\ntwo"), ("t.csv:4", "three"), ("t.csv:6", "four"),
    ]  # fmt: skip


def test_broken_rows_are_reported_by_line_and_the_rest_is_read(tmp_path: Path) -> None:
    data = (
        b"id,text\n1,good\n2,caf\xe9\n3\n4,a,b\n5,\"x\"y\n6,\xed\xa0\x80\n7,last\n"
        + b"8," + b"z" * 200 + b'\n9,"' + b"open\n" * 50
    )  # fmt: skip
    reported: list[str] = []
    intake = Intake(max_errors=None, report=lambda record: reported.append(str(record)))
    documents = documents_of(data, intake, limit=150)
    assert [document.key for document in documents] == ["1", "7"]
    assert reported[:7] == [
        "t.csv:3: not UTF-8: byte 0xe9 in column 2",
        "t.csv:4: has 1 column, the header has 2",
        "t.csv:5: has 3 columns, the header has 2",
        "t.csv:6: not CSV: ',' expected after '\"'",
        "t.csv:7: not UTF-8: byte 0xed in column 2",
        "t.csv:9: row longer than 150 bytes (an open quote?)",
        "t.csv:10: row longer than 150 bytes (an open quote?)",
    ]


def test_a_carriage_return_alone_ends_no_row() -> None:
    reported: list[str] = []
    intake = Intake(max_errors=1, report=lambda record: reported.append(str(record)))
    assert documents_of(b"id,text\r1,one\r2,two\r", intake) == []
    told = "t.csv:1: not CSV: a carriage return without a line feed, outside of quotes"
    assert reported == [told]


def test_a_row_that_ends_within_quotes_is_bad() -> None:
    reported: list[str] = []
    intake = Intake(max_errors=1, report=lambda record: reported.append(str(record)))
    assert documents_of(b'text\n"never closed\n', intake) == []
    assert reported == ["t.csv:2: not CSV: unexpected end of data"]


def test_a_table_without_the_text_column_is_one_bad_record(
    tmp_path: Path, take: Callable[..., Any]
) -> None:
    (tmp_path / "a.csv").write_text("id,body\n1,x\n2,y\n")
    (tmp_path / "b.tsv").write_text('id\tbody\n1\ta "b", c\n'.replace('"', "'"))
    documents, bad, _ = take(tmp_path / "a.csv", tmp_path / "b.tsv")
    assert documents == []
    assert len(bad) == 2
    assert "a.csv:1: has no column 'text' (it has 'id', 'body')" in bad[0]
    documents, bad, _ = take(tmp_path / "a.csv", tmp_path / "b.tsv", text_field="body")
    assert [document.text for document in documents] == ["x", "y", "a 'b', c"]
    assert bad == []


def test_an_empty_table_has_no_documents() -> None:
    assert documents_of(b"", Intake()) == []
    assert documents_of(b"id,text\n", Intake()) == []


@pytest.mark.parametrize("mark", [",", ";", "|", "\t"])
@pytest.mark.parametrize("name", ["t.csv", "t.tsv"])
@pytest.mark.parametrize("quote", ["", '"'])
def test_the_header_tells_the_separator(
    tmp_path: Path, take: Callable[..., Any], mark: str, name: str, quote: str
) -> None:
    columns = (f"{quote}{column}{quote}" for column in ("id", "text", "more"))
    path = tmp_path / name
    path.write_text(f"{mark.join(columns)}\r\n7{mark}one, two; three{mark}x\r\n".replace(
        "one, two; three", '"one, two; three"'
    ))
    (document,), bad, _ = take(path)
    assert (document.key, document.text, bad) == ("7", "one, two; three", [])


def test_a_missing_column_is_told_with_those_there_are(
    tmp_path: Path, take: Callable[..., Any]
) -> None:
    (tmp_path / "t.csv").write_text("id;body;x,y\n7;one;2\n")
    _, bad, _ = take(tmp_path / "t.csv")
    assert bad == [
        "t.csv:1: has no column 'text' (it has 'id', 'body', 'x,y'): name the column of the text "
        "with --text-field"
    ]


@pytest.mark.parametrize("header", ["id,text,text", "id,id,text"])
def test_a_column_that_is_there_twice_is_refused(tmp_path: Path, take: Any, header: str) -> None:
    (tmp_path / "a.csv").write_text(f"{header}\n1,first,second\n")
    name = "text" if header.endswith("text,text") else "id"
    documents, bad, _ = take(tmp_path / "a.csv", id_field="id")
    assert documents == []
    assert bad == [f"a.csv:1: has 2 columns {name!r}: give them different names"]
