"""Formats that cannot be read, recognised by the first bytes so that none is taken for a text."""

from __future__ import annotations

import json
import re

from simindex.inputs.binary_data import HEAD_BYTES as HEAD_BYTES
from simindex.inputs.binary_data import is_binary as is_binary
from simindex.inputs.fields import MISSING, field_of
from simindex.inputs.remote_files import file_name
from simindex.inputs.streams import COMPRESSIONS, suffix_of, unmarked
from simindex.values import dataclass

HTML_SUFFIXES = (".html", ".htm", ".xhtml")

XML_SUFFIXES = (".xml", ".rss", ".atom")

LONG_LINE = 1024
"""No line of JSON is as long that was laid out for people."""


@dataclass(frozen=True, slots=True)
class Foreign:
    """A format that cannot be read, and what its user can do."""

    what: str
    """With its article, such as `a PDF file`."""
    remedy: str
    magics: tuple[bytes, ...] = ()


_EXPORT = "export its texts as JSON lines, CSV or text files first"
_UNPACK = "unpack it first"
_LEAVE = "leave it out, with --exclude if it is in a folder"
_ONE_TEXT = ", or read all of it as one text with --format text"
_RECORDS = "export its records as JSON lines first" + _ONE_TEXT

UTF_16 = Foreign("UTF-16 or UTF-32 text", "convert it to UTF-8 first", (b"\xff\xfe", b"\xfe\xff"))

MAILBOX = Foreign(
    "a mailbox", "export its messages as JSON lines first" + _ONE_TEXT
)
XML = Foreign("an XML file", _RECORDS)
ROOTS = {
    b"rss": Foreign("an RSS feed", _RECORDS), b"feed": Foreign("an Atom feed", _RECORDS),
    b"rdf:rdf": Foreign("an RSS feed, or other RDF", _RECORDS),
    b"mediawiki": Foreign("an XML dump of a wiki", _RECORDS),
    b"svg": Foreign("an SVG image", _LEAVE),
}
"""XML by the name of its first element."""

OBJECT = Foreign(
    "a JSON document", "write one object a line, as `jq -c .` does, or read it with --format text"
)

_TABLES = (".csv", ".tsv")
_LINES = (".jsonl", ".ndjson")

TWICE = Foreign("compressed more than once", "decompress it once")

