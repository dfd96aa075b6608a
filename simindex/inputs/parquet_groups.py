"""Row groups of a Parquet file, as batches of bounded size.

    pages       looked at first: how much they take once they are decompressed (parquet_pages.py)
    a batch     of so many rows that they take about BATCH_BYTES, copies of repeated texts included

1. A row group that expands too much, or has too large a page, is refused before it is read.
2. So is one whose columns have more cells, or fewer, than the table of contents says.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from io import SEEK_END
from typing import Any, BinaryIO

from simindex.inputs.parquet_pages import Chunk, chunk_at
from simindex.inputs.streams import Unreadable

BATCH_ROWS, BATCH_BYTES = 1 << 14, 1 << 24
"""Of a row group of Parquet, so much is read at once."""

COPIED_BYTES = 1 << 27
"""What a batch takes at most if all of its rows have the longest text of a dictionary."""

MOST_COPIED = 4
"""A batch takes at most so many times COPIED_BYTES: texts of parts grow as long as a page if they
are made of the last one of the page before."""

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
    leaves = [file.schema.column(at) for at in range(len(file.schema))]
    read = [at for at, leaf in enumerate(leaves) if _is_read(leaf.path, columns)]
    file_bytes = opened.seek(0, SEEK_END)
    opened.seek(0)
    return _of_groups(opened, file, columns, {at: leaves[at] for at in read}, file_bytes)


def _is_read(path: str, columns: Sequence[str]) -> bool:
    """Whether a leaf of the schema is one of some columns and fields, or within one."""
    return any(path == one or path.startswith(one + ".") for one in columns)


def _of_groups(
    opened: BinaryIO, file: Any, columns: Sequence[str], read: Mapping[int, Any], file_bytes: int
) -> Iterator[Any]:
    """Batches of a Parquet file, of so many rows that they take about BATCH_BYTES.

    `file` gives each row a copy of its text. What would so take too much memory is read by another
    reader, which gives each text of a row group once. That one keeps all that it has given of a
    group, and gives them again with each batch.
    """
    from pyarrow import ArrowException, parquet

    texts = [at for at, leaf in read.items() if leaf.physical_type == "BYTE_ARRAY"]
    every = tuple(read[at].path for at in texts)
    given = 0

    @cache
    def each_once(paths: tuple[str, ...]) -> Any:
        """A reader that gives some columns as dictionaries."""
        return parquet.ParquetFile(opened, metadata=file.metadata, **HOW, read_dictionary=paths)

    for number in range(file.num_row_groups):
        group = file.metadata.row_group(number)
        if group.total_byte_size > max(GROUP_BYTES, MAX_EXPANSION * file_bytes):
            raise Unreadable(
                f"row group {number + 1} expands more than {MAX_EXPANSION:,} times",
                remedy="write the file again, uncompressed, if it is to be trusted",
            )
        asked: dict[str, Any] = {"columns": columns, "row_groups": [number]}
        # Damaged figures of a column are an error here; below they would end the process.
        first = None
        try:
            first = next(each_once(every).iter_batches(batch_size=1, **asked), None)
        except (ArrowException, OSError):  # also of encodings of which it has no dictionary
            next(file.iter_batches(batch_size=1, **asked), None)
        chunks = {at: _chunk(opened, group, at, leaf, number) for at, leaf in read.items()}
        size = sum(chunk.size for chunk in chunks.values())
        rows = max(1, min(BATCH_ROWS, BATCH_BYTES * max(1, group.num_rows) // max(1, size)))
        whole = tuple(read[at].path for at in texts if chunks[at].each_once)
        if first is None and any(chunks[at].begins_by_dictionary for at in texts):
            first = next(each_once(whole).iter_batches(batch_size=1, **asked), None)
        longest = max((_longest(chunks[at], group.column(at), first) for at in texts), default=0)
        copied = max(1, min(rows // 4, COPIED_BYTES // max(1, longest)))
        if copied >= LEAST_COPIED or any(chunks[at].parts for at in texts):
            batches = file.iter_batches(
                batch_size=copied, use_threads=len(columns) > FEW_COLUMNS, **asked
            )
        else:
            batches = each_once(whole).iter_batches(batch_size=rows, **asked)
        for batch in batches:
            if batch.nbytes > max(GROUP_BYTES, MOST_COPIED * COPIED_BYTES):
                raise Unreadable(f"texts of row group {number + 1} are longer than its pages")
            given += len(batch)
            yield batch
    if given != file.metadata.num_rows:
        raise Unreadable(
            f"damaged: it holds {given:,} rows, and its table of contents says "
            f"{file.metadata.num_rows:,}"
        )


def _chunk(opened: BinaryIO, group: Any, at: int, leaf: Any, number: int) -> Chunk:
    """What the pages of a column in a row group take. Unreadable if one takes too much, or they do
    not hold what the table of contents says."""
    column = group.column(at)
    start = column.dictionary_page_offset if column.has_dictionary_page else column.data_page_offset
    chunk = chunk_at(opened, start, column.total_compressed_size)
    if chunk.largest > PAGE_BYTES:
        raise Unreadable(
            f"a page of row group {number + 1} takes {chunk.largest:,} bytes",
            remedy=f"write the file again, with pages of at most {PAGE_BYTES:,}",
        )
    # A cell of a list may be several values, and every other cell is one.
    told = [column.num_values] + [group.num_rows] * (not leaf.max_repetition_level)
    for values in told:
        if values != chunk.values:
            raise Unreadable(
                f"damaged: row group {number + 1} holds {chunk.values:,} cells of column "
                f"{leaf.path[:40]!r}, and its table of contents says {values:,}"
            )
    return chunk


def _longest(chunk: Chunk, column: Any, first: Any) -> int:
    """Bytes of the longest text in a dictionary, or made of parts, or more; `first` is a batch of
    the first row."""
    from pyarrow import compute, types

    if chunk.begins_by_dictionary and first is not None and column.path_in_schema in (
        first.schema.names
    ):
        array = first.column(column.path_in_schema)
        if types.is_dictionary(array.type) and len(array.dictionary):
            held = int(compute.max(compute.binary_length(array.dictionary)).as_py() or 0)
            return max(held, chunk.parts)
    return max(chunk.dictionary, chunk.parts)
