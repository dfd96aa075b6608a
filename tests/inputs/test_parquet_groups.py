"""Row groups of Parquet: what would take too much memory is refused, and says what helps."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from simindex.errors import InvalidInput
from simindex.inputs import parquet_groups
from simindex.inputs.read_options import ReadOptions
from simindex.inputs.reading import read

Take = Callable[..., Any]


def written(path: Path, texts: list[str], rows: int) -> Path:
    table = pa.table({"id": [str(n) for n in range(len(texts))], "text": texts})
    parquet.write_table(table, path, row_group_size=rows, use_dictionary=False)
    return path


@pytest.mark.parametrize(
    ("limit", "reason", "remedy"),
    [
        (("GROUP_BYTES", 1 << 12), "row group 2 expands more than 0 times",
         "write the file again, uncompressed, if it is to be trusted"),
        (("PAGE_BYTES", 1 << 12), "a page of row group 2 takes ",
         "write the file again, with pages of at most 4,096"),
    ],
)
def test_a_row_group_that_takes_too_much_is_refused_and_those_before_it_are_read(
    tmp_path: Path, take: Take, monkeypatch: pytest.MonkeyPatch, limit: tuple[str, int],
    reason: str, remedy: str,
) -> None:
    monkeypatch.setattr(parquet_groups, *limit)
    monkeypatch.setattr(parquet_groups, "MAX_EXPANSION", 0)
    path = written(tmp_path / "a.parquet", ["a", "b", "c" * 9000, "d"], rows=2)
    documents, bad, _ = take(path)
    assert [one.text for one in documents] == ["a", "b"]
    assert len(bad) == 1 and bad[0].startswith(f"a.parquet:3: {reason}")
    assert bad[0].endswith(f", so the rest was not read: {remedy}")
    with pytest.raises(InvalidInput) as refused:
        list(read([str(path)], ReadOptions()))
    assert refused.value.remedy == remedy


def test_copies_of_a_long_text_are_held_once(
    tmp_path: Path, take: Take, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However small the file: each batch takes COPIED_BYTES at most."""
    texts = ["long " * 1000] * 200 + ["last"]
    path = tmp_path / "a.parquet"
    parquet.write_table(pa.table({"text": texts}), path)
    for most_bytes in (1 << 27, 100 * len(texts[0]), 10 * len(texts[0])):
        monkeypatch.setattr(parquet_groups, "COPIED_BYTES", most_bytes)
        documents, bad, _ = take(path)
        assert [one.text for one in documents] == texts and not bad