FOREIGN = (
    Foreign("a Feather file of version 1", "write it again with a newer pyarrow", (b"FEA1",)),
    Foreign("a PDF file", _EXPORT, (b"%PDF-",)),
    Foreign("an SQLite database", _EXPORT, (b"SQLite format 3\0",)),
    Foreign("an HDF5 file", _EXPORT, (b"\x89HDF\r\n",)),
    Foreign("an Office document", _EXPORT, (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", b"{\\rtf1")),
    Foreign("a ZIP archive, or an Office document", _UNPACK, (b"PK\x03\x04", b"PK\x05\x06")),
    Foreign("a 7z archive", _UNPACK, (b"7z\xbc\xaf\x27\x1c",)),
    Foreign("a RAR archive", _UNPACK, (b"Rar!\x1a\x07",)),
    Foreign("an xz file", "give its name the suffix .xz", COMPRESSIONS[".xz"]),
    Foreign("a bzip2 file", "give its name the suffix .bz2", COMPRESSIONS[".bz2"]),
    Foreign("a gzip file", "give its name the suffix .gz", (b"\x1f\x8b\x08",)),
    Foreign("a Zstandard file", "give its name the suffix .zst", COMPRESSIONS[".zst"]),
    Foreign("an lzma file", _UNPACK, (b"\x5d\0\0",)),
    Foreign("an lz4 file", _UNPACK, (b"\x04\x22\x4d\x18",)),
    Foreign("a file of compress (.Z)", _UNPACK, (b"\x1f\x9d",)),
    Foreign("a PNG image", _LEAVE, (b"\x89PNG\r\n",)),
    Foreign("a JPEG image", _LEAVE, (b"\xff\xd8\xff",)),
    Foreign("a GIF image", _LEAVE, (b"GIF87a", b"GIF89a")),
    Foreign("an Avro file", _EXPORT, (b"Obj\x01",)),
    Foreign("a program (ELF)", _LEAVE, (b"\x7fELF",)),
    UTF_16,
)
"""The first that fits counts."""

_FOREIGN_MAGICS = tuple(magic for one in FOREIGN for magic in one.magics)

_TAR_AT = 257

MARKUP = (b"<!doctype html", b"<html", b"<head", b"<body")

_PROLOGUE = rb"(?is)(?:\s++|<\?xml\b[^>]*+>|<!--.*?-->)*+"
"""What may stand in front of the first tag of HTML or XML."""

_ROOT = (
    rb"(?is)(?:\s++|<\?[^>]*+>|<!--.*?-->|<!DOCTYPE[^>[]*+(?:\[[^]]*+\][^>]*+)?>)*+"
    rb"<([a-z_][a-z0-9_:.-]*+)"
)

_FROM = (
    rb"From \S+[ \t]+(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)\b|[^\n]{0,40}?[0-9]{1,2}:[0-9]{2})"
)
"""The line in front of a message in a mailbox."""


def foreign(path: str, head: bytes, text_field: str) -> Foreign | None:
    """The format by the first bytes, if it is one that cannot be read."""
    suffix = bare_suffix(path)
    one = foreign_by_magic(head)
    if one is not None:
        is_compressed = any(head.startswith(magics) for magics in COMPRESSIONS.values())
        if is_compressed and suffix_of(file_name(path)) in COMPRESSIONS:
            return TWICE
        html = one is UTF_16 and (suffix in HTML_SUFFIXES or is_markup(head))
        return None if html else one
    if head[_TAR_AT : _TAR_AT + 5] == b"ustar":
        return Foreign("a tar archive", _UNPACK)
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return Foreign("a WebP image", _LEAVE)
    if head[:3] == b"ORC" and is_binary(head):
        return Foreign("an ORC file", _EXPORT)
    if suffix == ".json" and head and not is_array(head) and not is_json_lines(head, text_field):
        return OBJECT if not _later_lines(head, text_field) else None
    if suffix in (*_TABLES, *_LINES):
        return _in_disguise(suffix, head, text_field)
    if suffix == ".mbox" or re.match(_FROM, head):
        return MAILBOX
    return None if is_markup(head) or suffix in HTML_SUFFIXES else _xml(suffix, unmarked(head))


def _in_disguise(suffix: str, head: bytes, text_field: str) -> Foreign | None:
    """What a file is that has the suffix of a table or of JSON lines, and is neither."""
    if is_markup(head):
        return Foreign(f"HTML with the suffix {suffix}", "give its name the suffix .html")
    array = re.match(rb"\s*\[\s*\{", unmarked(head)) is not None
    if suffix in _TABLES and (array or is_json_lines(head, text_field)):
        kind = "json" if array else "jsonl"
        return Foreign(f"JSON with the suffix {suffix}", f"give its name the suffix .{kind}")
    # Of nearly all languages, one byte of two is 0 where there are spaces and punctuation.
    zeros = [head[first::2].count(0) for first in (0, 1)]
    return UTF_16 if min(zeros) * 8 < max(zeros) and max(zeros) * 16 > len(head) else None


def foreign_by_magic(head: bytes) -> Foreign | None:
    """The format that the first bytes name by themselves, if it is one that cannot be read."""
    if not head.startswith(_FOREIGN_MAGICS):
        return None
    return next(one for one in FOREIGN if head.startswith(one.magics))


def _xml(suffix: str, head: bytes) -> Foreign | None:
    """What kind of XML a file is, by its declaration, its first element or its suffix."""
    root = re.match(_ROOT, head)
    name = b"" if root is None else root[1].lower()
    declared = suffix in XML_SUFFIXES or head[:6].lower() == b"<?xml "
    if declared or (name in ROOTS and b"xmlns" in head) or head.startswith(b"<rss version="):
        return ROOTS.get(name, XML)
    return None


BINARY = "binary data"
"""What `looks_like` says of bytes that are neither a text nor a format it knows."""


def looks_like(head: bytes) -> str:
    """What a file is by its first bytes, with its article, for a message."""
    found = foreign("", head, "")
    if found is not None:
        return found.what
    if is_markup(head):
        return "HTML"
    if is_binary(head):
        return BINARY
    return "JSON" if is_array(head) or head.lstrip()[:2] in (b'{"', b"{\n", b"{}") else "text"


def is_utf16(data: bytes) -> bool:
    """Whether HTML is in UTF-16: by the byte order mark, or by the first tag."""
    return data.startswith(UTF_16.magics) or data[:2] in (b"<\0", b"\0<")


def is_array(head: bytes) -> bool:
    """Whether an array begins that is not whole on its line, or that nothing follows."""
    line, _, rest = unmarked(head).lstrip().partition(b"\n")
    if not line.startswith(b"["):
        return False
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return True
    return not rest.strip()


def is_json_lines(head: bytes, text_field: str) -> bool:
    """Whether the first line is an object with a text, or is too long to know."""
    line, end, _ = unmarked(head).lstrip().partition(b"\n")
    if not line.startswith(b"{"):
        return False
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return not end and len(line) >= LONG_LINE
    return isinstance(record, dict) and field_of(record, text_field) is not MISSING


def _later_lines(head: bytes, text_field: str) -> bool:
    """Whether most lines after the first are objects with a text: then that one is damaged."""
    lines = [line for line in head.split(b"\n")[1:-1] if line.strip()]
    return sum(is_json_lines(line, text_field) for line in lines) > len(lines) / 2


def is_markup(data: bytes) -> bool:
    """Whether it is HTML, by the tag it begins with, after comments and a declaration of XML."""
    head = data[:HEAD_BYTES]
    if head.startswith(UTF_16.magics):
        head = head.decode("utf-16", "ignore").encode("utf-8", "ignore")
    head = unmarked(head)
    at = re.match(_PROLOGUE, head)
    return head[at.end() if at else 0 :][:16].lower().startswith(MARKUP)


def bare_suffix(path: str) -> str:
    """The suffix in lower case, before that of a compression."""
    name = file_name(path)
    suffix = suffix_of(name)
    return suffix_of(name[: -len(suffix)]) if suffix in COMPRESSIONS else suffix
