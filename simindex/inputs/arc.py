"""Records of ARC files, the older form, read by warcio and compared with the bytes that it was fed.

    http://a/ 1.2.3.4 20260101000000 text/html 1234\\n      one line, at most MAX_LINE_BYTES
    1234 bytes                                             the block
    \\n                                                     then the next record

The first record describes the file. Version 2 has more columns between the media type and the
length. A length is trusted if a record, or the end of the file, follows its block as it should.

warcio's iterator prints what it meets, and its lines have no limit. So only its loader is used, one
record at a time, on lines that are bounded here.
"""

from __future__ import annotations

import re
from typing import Any

from simindex.inputs.archive_records import URI, Damaged, Record, Records, of_http
from simindex.inputs.document import Source, Unusable
from simindex.inputs.extras import needed
from simindex.inputs.fed_window import CHUNK_BYTES, Window
from simindex.inputs.http_body import media_type_of
from simindex.inputs.magics import ARC_MAGIC
from simindex.inputs.swallowed_records import SWALLOWS, Heads, swallowed

MAX_LINE_BYTES = 1 << 14
"""Longest line of headers."""

MAX_LINES_BYTES = 1 << 18
"""Longest headers of HTTP."""

_LINE = re.compile(
    rb"([A-Za-z][A-Za-z0-9+.-]*:[^\n]+?) ([0-9A-Fa-f.:-]+) ([0-9]{8,17}) "
    rb"([^\n]*?)([0-9]{1,18})\r?\n"
)
"""Address, network address, date, media type and perhaps more, length. warcio divides lines of five
columns only."""


_START = re.compile(
    rb"\n([A-Za-z][A-Za-z0-9+.-]{0,20}+:[^\n]{0,4096} [0-9A-Fa-f.:-]{1,60} "
    rb"[0-9]{8,17} [^\n]{0,512}?[0-9]{1,18}\r?\n)"
)


def _body(block: bytes, at: int) -> tuple[int, int] | None:
    line = _LINE.match(block, at)
    return None if line is None else (line.end(), line.end() + int(line[5]))


_HEADS = Heads(_START, _body)


