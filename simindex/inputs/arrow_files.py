"""Arrow files and streams (Feather, IPC), told by their first bytes: a batch in memory at a time.

    file      ARROW1 | stream | table of contents | ARROW1
    stream    schema, dictionaries and batches | end    several may follow each other

A file is read as the stream that is in it, so that a damaged table of contents loses no rows in
silence. A stream that does not end with its mark was cut. Files of polars do not begin with a
stream: their batches are read where the table of contents says.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

from simindex.inputs.arrow_messages import Messages, blocks_of
from simindex.inputs.column_files import (
    arrow_needed,
    documents_of,
    opened_as,
    top_of,
    wanted,
)
from simindex.inputs.document import Document, Source
from simindex.inputs.document_columns import Documents
from simindex.inputs.magics import ARROW_MAGIC, STREAM_MAGIC
from simindex.inputs.streams import Unreadable
from simindex.inputs.unpacked_files import at_any_place

MAGICS = ARROW_MAGIC, STREAM_MAGIC

FILE_HEAD_BYTES = 8
"""Of an Arrow file, before the stream that it holds."""

PIECE_BYTES = 1 << 20
"""Read at once of what follows a stream."""


def read_arrow(stream: BinaryIO, source: Source) -> Iterator[Document | Documents]:
    """Documents of the text column, see `documents_of`."""
    with arrow_needed():
        import pyarrow  # noqa: F401 - so that a missing one is told at once

    with at_any_place(stream, MAGICS) as (placed, size):

        def batches() -> Iterator[Any]:
            with opened_as("an Arrow file", MAGICS, placed) as opened:
                return _parts(opened, size, source)

        yield from documents_of(batches, size, source)


def _parts(opened: Any, size: int, source: Source) -> Iterator[Any]:
    """Batches of an Arrow file, or of streams, of the columns to read."""
    from pyarrow import ArrowException, ipc

    messages = Messages(opened, size)
    head = opened.read(len(ARROW_MAGIC))
    opened.seek(0)
    if head != ARROW_MAGIC:
        return _of_streams(opened, messages, source)
    file = ipc.open_file(opened)
    columns = _indices(file.schema, source)
    opened.seek(FILE_HEAD_BYTES)
    try:
        ipc.read_schema(opened)
    except (ArrowException, OSError):
        return _of_contents(opened, messages, file, columns, size)
    opened.seek(FILE_HEAD_BYTES)
    return _of_file(opened, messages, file.num_record_batches, columns)


def _of_file(
    opened: Any, messages: Messages, listed: int, columns: Sequence[int]
) -> Iterator[Any]:
    """Batches of an Arrow file; Unreadable where its table of contents lists others."""
    found = 0
    for batch in _of_stream(opened, messages):
        found += 1
        yield batch.select(columns)
    if found != listed:
        raise Unreadable(
            f"damaged: it holds {found:,} batches, and its table of contents lists {listed:,}"
        )


def _of_contents(
    opened: Any, messages: Messages, file: Any, columns: Sequence[int], size: int
) -> Iterator[Any]:
    """Batches of an Arrow file by its table of contents, each looked at before it is read."""
    end = size - len(ARROW_MAGIC)
    opened.seek(end - 4)
    length = int.from_bytes(opened.read(4), "little")
    opened.seek(max(0, end - 4 - length))
    dictionaries, batches = blocks_of(opened.read(length))
    for place in dictionaries:
        messages.look_at(place)
    for number, place in enumerate(batches):
        messages.look_at(place)
        yield file.get_batch(number).select(columns)


def _of_stream(opened: Any, messages: Messages) -> Iterator[Any]:
    """Batches of a stream, each looked at before it is read. The file is behind the stream then."""
    from pyarrow import ipc

    parts = ipc.open_stream(opened)
    while messages.look():
        yield parts.read_next_batch()


def _of_streams(opened: Any, messages: Messages, source: Source) -> Iterator[Any]:
    """Batches of Arrow streams, one after the other, and nothing but zeros behind them."""
    from pyarrow import ipc

    def batches(columns: Sequence[int]) -> Iterator[Any]:
        while True:
            for batch in _of_stream(opened, messages):
                yield batch.select(columns)
            at = opened.tell()
            if opened.read(len(STREAM_MAGIC)) != STREAM_MAGIC:
                break
            opened.seek(at)
            columns = _indices(ipc.read_schema(opened), source)
            opened.seek(at)
        opened.seek(at)
        while piece := opened.read(PIECE_BYTES):
            if piece.strip(b"\0"):
                raise Unreadable("damaged: other bytes follow its stream")

    first = _indices(ipc.read_schema(opened), source)
    opened.seek(0)
    return batches(first)


def _indices(schema: Any, source: Source) -> list[int]:
    """The columns to read, by their places."""
    names = list(schema.names)
    tops = {top_of(name, names) for name in wanted(schema, source)}
    return [at for at, name in enumerate(names) if name in tops]
