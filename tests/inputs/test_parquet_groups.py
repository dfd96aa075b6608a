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


LYING = 1000
"""Rows of a file whose table of contents lies, as many as no other figure of it."""


def lying(path: Path, place: int | None, rows: int) -> Path:
    """A file of LYING rows, of which one figure of the table of contents, or each, says another
    number: that of all rows, those of a row group, and those of cells of each column."""
    texts = [f"{row} {'text ' * 9}" for row in range(LYING)]
    table = pa.table({"id": [str(row) for row in range(LYING)], "text": texts})
    parquet.write_table(
        table, path, use_dictionary=False, write_statistics=False, store_schema=False,
        compression="none",
    )
    held = bytearray(path.read_bytes())
    start = len(held) - 8 - int.from_bytes(held[-8:-4], "little")
    # A number of Thrift's compact form, twice the number, behind the mark of 64 bits.
    said, other = (bytes([number << 1 & 127 | 128, number >> 6]) for number in (LYING, rows))
    places = [at for at in range(start, len(held) - 8)
              if held[at : at + 2] == said and held[at - 1] & 15 == 6]
    assert len(places) == 4
    for at in places if place is None else [places[place]]:
        held[at : at + 2] = other
    path.write_bytes(held)
    return path


@pytest.mark.parametrize("place", [None, 0, 1, 2, 3])
@pytest.mark.parametrize("rows", [LYING - 1, LYING // 2, LYING + 1, 8 * LYING])
def test_a_table_of_contents_that_says_another_number_of_rows_is_damaged(
    tmp_path: Path, take: Take, place: int | None, rows: int
) -> None:
    """pyarrow reads as many rows as the table of contents says, and no more, in silence."""
    documents, bad, _ = take(lying(tmp_path / "a.parquet", place, rows))
    assert len(bad) == 1 and "damaged: " in bad[0] and f"says {rows:,}" in bad[0]
    assert f"holds {LYING:,} " in bad[0]
    assert len(documents) in (0, LYING)


def test_cells_of_lists_are_not_counted_as_rows(tmp_path: Path, take: Take) -> None:
    path = tmp_path / "a.parquet"
    parquet.write_table(pa.table({
        "id": ["a", "b", "c"], "text": ["one", "two", "three"], "of": [["x", "y"], [], None],
    }), path)
    documents, bad, _ = take(path, all_fields=True)
    assert [one.fields["of"] for one in documents] == [["x", "y"], [], None] and not bad


@pytest.mark.parametrize("dictionary", [["text"], False])
@pytest.mark.parametrize("most_bytes", [parquet_groups.COPIED_BYTES, 5000])
def test_texts_that_are_made_of_those_before_are_read(
    tmp_path: Path, take: Take, monkeypatch: pytest.MonkeyPatch, dictionary: Any, most_bytes: int
) -> None:
    """pyarrow has no dictionary of such texts. A writer that runs out of room in its dictionary
    goes on with them."""
    monkeypatch.setattr(parquet_groups, "COPIED_BYTES", most_bytes)
    texts = [f"{'of the same beginning ' * 20}{row}" for row in range(300)]
    keys = [f"https://example.org/{row:04d}" for row in range(300)]
    path = tmp_path / "a.parquet"
    encoding = {"id": "DELTA_BYTE_ARRAY"} | ({} if dictionary else {"text": "DELTA_BYTE_ARRAY"})
    parquet.write_table(
        pa.table({"id": keys, "text": texts}), path, use_dictionary=dictionary,
        column_encoding=encoding, data_page_size=2000, row_group_size=200,
    )
    documents, bad, _ = take(path)
    assert [(one.key, one.text) for one in documents] == list(zip(keys, texts, strict=True))
    assert not bad


def test_files_of_other_writers_are_read_with_all_columns(tmp_path: Path, take: Take) -> None:
    """DuckDB stores texts by their lengths, of which pyarrow has no dictionary, either."""
    duckdb, polars = pytest.importorskip("duckdb"), pytest.importorskip("polars")
    frame = polars.DataFrame({
        "id": [f"k{row}" for row in range(5000)],
        "text": [f"text number {row} " + "word " * (row % 40) for row in range(5000)],
        "of": [[str(one) for one in range(row % 4)] if row % 3 else None for row in range(5000)],
        "more": [{"a": "x" * (row % 3), "b": [str(row)] * (row % 3)} for row in range(5000)],
    })
    frame.write_parquet(tmp_path / "a.parquet", data_page_size=4096, row_group_size=700)
    for name, options in (("b", ""), ("c", ", parquet_version v2, row_group_size 2048")):
        copied = f"copy (from frame) to '{tmp_path / name}.parquet' (format parquet{options})"
        duckdb.sql(copied)
    for name in "abc":
        for all_fields in (False, True):
            documents, bad, _ = take(tmp_path / f"{name}.parquet", all_fields=all_fields)
            assert not bad
            assert [one.text for one in documents] == frame["text"].to_list()
        assert documents[7].fields == frame.row(7, named=True)
