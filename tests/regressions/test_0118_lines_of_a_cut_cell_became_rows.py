"""Where a table was cut within a cell of many lines, lines of that cell with the right number of
commas became documents, and the others bad records. The same came of a quote too many.
"""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from simindex.inputs.csv_table import _Feed
from simindex.inputs.document import Intake
from simindex.inputs.read_options import ReadOptions
from simindex.inputs.reading import read

CELL = "First, the heading\n\nPlain prose\nwith, commas\nand without\n" * 12
ROWS = [[f"k{number}", f"{number}: {CELL}"] for number in range(20)]


def table(columns: int = 2) -> str:
    out = io.StringIO(newline="")
    csv.writer(out, lineterminator="\n").writerows(
        row[-columns:] for row in [["id", "text"], *ROWS]
    )
    return out.getvalue()


def taken(path: Path, data: str) -> tuple[list[str], list[str]]:
    path.write_text(data, newline="")
    bad: list[str] = []
    intake = Intake(max_errors=None, report=lambda one: bad.append(one.what))
    return [one.text for one in read([str(path)], ReadOptions(), intake)], bad


@pytest.mark.parametrize("columns", [1, 2])
@pytest.mark.parametrize("left", [2, 40, 200, 500])
def test_a_table_that_is_cut_is_one_bad_record(tmp_path: Path, columns: int, left: int) -> None:
    data = table(columns)[:-left]
    texts, bad = taken(tmp_path / "a.csv", data)
    assert texts == [text for _, text in ROWS[:-1]]
    first = 2 + 61 * 19
    assert len(bad) == 1
    assert f"a.csv:{first}: not CSV: unexpected end of data" in bad[0]
    assert bad[0].endswith(f"; lines {first} to {len(data.splitlines())} are left out")


@pytest.mark.parametrize("place", ["5: First, the", "5: First, the heading\n\nPlain"])
def test_a_quote_too_many_costs_its_own_row(tmp_path: Path, place: str) -> None:
    data = table()
    at = data.index(place) + len(place)
    texts, bad = taken(tmp_path / "a.csv", f'{data[:at]}"{data[at:]}')
    assert texts == [text for number, (_, text) in enumerate(ROWS) if number != 5]
    assert len(bad) == 1


def test_rows_behind_a_quote_that_is_never_closed_are_read(tmp_path: Path) -> None:
    rows = "".join(f"k{number},some words of {number}\n" for number in range(50))
    texts, bad = taken(tmp_path / "a.csv", f'id,text\nk-1,"open\n{rows}')
    assert len(texts) == 50 and len(bad) == 1


@pytest.mark.parametrize("broken", ['"a"b\n', 'k,"a"b\nc\n', '"a\n"b"\n', 'a,b,c,"d"e\n'])
def test_lines_behind_many_broken_rows_are_looked_at_few_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    looks = 0
    before = _Feed._text

    def text(feed: _Feed, line: bytes, number: int) -> str:
        nonlocal looks
        looks += 1
        return before(feed, line, number)

    monkeypatch.setattr(_Feed, "_text", text)
    each = {}
    for rows in (1_000, 4_000):
        looks = 0
        taken(tmp_path / "a.csv", "id,text\n" + broken * rows)
        each[rows] = looks / rows
    assert each[4_000] < 1.5 * each[1_000]
