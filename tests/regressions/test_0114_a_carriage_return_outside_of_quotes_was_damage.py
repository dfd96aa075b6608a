r"""A table that pandas wrote lost each row whose text has a carriage return alone: pandas writes it
without quotes if lines end in `\n`, and the csv module refuses to read that. A header with quotes
after backslashes was damage, too.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from simindex.inputs.document import Intake
from simindex.inputs.read_options import ReadOptions
from simindex.inputs.reading import read

TEXTS = [
    "a\rb", "\rfirst", "plain", "a\r\nb", "two\r\rreturns", "a,b\rc", 'say "a"\rnow', "\rö\r,", "",
]


def taken(path: Path) -> tuple[list[tuple[str, str]], list[str]]:
    bad: list[str] = []
    intake = Intake(max_errors=None, report=lambda one: bad.append(one.what))
    return [(one.key, one.text) for one in read([str(path)], ReadOptions(), intake)], bad


@pytest.mark.parametrize("separator", [",", "\t", ";"])
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
@pytest.mark.parametrize("last", ["text", "n"])
def test_rows_of_pandas_are_read(tmp_path: Path, separator: str, ends: str, last: str) -> None:
    path = tmp_path / ("a.tsv" if separator == "\t" else "a.csv")
    keys = [f"k{number}" for number in range(len(TEXTS))]
    columns = {"id": keys, "text": TEXTS}
    if last == "n":
        columns["n"] = ["1"] * len(keys)
    pd.DataFrame(columns).to_csv(path, sep=separator, index=False, lineterminator=ends)
    assert taken(path) == (list(zip(keys, TEXTS, strict=True)), [])


def test_lines_that_end_in_two_returns_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b'id,text\r\r\nk1,one\r\r\nk2,"two\r\r\nlines"\r\r\n')
    assert taken(path) == ([("k1", "one"), ("k2", "two\r\r\nlines")], [])


def test_a_table_whose_lines_end_in_returns_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"id,text\rk1,one\rk2,two\r")
    found, bad = taken(path)
    assert not found
    assert len(bad) == 1 and "not CSV: a carriage return without a line feed" in bad[0]


def test_bytes_that_are_not_utf8_are_found_beside_returns(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"id,text\nk1,a\rb\xff\nk2,a\r\xed\xa0\x80\nk3,a\rb\n")
    found, bad = taken(path)
    assert found == [("k3", "a\rb")]
    assert [one.split(": ", 1)[1] for one in bad] == [
        "not UTF-8: byte 0xff in column 2", "not UTF-8: byte 0xed in column 2",
    ]


def test_a_header_with_quotes_after_backslashes_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b'"id";"a \\"b\\"";"text"\n"k1";"1";"say \\"a\\" now"\n')
    assert taken(path) == ([("k1", 'say "a" now')], [])
