"""Segments of a record, partial answers and pages that the crawler had cut became documents of a
web archive like all others, without a word.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from web_records import answer, gzipped, record, response

pytest.importorskip("fastwarc")
pytest.importorskip("resiliparse")

from simindex.cli.account import met
from simindex.inputs.document import Intake
from simindex.inputs.read_options import ReadOptions
from simindex.inputs.reading import read

TEXT = "The ferry leaves at six in the morning, every day."
PAGE = f"<html><body><main><p>{TEXT}</p></main></body></html>".encode()


def taken(path: Path, data: bytes) -> tuple[list[str], Intake]:
    path.write_bytes(data)
    intake = Intake()
    return [one.text.strip() for one in read([str(path)], ReadOptions(), intake)], intake


def page(block: bytes, **headers: str) -> bytes:
    return record("response", block, Content_Type="application/http", **headers)


def test_a_segment_is_no_document(tmp_path: Path) -> None:
    block = answer(PAGE)
    found, intake = taken(tmp_path / "a.warc", b"".join([
        page(block[:90], WARC_Segment_Number="1"),
        record("continuation", block[90:], WARC_Segment_Number="2"),
        record("conversion", b"Some words", Content_Type="text/plain", WARC_Segment_Number="1"),
    ]))
    assert found == [] and dict(intake.other_records) == {"segment": 2, "continuation": 1}


def test_a_partial_answer_is_no_document(tmp_path: Path) -> None:
    found, intake = taken(tmp_path / "a.warc", page(answer(PAGE[20:], status=206)))
    assert found == [] and dict(intake.other_records) == {"status 206": 1}


def test_a_cut_page_is_a_document_and_is_told_of(tmp_path: Path) -> None:
    cut = b"<p>The ferry leaves"
    found, intake = taken(tmp_path / "a.warc", b"".join([
        page(answer(cut), WARC_Truncated="length"),
        page(answer(gzipped(PAGE)[:-8], Content_Encoding="gzip"), WARC_Truncated="time"),
        response("http://a/", cut, Content_Length="9999"), response("http://b/", PAGE),
    ]))
    assert found == ["The ferry leaves", TEXT, "The ferry leaves", TEXT]
    assert list(met(intake)) == [
        "3 documents of archives: only the start of the page was stored (2 WARC-Truncated, "
        "1 shorter than its Content-Length)"
    ]


@pytest.mark.parametrize(
    "headers",
    [
        {"Content_Length": str(len(PAGE))}, {"Content_Length": "3"}, {"Content_Length": "many"},
        {"Content_Length": "9999", "Content_Encoding": "gzip"},  # which the crawler has undone
        {"Content_Length": "9999", "Transfer_Encoding": "chunked"},
        {"Content_Length": "9999", "content_length": str(len(PAGE))},
        {"Content_Length": "9" * 5000},
    ],
)
def test_a_whole_page_is_not_called_cut(tmp_path: Path, headers: dict[str, str]) -> None:
    found, intake = taken(tmp_path / "a.warc", response("http://a/", PAGE, **headers))
    assert (found, list(met(intake))[:1]) == ([TEXT], [])


def test_an_archive_of_the_older_form_tells_of_cut_pages(tmp_path: Path) -> None:
    block = answer(PAGE[:60], Content_Length="9999")
    version = b"1 0 a\nURL IP-address Archive-date Content-type Archive-length\n"
    data = b"filedesc://a.arc 0.0.0.0 20260101000000 text/plain %d\n%s\n" % (len(version), version)
    data += b"http://a/9 1.2.3.4 20260101000000 text/html %d\n%s\n" % (len(block), block)
    found, intake = taken(tmp_path / "a.arc", data)
    assert len(found) == 1 and dict(intake.cut_pages) == {"shorter than its Content-Length": 1}
