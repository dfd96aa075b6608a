"""A .gz file: one member after the other, and what is whole of a damaged one.

    1f 8b 08 ...    header
    ...             deflated bytes
    8 bytes         checksum and length of what they hold
    1f 8b 08 ...    the next member; zeros may stand in front of it

gzip.GzipFile loses what it has read before in the read that meets damage, and gives the last bytes
of a member before it compares the checksum. Here

1. all bytes are given that can be decompressed before damage, then the error is raised;
2. the last bytes of a member, up to twice `HELD_BYTES`, are given once its checksum is right;
3. after an error `resume` goes on at the next member that begins as the caller expects.
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Callable
from typing import Any

GZIP_MAGIC = b"\x1f\x8b"

WINDOW = 31
"""Of zlib: a gzip header, and the checksum and length at the end."""

PIECE_BYTES = 1 << 14
"""Of a file that are given to zlib at once: it hands the rest back as a copy."""

HELD_BYTES = 1 << 15

RECENT_BYTES = 1 << 20
"""Of a damaged member, the last compressed ones that are searched for the next member: what they
were decompressed to may have been wrong for a while before that was noticed."""

_START = GZIP_MAGIC + b"\x08"

_TRIAL_BYTES = 1 << 16
"""Compressed bytes of a member that may be one, enough for its header and `_TRIAL_TEXT` bytes."""
_TRIAL_TEXT = 4096


class Damaged(Exception):
    """Compressed bytes are not what they should be."""

    def __init__(self, reason: str, remedy: str | None = None) -> None:
        super().__init__(reason)
        self.remedy = remedy


class GzipReader(io.RawIOBase):
    """The decompressed bytes."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self._member: Any = None
        self._compressed = b""
        """Read from the file, and not yet given to zlib; they end at `read_bytes`."""
        self.read_bytes: int = 0
        """Of the file."""
        self._fed = bytearray()
        """The last compressed bytes that the member was given."""
        self._held = b""
        self._text = memoryview(b"")
        self._error: type[Exception] | None = None
        self._reason = ""
        """Raised as a new error each time: one that was raised refers to what is read here."""
        self._first = True

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        size, room = 0, len(buffer)
        while size < room:
            if not self._text and self._error is None:
                self._text = memoryview(self._next())
            if not self._text:
                if self._error is not None and not size:
                    raise self._error(self._reason)
                break
            some = self._text[: room - size]
            buffer[size : size + len(some)] = some
            self._text = self._text[len(some) :]
            size += len(some)
        return size

    def resume(self, begins: Callable[[bytes], bool]) -> int | None:
        """Goes on behind damage, at a member whose text begins so. Returns its place in the file.

        None, and nothing more is read, if there is no such member.
        """
        ahead = (self._fed + self._compressed)[1:]
        self._fed.clear()
        self._held, self._text = b"", memoryview(b"")
        while True:
            at = ahead.find(_START)
            while len(ahead) - max(at, 0) < _TRIAL_BYTES and (piece := self._piece()):
                ahead += piece
            if at < 0:
                at = ahead.find(_START)
            if at < 0:
                if len(ahead) < _TRIAL_BYTES:
                    return None
                del ahead[: -len(_START)]
                continue
            if self._is_member(bytes(ahead[at : at + _TRIAL_BYTES]), begins):
                self._compressed, self._member, self._error = bytes(ahead[at:]), None, None
                return self.read_bytes - len(self._compressed)
            del ahead[: at + 1]

    def _is_member(self, data: bytes, begins: Callable[[bytes], bool]) -> bool:
        try:
            return begins(zlib.decompressobj(WINDOW).decompress(data, _TRIAL_TEXT))
        except zlib.error:
            return False

    def _piece(self) -> bytes:
        piece: bytes = self._file.read(PIECE_BYTES)
        self.read_bytes += len(piece)
        return piece

    def _next(self) -> bytes:
        """The next bytes of a member; none at the end of the file, or at an error."""
        while self._error is None and (self._member is not None or self._begin()):
            piece = self._compressed or self._piece()
            held, self._held = self._held, b""
            text = self._inflated(piece)
            if text is None:  # all bytes are there, and others than they were
                return b""
            if self._error is not None:
                return held + text
            if self._member.eof:
                self._compressed, self._member = self._member.unused_data, None
                if held or text:
                    return held + text
                continue
            self._compressed = self._member.unconsumed_tail
            if not piece and not text:
                self._error = EOFError
                self._reason = "the file ends within a member"
                return held
            self._held = text or held
            if held and text:
                return held
        return b""

    def _inflated(self, piece: bytes) -> bytes | None:
        """What the member makes of more compressed bytes; at an error what it makes before that.

        None if its checksum is wrong.
        """
        member = self._member
        before = member.copy() if self._fed else None
        try:
            text: bytes = member.decompress(piece, HELD_BYTES)
        except zlib.error as error:
            return self._broken(before or zlib.decompressobj(WINDOW), piece, error)
        if not member.eof:
            if len(self._fed) > 2 * RECENT_BYTES:
                del self._fed[:-RECENT_BYTES]
            self._fed += piece[: len(piece) - len(member.unconsumed_tail)]
        return text

    def _broken(self, member: Any, piece: bytes, error: zlib.error) -> bytes | None:
        parts, at = [], 0
        for at in range(len(piece)):
            try:
                parts.append(member.decompress(piece[at : at + 1]))
            except zlib.error:
                break
        self._compressed = piece
        self._damage(str(error), self.read_bytes - len(piece) + at)
        wrong = "incorrect data check" in str(error) or "incorrect length check" in str(error)
        return None if wrong else b"".join(parts)

    def _damage(self, what: str, place: int) -> None:
        self._error, self._reason = Damaged, f"{what} (compressed byte {place:,})"

    def _begin(self) -> bool:
        """Goes to the next member; False at the end of the file, or where no member follows."""
        piece = self._compressed
        self._fed.clear()
        while True:
            if not self._first:
                piece = piece.lstrip(b"\0")
            if len(piece) >= len(GZIP_MAGIC):
                break
            more = self._piece()
            if not more:
                break
            piece += more
        self._compressed = piece
        if not piece and not self._first:
            return False
        if not piece.startswith(GZIP_MAGIC):
            what = "not a gzip file" if self._first else "what follows is not a gzip member"
            self._damage(what, self.read_bytes - len(piece))
            return False
        self._first = False
        self._member = zlib.decompressobj(WINDOW)
        return True
