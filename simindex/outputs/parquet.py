"""Parquet: row groups of bounded size, written one after the other, also into a pipe.

The table of contents comes last, so a file without it is not complete, and readers say so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO

from simindex.outputs.columns import Columns, Kind, Schema, Write, encodable

if TYPE_CHECKING:
    from numpy.typing import NDArray

GROUP_ROWS, GROUP_BYTES = 1 << 20, 1 << 26
"""A row group ends with the rows that reach one of both."""


def load() -> tuple[Any, Any]:
    """pyarrow and its Parquet; MissingExtra where it is not installed."""
    from simindex.inputs.extras import needed  # with all readers, which other outputs do not need

    with needed("Parquet", extra="arrow"):
        import pyarrow as pa
        from pyarrow import parquet
    return pa, parquet


@contextmanager
def write_parquet(stream: BinaryIO, schema: Schema) -> Iterator[Write]:
    """Writes rows in groups, and the table of contents on a clean exit alone."""
    pa, parquet = load()
    types = {
        "text": pa.string(), "bytes": pa.binary(), "bool": pa.bool_(), "uint64": pa.uint64(),
        "int64": pa.int64(), "uint16": pa.uint16(), "float64": pa.float64(),
        "float32s": pa.list_(pa.float32()),
    }
    fields = pa.schema([(name, types[kind]) for name, kind in schema.items()])
    sink = _Sink(stream)
    file = parquet.ParquetWriter(
        pa.PythonFile(sink, mode="w"), fields, compression="zstd", write_page_checksum=True
    )
    group = _Group(pa, file, sink, fields, schema)
    yield group.add
    group.end()
    file.close()
    sink.hand_over()


class _Group:
    """The rows that are not written yet."""

    def __init__(self, pa: Any, file: Any, sink: _Sink, fields: Any, schema: Schema) -> None:
        self._pa, self._file, self._sink = pa, file, sink
        self._fields, self._schema = fields, schema
        self._tables: list[Any] = []
        self._rows = self._bytes = 0

    def add(self, columns: Columns) -> None:
        """Adds rows, and writes the group if it is full."""
        arrays = [
            _array(self._pa, columns[field.name], field.type, self._schema[field.name])
            for field in self._fields
        ]
        table = self._pa.Table.from_arrays(arrays, schema=self._fields)
        self._tables.append(table)
        self._rows, self._bytes = self._rows + len(table), self._bytes + table.nbytes
        if self._rows >= GROUP_ROWS or self._bytes >= GROUP_BYTES:
            self.end()

    def end(self) -> None:
        """Writes the group."""
        if self._rows:
            group = self._pa.concat_tables(self._tables)
            self._tables.clear()
            self._file.write_table(group, row_group_size=self._rows)
            self._sink.hand_over()
            self._rows = self._bytes = 0


def _array(pa: Any, column: NDArray[Any] | Sequence[Any], type_: Any, kind: Kind) -> Any:
    try:
        return pa.array(column, type_)
    except UnicodeEncodeError:
        if kind != "text":
            raise
        return pa.array([None if text is None else encodable(text) for text in column], type_)


class _Sink:
    """Keeps what pyarrow writes until it is handed over to a stream, which only goes forward.

    A writer ends its file also when it goes away, as after an interrupt: that is never handed over.
    """

    closed = False

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._kept: list[bytes] = []
        self._at = 0

    def write(self, data: Any) -> int:
        kept = bytes(data)
        self._kept.append(kept)
        self._at += len(kept)
        return len(kept)

    def tell(self) -> int:
        return self._at

    def flush(self) -> None:
        """There is nothing to do before it is handed over."""

    def close(self) -> None:
        """The stream is its owner's to close."""

    def hand_over(self) -> None:
        """Writes what was kept."""
        for data in self._kept:
            left = memoryview(data)
            while len(left):
                left = left[self._stream.write(left) :]  # a part, where Python does not buffer it
        self._kept.clear()
        self._stream.flush()
