"""The dialect of a table is told by its first rows, and the usual one is believed until they refute
it."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simindex.inputs.csv_dialect import SEPARATORS, Dialect, dialect_of

Take = Callable[..., Any]

TEXTS = st.text("ab é\"'\\,;|\n", max_size=12)


def written(rows: list[tuple[str, str]], **how: Any) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n", **how)
    writer.writerow(["id", "text"])
    writer.writerows(rows)
    return out.getvalue()


def told(data: str, path: str = "t.csv", *, cut: bool = False) -> Dialect:
    return dialect_of(data.splitlines(keepends=True), path, "text", cut=cut)


@given(st.lists(st.tuples(st.text("abc", min_size=1), TEXTS)), st.sampled_from(SEPARATORS))
def test_what_is_written_the_usual_way_is_read_so(
    rows: list[tuple[str, str]], separator: str
) -> None:
    """But for cells of several lines in a table with tabs, each of which is a row."""
    dialect = told(written(rows, delimiter=separator))
    assert dialect == Dialect(separator)


@given(
    st.lists(st.tuples(st.text("abc", min_size=1), TEXTS), min_size=1),
    st.sampled_from(SEPARATORS),
)
def test_other_quotes_are_in_the_header(rows: list[tuple[str, str]], separator: str) -> None:
    data = written(rows, delimiter=separator, quotechar="'", quoting=csv.QUOTE_ALL)
    dialect = told(data)
    assert dialect == Dialect(separator, "'")
    assert list(dialect.rows(io.StringIO(data)))[1:] == [list(row) for row in rows]


def test_a_backslash_is_before_quotes() -> None:
    rows = [("1", 'say "a" now\n2,or later'), ("2", "C:\\")]
    data = written(rows, escapechar="\\", doublequote=False)
    dialect = told(data)
    assert dialect == Dialect(",", '"', "\\")
    assert list(dialect.rows(io.StringIO(data)))[1:] == [list(row) for row in rows]


@pytest.mark.parametrize("text", [
    '1\t"a" b\n', '1\t"a\n2\tb\n3\tc"\n4\t"d" e\n', '1\t"a\n2\tb\n3\tc"\n',
])
def test_a_table_with_tabs_may_have_no_quotes(text: str) -> None:
    data = "id\ttext\n" + text
    assert told(data, "t.tsv") == Dialect("\t", None)
    assert len(list(told(data).rows(io.StringIO(data)))) == data.count("\n")


def test_a_cell_of_lines_that_are_no_rows_is_one_cell() -> None:
    assert told('id\ttext\n1\t"a\nb"\n2\tc\n', "t.tsv") == Dialect("\t")
    assert told('id,text\n1,"a\n2,b"\n') == Dialect(",")


def test_a_broken_row_among_others_is_a_broken_row() -> None:
    data = 'id,text\n1,"a"b\n2,"c, d"\n3,e\n'
    assert told(data) == Dialect(",")


def test_a_row_that_goes_on_behind_the_first_bytes_is_not_broken() -> None:
    assert told('id\ttext\n1\t"a\nb\n', "t.tsv", cut=True) == Dialect("\t")


def test_a_table_of_no_rows_is_of_its_suffix() -> None:
    assert told("") == Dialect(",") and told("", "t.tsv") == Dialect("\t")


def test_the_rest_of_a_broken_row_is_no_document(tmp_path: Path, take: Take) -> None:
    """It was one, under an id that no row has."""
    good = "".join(f'{row},"text, of row {row}"\n' for row in range(10, 30))
    path = tmp_path / "t.csv"
    for broken, next_row in (
        ('1,"he said "hi" there\n2,tail of the cell"\n', 4),
        ('1,"he said "hi" there\n2,in the middle\n7,tail "of" it\n', 5),
        ('1,"he said "hi" there\n', 3),
        ('1,"never closed\n', 3),
        ('1,"closed and "open"\n', 3),
    ):
        path.write_text("id,text\n" + broken + good)
        documents, bad, _ = take(path)
        assert [one.key for one in documents] == [str(row) for row in range(10, 30)]
        assert len(bad) == 1 and bad[0].startswith("t.csv:2: not CSV: ")
        assert documents[0].line == next_row
        lost = f"; lines 2 to {next_row - 1} are left out"
        assert bad[0].endswith(lost) if next_row > 3 else "left out" not in bad[0]


def test_a_pipe_is_not_waited_for(tmp_path: Path, take: Take) -> None:
    """What its first bytes do not tell, it may tell much later."""

    class Pipe(io.BytesIO):
        def seekable(self) -> bool:
            return False

    from simindex.inputs.csv_table import read_table
    from simindex.inputs.document import Intake, Source

    for data, found in (
        (b'id\ttext\n1\t"a" b\n2\tc', ['"a" b', "c"]), (b"id;text\n", []), (b"id;text", []),
        (b"id;text\n1;a, b", ["a, b"]),
    ):
        pipe = io.BufferedReader(Pipe(data))  # type: ignore[arg-type]
        source = Source(path="t.csv", name="t.csv", intake=Intake(), limit=1 << 20)
        assert [one.text for one in read_table(pipe, source)] == found
