"""Formats that cannot be read, recognised by the first bytes so that none is taken for a text."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import PurePath

from simindex.inputs.fields import MISSING, field_of
from simindex.inputs.streams import COMPRESSIONS, compression_of, unmarked

HEAD_BYTES = 8192
"""What is looked at; a NUL byte among them makes a file a binary one, as in git."""

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

OBJECT = Foreign(
    "a JSON document", "write one object a line, as `jq -c .` does, or read it with --format text"
)

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
    Foreign("UTF-16 or UTF-32 text", "convert it to UTF-8 first", (b"\xff\xfe", b"\xfe\xff")),
)
"""The first that fits counts."""

_TAR_AT = 257

MARKUP = (b"<!doctype html", b"<html", b"<head", b"<body")


def foreign(path: str, head: bytes, text_field: str) -> Foreign | None:
    """The format by the first bytes, if it is one that cannot be read."""
    for one in FOREIGN:
        if head.startswith(one.magics):
            return one
    if head[_TAR_AT : _TAR_AT + 5] == b"ustar":
        return Foreign("a tar archive", _UNPACK)
    suffix = bare_suffix(path)
    if suffix == ".json" and not is_array(head) and not is_json_lines(head, text_field):
        return OBJECT
    return None


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
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return not end and len(line) >= LONG_LINE and line.startswith(b"{")
    return isinstance(record, dict) and field_of(record, text_field) is not MISSING


def is_markup(head: bytes) -> bool:
    """Whether it is HTML, by the tag it begins with."""
    return unmarked(head).lstrip()[:16].lower().startswith(MARKUP)


def bare_suffix(path: str) -> str:
    """The suffix in lower case, before that of a compression."""
    bare = PurePath(path).with_suffix("") if compression_of(path) else PurePath(path)
    return bare.suffix.lower()
