"""Decompressors of .gz, .zst, .xz and .bz2 files: as much as is read, at bounded memory.

A decompressor that trusts its input can be made to fill the machine: a .gz expands up to
1,000-fold, a .xz 7,000-fold, a .zst 30,000-fold, a .bz2 further. A .zst is fed in slices so small
that none can expand beyond `SLICE_BYTES` * 32 KiB, and of the others no more is decompressed than
is read.

Files may consist of several members, one after the other. Those before a damaged one are read.
"""

from __future__ import annotations

import bz2
import io
import lzma
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, BinaryIO, cast

from simindex.inputs.binary_data import HEAD_BYTES
from simindex.inputs.extras import needed
from simindex.inputs.gzip_members import Damaged as Damaged
from simindex.inputs.gzip_members import GzipReader

DECOMPRESS_IT = "decompress it yourself if it is to be trusted"
"""The remedy for what expands too much, or takes too much memory."""

SLICE_BYTES = 2048
"""Compressed .zst bytes given to the decompressor at once. Its densest block is 4 bytes for
128 KiB, so one slice yields at most 64 MiB; larger slices were not measurably faster."""

MAX_WINDOW_BYTES = 1 << 31
"""Files made with `zstd --long=31` need it; memory is touched only as far as the text reaches."""

LARGE_WINDOW_BYTES = 1 << 27
MAX_EXPANSION = 1000
"""A .zst whose window is larger must not expand further than so many times beyond as many bytes: a
few kilobytes would take 2 GiB of memory."""

BOMB_BYTES = 1 << 30
"""No file must expand further than `MAX_EXPANSION` times beyond as many bytes: terabytes of a small
one take hours, if no memory."""

DICTIONARY_MAGIC, ZSTD_MAGIC = b"\x37\xa4\x30\xec", b"\x28\xb5\x2f\xfd"
"""First bytes of a dictionary of zstd, and of a frame."""

DICTIONARY_FRAME = b"\x5d\x2a\x4d\x18"
"""First bytes of the frame in which a .warc.zst has the dictionary of its other frames: then comes
the size in 4 bytes, and the dictionary, which may be compressed itself."""

MAX_DICTIONARY_BYTES = 1 << 24

BLOCK_BYTES, STEP_BYTES = 1 << 21, 1 << 14
"""Of a .bz2, twice the largest block: a damaged one may hold runs that it did not hold before; and
what is decompressed at once of it or of a .xz."""

MAX_XZ_BYTES = 1 << 27
"""Memory to decompress a .xz; `xz -9` takes 65 MiB. A small file may ask for 4 GiB."""


def decompressed(file: Any, compression: str) -> BinaryIO:
    """The bytes of a compressed file; its reads raise `Damaged` or `EOFError`."""
    raw: GzipReader | ZstReader | StreamsReader
    if compression == ".gz":
        raw = GzipReader(file)
    elif compression == ".zst":
        raw = ZstReader(file)
    else:
        raw = StreamsReader(file, compression)
    return cast(BinaryIO, io.BufferedReader(Bounded(raw), 1 << 16))


def resume(stream: Any, begins: Callable[[bytes], bool]) -> int | None:
    """Has a stream that met damage go on at a later member of its .gz; see `GzipReader.resume`."""
    raw = getattr(stream, "raw", None)
    return raw.resume(begins) if isinstance(raw, Bounded) else None


def has_checksums(stream: Any) -> bool:
    """Whether a stream comes of a compression that compares checksums. Those of .zst may have none.
    """
    raw = getattr(stream, "raw", None)
    return isinstance(raw, Bounded) and isinstance(raw.raw, GzipReader | StreamsReader)


def compressed_bytes(stream: Any) -> int | None:
    """How many bytes of a compressed file were read; None of a stream that is not compressed."""
    raw = getattr(stream, "raw", None)
    return raw.raw.read_bytes if isinstance(raw, Bounded) else None


