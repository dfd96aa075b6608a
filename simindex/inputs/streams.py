"""Bytes of a file, decompressed as they are read, and their lines, at bounded memory.

A decompressor that trusts its input can be made to fill the machine: a .gz expands up to
1,000-fold, a .xz 7,000-fold, a .zst 30,000-fold, a .bz2 further. Here nothing but one line, at most
as long as the limit, is ever held. A .zst is fed in slices so small that none can expand beyond
`SLICE_BYTES` * 32 KiB, and of a .xz or .bz2 no more is decompressed than is read.
"""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import os
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

from simindex.inputs.extras import needed

STDIN = "-"
BUFFER_BYTES = 1 << 17
"""Read of a file at once: so much that counting the bytes takes no time."""

SLICE_BYTES = 2048
"""Compressed .zst bytes given to the decompressor at once. Its densest block is 4 bytes for
128 KiB, so one slice yields at most 64 MiB; larger slices were not measurably faster."""

MAX_WINDOW_BYTES = 1 << 31
"""Files made with `zstd --long=31` need it; memory is touched only as far as the text reaches."""

LARGE_WINDOW_BYTES = 1 << 27
MAX_EXPANSION = 1000
"""A .zst whose window is larger must not expand further than so many times beyond as many bytes: a
few kilobytes would take 2 GiB of memory. No bound is needed on others, nor on .gz."""


MAX_XZ_BYTES = 1 << 27
"""Memory to decompress a .xz; `xz -9` takes 65 MiB. A small file may ask for 4 GiB."""

COMPRESSIONS: dict[str, tuple[bytes, ...]] = {
    ".gz": (b"\x1f\x8b",), ".zst": (b"\x28\xb5\x2f\xfd",), ".xz": (b"\xfd7zXZ\0",),
    ".bz2": tuple(b"BZh%d1AY&SY" % level for level in range(1, 10)),
}
"""Suffixes, and the first bytes of such files."""

MAGIC_BYTES = 10
"""Most of these."""


class Unreadable(Exception):
    """A file cannot be opened, or its bytes end or break off; the message says how."""

    def __init__(self, reason: str, line: int | None = None) -> None:
        super().__init__(reason)
        self.line = line


class _Damaged(Exception):
    """Compressed bytes are not what they should be."""


BROKEN_OFF = EOFError, zlib.error, _Damaged, OSError
"""What reading of a stream raises where its bytes end or break off."""


@contextmanager
def open_bytes(
    path: str, read: Callable[[int], None] | None = None, *, stdin_copy: Path | None = None
) -> Iterator[BinaryIO]:
    """The decompressed bytes of a file, or of standard input for `-`, or of a copy of that.

    Compression is told by the suffix; by the first bytes for standard input. `read` is told how
    many bytes of a file were read, as they are on the disk: at the end its size, also of a file
    that was not read to its end. Raises Unreadable when the file cannot be opened, MissingExtra for
    .zst without its library.
    """
    if path == STDIN and stdin_copy is None:
        yield _standard_input()
        return
    try:
        raw = _CountedFile(str(stdin_copy), None) if path == STDIN else _CountedFile(path, read)
    except OSError as error:
        raise Unreadable(f"cannot be opened: {error.strerror or error}") from error
    with io.BufferedReader(raw, BUFFER_BYTES) as file:
        compression = _compression_of_bytes(file) if path == STDIN else compression_of(path)
        yield _decompressed(file, compression)


class _CountedFile(io.FileIO):
    """A file that knows how much of it was read."""

    def __init__(self, path: str, read: Callable[[int], None] | None) -> None:
        super().__init__(path)
        self._read = read or (lambda size: None)
        self._left = os.fstat(self.fileno()).st_size

    def readinto(self, buffer: Any) -> int:
        size = super().readinto(buffer) or 0
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
        if not hasattr(buffer, "peek"):
            buffer = io.BufferedReader(buffer)
        _opened = sys.stdin.buffer, _decompressed(buffer, _compression_of_bytes(buffer))
    return _opened[1]


def compression_of(path: str) -> str:
    """One of `COMPRESSIONS`, by the suffix of a file; an empty text if it has none of them."""
    suffix = Path(path).suffix.lower()
    return suffix if suffix in COMPRESSIONS else ""


def require_zstandard() -> Any:
    """The zstandard module; MissingExtra names how to get it."""
    with needed("reading .zst files", extra="zst"):
        import zstandard

    return zstandard


def lines(stream: BinaryIO, limit: int) -> Iterator[tuple[int, bytes | None]]:
    """Numbered lines with their line ends; None instead of a line longer than `limit` bytes.

    Only ``\\n`` ends a line. Raises Unreadable with the number of the line that was being read.
    """
    number = 0
    readline = stream.readline
    try:
        while True:
            number += 1
            line = readline(limit + 1)
            if not line:
                return
            if len(line) <= limit or line.endswith(b"\n"):
                yield number, line
                continue
            yield number, None
            rest = b" "
            while rest and not rest.endswith(b"\n"):
                rest = readline(1 << 20)
    except BROKEN_OFF as error:
        raise _unreadable(error, number) from error


def whole(stream: BinaryIO, limit: int) -> bytes:
    """All bytes, but at most one more than `limit`; Unreadable as `lines`."""
    return _reading(lambda: stream.read(limit + 1), None)


