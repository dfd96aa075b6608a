"""Web archives: WARC and WET through fastwarc, ARC through warcio, one document a page.

    response, resource    HTML: its main text (`markup`); plain text as it is
    conversion            the text of a WET file
    others                no documents: requests, revisits, metadata, images, error pages, segments,
                          partial answers, and what is binary although it is called a page

A record is decompressed as it is read, and so is what a server compressed. A record that is not as
its headers say becomes no document, and costs no other record: see `archive_records`. A page that
the crawler cut is a document, which is counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import BinaryIO

from simindex.inputs.arc import ArcRecords
from simindex.inputs.archive_records import DOCUMENTS, URI, Record, Records
from simindex.inputs.document import Document, Ids, Source, Taken, Unusable
from simindex.inputs.document_columns import Later
from simindex.inputs.extras import needed
from simindex.inputs.fed_window import Window
from simindex.inputs.foreign_formats import (
    HEAD_BYTES,
    UTF_16,
    foreign_by_magic,
    is_binary,
    is_markup,
    is_utf16,
)
from simindex.inputs.http_body import PADDING, body_of
from simindex.inputs.markup import RAW, Extractor, extractor
from simindex.inputs.streams import Unreadable, decoded, unmarked
from simindex.inputs.warc import WarcRecords

HTML_TYPES = {"text/html", "application/xhtml+xml", "application/vnd.wap.xhtml+xml"}

PARTIAL = 206
"""Status of an answer that is a part of a page."""

MORE_BYTES = 1 << 21
"""Of an archive that are held in addition to the longest record: headers, and what was read ahead.
"""


def read_warc(stream: BinaryIO, source: Source) -> Iterator[Later]:
    """Pages and texts of a WARC or WET file, in its order.

    The key is the address (`WARC-Target-URI`), or the header that the caller named, else
    ``name:number`` of the record. Bad records, at their number in the file: what cannot be
    decompressed or is longer than the limit, damaged headers, HTML that `markup` refuses, a record
    that is not whole, whose length is wrong or whose digest differs, and bytes that are no record.
    After damage the next record is looked for; in a .gz that is damaged itself the next member.
    """
    yield from _documents(WarcRecords(_window(stream, source), source), source)


def read_arc(stream: BinaryIO, source: Source) -> Iterator[Later]:
    """The same of an ARC file, the older form."""
    yield from _documents(ArcRecords(_window(stream, source), source), source)


def _window(stream: BinaryIO, source: Source) -> Window:
    return Window(stream, source.limit + MORE_BYTES)


def _documents(records: Records, source: Source) -> Iterator[Later]:
    pages = _Pages(source)
    for record in records:
        other = _no_page(record)
        if other is not None:
            source.intake.pass_by(other)
            continue
        found = pages.document(record, records.number)
        if found is not None:
            yield found


class _Pages:
    """Documents of the records of one archive."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._ids = Ids(source, "header", (URI,))
        with needed("reading web archives", extra="web"):
            import resiliparse.parse.encoding  # noqa: F401 - as all pages and texts need it
        self._as_it_is = extractor(RAW)
        self._keeps_rows = source.keeps_rows

    def document(self, record: Record, number: int) -> Later | None:
        """That of a record; None if it is another one, or a bad one, which is noted."""
        source = self._source
        try:
            if record.long:
                raise Unusable(f"longer than {source.limit} bytes")
            body = body_of(
                record.body, record.transfer, record.encoding, source.limit, cut=record.cut
            )
            other = _no_text(record, body)
            if other is not None:
                source.intake.pass_by(other)
                return None
            if _is_html(record, body) and source.extract is not None:
                taken = source.extract(body, record.charset)
            else:
                taken = partial(str, _text(record, body, self._as_it_is))
        except (Unusable, Unreadable) as reason:
            self._bad(record.at, number, reason)
            return None
        at, headers, cut = record.at, record.headers, _cut(record)
        # Also those whose texts are there: names are made in the order of the records.
        return Later(lambda: self._named(at, headers, number, taken, cut), max(1, len(body)))

    def _named(
        self, at: int, headers: dict[str, str], number: int, taken: Taken, cut: str | None
    ) -> Document | None:
        try:
            text = taken()
            key = self._ids.key_of(headers, number)
        except Unusable as reason:
            self._bad(at, number, reason)
            return None
        self._ids.count()
        if cut is not None:
            self._source.intake.cut_pages[cut] += 1
        return Document(
            key=key, text=text, path=self._source.path, line=number,
            numbered=self._ids.numbered, row=headers if self._keeps_rows else None,
        )

    def _bad(self, at: int, number: int, reason: Unusable | Unreadable) -> None:
        self._source.intake.bad(
            self._source.path, number, f"{reason} (at byte {at})", reason.remedy
        )


def _no_page(record: Record) -> str | None:
    """What a record is that is no document; None for one that may be."""
    if record.kind not in DOCUMENTS:
        return record.kind or "no type"
    if "WARC-Segment-Number" in record.headers:  # the first of those; others are continuations
        return "segment"
    if not record.body:
        return "empty"
    if record.headers.get(URI, "").startswith("metadata://"):  # wget's own log and arguments
        return "metadata"
    status = record.status
    if status is not None and (status == PARTIAL or not 200 <= status < 300):
        return f"status {status}"
    if record.media_type in HTML_TYPES or record.media_type in ("", "text/plain"):
        return None
    return record.media_type


def _is_html(record: Record, body: bytes) -> bool:
    return record.media_type in HTML_TYPES or (not record.media_type and is_markup(body))


def _no_text(record: Record, body: bytes) -> str | None:
    """What a decoded body is that is neither a page nor a text, as for files; None if it is one."""
    if record.kind == "conversion" and record.media_type not in HTML_TYPES:
        # Its text must be UTF-8, which takes less time to see.
        return f"{record.media_type or 'no type'} that is binary data" if b"\0" in body else None
    if _is_html(record, body):
        is_wide = is_utf16(body) or is_utf16(body[:HEAD_BYTES].lstrip(PADDING))
        binary = is_binary(body) and not is_wide
    elif not record.media_type:
        return "no type"
    else:
        is_wide = False
        binary = b"\0" in body or (is_binary(body) and not _is_utf8(body))
    found = foreign_by_magic(body)
    if found is None or (is_wide and found is UTF_16):
        what = "binary data" if binary else None
    else:
        what = found.what
    return None if what is None else f"{record.media_type or 'no type'} that is {what}"


def _is_utf8(body: bytes) -> bool:
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True


def _cut(record: Record) -> str | None:
    """How it is known that only the start of a page was stored; None if it is whole."""
    if record.cut:
        return "WARC-Truncated"
    return "shorter than its Content-Length" if record.is_short else None


def _text(record: Record, body: bytes, as_it_is: Extractor) -> str:
    """The text of a body as it is."""
    if record.kind == "conversion" and not _is_html(record, body):
        return decoded(unmarked(body))
    return as_it_is(body, record.charset)
