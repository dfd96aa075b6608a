"""`simindex fingerprint` had no `--output` and no `-o`, as the other commands with results do."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from simindex.cli.app import program
from simindex.cli.commands import fingerprint

CALL = ["fingerprint", "--text", "one two", "--text", "!", "--text", 'a "b", c', "-q"]


def run(*words: str, code: int = 0) -> Result:
    assert fingerprint
    done = CliRunner().invoke(program, [*CALL, *words])
    assert done.exit_code == code, done.output
    return done


@pytest.mark.parametrize("options", [(), ("--sketch-bits", "512"), ("--weights",)])
def test_tables_have_the_values_of_the_objects(tmp_path: Path, options: tuple[str, ...]) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    printed = run(*options, "--json").stdout
    rows: list[dict[str, Any]] = [json.loads(line) for line in printed.splitlines()]
    assert run(*options, "--output", "jsonl").stdout == printed
    for suffix in ("jsonl", "csv", "parquet"):
        assert run(*options, "-o", str(tmp_path / f"made.{suffix}")).stdout == ""
    assert (tmp_path / "made.jsonl").read_text("utf-8") == printed

    found = parquet.read_table(tmp_path / "made.parquet").to_pylist()
    assert [{**dict.fromkeys(found[0]), **row} for row in rows] == found
    table = run(*options, "--output", "csv").stdout
    assert (tmp_path / "made.csv").read_text("utf-8") == table
    lines = list(csv.DictReader(io.StringIO(table, newline="")))
    assert list(lines[0]) == list(found[0])
    assert [line["fingerprint"] for line in lines] == [row["fingerprint"] or "" for row in rows]
    assert [line["skipped"] for line in lines] == ["", "empty", ""]


def test_features_are_no_table() -> None:
    assert "leave out --features" in run("--features", "--output", "csv", code=2).output
