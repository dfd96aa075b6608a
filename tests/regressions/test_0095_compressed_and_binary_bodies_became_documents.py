"""Bodies of web archives that were compressed on the way, without a header that says so, or that
were no pages at all, became documents of garbage.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from web_records import gzipped, record, response

pytest.importorskip("fastwarc")
pytest.importorskip("resiliparse")

from simindex.inputs.document import Intake
from simindex.inputs.read_options import ReadOptions
from simindex.inputs.reading import read

TEXT = "The ferry leaves at six in the morning, every day."
PAGE = f"<html><body><main><p>{TEXT}</p></main></body></html>".encode()
PDF = b"%PDF-1.4\n" + bytes(range(256)) * 40


def chunked(body: bytes) -> bytes:
    return b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)


def take(path: Path, data: bytes, **options: Any) -> tuple[list[str], list[str], dict[str, int]]:
    path.write_bytes(data)
    bad: list[str] = []
    intake = Intake(max_errors=None, report=lambda one: bad.append(one.reason))
    found = read([str(path)], ReadOptions(**options), intake)
    return [one.text.strip() for one in found], bad, dict(intake.other_records)


def with_headers(headers: bytes) -> Callable[[bytes], bytes]:
    """Makes a record of a page with these headers of a body."""

    def made(body: bytes) -> bytes:
        block = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n" + headers + b"\r\n" + body
        return record("response", block, Content_Type="application/http")

    return made


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (chunked(gzipped(PAGE)), b"Transfer-Encoding: gzip, chunked\r\n"),
        (chunked(gzipped(PAGE)), b"Transfer-Encoding: gzip\r\ntransfer-encoding: chunked\r\n"),
        (chunked(gzipped(PAGE)), b"Transfer-Encoding: x-gzip;q=1,chunked, chunked\r\n"),
        (gzipped(PAGE), b"Transfer-Encoding: gzip\r\n"),
        (chunked(gzipped(gzipped(PAGE))),
         b"Content-Encoding: gzip\r\nTransfer-Encoding: gzip, chunked\r\n"),
        (gzipped(gzipped(PAGE)), b"Content-Encoding: gzip\r\nContent-Encoding: gzip\r\n"),
        (gzipped(PAGE), b""),
        (gzipped(gzipped(PAGE)), b"Content-Encoding: gzip\r\n"),
        (gzip.compress(PAGE, mtime=0x7A7A7A7A), b""),
    ],
)
def test_all_encodings_are_undone(tmp_path: Path, body: bytes, headers: bytes) -> None:
    assert take(tmp_path / "a.warc", with_headers(headers)(body)) == ([TEXT], [], {})


@pytest.mark.parametrize("html", ["resiliparse", "raw"])
@pytest.mark.parametrize(
    ("body", "media_type", "what"),
    [
        (PDF, "text/html", "a PDF file"), (PDF, "text/plain", "a PDF file"),
        (b"%PDF-1.4\nonly words", "text/plain", "a PDF file"),
        (bytes(range(256)), "text/html", "binary data"),
        (gzipped(PDF), "text/html", "a PDF file"),
        (gzipped(PAGE)[:-20], "text/html", "a gzip file"),
        (gzipped(PAGE)[:-20], "text/plain", "a gzip file"),
        (gzipped(b"x" * 10**6), "text/html", "a gzip file"),
        (bytes(byte for byte in range(1, 256)), "text/plain", "binary data"),
    ],
)
def test_what_is_no_page_is_no_document(
    tmp_path: Path, body: bytes, media_type: str, what: str, html: str
) -> None:
    data = response("http://a/", body, media_type) + response("http://b/", PAGE)
    found, bad, others = take(tmp_path / "a.warc", data, html=html, max_record_bytes=20_000)
    assert len(found) == 1 and TEXT in found[0]
    assert (bad, others) == ([], {f"{media_type} that is {what}": 1})


@pytest.mark.parametrize("name", ["utf-16", "utf-16le", "utf-16be"])
def test_pages_of_two_bytes_a_character_are_pages(tmp_path: Path, name: str) -> None:
    page = ("\r\n" + PAGE.decode()).encode(name)
    data = response("http://a/", page, f"text/html; charset={name}")
    assert take(tmp_path / "a.warc", data) == ([TEXT], [], {})


def test_a_text_of_a_wet_file_with_nul_bytes_is_no_text(tmp_path: Path) -> None:
    data = record("conversion", b"some\0words", Content_Type="text/plain")
    others = {"text/plain that is binary data": 1}
    assert take(tmp_path / "a.wet", data) == ([], [], others)


def test_an_encoding_that_is_unknown_is_a_bad_record(tmp_path: Path) -> None:
    found, bad, _ = take(tmp_path / "a.warc", with_headers(b"Transfer-Encoding: zebra\r\n")(PAGE))
    assert (found, bad) == ([], ["transfer encoding 'zebra' cannot be read (at byte 0)"])


def test_no_body_is_decoded_without_end(tmp_path: Path) -> None:
    named = b"Content-Encoding: " + b"gzip, " * 9 + b"\r\n"
    found, bad, _ = take(tmp_path / "a.warc", with_headers(named)(PAGE))
    assert (found, bad) == ([], ["is encoded more than 8 times (at byte 0)"])
