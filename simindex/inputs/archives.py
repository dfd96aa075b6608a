"""Web archives: WARC and WET through fastwarc, ARC through warcio, one document a page.

    response, resource    HTML: its main text (`markup`); plain text as it is
    conversion            the text of a WET file
    others                no documents: requests, revisits, metadata, images, error pages ...

A record is decompressed as it is read, and so is what a server compressed. Records whose bytes end
before their headers say become no documents.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

from simindex.inputs.document import Document, Ids, Source, Unusable
from simindex.inputs.extras import needed
from simindex.inputs.foreign import is_markup
from simindex.inputs.http_body import body_of, media_type_of
from simindex.inputs.markup import RAW, Extractor, extractor
from simindex.inputs.streams import Unreadable, decoded, some, unmarked

WARC_MAGIC, ARC_MAGIC = b"WARC/", b"filedesc://"

URI, RECORD_ID = "WARC-Target-URI", "WARC-Record-ID"
"""Headers that name a record: the first by default."""

_NAMES = {
    name.lower(): name
    for name in (URI, RECORD_ID, "WARC-Type", "WARC-Truncated", "Content-Length", "Content-Type")
}

DOCUMENTS = ("response", "resource", "conversion")
"""Kinds of records that may be documents."""

HTML_TYPES = {"text/html", "application/xhtml+xml", "application/vnd.wap.xhtml+xml"}

CHUNK_BYTES = 1 << 16

TAIL_BYTES = 1 << 16
"""Of the end of an archive that are looked at for a record that was cut in its headers."""


@dataclass(frozen=True, slots=True)
class Record:
    """What a web server, or another source, gave."""

    at: int
    """Where it begins, in the decompressed archive."""
    kind: str
    headers: dict[str, str]
    """Of the archive, with their usual names."""
    media_type: str
    """In lower case; may be empty."""
    charset: str | None = None
    status: int | None = None
    """Of HTTP; None where nobody was asked."""
    transfer: str = ""
    """How the body is encoded on the way, and `encoding` of what it is."""
    encoding: str = ""
    body: bytes = b""
    """As it was stored, one byte more than the limit at most."""

    @property
    def cut(self) -> bool:
        """Whether the archive says that it holds a part of the body only."""
        return "WARC-Truncated" in self.headers


def read_warc(stream: BinaryIO, source: Source) -> Iterator[Document]:
    """Pages and texts of a WARC or WET file, in its order.

    The key is the address (`WARC-Target-URI`), or the header that the caller named, else
    ``name:number`` of the record. Bad records, at their number in the file: what cannot be
    decompressed or is longer than the limit, damaged headers of HTTP, HTML that `markup` refuses,
    a record that is not whole. After damaged headers of the archive the rest is not read.
    """
    yield from _documents(_WarcRecords(stream, source), source)


def read_arc(stream: BinaryIO, source: Source) -> Iterator[Document]:
    """The same of an ARC file, the older form."""
    yield from _documents(_ArcRecords(stream, source), source)


def _documents(records: Any, source: Source) -> Iterator[Document]:
    text_of, as_it_is, intake = extractor(source.html), extractor(RAW), source.intake
    ids = Ids(source, "header", (URI,))
    for record in records:
        other = _no_page(record)
        if other is not None:
            intake.other_records[other] += 1
            continue
        try:
            body = body_of(
                record.body, record.transfer, record.encoding, source.limit, cut=record.cut
            )
            text = _text(record, body, text_of, as_it_is)
            if text is None:
                intake.other_records[record.media_type or "no type"] += 1
                continue
            key = ids.key_of(record.headers, records.number)
        except (Unusable, Unreadable) as reason:
            remedy = reason.remedy if isinstance(reason, Unusable) else None
            intake.bad(source.path, records.number, f"{reason} (at byte {record.at})", remedy)
            continue
        ids.count()
        yield Document(
            key=key, text=text, path=source.path, line=records.number, numbered=ids.numbered,
            row=record.headers,
        )


def _no_page(record: Record) -> str | None:
    """What a record is that is no document; None for one that may be."""
    if record.kind not in DOCUMENTS:
        return record.kind or "no type"
    if not record.body:
        return "empty"
    if record.headers.get(URI, "").startswith("metadata://"):  # wget's own log and arguments
        return "metadata"
    if record.status is not None and not 200 <= record.status < 300:
        return f"status {record.status}"
    if record.media_type in HTML_TYPES or record.media_type in ("", "text/plain"):
        return None
    return record.media_type


def _text(
    record: Record, body: bytes, text_of: Extractor, as_it_is: Extractor
) -> str | None:
    """The text of a body; None if it is neither HTML nor plain text."""
    if record.media_type in HTML_TYPES or (not record.media_type and is_markup(body)):
        return text_of(body, record.charset)
    if record.kind == "conversion":
        return decoded(unmarked(body))
    if record.media_type == "text/plain" and b"\0" not in body:
        return as_it_is(body, record.charset)
    return None


class _Told:
    """A stream for other readers, whose errors are those of `streams`; remembers its last bytes."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream, self.tail, self.read_bytes = stream, b"", 0

    def read(self, size: int = -1) -> bytes:
        """Up to so many bytes."""
        data = some(self._stream, CHUNK_BYTES if size < 0 else size)
        self.tail = (self.tail + data)[-TAIL_BYTES:]
        self.read_bytes += len(data)
        return data

    def tell(self) -> int:
        """How much was read."""
        return self.read_bytes

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Asked for the place, which it says; it does not go anywhere."""
        there = offset + (self.read_bytes if whence == io.SEEK_CUR else 0)
        if whence == io.SEEK_END or there != self.read_bytes:
            raise io.UnsupportedOperation("an archive is read from its start")
        return there


class _WarcRecords:
    """Records of a WARC file; `number` is that of the last one, from 1."""

    def __init__(self, stream: BinaryIO, source: Source) -> None:
        self._stream, self._source = _Told(stream), source
        self.number = 0

    def __iter__(self) -> Iterator[Record]:
        with needed("reading WARC archives", extra="web"):
            from fastwarc.warc import ArchiveIterator

        stream: Any = self._stream
        records = iter(ArchiveIterator(
            stream, parse_http=False, stream_detect=False, quirks_mode=True
        ))
        bad, end = self._source.intake.bad, 0
        found: Any = None
        while True:
            self.number += 1
            try:
                found = next(records, None)
                if found is None:
                    break
                end = found.stream_pos + found.content_length
                record = self._record(found)
            except Unusable as reason:
                bad(
                    self._source.path, self.number, f"{reason} (at byte {found.stream_pos})",
                    reason.remedy,
                )
                continue
            except Unreadable as reason:
                raise Unreadable(str(reason), self.number) from reason
            except BaseException as error:
                if not isinstance(error, OSError | ValueError) and not _is_panic(error):
                    raise
                bad(
                    self._source.path, self.number,
                    f"damaged after byte {end}, so the rest of the file was not read: {error}",
                )
                return
            yield record
        self._require_whole()

    def _record(self, found: Any) -> Record:
        headers = _canonical(found.headers.items())
        if not headers.get("Content-Length", "").strip().isdigit():
            raise Unusable("has no Content-Length: the record is damaged, or cut")
        kind = headers.get("WARC-Type", "").lower()
        given = headers.get("Content-Type", "").lower()
        if kind not in DOCUMENTS:
            self._skip(found)
            return Record(found.stream_pos, kind, headers, given)
        status, http = None, None
        if kind == "response" and given.startswith("application/http"):
            try:
                found.parse_http(auto_decode="none", quirks_mode=True)
                http = found.http_headers
                status = None if http is None else http.status_code
                if status is None:
                    raise ValueError("there are none")
            except (OSError, ValueError) as error:
                raise Unusable(f"damaged headers of HTTP: {error}") from None
        wanted = found.content_length
        body = found.reader.read(min(wanted, self._source.limit + 1))
        if len(body) < min(wanted, self._source.limit + 1):
            raise Unusable(
                f"breaks off: {len(body):,} of {wanted:,} bytes of its body are there"
            )
        if http is None:
            return Record(found.stream_pos, kind, headers, *media_type_of(given), body=body)
        return _of_http(found.stream_pos, kind, headers, http.get, status, body)

    def _skip(self, found: Any) -> None:
        """Reads over a body, of which the rest of a file that was cut would not be told."""
        left = found.content_length
        while left > 0:
            part = found.reader.read(min(left, CHUNK_BYTES))
            if not part:
                raise Unusable(f"breaks off: {left:,} bytes of its body are missing")
            left -= len(part)

    def _require_whole(self) -> None:
        """Reports headers that break off at the end: fastwarc fills in what they lack."""
        tail = self._stream.tail
        last = tail.rfind(b"\n") + 1
        at = last if WARC_MAGIC.startswith(tail[last:] or b"-") else tail.rfind(b"\nWARC/") + 1
        if tail and b"\r\n\r\n" not in tail[at:] and b"\n\n" not in tail[at:]:
            begun = self._stream.read_bytes - len(tail) + at
            self._source.intake.bad(
                self._source.path, self.number - 1 or 1,
                f"truncated: the file ends within the headers of a record (at byte {begun})",
            )


class _ArcRecords:
    """Records of an ARC file, with their addresses as in a WARC."""

    def __init__(self, stream: BinaryIO, source: Source) -> None:
        self._stream, self._source = _Told(stream), source
        self.number = 0

    def __iter__(self) -> Iterator[Record]:
        with needed("reading ARC archives", extra="web"):
            from warcio.archiveiterator import ArchiveIterator
            from warcio.exceptions import ArchiveLoadFailed

        records = ArchiveIterator(self._stream, arc2warc=True)
        limit, bad = self._source.limit, self._source.intake.bad
        while True:
            self.number += 1
            try:
                found = next(records, None)
                if found is None:
                    break
                body = found.raw_stream.read(limit + 1)
                missing = found.raw_stream.limit if len(body) <= limit else 0
                at = records.get_record_offset()
            except Unreadable as reason:
                raise Unreadable(str(reason), self.number) from reason
            except (ArchiveLoadFailed, OSError, ValueError, AttributeError, IndexError) as error:
                bad(
                    self._source.path, self.number,
                    f"damaged, so the rest of the file was not read: {error}",
                )
                return
            headers, http = _canonical(found.rec_headers.headers), found.http_headers
            if missing > 0:
                bad(
                    self._source.path, self.number,
                    f"breaks off: {missing:,} bytes of its body are missing (at byte {at})",
                )
            elif http is None:
                yield Record(at, found.rec_type, headers, "", body=body)
            else:
                status = http.get_statuscode()
                yield _of_http(
                    at, found.rec_type, headers, http.get_header,
                    int(status) if status.isascii() and status.isdecimal() else None, body,
                )
        if self._stream.tail.rpartition(b"\n")[2].startswith((b"http", ARC_MAGIC)):
            bad(self._source.path, self.number, "truncated: the file ends in a header")


def _of_http(
    at: int, kind: str, headers: dict[str, str], http: Callable[[str], str | None],
    status: int | None, body: bytes,
) -> Record:
    """A record of an answer of HTTP, whose headers `http` gives by their names."""
    return Record(
        at, kind, headers, *media_type_of(http("Content-Type")), status=status,
        transfer=(http("Transfer-Encoding") or "").lower(),
        encoding=(http("Content-Encoding") or "").lower(), body=body,
    )


def _is_panic(error: BaseException) -> bool:
    """Whether fastwarc gave up: its own errors of this kind are no exceptions to Python."""
    return type(error).__name__ == "PanicException"


def _canonical(headers: Any) -> dict[str, str]:
    """Headers by their usual names, whatever their case; addresses without angle brackets."""
    found = {_NAMES.get(name.lower(), name): value for name, value in headers}
    uri = found.get(URI, "")
    if uri[:1] == "<" and uri[-1:] == ">":  # as wget wrote them
        found[URI] = uri[1:-1]
    return found
