"""Records of WARC and WET files, read by fastwarc and compared with the bytes that it was fed.

    WARC/1.0\\r\\n
    WARC-Type: response\\r\\n
    Content-Length: 1234\\r\\n        headers, at most MAX_HEAD_BYTES
    \\r\\n
    1234 bytes                     the block
    \\r\\n\\r\\n                       then the next record

A length is trusted if a record, or the end of the file, follows its block as it should. Where the
headers state a digest of a document and no compression has a checksum, the digest is compared, too.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from typing import Any

from simindex.inputs.archive_records import (
    DOCUMENTS,
    RECORD_ID,
    URI,
    Damaged,
    Record,
    Records,
    of_http,
)
from simindex.inputs.document import Source, Unusable
from simindex.inputs.extras import needed
from simindex.inputs.fed_window import Window
from simindex.inputs.http_body import media_type_of
from simindex.inputs.magics import WARC_MAGIC
from simindex.inputs.swallowed_records import SWALLOWS, Heads, swallowed

MAX_HEAD_BYTES = 1 << 16
"""Longest headers of a record."""

MAX_HTTP_BYTES = 1 << 18
"""Longest headers of HTTP."""

AHEAD_BYTES = 1 << 16
"""Looked at behind a record that other bytes follow than those of the next."""

END = b"\r\n\r\n"
_NEXT = END + WARC_MAGIC

_VERSIONS = (b"WARC/1.0\r\n", b"WARC/1.1\r\n")
_VERSION = re.compile(rb"WARC/[01]\.[0-9]{1,2}\r?\n")
_VERSION_BYTES = 12
"""Longest of these."""

_FIELDS = re.compile(
    rb"(?:[!#-9;-~]++:[^\0-\x08\x0a-\x1f\x7f]*+\r?\n(?:[ \t][^\0-\x08\x0a-\x1f\x7f]*+\r?\n)*+)*+"
)
"""Headers: a name without white space, a colon, a value; lines with white space in front go on."""

_NAME = re.compile("[!#-9;-~]+")

_DIGEST = re.compile(
    "md5:(?:[0-9A-Fa-f]{32}|[A-Z2-7]{26}(?:={6})?)|sha1:(?:[0-9A-Fa-f]{40}|[A-Z2-7]{32})"
    "|sha256:(?:[0-9A-Fa-f]{64}|[A-Z2-7]{52}={4})"
)
"""What fastwarc compares; of other digests it says that they differ."""


class _Names(dict[str, str]):
    """The usual name of a header, whatever its case; Unusable for what is no name."""

    def __missing__(self, name: str) -> str:
        if _NAME.fullmatch(name) is None:
            raise Unusable("damaged headers")
        return self.get(name.lower(), name)


_NAMES = _Names(
    pair
    for name in (
        URI, RECORD_ID, "WARC-Type", "WARC-Date", "Content-Length", "Content-Type",
        "WARC-Concurrent-To", "WARC-Block-Digest", "WARC-Payload-Digest", "WARC-IP-Address",
        "WARC-Refers-To", "WARC-Refers-To-Target-URI", "WARC-Refers-To-Date", "WARC-Truncated",
        "WARC-Warcinfo-ID", "WARC-Filename", "WARC-Profile", "WARC-Identified-Payload-Type",
        "WARC-Segment-Number", "WARC-Segment-Origin-ID", "WARC-Segment-Total-Length",
        "WARC-Identified-Content-Language",
    )
    for pair in ((name, name), (name.lower(), name))
)


_USUAL_LENGTH = b"\nContent-Length:"
_USUAL_TYPE = b"Content-Type: application/http"
"""As fastwarc expects them."""

_FIELD = re.compile(rb"(?m)^([!#-9;-~]++):")
_HTTP_TYPE = re.compile(rb"(?mi)^Content-Type:[ \t]*application/http")

_LENGTH = re.compile(rb"(?i)\ncontent-length:[ \t]*([0-9]{1,18})[ \t]*\r?\n")


def _body(block: bytes, at: int) -> tuple[int, int] | None:
    if _VERSION.match(block, at) is None:
        return None
    most = at + MAX_HEAD_BYTES
    ends = [
        found + len(mark) for mark in (END, b"\n\n") if (found := block.find(mark, at, most)) >= 0
    ]
    length = None if not ends else _LENGTH.search(block, at, min(ends))
    return None if length is None else (min(ends), min(ends) + int(length[1]))


_HEADS = Heads(re.compile(rb"\n\r?\n(WARC/[01]\.[0-9]{1,2}\r?\n)"), _body)


class WarcRecords(Records):
    """Records of a WARC file, in its order."""

    what = "a WARC file"
    start: re.Pattern[bytes] = re.compile(rb"(WARC/[01]\.[0-9]{1,2}\r?\n[A-Za-z-]{1,60}:)")
    reach = 80

    def __init__(self, window: Window, source: Source) -> None:
        super().__init__(window, source)
        self._records: Iterator[Any] = iter(())
        self._moves = -1
        self._blank = False
        """Whether more empty lines may follow the last record."""
        self._longest = source.limit + MAX_HTTP_BYTES
        self._endless = 0
        """No headers end before this place that were not seen to end."""

    def _record_at(self, at: int) -> int:
        return self._window.skip_newlines(at) if self._blank else at

    def _read(self, at: int) -> tuple[Record | Unusable, int]:
        # Where a block ends is looked at before it is copied: many records that each claim to be
        # long cost no more than what they are.
        window, self._blank = self._window, False
        self._block_at = block_at = self._head_end(at)
        found = self._next(at)
        size: int = found.content_length
        unusual = size == 0 and (given := self._other_length(at, block_at)) > 0
        size = given if unusual else size
        stop = block_at + size
        long = size > self._longest
        if not window.fill(block_at + (self._longest if long else size)):
            raise Damaged(
                f"breaks off: {window.end - block_at:,} of {size:,} bytes of its body are there"
            )
        if long:
            found = self._usual(at, block_at, size) if unusual else found
            content = self._content(found, at, block_at)
            self._block_at = stop
            if not window.skip(stop):
                raise Damaged(f"breaks off: {stop - window.end:,} bytes of its body are missing")
        goes_on = window.begins(stop, _NEXT)
        end = stop + len(END) if goes_on else self._end(found, block_at, stop)
        if not long:
            found = self._usual(at, block_at, size) if unusual else found
            self._require_own(found, block_at, size)
            content = self._content(found, at, block_at)
        return content, end

    def _head_end(self, at: int) -> int:
        """Where the block of the record there begins."""
        window = self._window
        begin = at if at > self._endless else self._endless
        end = window.find(END, begin, at + MAX_HEAD_BYTES - begin)
        if window.begins(at, _VERSIONS):
            if end >= 0:  # an empty line before it, of line feeds only, is told by their number
                return end + len(END)
        else:
            first = window.look(at, _VERSION_BYTES)
            if len(first) < _VERSION_BYTES and WARC_MAGIC.startswith(first[: len(WARC_MAGIC)]):
                raise Damaged("truncated: the file ends within the headers of a record")
            if not _VERSION.match(first):
                raise Damaged("no record begins where one should")
        other = window.find(b"\n\n", begin, (at + MAX_HEAD_BYTES if end < 0 else end) - begin)
        if other >= 0 or end >= 0:
            return other + 2 if other >= 0 else end + len(END)
        if window.end - at < MAX_HEAD_BYTES:
            raise Damaged("truncated: the file ends within the headers of a record")
        self._endless = at + MAX_HEAD_BYTES - len(END)
        raise Damaged(f"headers longer than {MAX_HEAD_BYTES:,} bytes")

    def _next(self, at: int) -> Any:
        """What fastwarc makes of the record there."""
        if self._window.moves != self._moves:
            self._begin(at)
        try:
            found = next(self._records, None)
        except BaseException as error:
            raise _as_damage(error, "damaged headers", Damaged) from error
        if found is None or found.stream_pos != at:
            raise Damaged("no record begins where one should")
        return found

    def _begin(self, at: int) -> None:
        """Has fastwarc read from there."""
        self._window.rewind(at)
        self._moves = self._window.moves
        self._records = _records_of(self._window)

    def _other_length(self, at: int, block_at: int) -> int:
        """The length in headers whose name fastwarc does not know; 0 if there is none."""
        head = self._window.look(at, block_at - at)
        found = _LENGTH.search(head)
        return 0 if found is None or _USUAL_LENGTH in head else int(found[1])

    def _usual(self, at: int, block_at: int, size: int) -> Any:
        """What fastwarc makes of the record there, with headers of the usual names.

        It finds the length and the media type only by these. So it reads the next record anew.
        """
        window = self._window
        self._moves = -1
        head = _HTTP_TYPE.sub(_USUAL_TYPE, _FIELD.sub(_usual_name, window.look(at, block_at - at)))
        block = window.look(block_at, min(size, self._longest))
        try:
            return next(_records_of(io.BytesIO(head + block)))
        except BaseException as error:
            raise _as_damage(error, "damaged headers", Damaged) from error

    def _content(self, found: Any, at: int, block_at: int) -> Record | Unusable:
        try:
            return self._record(found, at, block_at)
        except Unusable as reason:
            return reason

    def _record(self, found: Any, at: int, block_at: int) -> Record:
        """The record, with its body if it may be a document."""
        items = found.headers.items()
        headers = {_NAMES[name]: value for name, value in items}
        if self._window.count(b"\n", at, block_at) != len(items) + 2:
            self._require_fields(at, block_at)  # lines that fastwarc passed over, or joined
        length = headers.get("Content-Length", "")
        if not (length.isascii() and length.isdecimal()) or int(length) != found.content_length:
            raise Unusable("has no Content-Length: the record is damaged, or cut")
        kind = headers.get("WARC-Type", "").lower()
        given = headers.get("Content-Type", "").lower()
        if not kind:
            raise Unusable("has no WARC-Type")
        uri = headers.get(URI, "")
        if uri[:1] == "<" and uri[-1:] == ">":  # as wget wrote them
            headers[URI] = uri[1:-1]
        size: int = found.content_length
        if kind not in DOCUMENTS:
            return Record(at, kind, headers, given)
        if "\ufffd" in uri:
            raise Unusable(f"damaged headers: {URI} is not UTF-8")
        block, payload = headers.get("WARC-Block-Digest"), headers.get("WARC-Payload-Digest")
        if self._window.checked or size > self._source.limit or "WARC-Truncated" in headers:
            block = payload = None
        elif block is not None and _DIGEST.fullmatch(block):
            payload = None
            if not found.verify_block_digest():
                raise Unusable("damaged: its digest is not the one in its headers")
        http = None
        if kind == "response" and given.startswith("application/http"):
            if not found.is_http:
                found = self._usual(at, block_at, size)
            http = _http_headers(found)
            if (
                payload is not None and _DIGEST.fullmatch(payload)
                and not (http.get("Transfer-Encoding") or http.get("Content-Encoding"))
                and not found.verify_payload_digest()
            ):
                raise Unusable("damaged: the digest of its body is not the one in its headers")
        try:
            long = found.content_length > self._source.limit
            body: bytes = found.reader.read(1 if long else found.content_length)
        except BaseException as error:
            raise _as_damage(error, "damaged") from error
        if http is None:
            return Record(at, kind, headers, *media_type_of(given), body=body, long=long)
        self._require_http(http.status_code, block_at, block_at + size - found.content_length, body)
        return of_http(at, kind, headers, http.items(), http.status_code, body, long=long)

    def _require_own(self, found: Any, block_at: int, size: int) -> None:
        """Damaged for a block that holds the records behind it, unless its digest is right."""
        window = self._window
        if self._may_look(size) and window.find(b"\n" + WARC_MAGIC, block_at, size) >= 0:
            at = swallowed(window.look(block_at, size), _HEADS)
            digest = found.headers.get("WARC-Block-Digest") or ""
            if at is not None and not (
                _DIGEST.fullmatch(digest) and found.verify_block_digest()
            ):
                self._block_at = block_at + at
                raise Damaged(SWALLOWS)

    def _require_fields(self, at: int, block_at: int) -> None:
        """Unusable where there are other lines than headers, and those that go on with one."""
        head = self._window.look(at, block_at - at)
        fields = _FIELDS.match(head, head.index(b"\n") + 1)
        if fields is None or fields.end() < len(head.rstrip(b"\r\n")):
            raise Unusable("damaged headers")

    def _end(self, found: Any, block_at: int, stop: int) -> int:
        """Goes over the empty lines behind a block; Damaged where its length cannot be right.

        At the end of the file they may be missing, unless they may be in the block.
        """
        window = self._window
        end = window.look(stop, len(END))
        if end == END:
            if not self._goes_on(stop + len(END)):
                raise Damaged("damaged: its length, or what follows it, is wrong")
            self._blank = True
            return stop + len(END)
        newlines = end[: len(end) - len(end.lstrip(b"\r\n"))]
        ends_here = window.ended and newlines == end and END.startswith(end)
        if ends_here and window.error is not None:
            raise Damaged("breaks off")
        if newlines == b"\n\n" and window.look(block_at - 2, 2) == newlines:
            if self._goes_on(stop + 2):
                self._blank = True
                return stop + 2
        elif ends_here and (
            stop == block_at or window.look(stop - 1, 1) not in (b"\r", b"\n")
            or (found.headers.get("WARC-Type") or "").lower() not in DOCUMENTS
        ):
            return window.end
        if newlines == end:  # there are more of them, as some crawlers write
            ahead = window.look(stop, AHEAD_BYTES)
            rest = ahead.lstrip(b"\r\n")
            if rest.startswith(WARC_MAGIC) and ahead[: len(ahead) - len(rest)].endswith(END):
                self._blank = True
                return stop
        raise Damaged("damaged: its length is not that of its body")

    def _goes_on(self, at: int) -> bool:
        """Whether the next record, or the end, is here; or a damaged record, or what is none.

        Where an empty line comes first, the block may have been longer than the length says.
        """
        ahead = self._window.look(at, AHEAD_BYTES).lstrip(b"\r\n")
        if not ahead or WARC_MAGIC.startswith(ahead[: len(WARC_MAGIC)]):
            return True
        first = ahead.partition(END)[0]
        if b"WARC-Type:" in first or b"Content-Length:" in first:
            return True
        found = self.start.search(ahead)
        return not ahead[: None if found is None else found.start()].endswith(END)


def _usual_name(found: re.Match[bytes]) -> bytes:
    return _NAMES[found[1].decode("latin-1")].encode("latin-1") + b":"


def _records_of(stream: Any) -> Iterator[Any]:
    with needed("reading WARC archives", extra="web"):
        from fastwarc.warc import ArchiveIterator

    return iter(ArchiveIterator(
        stream, parse_http=False, stream_detect=False, quirks_mode=True,
        max_header_len=MAX_HEAD_BYTES,
    ))


def _http_headers(found: Any) -> Any:
    try:
        found.parse_http(auto_decode="none", quirks_mode=True, max_header_len=MAX_HTTP_BYTES)
        http = found.http_headers
        status = None if http is None else http.status_code
    except BaseException as error:
        raise _as_damage(error, "damaged headers of HTTP") from None
    if status is None:
        raise Unusable("damaged headers of HTTP: no status")
    return http


def _as_damage(
    error: BaseException, what: str, kind: type[Unusable] = Unusable
) -> BaseException:
    """What fastwarc raised as damage, if it is: its panics are no exceptions to Python."""
    panic = type(error).__name__ == "PanicException"
    return kind(f"{what}: {error}") if panic or isinstance(error, OSError | ValueError) else error
