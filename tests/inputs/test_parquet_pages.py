"""Pages of Parquet as their headers tell of them: sizes that add up, and no lie is followed."""

from __future__ import annotations

import io
import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simindex.inputs import parquet_pages
from simindex.inputs.parquet_pages import Chunk, chunk_at
from simindex.inputs.streams import Unreadable

pa = pytest.importorskip("pyarrow", reason="the extra arrow is not installed")
parquet = pytest.importorskip("pyarrow.parquet")

TABLE = pa.table({
    "text": ["a b c", "d e f " * 300, None, "x" * 5000] * 200,
    "of": pa.array([{"a": "y", "b": [1, 2]}, None] * 400),
})


def written(**options: Any) -> io.BytesIO:
    file = io.BytesIO()
    options = {"data_page_size": 4096, "dictionary_pagesize_limit": 6000, **options}
    parquet.write_table(TABLE, file, **options)
    return file


def chunks(file: io.BytesIO) -> list[tuple[Any, int]]:
    """The columns of all row groups, and where each begins."""
    metadata = parquet.ParquetFile(file).metadata
    found = [
        metadata.row_group(group).column(at)
        for group in range(metadata.num_row_groups) for at in range(metadata.num_columns)
    ]
    return [
        (one, one.dictionary_page_offset if one.has_dictionary_page else one.data_page_offset)
        for one in found
    ]


@pytest.mark.parametrize(
    ("version", "compression", "dictionary", "more"),
    list(itertools.product(
        ["1.0", "2.0"], ["none", "snappy", "zstd", "gzip"], [True, False], [0, 1]
    )),
)
def test_sizes_are_those_of_the_table_of_contents(
    version: str, compression: str, dictionary: bool, more: int
) -> None:
    file = written(
        data_page_version=version, compression=compression, use_dictionary=dictionary,
        write_page_checksum=bool(more), write_page_index=bool(more), row_group_size=500,
    )
    for column, start in chunks(file):
        pages = list(parquet_pages._pages(file, start, start + column.total_compressed_size))
        headers = column.total_compressed_size - sum(page.stored for page in pages)
        found = chunk_at(file, start, column.total_compressed_size)
        assert found.size + headers == column.total_uncompressed_size
        assert found.largest == max(page.size for page in pages)
        assert bool(found.dictionary) == found.begins_by_dictionary == column.has_dictionary_page
        assert found.values == column.num_values
        assert not found.parts


def test_texts_that_are_made_of_those_before_are_told() -> None:
    file = written(use_dictionary=False, column_encoding={
        "text": "DELTA_BYTE_ARRAY", "of.a": "DELTA_LENGTH_BYTE_ARRAY", "of.b.list.element": "PLAIN",
    })
    told = {
        column.path_in_schema: chunk_at(file, start, column.total_compressed_size)
        for column, start in chunks(file)
    }
    assert told["text"].parts == told["text"].largest
    assert not told["of.a"].parts and not told["of.b.list.element"].parts
    assert [told[one].each_once for one in ("text", "of.a", "of.b.list.element")] == [
        False, False, True
    ]


def test_a_dictionary_behind_a_page_is_refused() -> None:
    """pyarrow takes it, and each row behind it may be a copy of a text that nobody was told of."""
    file = written(compression="none")
    column, start = chunks(file)[0]
    held = file.getvalue()[start : start + column.total_compressed_size]
    size = column.data_page_offset - start
    late = io.BytesIO(held[size:] + held[:size])
    with pytest.raises(Unreadable, match="not its first page"):
        chunk_at(late, 0, len(held))


@given(st.data())
def test_damage_is_an_error_and_takes_no_time(data: st.DataObject) -> None:
    file = written(use_dictionary=data.draw(st.booleans()), compression="snappy")
    column, start = chunks(file)[0]
    held = bytearray(file.getvalue()[start : start + column.total_compressed_size])
    for _ in range(data.draw(st.integers(1, 4))):
        held[data.draw(st.integers(0, 60))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(held)))
    try:
        found = chunk_at(io.BytesIO(bytes(held[:cut])), 0, len(held))
    except Unreadable:
        return
    assert isinstance(found, Chunk) and found.size >= 0


@pytest.mark.parametrize("header", [
    b"",
    b"\x15",
    b"\x19\xf5" + b"\xff" * 9 + b"\x01",  # a list of 2^63 numbers
    b"\x19\xf1" + b"\xff" * 9 + b"\x01",
    b"\x18" + b"\xff" * 9 + b"\x01",  # bytes, as many
    b"\x15" + b"\xff" * 20,  # a number without an end
    b"\x1c" * 50,  # structures in structures
    b"\x1f\x00",  # a kind that there is not
    b"\x00",
])
def test_headers_that_are_none_are_refused(header: bytes) -> None:
    with pytest.raises(Unreadable, match="damaged"):
        chunk_at(io.BytesIO(header), 0, len(header) + 100)
