"""Messages of an Arrow stream, looked at before they are read: what they take in memory.

    message        FFFFFFFF, length | description, a table | body          older ones lack FFFFFFFF
    table          where its list of fields is, then the fields             (FlatBuffers)
    body           buffers; a compressed one begins with its size once it is decompressed
    end            FFFFFFFF, 0        or 0 alone

pyarrow allocates what a body says before it decompresses it, and a body can be so small that a few
kilobytes fill the machine. Nothing that a description says is believed beyond its bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct, error
from typing import Any, BinaryIO, NamedTuple

from simindex.inputs.magics import STREAM_MAGIC
from simindex.inputs.streams import Unreadable

FREE_BYTES = 1 << 29
"""Decompressed buffers may take so many, however small their stream is."""

MAX_EXPANSION = 100
"""Those that take more may take so many times the bytes of the stream that were read by then. All
buffers of a batch are in memory at once, unlike those of a file that is decompressed as it is read.
"""

MOST_DESCRIBED_BYTES = 1 << 28
"""A longer description is taken for damage."""

_DICTIONARY, _BATCH = 2, 3

_U16, _I32, _U32, _I64 = (Struct("<" + form) for form in "HiIq")
_BUFFER, _BLOCK = Struct("<qq"), Struct("<qi4xq")


class Messages:
    """The messages of a stream, from where its schema ends.

    Parameters
    ----------
    opened : binary file
        Where pyarrow reads the stream, too.
    size : int
        Its bytes.
    """

    def __init__(self, opened: BinaryIO, size: int) -> None:
        self._opened = opened
        self._size = size
        self._dictionaries = 0
        """Bytes that those take which were looked at."""

    def look(self) -> bool:
        """Whether a batch comes, which is then where it was; else the stream is behind its end.

        Raises Unreadable where a message says what is not there, or takes too much.
        """
        start = self._opened.tell()
        while (found := self._looked()) is not None:
            if found.kind == _BATCH:
                self._opened.seek(start)
                return True
            self._opened.seek(found.end)
        return False

    def look_at(self, place: int) -> None:
        """The same of the one message at a place."""
        self._opened.seek(place)
        if self._looked() is None:
            raise Unreadable("damaged: its table of contents leads to no message")

    def _looked(self) -> _Message | None:
        found = self._message()
        if found is None:
            return None
        taken = self._taken(found)
        if self._dictionaries + taken > max(FREE_BYTES, MAX_EXPANSION * found.end):
            raise Unreadable(
                f"a batch expands more than {MAX_EXPANSION} times",
                remedy="write the file again, uncompressed or in smaller batches, if it is to be "
                "trusted",
            )
        if found.kind == _DICTIONARY:
            self._dictionaries += taken
        return found

    def _message(self) -> _Message | None:
        """The message that comes, or None at the end."""
        head = self._opened.read(4)
        if head == STREAM_MAGIC:
            head = self._opened.read(4)
        if len(head) < 4:
            raise Unreadable("truncated: its stream has no end")
        (length,) = _I32.unpack(head)
        if not length:
            return None
        if not 0 < length <= MOST_DESCRIBED_BYTES:
            raise Unreadable(f"damaged: the description of a message has {length:,} bytes")
        held = self._opened.read(length)
        body = self._opened.tell()
        if len(held) < length:
            raise Unreadable("truncated: a message ends within its description")
        try:
            message = _Table(held, _whole(_U32, held, 0))
            kind = message.number(1, "B")
            header, stored = message.table(2), message.number(3, "q")
            if kind == _DICTIONARY:
                header = header and header.table(1)
        except error as damage:
            raise Unreadable("damaged: the description of a message") from damage
        if kind not in (_BATCH, _DICTIONARY) or header is None:
            raise Unreadable("damaged: a message is neither a batch nor a dictionary")
        if not 0 <= stored <= self._size - body:
            raise Unreadable(
                f"truncated: a message has {stored:,} bytes, and {self._size - body:,} are there"
            )
        return _Message(kind, header, body, body + stored)

    def _taken(self, message: _Message) -> int:
        """Bytes that the buffers of a message take once they are decompressed."""
        try:
            if message.batch.table(3) is None:
                return 0
            buffers = message.batch.structures(2, _BUFFER)
        except error as damage:
            raise Unreadable("damaged: the description of a message") from damage
        taken = 0
        for start, length in buffers:
            at = message.body + start
            if start < 0 or length < 0 or at + length > message.end:
                raise Unreadable("damaged: a buffer of a message is not in it")
            if length < _I64.size:
                continue
            self._opened.seek(at)
            (whole,) = _I64.unpack(self._opened.read(_I64.size))
            # -1 says that it is not compressed.
            taken += max(whole, length)
        return taken


def blocks_of(contents: bytes) -> tuple[list[int], list[int]]:
    """Where the dictionaries of a file are, and where its batches are, by its table of contents."""
    try:
        table = _Table(contents, _whole(_U32, contents, 0))
        dictionaries, batches = (
            [int(block[0]) for block in table.structures(field, _BLOCK)] for field in (2, 3)
        )
    except error as damage:
        raise Unreadable("damaged: its table of contents") from damage
    return dictionaries, batches


class _Message(NamedTuple):
    """A dictionary or a batch, and where its body is."""

    kind: int
    batch: _Table
    body: int
    end: int


class _Table(NamedTuple):
    """A table of FlatBuffers in some bytes. struct.error for what is not in them."""

    held: bytes
    at: int

    def _place(self, field: int) -> int | None:
        """Where a field is, None where the table lacks it."""
        listed = self.at - _whole(_I32, self.held, self.at)
        if 4 + 2 * field + 2 > _whole(_U16, self.held, listed):
            return None
        offset = _whole(_U16, self.held, listed + 4 + 2 * field)
        return self.at + offset if offset else None

    def number(self, field: int, form: str) -> int:
        """A whole number, 0 where it is missing."""
        place = self._place(field)
        return 0 if place is None else _whole(Struct("<" + form), self.held, place)

    def table(self, field: int) -> _Table | None:
        """A table within it."""
        place = self._place(field)
        return None if place is None else _Table(
            self.held, place + _whole(_U32, self.held, place)
        )

    def structures(self, field: int, form: Struct) -> Iterator[tuple[Any, ...]]:
        """A list of structures, one at a time: there may be millions."""
        place = self._place(field)
        if place is None:
            return iter(())
        start = place + _whole(_U32, self.held, place)
        count = _whole(_U32, self.held, start)
        held = self.held[start + 4 : start + 4 + count * form.size]
        if len(held) < count * form.size:
            raise error("a list ends beyond the bytes")
        return form.iter_unpack(held)


def _whole(form: Struct, held: bytes, at: int) -> int:
    """A number in some bytes; struct.error if it is not in them."""
    if at < 0:
        raise error("a place before the bytes")
    found: int = form.unpack_from(held, at)[0]
    return found
