"""What a web server sent, without the encodings of HTTP: chunks, and compression.

A header may claim an encoding that the body does not have, because what wrote the archive has
undone it. Then the body is taken as it is, unless it looks damaged. Or the header that names gzip
is lost: a body that is whole gzip is decompressed without it.
"""

from __future__ import annotations

import io
import re
import zlib
from functools import lru_cache

from simindex.inputs.document import Unusable
from simindex.inputs.extras import needed
from simindex.inputs.foreign_formats import is_binary

CHUNKED = "chunked"

NO_CODINGS = ("", "identity", "utf-8")
"""Named as encodings where there is none."""

ANY_HEADER, NO_HEADER = 47, -15
"""Of zlib: gzip or zlib, told by the header, and deflate without one."""

PADDING = b"\0 \t\r\n"
"""What may follow compressed data."""

MAX_CODINGS = 8
"""Most encodings of a body: each one takes time, and a page has one or two."""

GZIP = b"\x1f\x8b\x08"

ONE_BY_ONE = 64
"""Bytes at the end of a body that are given to a decompressor one by one."""

_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;[^\r\n]{0,1024})?\r?\n")
"""The line in front of a chunk."""

_INNER_SIZE = re.compile(rb"\r\n([0-9A-Fa-f]{1,8})\r\n")

_TRAILER = re.compile(rb"(?:[!-9;-~]++:[^\r\n]*+\r?\n)*+(?:\r?\n)?")
"""What may follow the last chunk."""


@lru_cache(maxsize=256)
def media_type_of(header: str | None) -> tuple[str, str | None]:
    """The media type that a header states, in lower case, and the character set if it states one.
    """
    media_type, _, rest = (header or "").lower().partition(";")
    charset = rest.partition("charset=")[2].split(";")[0].strip(" \"'")
    return media_type.strip(), charset or None


def body_of(body: bytes, transfer: str, encoding: str, limit: int, *, cut: bool) -> bytes:
    """The body without its transfer and content encodings, the one that was applied last first.

    `cut` says that only a part was stored. Unusable for more than `limit` bytes, for what breaks
    off or is damaged, and for an encoding that cannot be read.
    """
    if transfer or encoding:
        body = _decoded(body, transfer, encoding, limit, cut=cut)
    if body.startswith(GZIP):
        body = _without_a_name(body, limit, cut=cut)
    if len(body) > limit:
        raise Unusable(f"longer than {limit} bytes")
    return body


def _decoded(body: bytes, transfer: str, encoding: str, limit: int, *, cut: bool) -> bytes:
    codings = [*_named("transfer", transfer, CHUNKED), *_named("content", encoding, None)]
    if len(codings) > MAX_CODINGS:
        raise Unusable(f"is encoded more than {MAX_CODINGS} times")
    for kind, name in codings:
        if name == CHUNKED and kind == "transfer":
            body = _joined_chunks(body, whole=not cut and len(body) <= limit)
        elif name in ("gzip", "x-gzip", "deflate"):
            body = _inflated(body, limit, cut=cut)
        elif name == "br":
            body = _unbrotlied(body, limit)
        else:
            raise Unusable(f"{kind} encoding {name[:40]!r} cannot be read")
    return body


def _named(kind: str, header: str, once: str | None) -> list[tuple[str, str]]:
    """The encodings that a header names, in the order in which they are undone.

    One of them, if it is named more than once, was applied once.
    """
    found: list[tuple[str, str]] = []
    for part in reversed(header.split(",")):
        name = part.partition(";")[0].strip()
        if name not in NO_CODINGS and (name != once or (kind, name) not in found):
            found.append((kind, name))
    return found


def _without_a_name(body: bytes, limit: int, *, cut: bool) -> bytes:
    """What a body holds that looks like gzip, and whose headers do not say so; else the body."""
    try:
        text = _of_members(body, ANY_HEADER, limit, cut=cut)
    except (zlib.error, Unusable):
        return body
    return text if len(text) <= limit else body


