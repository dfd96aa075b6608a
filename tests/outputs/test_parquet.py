"""Parquet: what readers find in it, how much is in memory, and what ends early."""

from __future__ import annotations

import gc
import io
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simindex.errors import MissingExtra
from simindex.outputs import parquet as parquet_module
from simindex.outputs.columns import Schema
from simindex.outputs.parquet import write_parquet

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

SCHEMA: Schema = {
    "query": "text", "id": "uint64", "key": "bytes", "distance": "uint16", "keep": "bool",
    "size": "int64", "weights": "float32s",
}


class Pipe(io.RawIOBase):
    """A stream that goes forward only, and takes a few bytes of each write."""

    def __init__(self) -> None:
        self.bytes = bytearray()
        self.writes = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        part = bytes(memoryview(data)[:1000])
        self.bytes += part
        self.writes += 1
        return len(part)


def read(stream: Pipe) -> Any:
    return parquet.read_table(io.BytesIO(bytes(stream.bytes)), page_checksum_verification=True)


def test_columns_keep_their_names_types_and_values() -> None:
    stream = Pipe()
    with write_parquet(stream, SCHEMA) as write:
        write({
            "query": ["é", None], "id": np.array([2**64 - 1, 0], np.uint64), "key": [b"\xff", b""],
            "distance": np.array([0, 7], np.uint16), "keep": np.array([True, False]),
            "size": [1, 2**62], "weights": [[1.5, -0.25], None],
        })
        write({
            "query": ["a\udcff"], "id": [1], "key": [None], "distance": [1], "keep": [True],
            "size": [1], "weights": [[]],
        })
    table = read(stream)
    assert [(field.name, str(field.type)) for field in table.schema] == [
        ("query", "string"), ("id", "uint64"), ("key", "binary"), ("distance", "uint16"),
        ("keep", "bool"), ("size", "int64"), ("weights", "list<element: float>"),
    ]
    assert list(zip(*table.to_pydict().values(), strict=True)) == [
        ("é", 2**64 - 1, b"\xff", 0, True, 1, [1.5, -0.25]),
        (None, 0, b"", 7, False, 2**62, None), ("a\\udcff", 1, None, 1, True, 1, []),
    ]


def test_no_rows_are_a_table_of_no_rows() -> None:
    stream = Pipe()
    with write_parquet(stream, SCHEMA):
        pass
    assert (read(stream).num_rows, read(stream).column_names) == (0, list(SCHEMA))


@pytest.mark.parametrize("limit", ["GROUP_ROWS", "GROUP_BYTES"])
def test_a_row_group_ends_with_the_rows_that_fill_it(
    monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    monkeypatch.setattr(parquet_module, limit, {"GROUP_ROWS": 2500, "GROUP_BYTES": 20_000}[limit])
    stream = Pipe()
    with write_parquet(stream, {"id": "uint64"}) as write:
        written = []
        for start in range(0, 10_000, 1000):
            write({"id": np.arange(start, start + 1000, dtype=np.uint64)})
            written.append(len(stream.bytes))
    assert written[1] < written[2], "the first group is handed over before the last one is there"
    file = parquet.ParquetFile(io.BytesIO(bytes(stream.bytes)))
    groups = [file.metadata.row_group(at).num_rows for at in range(file.num_row_groups)]
    assert sum(groups) == 10_000
    assert max(groups) <= 3000 and len(groups) >= 4
    assert file.read()["id"].to_pylist() == list(range(10_000))


def test_memory_does_not_grow_with_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet_module, "GROUP_BYTES", 1 << 20)
    before = pa.total_allocated_bytes()
    most = 0
    with (tempfile_of_nothing()) as stream, write_parquet(stream, {"key": "text"}) as write:
        tracemalloc.start()
        for _ in range(64):
            write({"key": ["x" * 100] * 10_000})
            most = max(most, pa.total_allocated_bytes() - before)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert most < 8 << 20, "64 MB of keys were written"
    assert peak < 8 << 20


def tempfile_of_nothing() -> Any:
    return Path("/dev/null").open("wb")


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError, BrokenPipeError])
def test_what_ends_early_is_no_parquet_file(error: type[BaseException]) -> None:
    stream = Pipe()
    with pytest.raises(error), write_parquet(stream, {"id": "uint64"}) as write:
        write({"id": [1]})
        raise error
    assert b"PAR1" not in bytes(stream.bytes[4:])


@pytest.mark.slow
def test_an_interrupt_while_the_writer_is_made_leaves_no_parquet_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It may come when pyarrow has made its writer, which then ends the file when it goes away."""
    made = parquet.ParquetWriter

    def interrupted(*args: Any, **named: Any) -> Any:
        made(*args, **named)
        raise KeyboardInterrupt

    monkeypatch.setattr(parquet, "ParquetWriter", interrupted)
    stream = Pipe()
    with pytest.raises(KeyboardInterrupt), write_parquet(stream, {"id": "uint64"}):
        pass
    gc.collect()
    assert b"PAR1" not in bytes(stream.bytes[4:])


def test_an_error_of_the_stream_is_raised_as_it_is() -> None:
    class Gone(Pipe):
        def write(self, data: Any) -> int:
            if len(self.bytes) > 2000:
                raise BrokenPipeError(32, "Broken pipe")
            return super().write(data)

    stream = Gone()
    with pytest.raises(BrokenPipeError), write_parquet(stream, {"id": "uint64"}) as write:
        write({"id": np.arange(100_000, dtype=np.uint64)})
    assert b"PAR1" not in bytes(stream.bytes[4:])


def test_without_pyarrow_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    told = r"pip install 'simindex\[arrow\]'"
    with pytest.raises(MissingExtra, match=told), write_parquet(Pipe(), SCHEMA):
        pass