class Bounded(io.RawIOBase):
    """A reader of a compressed file that does not expand for hours.

    Its first read goes on over the ends of members and frames: it gives HEAD_BYTES, if the file has
    so many, so that the format can be recognised by them.
    """

    def __init__(self, raw: GzipReader | ZstReader | StreamsReader) -> None:
        self.raw = raw
        self._text_bytes = 0
        self._error: Callable[[], Exception] | None = None

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        least = min(len(buffer), HEAD_BYTES - self._text_bytes)
        size = self._some(buffer)
        while 0 < size < least:
            try:
                more = self._some(memoryview(buffer)[size:])
            except (Damaged, EOFError):  # the next read raises it
                break
            if not more:
                break
            size += more
        return size

    def _some(self, buffer: Any) -> int:
        if self._error is not None:  # raised again, as long as nobody goes on behind it
            raise self._error()
        try:
            size = self.raw.readinto(buffer)
        except Damaged as error:
            self._error = partial(Damaged, str(error), error.remedy)
            raise
        except EOFError as error:
            place = f"{error} (compressed byte {self.raw.read_bytes:,})"
            self._error = partial(EOFError, place)
            raise self._error() from error
        self._text_bytes += size
        if (
            self._text_bytes > BOMB_BYTES
            and self._text_bytes > MAX_EXPANSION * self.raw.read_bytes
        ):
            self._error = partial(
                Damaged, f"expands more than {MAX_EXPANSION:,} times", DECOMPRESS_IT
            )
            raise self._error()
        return size

    def resume(self, begins: Callable[[bytes], bool]) -> int | None:
        """See `GzipReader.resume`; only a .gz has members that can be found."""
        place = self.raw.resume(begins) if isinstance(self.raw, GzipReader) else None
        if place is not None:
            self._error, self._text_bytes = None, 0
        return place


def require_zstandard() -> Any:
    """The zstandard module; MissingExtra names how to get it."""
    with needed("reading .zst files", extra="zst"):
        import zstandard

    return zstandard


def _decompressor_of_xz() -> Any:
    return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MAX_XZ_BYTES)


_DECOMPRESSORS: dict[str, Callable[[], Any]] = {
    ".xz": _decompressor_of_xz, ".bz2": bz2.BZ2Decompressor,
}


class StreamsReader(io.RawIOBase):
    """One stream of a .xz or .bz2 after the other; one that is open at the end was cut.

    The checksum of a block comes behind it. So the last BLOCK_BYTES of a .bz2 are given once more
    bytes follow, or its stream has ended: lines of a damaged block would each be a bad record.
    """

    # The readers of the library have no limit of memory, and call damage an error of the system.

    def __init__(self, file: Any, compression: str) -> None:
        self._file, self._new = file, _DECOMPRESSORS[compression]
        self._padded = compression == ".xz"
        """Whether zeros may follow a stream."""
        self._most_held = BLOCK_BYTES if compression == ".bz2" else 0
        self._held: deque[bytes] = deque()
        self._held_bytes = 0
        self._text = memoryview(b"")
        self._cut = False
        self._decompressor = self._new()
        self.read_bytes: int = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._text:
            if self._held and (self._held_bytes > self._most_held or self._has_ended()):
                self._text = memoryview(self._held.popleft())
                self._held_bytes -= len(self._text)
            elif self._cut:
                raise EOFError("the file ends within a stream")
            elif (text := self._next()) is None:
                return 0
            elif text:
                self._held.append(text)
                self._held_bytes += len(text)
        size = min(len(buffer), len(self._text))
        buffer[:size] = self._text[:size]
        self._text = self._text[size:]
        return size

    def _has_ended(self) -> bool:
        return self._cut or self._decompressor.eof

    def _next(self) -> bytes | None:
        """The next bytes, perhaps none yet; None at the end of the file."""
        piece = b""
        if self._decompressor.eof:
            piece = self._next_stream()
            if not piece:
                return None
        elif self._decompressor.needs_input:
            piece = self._piece()
            if not piece:
                self._cut = True
                return b""
        try:
            # What a call that fails has decompressed is lost, so it is not much.
            text: bytes = self._decompressor.decompress(piece, STEP_BYTES)
        except lzma.LZMAError as error:
            raise _of_xz(error, self.read_bytes) from error
        except (OSError, ValueError) as error:
            raise Damaged(_near(str(error), self.read_bytes)) from error
        return text

    def _piece(self) -> bytes:
        piece: bytes = self._file.read(io.DEFAULT_BUFFER_SIZE)
        self.read_bytes += len(piece)
        return piece

    def _next_stream(self) -> bytes:
        """The first bytes of a stream that follows; none at the end of the file."""
        piece: bytes = self._decompressor.unused_data
        while True:
            if self._padded:
                piece = piece.lstrip(b"\0")
            if piece:
                break
            piece = self._piece()
            if not piece:
                return b""
        self._decompressor = self._new()
        return piece