def _joined_chunks(body: bytes, *, whole: bool) -> bytes:
    line = _SIZE.match(body)
    if line is None:
        if _has_chunks(body):
            raise Unusable("the chunks of its body are damaged")
        return body
    parts: list[bytes] = []
    while line is not None and (size := int(line[1], 16)) > 0:
        at = line.end() + size
        parts.append(body[line.end() : at])
        if at >= len(body):
            line = None
            break
        end = at + (2 if body[at : at + 2] == b"\r\n" else 1 if body[at] == 10 else 0)
        line = _SIZE.match(body, end) if end > at else None
        if line is None and len(body) - at > 20:
            raise Unusable("the chunks of its body are damaged")
    if line is None:
        if whole:
            raise Unusable("the chunks of its body break off")
        return b"".join(parts)
    trailer = _TRAILER.match(body, line.end())
    if whole and trailer is not None and body[trailer.end() :].strip(PADDING):
        raise Unusable("the chunks of its body are damaged: bytes follow the last one")
    return b"".join(parts)


def _has_chunks(body: bytes) -> bool:
    """Whether there is a size that leads to the end of a chunk: another size, or the last one."""
    for line in _INNER_SIZE.finditer(body):
        size, at = int(line[1], 16), line.end()
        if size == 0 and not body[at : at + 3].strip(b"\r\n"):
            return True
        if size and body[at + size : at + size + 2] == b"\r\n" and (
            _INNER_SIZE.match(body, at + size) is not None
        ):
            return True
    return False


def _inflated(body: bytes, limit: int, *, cut: bool) -> bytes:
    error: Exception | None = None
    for window in (ANY_HEADER, NO_HEADER):
        try:
            return _of_members(body, window, limit, cut=cut)
        except zlib.error as reason:
            error = error or reason
        except Unusable:
            if window == ANY_HEADER:
                raise
    if body[:2] == b"\x1f\x8b" or is_binary(body):
        raise Unusable(f"damaged compressed data: {error}")
    return body


def _of_members(body: bytes, window: int, limit: int, *, cut: bool) -> bytes:
    """The bytes of all members; those of gzip may be several."""
    parts: list[bytes] = []
    size = 0
    while True:
        decompressor = zlib.decompressobj(window)
        try:
            parts.append(decompressor.decompress(body, limit + 1 - size))
        except zlib.error as error:
            if not parts:
                raise
            raise Unusable(f"damaged compressed data: {error}") from None
        size += len(parts[-1])
        if size > limit:
            break
        if not decompressor.eof:
            if not cut:
                raise Unusable("its compressed body breaks off")
            break
        body = decompressor.unused_data
        if not body.strip(PADDING):
            break
        if window == NO_HEADER or not body.startswith(b"\x1f\x8b"):
            raise Unusable("damaged compressed data: other bytes follow it")
    return b"".join(parts)


class _Drops(io.RawIOBase):
    """Bytes for a reader that does not say how many of them it used: the last ones one by one."""

    def __init__(self, data: bytes) -> None:
        self._data, self.at = data, 0

    def tell(self) -> int:
        """How much was read."""
        return self.at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Asked for the place, which it says; it does not go anywhere."""
        return self.at

    def read(self, size: int = -1) -> bytes:
        """The next bytes."""
        left = max(1, len(self._data) - self.at - ONE_BY_ONE)
        part = self._data[self.at : self.at + (left if size < 0 else min(size, left))]
        self.at += len(part)
        return part


def _unbrotlied(body: bytes, limit: int) -> bytes:
    with needed("reading brotli", extra="web"):
        from fastwarc.stream_io import BrotliReader

    try:
        drops = _Drops(body)
        reader = BrotliReader(drops)
        text: bytes = reader.read(limit + 1)
        if len(text) <= limit and not reader.read(1) and body[drops.at :].strip(PADDING):
            raise OSError("other bytes follow it")
    except OSError as error:
        if is_binary(body):
            raise Unusable(f"damaged compressed data: {error}") from None
        return body
    return text
