"""Readers of web archives, pages, columns, arrays and tables, and of each compression.

    input    one byte that says which kind of file, then the file

Nothing is printed, and no document is longer than its record may be.
"""

from __future__ import annotations

import base64
import bz2
import contextlib
import csv
import gzip
import hashlib
import io
import json
import lzma
import re
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from unittest import mock

from fuzzing import documents
from fuzzing.target import Target, workplace
from simindex.inputs import arc, csv_table, json_lines, markup, warc
from simindex.inputs.document import Intake
from simindex.inputs.read_options import ReadOptions
from simindex.inputs.reading import read, read_fingerprints
from simindex.options import MAX_KEY_BYTES

LIMIT_BYTES = 1 << 12
"""Of a record: small, so that small files reach it."""

MOST_TEXT_BYTES = 1 << 16
"""Of a document of such a record: a page may show more than it is long."""

LIMITS = (
    (json_lines, "MAX_VALUES", 64), (csv_table, "MAX_COLUMNS", 16),
    (csv_table, "MAX_SEPARATORS", 64), (warc, "MAX_HEAD_BYTES", 1024),
    (warc, "MAX_HTTP_BYTES", 1024), (arc, "MAX_LINE_BYTES", 1024),
    (arc, "MAX_LINES_BYTES", 1024), (markup, "MAX_TAGS", 256),
)
"""Others, for the same reason."""

TEXTS = (
    "The ferry leaves at six in the morning, every day.",
    "WARC/1.0\r\nLength: \u6f22\u5b57 \u00e9",
)


def _members(parts: Sequence[bytes]) -> bytes:
    return b"".join(gzip.compress(part, mtime=0) for part in parts)


def _record(kind: str, block: bytes, **headers: str) -> bytes:
    digest = base64.b32encode(hashlib.sha1(block, usedforsecurity=False).digest()).decode()
    headers = {"WARC-Type": kind, "Content-Length": str(len(block)), **headers}
    headers |= {"WARC-Block-Digest": f"sha1:{digest}"} if kind == "response" else {}
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"WARC/1.0\r\n{head}\r\n".encode() + block + b"\r\n\r\n"


def _answers() -> list[bytes]:
    pages = [f"<html><body><p>{text}</p></body></html>".encode() for text in TEXTS]
    packed = gzip.compress(pages[0], mtime=0)
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n"
    chunks = b"%x\r\n%s\r\n0\r\n\r\n" % (len(pages[1]), pages[1])
    packed_chunks = b"%x\r\n%s\r\n0\r\n\r\n" % (len(packed), packed)
    return [
        head + b"\r\n" + pages[0], head + b"Transfer-Encoding: chunked\r\n\r\n" + chunks,
        head + b"Content-Encoding: gzip\r\n\r\n" + gzip.compress(pages[0], mtime=0),
        head + b"Content-Encoding: br\r\n\r\n\x0b\x02\x80hello\x03",
        head + b"Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n" + packed_chunks,
        head + b"\r\n" + packed, head + b"Content-Length: 9999\r\n\r\n" + pages[0],
    ]


def _warc_seeds() -> list[bytes]:
    target = {"WARC-Target-URI": "http://a/"}
    pages = [_record("warcinfo", b"software: none"), _record("request", b"GET / HTTP/1.1\r\n\r\n")]
    pages += [
        _record("response", block, **target, **{"Content-Type": "application/http"})
        for block in _answers()
    ]
    wet = [
        _record("conversion", text.encode(), **target, **{"Content-Type": "text/plain"})
        for text in TEXTS
    ]
    pages.append(pages[2].lower().replace(b"warc/1.0", b"WARC/1.0"))
    swallowing = re.sub(
        rb"Content-Length: ([0-9]+)",
        lambda found: b"Content-Length: %d" % (int(found[1]) + len(wet[1])), wet[0], count=1,
    )
    pages += [swallowing, wet[1]]
    contents = [b"".join(pages), _members(pages), b"".join(wet), _members(wet)]
    return [*contents, gzip.compress(contents[0], mtime=0)]


def _arc_seeds() -> list[bytes]:
    version = b"1 0 Alexa\nURL IP-address Archive-date Content-type Archive-length\n"
    records = [b"filedesc://a.arc 0.0.0.0 20260101000000 text/plain %d\n%s\n" % (
        len(version), version
    )]
    records += [
        b"http://a/ 1.2.3.4 20260101000000 text/html %d\n%s\n" % (len(block), block)
        for block in _answers()
    ]
    return [b"".join(records), _members(records)]


def _html_seeds() -> list[bytes]:
    page = (
        "<!doctype html><html><head><title>A title</title><meta charset=utf-8></head><body><nav>"
        f"<a href=/>Home</a></nav><main><p>{TEXTS[0]}<p>{TEXTS[1]}<ul><li>one<li>two</ul>"
        "<table><tr><td>a</table><pre>x\n y</pre></main></body></html>"
    )
    return [page.encode(), page.encode("utf-16"), page.encode("latin-1", "replace")] * 2


def _columns_seeds() -> list[bytes]:
    import pyarrow
    from pyarrow import feather, ipc, parquet

    rows = pyarrow.table({
        "id": ["a", "b", None], "text": [*TEXTS, "three"], "more": [[1], None, [2, 3]],
    })
    made = []
    for compression in ("none", "zstd"):
        out = io.BytesIO()
        parquet.write_table(rows, out, compression=compression)
        made.append(out.getvalue())
    for new in (ipc.new_file, ipc.new_stream):
        out = io.BytesIO()
        with new(out, rows.schema) as writer:
            writer.write_table(rows)
        made.append(out.getvalue())
    out = io.BytesIO()
    feather.write_feather(rows, out, compression="lz4")
    return [*made, out.getvalue()]


