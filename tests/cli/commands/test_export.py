"""`export`: the rows of an index as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]


@pytest.fixture
def keyed(run: Run, write_jsonl: Callable[..., Path]) -> str:
    """An index of ten documents with keys k0 ... k9, in five segment files."""
    texts = [f"{n} some text that is number {n} of ten" for n in range(10)]
    path = write_jsonl("a.jsonl", [{"id": f"k{n}", "text": texts[n]} for n in range(10)])
    run("build", "i.sim", path, "-q", "--batch-rows", 8, "--commit-every", 2)
    return "i.sim"


def test_export_prints_csv_that_reads_back(run: Run, keyed: str, objects: Any) -> None:
    table = list(csv.DictReader(io.StringIO(run("export", keyed, "--format", "csv").stdout)))
    rows = objects(run("export", keyed, "--json").stdout)
    assert len(rows) == 10
    assert [{name: str(value) for name, value in row.items()} for row in rows] == table
