"""The table of formats: a new one is a writer and a row."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

import pytest

from simindex.outputs.columns import Columns, Schema, Write
from simindex.outputs.formats import FORMATS, Format, by_suffix

Run = Callable[..., Any]


@contextmanager
def write_markdown(stream: TextIO, schema: Schema) -> Iterator[Write]:
    """A table of Markdown."""
    stream.write(f"| {' | '.join(schema)} |\n|{'---|' * len(schema)}\n")

    def write(columns: Columns) -> None:
        for row in zip(*(columns[name] for name in schema), strict=True):
            stream.write(f"| {' | '.join(map(str, row))} |\n")

    yield write


def test_a_suffix_tells_the_format() -> None:
    names = {path: by_suffix(path) for path in ("a.csv", "A.PARQUET", "a.b.ndjson", "csv", "a.gz")}
    told = {path: row and row.name for path, row in names.items()}
    assert told == {
        "a.csv": "csv", "A.PARQUET": "parquet", "a.b.ndjson": "jsonl", "csv": None, "a.gz": None,
    }


def test_a_new_format_is_a_row(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """By its suffix, and by its name in the options of commands that are made afterwards."""
    monkeypatch.setitem(
        FORMATS, "markdown", Format("markdown", write_markdown, suffixes=(".md",))
    )
    row = by_suffix("pairs.md")
    assert row is not None
    with (tmp_path / "pairs.md").open("w") as stream, row.write(stream, {"a": "uint64"}) as write:
        write({"a": [7]})
    assert (tmp_path / "pairs.md").read_text() == "| a |\n|---|\n| 7 |\n"


def test_pyarrow_is_loaded_by_parquet_alone() -> None:
    code = "import sys, simindex.cli; sys.exit('pyarrow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
