"""Parquet files: read by row groups, some rows in memory at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

from simindex.inputs.column_files import (
    arrow_needed,
    documents_of,
    opened_as,
    wanted,
)
from simindex.inputs.document import Document, Source
from simindex.inputs.document_columns import Documents
from simindex.inputs.magics import PARQUET_MAGIC
from simindex.inputs.parquet_groups import HOW, batches_of
from simindex.inputs.unpacked_files import at_any_place


def read_parquet(stream: BinaryIO, source: Source) -> Iterator[Document | Documents]:
    """Documents of the text column, see `documents_of`. Pages with checksums are checked.

    The file is one bad record if it has no such column, or several of that name, or is damaged. Its
    table of contents is at the end, so a pipe or a compressed file is unpacked first.
    """
    with arrow_needed():
        from pyarrow import parquet

    with at_any_place(stream, (PARQUET_MAGIC,)) as (placed, size):

        def batches() -> Iterator[Any]:
            with opened_as("a Parquet file", (PARQUET_MAGIC,), placed) as opened:
                file = parquet.ParquetFile(opened, **HOW)
            return batches_of(opened, file, wanted(file.schema_arrow, source))

        yield from documents_of(batches, size, source)
