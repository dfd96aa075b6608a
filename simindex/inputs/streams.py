"""Bytes of a file, decompressed as they are read, and their lines, at bounded memory.

Nothing but one step of reading and one line, at most as long as the limit, is ever held; see
`decompressors` for compressed files.
"""

from __future__ import annotations

import codecs
import io
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

from simindex.inputs.binary_data import HEAD_BYTES, is_text
from simindex.inputs.first_reads import PipedInput, first_read
from simindex.inputs.gzip_members import Damaged
from simindex.inputs.remote_files import RemoteFile, file_name, is_remote

STDIN = "-"
BUFFER_BYTES = 1 << 17
"""Read of a file at once: so much that counting the bytes takes no time."""

COMPRESSIONS: dict[str, tuple[bytes, ...]] = {
    ".gz": (b"\x1f\x8b",), ".xz": (b"\xfd7zXZ\0",),
    ".zst": (b"\x28\xb5\x2f\xfd", *(b"%c\x2a\x4d\x18" % number for number in range(0x50, 0x60))),
    ".bz2": tuple(b"BZh%d1AY&SY" % level for level in range(1, 10)),
}
"""Suffixes, and the first bytes of such files. Those of a .zst may be of a frame to be skipped."""

MAGIC_BYTES = 10
"""Most of these."""


class Unreadable(Exception):
    """A file cannot be opened, or its bytes end or break off; the message says how."""

    def __init__(self, reason: str, line: int | None = None, remedy: str | None = None) -> None:
        super().__init__(reason)
        self.line = line
        self.remedy = remedy
        """What to do about it, unless that is to skip the file."""


BROKEN_OFF = EOFError, Damaged, OSError
"""What reading of a stream raises where its bytes end or break off."""


@contextmanager
def open_bytes(
    path: str, read: Callable[[int], None] | None = None, *, stdin_copy: Path | None = None
) -> Iterator[BinaryIO]:
    """The decompressed bytes of a file, or of standard input for `-`, or of a copy of that.

    Compression is told by the suffix; by the first bytes for standard input, for a pipe without
    such a suffix, and for a file whose suffix is wrong: they are those of another compression, or
    of a text. `read` is told how many bytes of a file were read, as they are on the disk: at the
    end its size, also of a file that was not read to its end. Raises Unreadable when the file
    cannot be opened, MissingExtra for .zst without its library.
    """
    if path == STDIN and stdin_copy is None:
        yield _standard_input()
        return
    try:
        raw: io.RawIOBase
        if path != STDIN and is_remote(path):
            raw = RemoteFile(path, read)
        else:
            raw = _CountedFile(str(stdin_copy), None) if path == STDIN else _CountedFile(path, read)
    except OSError as error:
        raise Unreadable(f"cannot be opened: {error.strerror or error}") from error
    with io.BufferedReader(raw, BUFFER_BYTES) as file:
        compression = _compression_of_bytes(file) if path == STDIN else _compression(file, path)
        yield _decompressed(file, compression)


class _CountedFile(io.FileIO):
    """A file that knows how much of it was read."""

    def __init__(self, path: str, read: Callable[[int], None] | None) -> None:
        super().__init__(path)
        self._read = read or (lambda size: None)
        self._left = os.fstat(self.fileno()).st_size
        self._first = not self.seekable()  # of a pipe

    def readinto(self, buffer: Any) -> int:
        some = super().readinto
        size = first_read(some, buffer) if self._first else some(buffer) or 0
        self._first = False
        self._count(size)
        return size

    def readall(self) -> bytes:
        data = super().readall()
        self._count(len(data))
        return data

    def close(self) -> None:
        if not self.closed:
            self._count(max(0, self._left))
        super().close()

    def _count(self, size: int) -> None:
        self._left -= size
        self._read(size)


_opened: tuple[Any, BinaryIO] | None = None
"""Standard input and what decompresses it, once it was opened."""


