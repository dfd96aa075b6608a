"""Web archives: WARC and WET through fastwarc, ARC through warcio, one document a page.

    response, resource    HTML: its main text (`markup`); plain text as it is
    conversion            the text of a WET file
    others                no documents: requests, revisits, metadata, images, error pages ...

A record is decompressed as it is read, and so is what a server compressed. A record that is not as
its headers say becomes no document, and costs no other record: see `records`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from simindex.inputs.arc import ArcRecords
from simindex.inputs.document import Document, Ids, Source, Unusable
from simindex.inputs.foreign import is_markup
from simindex.inputs.http_body import body_of
from simindex.inputs.markup import RAW, Extractor, extractor
from simindex.inputs.records import DOCUMENTS, URI, Record, Records
from simindex.inputs.streams import Unreadable, decoded, unmarked
from simindex.inputs.warc import WarcRecords
from simindex.inputs.window import Window

HTML_TYPES = {"text/html", "application/xhtml+xml", "application/vnd.wap.xhtml+xml"}

MORE_BYTES = 1 << 21
"""Of an archive that are held in addition to the longest record: headers, and what was read ahead.
"""


def read_warc(stream: BinaryIO, source: Source) -> Iterator[Document]:
    """Pages and texts of a WARC or WET file, in its order.

    The key is the address (`WARC-Target-URI`), or the header that the caller named, else
    ``name:number`` of the record. Bad records, at their number in the file: what cannot be
    decompressed or is longer than the limit, damaged headers, HTML that `markup` refuses, a record
    that is not whole, whose length is wrong or whose digest differs, and bytes that are no record.
    After damage the next record is looked for; in a .gz that is damaged itself the next member.
    """
    yield from _documents(WarcRecords(_window(stream, source), source), source)


def read_arc(stream: BinaryIO, source: Source) -> Iterator[Document]:
    """The same of an ARC file, the older form."""
    yield from _documents(ArcRecords(_window(stream, source), source), source)


def _window(stream: BinaryIO, source: Source) -> Window:
    return Window(stream, source.limit + MORE_BYTES)


def _documents(records: Records, source: Source) -> Iterator[Document]:
    text_of, as_it_is, intake = extractor(source.html), extractor(RAW), source.intake
    ids = Ids(source, "header", (URI,))
    for record in records:
        other = _no_page(record)
        if other is not None:
            intake.other_records[other] += 1
            continue
        try:
            if record.long:
                raise Unusable(f"longer than {source.limit} bytes")
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