def _near(reason: str, read_bytes: int) -> str:
    return f"{reason} (near compressed byte {read_bytes:,})"


def _of_xz(error: lzma.LZMAError, read_bytes: int) -> Damaged:
    reason, remedy = str(error), None
    if "memory usage limit" in reason.lower():
        reason, remedy = f"takes more than {MAX_XZ_BYTES >> 20} MiB of memory", DECOMPRESS_IT
    return Damaged(_near(reason, read_bytes), remedy)


class ZstReader(io.RawIOBase):
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
        self.read_bytes: int = 0
        self._text_bytes = 0
        self._large = False
        self._first = True

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if self._first:
            self._first = False
            self._begin()
        while not self._text:
            piece = self._compressed[:SLICE_BYTES] or self._file.read(SLICE_BYTES)
            self._compressed = self._compressed[SLICE_BYTES:]
            if not piece:
                if self._frame is not None or self._frames == 0:
                    raise EOFError("the file ends within a frame")
                return 0
            self._text = memoryview(self._decompress(piece))
            self.read_bytes += len(piece)
            self._text_bytes += len(self._text)
            if (
                self._large and self._text_bytes > LARGE_WINDOW_BYTES
                and self._text_bytes > MAX_EXPANSION * self.read_bytes
            ):
                raise Damaged(
                    f"expands more than {MAX_EXPANSION:,} times, in a window of more than "
                    f"{LARGE_WINDOW_BYTES >> 20} MiB", DECOMPRESS_IT,
                )
        size = min(len(buffer), len(self._text))
        buffer[:size] = self._text[:size]
        self._text = self._text[size:]
        return size

    def _begin(self) -> None:
        """Reads the dictionary, if the file begins with one."""
        head = self._file.read(8)
        size = int.from_bytes(head[4:], "little")
        if not head.startswith(DICTIONARY_FRAME) or size > MAX_DICTIONARY_BYTES:
            self._compressed = head
            return
        data = b""
        while len(data) < size and (piece := self._file.read(size - len(data))):
            data += piece
        self.read_bytes = len(head) + len(data)
        if len(head) < 8 or len(data) < size:
            raise EOFError("the file ends within a frame")
        self._frames = 1
        try:
            if data.startswith(ZSTD_MAGIC):
                made = self._zstandard.ZstdDecompressor(max_window_size=MAX_DICTIONARY_BYTES)
                data = made.stream_reader(data).read(MAX_DICTIONARY_BYTES)
            if data.startswith(DICTIONARY_MAGIC):
                self._decompressor = self._zstandard.ZstdDecompressor(
                    self._zstandard.ZstdCompressionDict(data), max_window_size=MAX_WINDOW_BYTES
                )
                self._decompressor.decompressobj()
        except (self._zstandard.ZstdError, ValueError) as error:
            raise Damaged(f"its dictionary is damaged: {error}") from error

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
            raise Damaged(_near(str(error), self.read_bytes)) from error
        if self._frame.eof:
            self._compressed = self._frame.unused_data + self._compressed
            self.read_bytes -= len(self._frame.unused_data)
            self._frame = None
            self._frames += 1
        return text