def _standard_input() -> BinaryIO:
    # Opened again it goes on where it was: a decompressor has read ahead.
    global _opened
    if _opened is None or _opened[0] is not sys.stdin.buffer:
        buffer: Any = sys.stdin.buffer
        if not buffer.seekable():
            buffer = io.BufferedReader(PipedInput(buffer), BUFFER_BYTES)
        elif not hasattr(buffer, "peek"):
            buffer = io.BufferedReader(buffer)
        _opened = sys.stdin.buffer, _decompressed(buffer, _compression_of_bytes(buffer))
    return _opened[1]


def compression_of(path: str) -> str:
    """One of `COMPRESSIONS`, by the suffix of a file; an empty text if it has none of them."""
    suffix = suffix_of(file_name(path))
    return suffix if suffix in COMPRESSIONS else ""


def suffix_of(path: str) -> str:
    """The suffix of a file's name, in lower case."""
    return os.path.splitext(path)[1].lower()  # noqa: PTH122 - a tenth of the time of `PurePath`


def lines(stream: BinaryIO, limit: int) -> Iterator[tuple[int, bytes | None]]:
    """Numbered lines, see `line_blocks`."""
    for first, block in line_blocks(stream, limit):
        yield from enumerate(block, first)


def line_blocks(stream: Any, limit: int) -> Iterator[tuple[int, list[bytes | None]]]:
    """Lines with their line ends, those of one step of reading at a time, and the first's number.

    None stands for a line longer than `limit` bytes, and comes before the end of that. Only
    ``\n`` ends a line. Raises Unreadable with the number of the line that was being read.
    """
    blocks = ByteBlocks(stream, limit)
    for block in blocks:
        lines: list[bytes | None] = [None] if block is None else lines_within(block, limit)
        yield blocks.number, lines
        blocks.number += len(lines)


def lines_within(block: bytes, limit: int) -> list[bytes | None]:
    """The lines of a block, None for those that are longer than `limit`."""
    found = io.BytesIO(block).readlines()
    if max(map(len, found), default=0) <= limit:
        return [*found]
    return [_within(line, limit) for line in found]


class ByteBlocks:
    """Whole lines, those of one step of reading at a time.

    None stands for a line that is longer than `limit` for sure, and comes before the end of that;
    otherwise as `line_blocks`. With `most` a step reads twice as much as the one before, up to so
    many bytes, and waits for them: that is for files, whose bytes are all there.
    """

    def __init__(
        self, stream: Any, limit: int, step: int = BUFFER_BYTES, *, most: int = 0
    ) -> None:
        self._stream, self._limit, self._step, self._most = stream, limit, step, most
        self.number: int = 1
        """Of the first line of the next block. Who takes a block adds how many lines it has: they
        are counted where they are read."""

    def __iter__(self) -> Iterator[bytes | None]:
        begun: list[bytes] = []
        size, passing = 0, False
        parts = self._parts()
        while True:
            try:
                data = next(parts, b"")
            except BROKEN_OFF as error:
                raise _unreadable(error, self.number) from error
            if not data:
                break
            if passing:
                end = data.find(b"\n") + 1
                if not end:
                    continue
                data, passing = data[end:], False
            last = data.rfind(b"\n") + 1
            if last:
                yield b"".join((*begun, memoryview(data)[:last]))
                begun, size = [], 0
                data = data[last:]
            begun.append(data)
            size += len(data)
            if size > self._limit:
                yield None
                begun, size, passing = [], 0, True
        if size:
            yield b"".join(begun)

    def _parts(self) -> Iterator[bytes]:
        """What there is, some bytes at a time; those before the stream broke off come first."""
        read, step = getattr(self._stream, "read1", self._stream.read), self._step
        while True:
            parts: list[bytes] = []
            held = 0
            try:
                while held < step and (data := read(step - held)):
                    parts.append(data)
                    held += len(data)
                    if not self._most:
                        break
            except BROKEN_OFF:
                if parts:
                    yield b"".join(parts)
                raise
            if not parts:
                return
            yield parts[0] if len(parts) == 1 else b"".join(parts)
            step = min(self._most, 2 * step) if self._most else step


