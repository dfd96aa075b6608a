"""Documents that come as columns are those that come one at a time."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from simindex.inputs import column_files
from simindex.inputs.document import Intake
from simindex.inputs.document_columns import Documents, one_by_one
from simindex.inputs.read_options import ReadOptions
from simindex.inputs.reading import read, read_in_columns

IDS: list[Any] = ["a", "b", "d:7", "ä", "", None, "x" * 70_000, "f.parquet:2"]
TEXTS: list[Any] = ["one two", "五六", "", None, "long " * 30]
LIMIT = 100


def both(path: Path, options: ReadOptions) -> Iterator[tuple[Any, ...]]:
    """Documents, bad records and counts, one at a time and in columns; then the columns' items."""
    for reading in (read, read_in_columns):
        bad: list[str] = []
        intake = Intake(max_errors=None, report=lambda record, bad=bad: bad.append(str(record)))
        items = list(reading([str(path)], options, intake))
        yield (
            list(one_by_one(items)), bad, intake.documents, intake.numbered, dict(intake.id_fields)
        ), items


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("columns") / "f.parquet"


@pytest.mark.parametrize("whole", [False, True])
@settings(max_examples=60)
@given(rows=st.lists(st.tuples(st.sampled_from(IDS), st.sampled_from(TEXTS)), max_size=14))
def test_rows_in_columns_are_those_one_at_a_time(
    place: Path, whole: bool, rows: list[tuple[Any, Any]]
) -> None:
    """Any row that needs a closer look gets it, in its order, and is the same bad record."""
    if whole:
        rows = [(key or "e", text or "") for key, text in rows]
    table = pa.table({
        "id": pa.array([key for key, _ in rows], pa.string()),
        "text": pa.array([text for _, text in rows], pa.large_string() if whole else pa.string()),
    })
    parquet.write_table(table, place)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(column_files, "ROWS", 3)
        patch.setattr(column_files, "COLUMN_ROWS", 3)
        (single, _), (some, _) = both(place, ReadOptions(max_record_bytes=LIMIT))
    assert some == single


def test_nearly_all_rows_come_in_columns(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    ids = [f"d{number}" for number in range(10_000)]
    texts = [f"text {number} ä" for number in range(10_000)]
    texts[6000] = None
    parquet.write_table(pa.table({"id": ids, "text": texts}), path)
    (single, _), (some, items) = both(path, ReadOptions())
    assert some == single
    apart = [one for one in items if not isinstance(one, Documents)]
    rows = column_files.COLUMN_ROWS
    assert len(apart) == 2 * rows - 1, "the first rows, and those around the null"
    (column,) = (one for one in items if isinstance(one, Documents))
    assert column[5] == single[0][column.first + 3] and column[-1] == column[len(column) - 1]
    assert list(column[2:4]) == [column[2], column[3]]
    assert column.characters == sum(len(one.text) for one in column)
    assert len(pickle.dumps(column[:2])) < 1000
    assert list(pickle.loads(pickle.dumps(column[:2]))) == list(column[:2])  # noqa: S301  our own


def test_reading_columns_does_not_import_pandas(tmp_path: Path) -> None:
    """It takes longer than reading 10,000 texts."""
    path = tmp_path / "f.parquet"
    parquet.write_table(pa.table({"id": ["a", None], "text": ["b", "c"]}), path)
    script = (
        "import sys; from simindex.inputs.reading import read; "
        "print(len(list(read([sys.argv[1]])))); "
        "print('pandas' in sys.modules)"
    )
    found = subprocess.run(
        [sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=True
    )
    assert found.stdout.split() == ["2", "False"]
