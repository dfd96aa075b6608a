"""What a web server sent, without the encodings of HTTP: chunks, and compression.

A header may claim an encoding that the body does not have: then the body is taken as it is.
"""

from __future__ import annotations

import io
import zlib

from simindex.inputs.document import Unusable
from simindex.inputs.extras import needed

SIZE_BYTES = 64
"""Longest line that says how long a chunk is."""

ANY_HEADER, NO_HEADER = 47, -15
"""Of zlib: gzip or zlib, told by the header, and deflate without one."""


def media_type_of(header: str | None) -> tuple[str, str | None]:
    """The media type that a header states, in lower case, and the character set if it states one.
    """
    media_type, _, rest = (header or "").lower().partition(";")
    charset = rest.partition("charset=")[2].split(";")[0].strip(" \"'")
    return media_type.strip(), charset or None


def body_of(body: bytes, transfer: str, encoding: str, limit: int, *, cut: bool) -> bytes:
    """The body without its transfer and content encodings.

    `cut` says that only a part was stored. Unusable for more than `limit` bytes, for what breaks
    off or is damaged, and for an encoding that cannot be read.
    """
    if "chunked" in transfer:
        body = _joined_chunks(body, whole=not cut and len(body) <= limit)
    for name in reversed(encoding.split(",")):
        name = name.strip()
        if name in ("gzip", "x-gzip", "deflate"):
            body = _inflated(body, limit, cut=cut)
        elif name == "br":
            body = _unbrotlied(body, limit)
        elif name not in ("", "identity", "utf-8"):
            raise Unusable(f"content encoding {name!r} cannot be read")
    if len(body) > limit:
        raise Unusable(f"longer than {limit} bytes")
    return body


def _joined_chunks(body: bytes, *, whole: bool) -> bytes:
    parts: list[bytes] = []
    at = 0
    while (size := _chunk_size(body, at)) > 0:
        start = body.index(b"\n", at) + 1
        parts.append(body[start : start + size])
        at = start + size
        if at > len(body):
            break
        at += 2 if body[at : at + 2] == b"\r\n" else 1
    if size < 0 and not parts:
        return body
    if size != 0 and whole:
        raise Unusable("the chunks of its body break off")
    return b"".join(parts)


def _chunk_size(body: bytes, at: int) -> int:
    """Of the chunk that begins there; 0 at the end of all, -1 where no chunk begins."""
    end = body.find(b"\n", at, at + SIZE_BYTES)
    try:
        return int(body[at:end].split(b";")[0], 16) if end >= 0 else -1
    except ValueError:
        return -1


def _inflated(body: bytes, limit: int, *, cut: bool) -> bytes:
    for window in (ANY_HEADER, NO_HEADER):
        decompressor = zlib.decompressobj(window)
        try:
            text = decompressor.decompress(body, limit + 1)
        except zlib.error as error:
            if window == ANY_HEADER and body[:2] == b"\x1f\x8b":
                raise Unusable(f"damaged compressed data: {error}") from None
            continue
        if decompressor.eof or len(text) > limit or cut:
            return text
        if window == ANY_HEADER:
            raise Unusable("its compressed body breaks off")
    return body


def _unbrotlied(body: bytes, limit: int) -> bytes:
    with needed("reading brotli", extra="web"):
        from fastwarc.stream_io import BrotliReader

    try:
        text: bytes = BrotliReader(io.BytesIO(body)).read(limit + 1)
    except OSError as error:
        raise Unusable(f"damaged compressed data: {error}") from None
    return text
