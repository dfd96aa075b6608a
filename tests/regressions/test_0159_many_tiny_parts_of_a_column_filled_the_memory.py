"""Pages of a Parquet file and buffers of an Arrow message were listed before they were added up:
each took some 100 bytes of memory, and may take 16 of the file."""

from __future__ import annotations

import io
import struct
import tracemalloc
from collections.abc import Callable

import pytest

from simindex.inputs.arrow_messages import Messages
from simindex.inputs.parquet_pages import chunk_at
from simindex.inputs.streams import Unreadable

MANY = 50_000


def grown_by(call: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def page(kind: int, values: int = 0, size: int = 0) -> bytes:
    """A page without bytes; numbers are twice as large in Thrift."""
    own = b"\x2c\x15" + bytes([2 * values]) + b"\x15\x00\x15\x06\x15\x06\x00" if not kind else b""
    return b"\x15" + bytes([2 * kind]) + b"\x15" + bytes([2 * size]) + b"\x15\x00" + own + b"\x00"


def test_pages_are_added_up_one_by_one() -> None:
    data = page(2, size=5) + page(0, values=1, size=7) * MANY
    held: list[object] = []
    grown = grown_by(lambda: held.append(chunk_at(io.BytesIO(data), 0, len(data))))
    assert grown < len(data) + (1 << 19)
    assert held == [(5 + 7 * MANY, 7, 5, False, MANY, True, 0)]


@pytest.mark.parametrize("pages", [[0, 2], [2, 0, 2], [2, 2], [1, 0, 2]])
def test_a_dictionary_comes_first(pages: list[int]) -> None:
    data = b"".join(map(page, pages))
    with pytest.raises(Unreadable, match="dictionary of a column is not its first page"):
        chunk_at(io.BytesIO(data), 0, len(data))


def test_a_column_without_pages_takes_nothing() -> None:
    assert chunk_at(io.BytesIO(b""), 0, 0) == (0, 0, 0, False, 0, True, 0)


def test_buffers_are_added_up_one_by_one() -> None:
    buffers = struct.pack("<I", MANY) + struct.pack("<qq", 0, 0) * MANY
    # root | vtable of the message, message | vtable of the batch, batch | compression | buffers
    listed = struct.pack("<HHHHHH", 12, 20, 0, 4, 8, 12)
    message = struct.pack("<iB3xIq", 12, 3, 24, 0)
    of_batch = struct.pack("<HHHHHH", 12, 12, 0, 0, 4, 8)
    batch = struct.pack("<iII", 12, 16, 4)
    compression = struct.pack("<HHi", 4, 4, 4)
    head = struct.pack("<I", 16) + listed + message + of_batch + batch + compression + buffers
    data = b"\xff\xff\xff\xff" + struct.pack("<i", len(head)) + head
    messages = Messages(io.BytesIO(data), len(data))
    grown = grown_by(messages.look)
    assert grown < 3 * len(data) + (1 << 19)