class ArcRecords(Records):
    """Records of an ARC file, in its order, with headers named as in a WARC."""

    what = "an ARC file"
    start: re.Pattern[bytes] = _START
    before = b"\n"
    reach = 6000

    def __init__(self, window: Window, source: Source) -> None:
        super().__init__(window, source)
        with needed("reading ARC archives", extra="web"):
            from warcio.recordloader import ArcWarcRecordLoader

        self._longest = source.limit + MAX_LINES_BYTES
        self._loader: Any = ArcWarcRecordLoader(verify_http=False, arc2warc=False)

    def _record_at(self, at: int) -> int:
        return self._window.skip_newlines(at)

    def _read(self, at: int) -> tuple[Record | Unusable, int]:
        window = self._window
        line = window.look(at, MAX_LINE_BYTES).partition(b"\n")
        if not line[1]:
            if window.ended:
                raise Damaged("truncated: the file ends in a header")
            raise Damaged(f"a header longer than {MAX_LINE_BYTES:,} bytes")
        found = _LINE.fullmatch(line[0] + line[1])
        if found is None:
            raise Damaged("no record begins where one should")
        self._block_at = block_at = at + found.end()
        stop = block_at + int(found[5])
        long = int(found[5]) > self._longest
        if not window.fill(min(stop, block_at + self._longest)):
            raise Damaged(f"breaks off: {stop - window.end:,} bytes of its body are missing")
        if long:
            content = self._content(at, block_at, found)
            self._block_at = stop
            if not window.skip(stop):
                raise Damaged(f"breaks off: {stop - window.end:,} bytes of its body are missing")
        end = self._end(stop, first=line[0].startswith(ARC_MAGIC))
        if not long:
            self._require_own(block_at, stop - block_at)
            content = self._content(at, block_at, found)
        return content, end

    def _content(self, at: int, block_at: int, line: re.Match[bytes]) -> Record | Unusable:
        try:
            return self._record(at, block_at, line)
        except Unusable as reason:
            return reason

    def _record(self, at: int, block_at: int, line: re.Match[bytes]) -> Record:
        window = self._window
        window.rewind(at)
        lines = _Lines(window)
        try:
            found = self._loader.parse_record_stream(lines, known_format="arc")
            http = found.http_headers
            body_at = window.tell()
            long = found.raw_stream.limit > self._source.limit
            body = found.raw_stream.read(1 if long else None)
        except Unusable:
            raise
        except Exception as error:  # it checks little, so that its parts raise whatever they do
            raise Unusable(f"damaged headers: {str(error)[:200]}") from None
        try:
            address, date = line[1].decode(), line[3].decode()
        except UnicodeDecodeError:
            raise Unusable("damaged headers: the address is not UTF-8") from None
        headers = {
            "WARC-Type": "response", URI: address, "WARC-IP-Address": line[2].decode(),
            "WARC-Date": _iso(date), "Content-Type": "application/http;msgtype=response",
            "Content-Length": line[5].decode(),
        }
        if found.rec_type == "arc_header":
            return Record(at, "warcinfo", headers, "")
        if http is None:
            given = headers["Content-Type"] = line[4].decode("latin-1").partition(" ")[0]
            return Record(at, "response", headers, *media_type_of(given), body=body, long=long)
        status = http.get_statuscode()
        if not (http.protocol.startswith("HTTP/") and status.isascii() and status.isdecimal()):
            raise Unusable("damaged headers of HTTP: no status")
        self._require_http(int(status), block_at, body_at, body)
        return of_http(at, "response", headers, http.headers, int(status), body, long=long)

    def _require_own(self, block_at: int, size: int) -> None:
        """Damaged for a block that holds the records behind it."""
        at = None
        if self._may_look(size):
            at = swallowed(self._window.look(block_at, size), _HEADS)
        if at is not None:
            self._block_at = block_at + at
            raise Damaged(SWALLOWS)

    def _end(self, stop: int, *, first: bool) -> int:
        """Where the next record begins; Damaged where the length of a block cannot be right.

        At the end of the file the line feed behind a block may be missing, if it cannot be in the
        block. The block of the first record may have it within.
        """
        window = self._window
        ahead = window.look(stop, 4 * MAX_LINE_BYTES)
        line, newline, _ = ahead.lstrip(b"\r\n").partition(b"\n")
        ends_in_newline = window.look(stop - 1, 1) == b"\n"
        if ahead[:1] in (b"\r", b"\n") or (first and ends_in_newline):
            if not newline or _LINE.match(line + newline) is not None:
                return stop
        elif window.ended and stop == window.end and not ends_in_newline:
            if window.error is not None:
                raise Damaged("breaks off")
            return stop
        raise Damaged("damaged: its length, or what follows it, is wrong")


class _Lines:
    """A window for warcio, which reads lines of any length and any number of them."""

    def __init__(self, window: Window) -> None:
        self._window, self._left = window, MAX_LINES_BYTES

    def read(self, size: int) -> bytes:
        """So many bytes, or fewer where the stream ends."""
        parts = []
        while size > 0 and (part := self._window.read(min(size, CHUNK_BYTES))):
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def readline(self, size: int = MAX_LINE_BYTES) -> bytes:
        """The next line, or so many bytes of it."""
        window = self._window
        line = window.look(window.tell(), min(size, MAX_LINE_BYTES))
        line = line[: line.find(b"\n") + 1] or line
        self._left -= len(line)
        if self._left < 0 or (len(line) == MAX_LINE_BYTES and line[-1:] != b"\n"):
            raise Unusable(f"damaged headers of HTTP: longer than {MAX_LINES_BYTES:,} bytes")
        return window.read(len(line))


def _iso(date: str) -> str:
    """A date of an archive, `20260131235959`, as in a WARC."""
    if len(date) < 14:
        return date
    return f"{date[:4]}-{date[4:6]}-{date[6:8]}T{date[8:10]}:{date[10:12]}:{date[12:14]}Z"