def exactly(stream: BinaryIO, size: int) -> bytes:
    """So many bytes, or fewer where the stream ends; Unreadable as `lines`."""
    parts: list[bytes] = []
    while size > 0:
        part = some(stream, size)
        if not part:
            break
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


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
    if isinstance(error, OSError) and not isinstance(error, gzip.BadGzipFile):
        return Unreadable(f"cannot be read: {error.strerror or error}", line)
    return Unreadable(f"damaged compressed data: {error}", line)


def _compression_of_bytes(stream: Any) -> str:
    peek = getattr(stream, "peek", None)
    head = bytes(peek(MAGIC_BYTES)[:MAGIC_BYTES]) if peek is not None else b""
    return next((name for name, magics in COMPRESSIONS.items() if head.startswith(magics)), "")


def _decompressed(file: Any, compression: str) -> BinaryIO:
    if compression == ".gz":
        # gzip.GzipFile takes a file of no bytes for a whole one; a valid .gz has a header at least.
        if not file.peek(1):
            raise Unreadable("truncated: the file is empty")
        return cast(BinaryIO, gzip.GzipFile(fileobj=file, mode="rb"))
    if compression == ".zst":
        return io.BufferedReader(_ZstReader(file), 1 << 16)
    if compression:
        return io.BufferedReader(_StreamsReader(file, compression), 1 << 16)
    return cast(BinaryIO, file)


def _decompressor_of_xz() -> Any:
    return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MAX_XZ_BYTES)


_DECOMPRESSORS: dict[str, Callable[[], Any]] = {
    ".xz": _decompressor_of_xz, ".bz2": bz2.BZ2Decompressor,
}


class _StreamsReader(io.RawIOBase):
    """One stream of a .xz or .bz2 after the other; one that is open at the end was cut."""

    # The readers of the library have no limit of memory, and call damage an error of the system.

    def __init__(self, file: Any, compression: str) -> None:
        self._file, self._new = file, _DECOMPRESSORS[compression]
        self._padded = compression == ".xz"
        """Whether zeros may follow a stream."""
        self._decompressor = self._new()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while True:
            piece = b""
            if self._decompressor.eof:
                piece = self._next_stream()
                if not piece:
                    return 0
            elif self._decompressor.needs_input:
                piece = self._file.read(io.DEFAULT_BUFFER_SIZE)
                if not piece:
                    raise EOFError("the file ends within a stream")
            try:
                text = self._decompressor.decompress(piece, len(buffer))
            except lzma.LZMAError as error:
                raise _Damaged(_of_xz(error)) from error
            except (OSError, ValueError) as error:
                raise _Damaged(str(error)) from error
            if text:
                buffer[: len(text)] = text
                return len(text)

    def _next_stream(self) -> bytes:
        """The first bytes of a stream that follows; none at the end of the file."""
        piece: bytes = self._decompressor.unused_data
        while True:
            if self._padded:
                piece = piece.lstrip(b"\0")
            if piece:
                break
            piece = self._file.read(io.DEFAULT_BUFFER_SIZE)
            if not piece:
                return b""
        self._decompressor = self._new()
        return piece


def _of_xz(error: lzma.LZMAError) -> str:
    if "memory usage limit" in str(error).lower():
        return (
            f"takes more than {MAX_XZ_BYTES >> 20} MiB of memory: decompress it yourself if it is "
            "to be trusted"
        )
    return str(error)


class _ZstReader(io.RawIOBase):
    # The library's own stream reader ends in silence where a truncated file does, so frames are
    # followed here: a frame that is open at the end of the file was cut.
    def __init__(self, file: Any) -> None:
        self._zstandard = require_zstandard()
        self._decompressor = self._zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW_BYTES)
        self._file = file
        self._frame: Any = None
        self._compressed = b""
        self._text = memoryview(b"")
        self._frames = 0
        self._read_bytes = self._text_bytes = 0
        self._large = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._text:
            piece = self._compressed[:SLICE_BYTES] or self._file.read(SLICE_BYTES)
            self._compressed = self._compressed[SLICE_BYTES:]
            if not piece:
                if self._frame is not None or self._frames == 0:
                    raise EOFError("the file ends within a frame")
                return 0
            self._text = memoryview(self._decompress(piece))
            self._read_bytes += len(piece)
            self._text_bytes += len(self._text)
            if (
                self._large and self._text_bytes > LARGE_WINDOW_BYTES
                and self._text_bytes > MAX_EXPANSION * self._read_bytes
            ):
                raise _Damaged(
                    f"expands more than {MAX_EXPANSION:,} times, in a window of more than "
                    f"{LARGE_WINDOW_BYTES >> 20} MiB: decompress it yourself if it is to be trusted"
                )
        size = min(len(buffer), len(self._text))
        buffer[:size] = self._text[:size]
        self._text = self._text[size:]
        return size

    def _window(self, head: bytes) -> int:
        """What the frame that begins here asks for; MAX_WINDOW_BYTES if its header is not whole."""
        try:
            return int(self._zstandard.get_frame_parameters(head).window_size)
        except self._zstandard.ZstdError:
            return MAX_WINDOW_BYTES

    def _decompress(self, piece: bytes) -> bytes:
        if self._frame is None:
            self._frame = self._decompressor.decompressobj()
            self._large |= self._window(piece) > LARGE_WINDOW_BYTES
        try:
            text: bytes = self._frame.decompress(piece)
        except self._zstandard.ZstdError as error:
            raise _Damaged(str(error)) from error
        if self._frame.eof:
            self._compressed = self._frame.unused_data + self._compressed
            self._read_bytes -= len(self._frame.unused_data)
            self._frame = None
            self._frames += 1
        return text
