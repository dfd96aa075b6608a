"""The first read of a stream, which the format is recognised by.

    pipe, web server    3 bytes | 1 byte | 65,536 bytes | ...
    first read          until it has HEAD_BYTES, or a line of text, or the stream ends

What writes to a pipe may write a few bytes first. A line of text is not kept waiting for the next.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

from simindex.inputs.binary_data import HEAD_BYTES, is_text


def first_read(some: Callable[[Any], int | None], buffer: Any) -> int:
    """How many bytes a first read has put into a buffer.

    `some` puts what comes next into a buffer, and returns how many bytes that is.
    """
    view = memoryview(buffer)[:HEAD_BYTES]
    size = some(buffer) or 0
    while 0 < size < len(view) and not _has_line(bytes(view[:size])):
        more = some(view[size:])
        if not more:
            break
        size += more
    return size


def _has_line(head: bytes) -> bool:
    return b"\n" in head and is_text(head)


class PipedInput(io.RawIOBase):
    """Standard input that cannot be read again, from where it is. It is not closed with this."""

    def __init__(self, stream: Any) -> None:
        self._some: Callable[[Any], int | None] = getattr(stream, "readinto1", stream.readinto)
        self._first = True

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        if self._first:
            self._first = False
            return first_read(self._some, buffer)
        return self._some(buffer)
