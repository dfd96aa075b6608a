"""Input files of every format and compression, standard input, and lists that options name.

    input    one byte that says which kind of file, then the file
"""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import lzma
import struct
import sys
import zlib
from contextlib import ExitStack
from unittest import mock

from fuzzing.target import Target, workplace
from simindex.cli import recipes
from simindex.cli.commands import delete
from simindex.inputs import csv_table, decompressors, json_lines, line_columns
from simindex.inputs.document import Intake
from simindex.inputs.document_columns import one_by_one
from simindex.inputs.read_options import ReadOptions
from simindex.inputs.reading import read, read_in_columns
from simindex.options import MAX_KEY_BYTES
from simindex.simhash import recipe_bytes

STDIN, KEYS, WORDS = "standard input", "list of keys", "list of stop words"

KINDS = (
    ".jsonl", ".csv", ".tsv", ".txt", ".jsonl.gz", ".csv.gz", ".txt.gz", ".jsonl.zst", ".txt.zst",
    ".jsonl.xz", ".txt.bz2", STDIN, KEYS, WORDS,
)
"""Suffixes of files, and what has none."""

LIMIT_BYTES = 1 << 12
"""Of a record: small, so that small files reach it."""

LIMITS = (
    (json_lines, "MAX_VALUES", 64), (json_lines, "BUFFER_BYTES", 64),
    (line_columns, "LEAST_LINES", 1), (csv_table, "MAX_COLUMNS", 16),
    (csv_table, "MAX_SEPARATORS", 64),
    (decompressors, "LARGE_WINDOW_BYTES", 1 << 11), (decompressors, "MAX_EXPANSION", 8),
    (delete, "MAX_KEY_BYTES", 64), (delete, "DELETED_AT_ONCE", 4),
    (delete, "DELETED_LENGTH", 64), (recipe_bytes, "MOST_HEADER_BYTES", 512),
)
"""Others, for the same reason."""

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
        lzma.compress(lines) + bytes(4) + lzma.compress(lines), bz2.compress(text),
    ]
    contents += [gzip.compress(lines), b"key 1\r\n\nkey 2\n" * 9, b"\xef\xbb\xbfthe\nof \n" * 5]
    return [bytes([kind]) + content for kind, content in enumerate(contents)] + [
        bytes([KINDS.index(STDIN)]) + content for content in (lines, contents[7])
    ]


def repair(data: bytes) -> bytes:
    """A .gz whose members end in checksum and size of what they hold, as far as they inflate."""
    if not data or not (_kind(data).endswith(".gz") or data[1:3] == b"\x1f\x8b"):
        return data
    return with_checksums(data)


def with_checksums(data: bytes) -> bytes:
    """The same of a byte and a .gz."""
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


def _kind(data: bytes) -> str:
    return KINDS[data[0] % len(KINDS)] if data else KINDS[0]


def execute(data: bytes) -> None:
    """Reads everything that the file holds, skipping bad records."""
    kind, content = _kind(data), data[1:]
    path = workplace() / ("input" if kind in (STDIN, KEYS, WORDS) else f"input{kind}")
    path.write_bytes(content)
    with ExitStack() as limits:
        for module, name, value in LIMITS:
            limits.enter_context(mock.patch.object(module, name, value))
        if kind == KEYS:
            for group in delete._groups(delete._listed_keys(str(path))):
                assert 0 < len(group) <= 4 and all(group)
        elif kind == WORDS:
            assert "" not in recipes._listed_words(str(path))
        else:
            standard = io.TextIOWrapper(io.BufferedReader(io.BytesIO(content)))
            limits.enter_context(mock.patch.object(sys, "stdin", standard))
            _read("-" if kind == STDIN else str(path))


def _read(path: str) -> None:
    options = ReadOptions(max_record_bytes=LIMIT_BYTES)
    intake = Intake(max_errors=None)
    found = []
    for document in read([path], options, intake):
        assert isinstance(document.text, str) and isinstance(document.key, str)
        assert len(document.key.encode()) <= MAX_KEY_BYTES
        assert len(document.text.encode()) <= LIMIT_BYTES * 2, "longer than its record"
        found.append(document._replace(raw=None, row=None))
    if path != "-":
        again = Intake(max_errors=None)
        columns = one_by_one(read_in_columns([path], options, again))
        some = [one._replace(raw=None, row=None) for one in columns]
        assert some == found, "other documents in columns"
        assert again == intake, "another account of columns"


TARGET = Target("input files", seeds, execute, repair)