def _array_seeds() -> list[bytes]:
    records = [{"id": number, "text": text, "more": [1, {"a": None}]} for number, text in enumerate(
        TEXTS
    )]
    plain = json.dumps(records).encode()
    return [plain, json.dumps(records, indent=1).encode(), gzip.compress(plain, mtime=0)]


def _table_seeds() -> list[bytes]:
    made = []
    for mark in ",\t;|":
        out = io.StringIO()
        if mark in "\t;":
            writer = csv.writer(out, delimiter=mark, quoting=csv.QUOTE_ALL)
        else:
            writer = csv.writer(out, delimiter=mark)
        writer.writerows([["id", "text"], *enumerate(TEXTS), ["b", 'x "y"\n' + mark]])
        made.append(out.getvalue().encode())
    return made


def _compressed_seeds() -> list[bytes]:
    import zstandard

    lines = b"".join(json.dumps({"text": text}).encode() + b"\n" for text in TEXTS * 3)
    trained = zstandard.train_dictionary(300, [b'{"text": "%d of many"}\n' % n for n in range(200)])
    held = trained.as_bytes()
    framed = b"\x5d\x2a\x4d\x18" + len(held).to_bytes(4, "little") + held
    return [
        _members([lines, b"", lines]),
        zstandard.ZstdCompressor(write_checksum=True).compress(lines),
        lzma.compress(lines) + bytes(4) + lzma.compress(lines), bz2.compress(lines),
        lines, framed + zstandard.ZstdCompressor(dict_data=trained).compress(lines),
    ]


def _numpy_seeds() -> list[bytes]:
    import numpy as np

    made = []
    for rows in (np.arange(5, dtype=np.uint64), np.arange(8, dtype=np.uint64).reshape(4, 2)):
        out = io.BytesIO()
        np.save(out, rows)
        made.append(out.getvalue())
    made.append(gzip.compress(made[0] + made[1], mtime=0))
    return [bytes([number]) + seed for number, seed in enumerate(made)]


def _array_kind(data: bytes) -> str:
    return _NUMPY[data[0] % len(_NUMPY)] if data else _NUMPY[0]


def _repaired_array(data: bytes) -> bytes:
    return documents.with_checksums(data) if _array_kind(data).endswith(".gz") else data


def _read_rows(data: bytes) -> None:
    path = workplace() / f"input{_array_kind(data)}"
    path.write_bytes(data[1:])
    for some in read_fingerprints([str(path)], ReadOptions(), Intake(max_errors=None)):
        assert len(some.batch) == len(some.lines)


_NUMPY = (".npy", ".npy", ".npy.gz")


def _target(
    what: str, kinds: Sequence[str], seeds: Callable[[], list[bytes]],
    options: Sequence[dict[str, str]] = ({},),
) -> Target:
    """The target of the readers of files with these suffixes; there is a seed for each."""

    def kind(data: bytes) -> str:
        return kinds[data[0] % len(kinds)] if data else kinds[0]

    def with_kinds() -> list[bytes]:
        return [bytes([number]) + seed for number, seed in enumerate(seeds())]

    def repair(data: bytes) -> bytes:
        return documents.with_checksums(data) if kind(data).endswith(".gz") else data

    def execute(data: bytes) -> None:
        path = workplace() / f"input{kind(data)}"
        path.write_bytes(data[1:])
        number = data[0] // len(kinds) % len(options) if data else 0
        printed = io.StringIO()
        with ExitStack() as limits:
            for module, name, value in LIMITS:
                limits.enter_context(mock.patch.object(module, name, value))
            limits.enter_context(contextlib.redirect_stdout(printed))
            limits.enter_context(contextlib.redirect_stderr(printed))
            asked = ReadOptions(max_record_bytes=LIMIT_BYTES, **options[number])  # type: ignore[arg-type]
            for document in read([str(path)], asked, Intake(max_errors=None)):
                assert isinstance(document.text, str) and isinstance(document.key, str)
                assert len(document.key.encode()) <= MAX_KEY_BYTES
                assert len(document.text.encode()) <= MOST_TEXT_BYTES, "longer than its record"
        assert not printed.getvalue(), "printed what belongs in an error"

    return Target(what, with_kinds, execute, repair)


TARGETS = {
    "warc": _target(
        "WARC and WET files", (".warc", ".warc.gz", ".wet", ".wet.gz", ".warc.gz"), _warc_seeds,
        ({}, {"html": "raw"}),
    ),
    "arc": _target("ARC files", (".arc", ".arc.gz"), _arc_seeds, ({}, {"html": "raw"})),
    "html": _target("pages", (".html",), _html_seeds, ({}, {"html": "raw"})),
    "cells": _target(
        "files of columns", (".parquet", ".parquet", ".arrow", ".arrows", ".feather"),
        _columns_seeds,
    ),
    "arrays": _target("JSON arrays", (".json", ".json", ".json.gz"), _array_seeds),
    "tables": _target("tables", (".csv", ".tsv", ".csv", ".csv"), _table_seeds),
    "compressed": _target(
        "compressed files",
        (".jsonl.gz", ".jsonl.zst", ".jsonl.xz", ".jsonl.bz2", ".jsonl.gz", ".jsonl.zst"),
        _compressed_seeds,
    ),
    "numpy": Target("arrays of numpy", _numpy_seeds, _read_rows, _repaired_array),
}
