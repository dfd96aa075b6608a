"""A record with an empty id was silently named by its file and line, as one without an id."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import simindex
from simindex.cli import program
from simindex.inputs.document import Intake
from simindex.inputs.reading import read


def keys(path: Path) -> tuple[list[str], list[str]]:
    """Names of the documents of a file, and what is told of bad records."""
    bad: list[str] = []
    intake = Intake(max_errors=None, report=lambda record: bad.append(str(record)))
    documents = read([str(path)], intake=intake)
    return [document.key for document in documents], [line.split("/")[-1] for line in bad]


def test_an_empty_id_is_a_bad_record_of_json_lines(tmp_path: Path) -> None:
    """A missing id and null are not an id, and give the name of the line."""
    path = tmp_path / "a.jsonl"
    records = [{"id": ""}, {"id": None}, {}, {"id": 0}, {"id": " "}]
    path.write_text("".join(json.dumps({**record, "text": "a"}) + "\n" for record in records))
    assert keys(path) == (
        [f"{path}:2", f"{path}:3", "0", " "],
        ["a.jsonl:1: field 'id' is empty: give an id, or leave the field out"],
    )


@pytest.mark.parametrize(("suffix", "between"), [("csv", ","), ("tsv", "\t")])
def test_an_empty_id_is_a_bad_record_of_a_table(
    tmp_path: Path, suffix: str, between: str
) -> None:
    """Rows are named by their lines where there is no such column."""
    path = tmp_path / f"a.{suffix}"
    path.write_text(f"id{between}text\n{between}a\n7{between}b\n\"\"{between}c\n")
    told = "column 'id' is empty: give an id, or leave the whole column out"
    assert keys(path) == (["7"], [f"a.{suffix}:2: {told}", f"a.{suffix}:4: {told}"])
    path.write_text("text\na\nb\n")
    assert keys(path) == ([f"{path}:2", f"{path}:3"], [])


def test_empty_ids_count_against_the_errors_that_are_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where another field is asked for."""
    monkeypatch.chdir(tmp_path)
    Path("a.jsonl").write_text(
        '{"name": "", "text": "one two three"}\n{"name": "x", "text": "four five six"}\n'
    )
    options = ["build", "i.sim", "a.jsonl", "--id-field", "name"]
    refused = CliRunner().invoke(program, options)
    assert refused.exit_code == 4
    assert "a.jsonl:1: field 'name' is empty" in refused.stderr
    built = CliRunner().invoke(program, [*options, "--max-errors", "1"])
    assert built.exit_code == 0, built.stderr
    with simindex.open("i.sim") as index:
        assert [batch.keys for batch in index.rows()] == [["x"]]
