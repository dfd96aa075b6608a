"""Row groups of a Parquet file, as batches of bounded size.

    pages       looked at first: how much they take once they are decompressed (parquet_pages.py)
    a batch     of so many rows that they take about BATCH_BYTES, copies of repeated texts included

1. A row group that expands too much, or has too large a page, is refused before it is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from io import SEEK_END
from typing import Any, BinaryIO

from simindex.inputs.parquet_pages import Chunk, chunk_at
from simindex.inputs.streams import Unreadable

BATCH_ROWS, BATCH_BYTES = 1 << 14, 1 << 24
"""Of a row group of Parquet, so much is read at once."""

COPIED_BYTES = 1 << 27
"""What a batch takes at most if all of its rows have the longest text of a dictionary."""

LEAST_COPIED = 64
"""Rows in a batch; where they might take more, each text of the dictionary is held once."""

FEW_COLUMNS = 2
"""Of a text and an id, a second thread would have the id to decode, and wait for the other."""

READ_BYTES = 1 << 20
"""Of a column at a time; else all of it in a row group is held as it is stored."""

PAGE_BYTES = 1 << 29
"""A page may take so many; writers make them of a megabyte."""

GROUP_BYTES = 1 << 27
"""A row group may have so many, however small its file is."""

MAX_EXPANSION = 1000
"""A row group of more than GROUP_BYTES, and so many times the size of its file, is refused."""

HOW: dict[str, Any] = {
    "page_checksum_verification": True, "pre_buffer": False, "buffer_size": READ_BYTES,
}
"""How pyarrow is to open a file."""


def batches_of(opened: BinaryIO, file: Any, columns: Sequence[str]) -> Iterator[Any]:
    """Batches of some columns of a file that pyarrow has opened as HOW says; see `_of_groups`."""
    from pyarrow import parquet

    leaves = [file.schema.column(at) for at in range(len(file.schema))]
    read = [at for at, leaf in enumerate(leaves) if _is_read(leaf.path, columns)]
    texts = [at for at in read if leaves[at].physical_type == "BYTE_ARRAY"]
    file_bytes = opened.seek(0, SEEK_END)
    opened.seek(0)
    once = parquet.ParquetFile(
        opened, metadata=file.metadata, **HOW, read_dictionary=[leaves[at].path for at in texts]
    )
    return _of_groups(opened, file, once, columns, read, texts, file_bytes)


def _is_read(path: str, columns: Sequence[str]) -> bool:
    """Whether a leaf of the schema is one of some columns and fields, or within one."""
    return any(path == one or path.startswith(one + ".") for one in columns)


def _of_groups(
    opened: BinaryIO, file: Any, once: Any, columns: Sequence[str], read: Sequence[int],
    texts: Sequence[int], file_bytes: int,
) -> Iterator[Any]:
    """Batches of a Parquet file, of so many rows that they take about BATCH_BYTES.

    `file` gives each row a copy of its text, `once` gives each text of a row group once. It keeps
    all that it has given of a group, and gives them again with each batch. So it reads only what
    would else take more memory than can be told.
    """
    for number in range(file.num_row_groups):
        group = file.metadata.row_group(number)
        if group.total_byte_size > max(GROUP_BYTES, MAX_EXPANSION * file_bytes):
            raise Unreadable(
                f"row group {number + 1} expands more than {MAX_EXPANSION:,} times",
                remedy="write the file again, uncompressed, if it is to be trusted",
            )
        # Damaged figures of a column are an error here; below they would end the process.
        first = next(once.iter_batches(batch_size=1, columns=columns, row_groups=[number]), None)
        chunks = {at: _chunk(opened, group.column(at), number) for at in read}
        size = sum(chunk.size for chunk in chunks.values())
        rows = max(1, min(BATCH_ROWS, BATCH_BYTES * max(1, group.num_rows) // max(1, size)))
        longest = max((_longest(chunks[at], group.column(at), first) for at in texts), default=0)
        copied = min(rows // 4 or 1, COPIED_BYTES // max(1, longest))
        if copied >= LEAST_COPIED and all(chunks[at].in_full for at in texts):
            yield from file.iter_batches(
                batch_size=copied, columns=columns, row_groups=[number],
                use_threads=len(columns) > FEW_COLUMNS,
            )
        else:
            yield from once.iter_batches(batch_size=rows, columns=columns, row_groups=[number])


def _chunk(opened: BinaryIO, column: Any, number: int) -> Chunk:
    """What the pages of a column in a row group take. Unreadable if one takes too much."""
    start = column.dictionary_page_offset if column.has_dictionary_page else column.data_page_offset
    chunk = chunk_at(opened, start, column.total_compressed_size)
    if chunk.largest > PAGE_BYTES:
        raise Unreadable(
            f"a page of row group {number + 1} takes {chunk.largest:,} bytes",
            remedy=f"write the file again, with pages of at most {PAGE_BYTES:,}",
        )
    return chunk


def _longest(chunk: Chunk, column: Any, first: Any) -> int:
    """Bytes of the longest text in a dictionary, or more; `first` is a batch of the first row."""
    from pyarrow import compute, types

    if chunk.begins_by_dictionary and first is not None and column.path_in_schema in (
        first.schema.names
    ):
        array = first.column(column.path_in_schema)
        if types.is_dictionary(array.type) and len(array.dictionary):
            return int(compute.max(compute.binary_length(array.dictionary)).as_py() or 0)
    return chunk.dictionary
