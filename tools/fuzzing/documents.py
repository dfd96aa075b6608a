"""Input files of every format and compression, as a command would read them.

    input    one byte that says which kind of file, then the file
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import struct
import zlib

from fuzzing.target import Target, workplace
from simindex.inputs import Intake, ReadOptions, read
from simindex.records import MAX_KEY_BYTES

SUFFIXES = (
    ".jsonl", ".csv", ".tsv", ".txt", ".jsonl.gz", ".csv.gz", ".txt.gz", ".jsonl.zst", ".txt.zst",
)

LIMIT_BYTES = 1 << 12
"""Of a record: small, so that small files reach it."""

LINES = [
    {"id": "one", "text": "the quick brown fox"},
    {"id": 2, "text": "jumps over\nthe lazy dog", "more": [1, {"a": None}]},
    {"text": "\u6f22\u5b57 \u00e9"},
]


def seeds() -> list[bytes]:
    """A small file of each kind."""
    import zstandard

    lines = "".join(json.dumps(line) + "\n" for line in LINES).encode()
    table = io.StringIO()
    csv.writer(table).writerows([["id", "text"], ["a", "one, \"two\""], ["b", "three\nfour"]])
    commas = table.getvalue().encode()
    text = b"\xef\xbb\xbfA text\r\nof two lines.\n" * 3
    contents = [
        lines, commas, commas.replace(b",", b"\t"), text,
        gzip.compress(lines), gzip.compress(commas) + gzip.compress(b"c,d\n"), gzip.compress(text),
        zstandard.ZstdCompressor(write_checksum=True).compress(lines),
        zstandard.compress(text) + zstandard.compress(b"more"),
    ]
    return [bytes([kind]) + content for kind, content in enumerate(contents)]


def repair(data: bytes) -> bytes:
    """A .gz whose members end in checksum and size of what they hold, as far as they inflate."""
    if not data or not SUFFIXES[data[0] % len(SUFFIXES)].endswith(".gz"):
        return data
    made, rest = [data[:1]], data[1:]
    while rest:
        inflater = zlib.decompressobj(-15)
        try:
            header = _header_bytes(rest)
            text = inflater.decompress(rest[header:], 1 << 20)
        except (zlib.error, ValueError):
            break
        if not inflater.eof:
            break
        end = len(rest) - len(inflater.unused_data)
        made.append(rest[:end] + struct.pack("<II", zlib.crc32(text), len(text) & 0xFFFFFFFF))
        rest = rest[end + 8 :]
    return b"".join([*made, rest])


def _header_bytes(member: bytes) -> int:
    """Length of a member's header, which may hold a name and more."""
    if len(member) < 10:
        raise ValueError("cut off")
    flags, at = member[3], 10
    if flags & 4:
        at += 2 + int.from_bytes(member[10:12], "little")
    for flag in (8, 16):
        if flags & flag:
            at = member.index(b"\0", at) + 1
    return at + (2 if flags & 2 else 0)


def execute(data: bytes) -> None:
    """Reads every document of the file, skipping what is none."""
    kind = data[0] % len(SUFFIXES) if data else 0
    path = workplace() / f"input{SUFFIXES[kind]}"
    path.write_bytes(data[1:])
    options = ReadOptions(max_record_bytes=LIMIT_BYTES)
    for document in read([str(path)], options, Intake(max_errors=None)):
        assert isinstance(document.text, str) and isinstance(document.key, str)
        assert len(document.key.encode()) <= MAX_KEY_BYTES
        assert len(document.text.encode()) <= LIMIT_BYTES * 2, "longer than its record"


TARGET = Target("input files", seeds, execute, repair)
