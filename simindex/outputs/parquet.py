"""Parquet: row groups of bounded size, written one after the other, also into a pipe.

The table of contents comes last, so a file without it is not complete, and readers say so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, BinaryIO

from numpy.typing import NDArray

from simindex.inputs.extras import needed
from simindex.outputs.columns import Columns, Kind, Schema, Write, encodable

GROUP_ROWS, GROUP_BYTES = 1 << 20, 1 << 26
"""A row group ends with the rows that reach one of both."""


@contextmanager
def write_parquet(stream: BinaryIO, schema: Schema) -> Iterator[Write]:
    """Writes rows in groups, and the table of contents on a clean exit alone."""
    with needed("Parquet", extra="arrow"):
        import pyarrow as pa
        from pyarrow import parquet
    types = {
        "text": pa.string(), "bytes": pa.binary(), "bool": pa.bool_(), "uint64": pa.uint64(),
        "int64": pa.int64(), "uint16": pa.uint16(), "float32s": pa.list_(pa.float32()),
    }
    fields = pa.schema([(name, types[kind]) for name, kind in schema.items()])
    sink = _Sink(stream)
    file = parquet.ParquetWriter(
        pa.PythonFile(sink, mode="w"), fields, compression="zstd", write_page_checksum=True
    )
    waiting: list[Any] = []
    rows = size = 0

    def end_group() -> None:
        nonlocal rows, size
        if waiting:
            group = pa.concat_tables(waiting)
            waiting.clear()
            file.write_table(group, row_group_size=rows)
            rows = size = 0

    def write(columns: Columns) -> None:
        arrays = [
            _array(pa, columns[field.name], field.type, schema[field.name]) for field in fields
        ]
        nonlocal rows, size
        table = pa.Table.from_arrays(arrays, schema=fields)
        waiting.append(table)
        rows, size = rows + len(table), size + table.nbytes
        if rows >= GROUP_ROWS or size >= GROUP_BYTES:
            end_group()

    try:
        yield write
        end_group()
        file.close()
    finally:
        sink.closed = True  # else the writer ends the file when it goes away
        stream.flush()


def _array(pa: Any, column: NDArray[Any] | Sequence[Any], type_: Any, kind: Kind) -> Any:
    try:
        return pa.array(column, type_)
    except UnicodeEncodeError:
        if kind != "text":
            raise
        return pa.array([None if text is None else encodable(text) for text in column], type_)


class _Sink:
    """A stream that only goes forward, and knows where it is."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream, self._at = stream, 0
        self.closed = False
        """What is written to a closed one goes nowhere."""

    def write(self, data: Any) -> int:
        left = memoryview(data).cast("B")
        size = len(left)
        while len(left) and not self.closed:
            left = left[self._stream.write(left) :]  # a part, where Python does not buffer it
        self._at += size
        return size

    def tell(self) -> int:
        return self._at

    def flush(self) -> None:
        if not self.closed:
            self._stream.flush()

    def close(self) -> None:
        """The stream is its owner's to close."""
