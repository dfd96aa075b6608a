"""Records of web archives, as a crawler would write them."""

from __future__ import annotations

import zlib


def record(kind: str, block: bytes, **headers: str) -> bytes:
    """A record of a WARC file; `WARC_Target_URI` and others are its headers."""
    head = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    start = f"WARC/1.0\r\nWARC-Type: {kind}\r\nContent-Length: {len(block)}\r\n{head}\r\n"
    return start.encode() + block + b"\r\n\r\n"


def answer(body: bytes, media_type: str = "text/html", status: int = 200, **headers: str) -> bytes:
    """What a server sent."""
    head = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    typed = f"Content-Type: {media_type}\r\n" if media_type else ""
    return f"HTTP/1.1 {status} OK\r\n{typed}{head}\r\n".encode() + body


def response(uri: str, body: bytes, media_type: str = "text/html", **headers: str) -> bytes:
    """A record of a page."""
    return record(
        "response", answer(body, media_type, **headers), WARC_Target_URI=uri,
        Content_Type="application/http; msgtype=response",
    )


def archived(kind: str, status: int, media_type: str, body: str) -> bytes:
    """A record of some kind, of the address http://a/STATUS."""
    return record(
        kind, answer(body.encode(), media_type, status), WARC_Target_URI=f"http://a/{status}",
        Content_Type="application/http",
    )


def gzipped(data: bytes) -> bytes:
    """A member of its own, the same at every time."""
    made = zlib.compressobj(6, zlib.DEFLATED, 31)
    return made.compress(data) + made.flush()