def _within(line: bytes, limit: int) -> bytes | None:
    return line if len(line) <= limit or len(line) - line.endswith(b"\n") <= limit else None


def whole(stream: BinaryIO, limit: int) -> bytes:
    """All bytes, but at most one more than `limit`; Unreadable as `lines`."""
    return exactly(stream, limit + 1)


def exactly(stream: BinaryIO, size: int) -> bytes:
    """So many bytes, or fewer where the stream ends; Unreadable as `lines`."""
    # In steps: a reader that is asked for 64 MB takes so much memory, for a small file, too.
    parts: list[bytes] = []
    while size > 0 and (part := some(stream, min(size, BUFFER_BYTES))):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def ready(stream: Any, size: int) -> bytes:
    """Up to so many bytes of those that take one step to read; otherwise as `some`.

    What was read before damage is not lost to the step that meets it.
    """
    return _reading(lambda: bytes(getattr(stream, "read1", stream.read)(size)), None)


def some(stream: BinaryIO, size: int) -> bytes:
    """Up to so many bytes, none at the end of the stream; Unreadable as `lines`."""
    return _reading(lambda: stream.read(size), None)


def first_bytes(stream: Any, size: int) -> bytes:
    """Up to `size` bytes that the next read begins with; Unreadable as `lines`."""
    peek = getattr(stream, "peek", None)
    return b"" if peek is None else _reading(lambda: bytes(peek(size)[:size]), None)


def unmarked(data: bytes) -> bytes:
    """The first bytes of a file without the byte order mark."""
    return data.removeprefix(codecs.BOM_UTF8)


def decoded(data: bytes) -> str:
    """UTF-8 text.

    Raises Unreadable that names the byte and its column, or its line when there are several.
    """
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = error.start - data.rfind(b"\n", 0, error.start)
        raise Unreadable(
            f"not UTF-8: byte 0x{data[error.start]:02x} at column {column}", line
        ) from error


def _reading(call: Callable[[], bytes], line: int | None) -> bytes:
    try:
        return call()
    except BROKEN_OFF as error:
        raise _unreadable(error, line) from error


def _unreadable(error: Exception, line: int | None) -> Unreadable:
    if isinstance(error, EOFError):
        return Unreadable(f"truncated: {error}", line)
    if isinstance(error, OSError):
        return Unreadable(f"cannot be read: {error.strerror or error}", line)
    return Unreadable(f"damaged compressed data: {error}", line, getattr(error, "remedy", None))


def _compression(file: Any, path: str) -> str:
    """That of the suffix, unless the first bytes show that it is wrong."""
    named = compression_of(path)
    if not named:
        # A pipe of the shell, such as <(curl ...), has a name that says nothing.
        return "" if file.seekable() else _compression_of_bytes(file)
    head = first_bytes(file, HEAD_BYTES)
    # A file that was cut may end within its first bytes.
    if any(magic.startswith(head[: len(magic)]) for magic in COMPRESSIONS[named]):
        return named
    return _compression_of_bytes(file) or ("" if is_text(head) else named)


def _compression_of_bytes(stream: Any) -> str:
    peek = getattr(stream, "peek", None)
    head = bytes(peek(MAGIC_BYTES)[:MAGIC_BYTES]) if peek is not None else b""
    return next((name for name, magics in COMPRESSIONS.items() if head.startswith(magics)), "")


def _decompressed(file: Any, compression: str) -> BinaryIO:
    # A file of no bytes would be taken for a whole one; a valid .gz has a header at least.
    if compression == ".gz" and not file.peek(1):
        raise Unreadable("truncated: the file is empty")
    if not compression:
        return cast(BinaryIO, file)
    from simindex.inputs.decompressors import decompressed

    return decompressed(file, compression)
