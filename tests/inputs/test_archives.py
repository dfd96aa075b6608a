"""Web archives: a page becomes a document, whole or not at all, and what is dropped is told."""

from __future__ import annotations

import gzip
import io
import random
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from web_records import answer, gzipped, record, response

from simindex.errors import MissingExtra

Take = Callable[..., Any]

TEXT = "The ferry leaves at {} in the morning, every day."
PAGE = f"<html><body><main><p>{TEXT}</p></main></body></html>"
OTHER = {"request": 1, "warcinfo": 1}
NOISE = [record("warcinfo", b"software: none"), record("request", b"GET / HTTP/1.1\r\n\r\n")]


def page(hour: str) -> bytes:
    return PAGE.format(hour).encode()


def pages(*hours: str) -> list[bytes]:
    return [response(f"http://a/{hour}", page(hour)) for hour in hours]


def chunked(body: bytes, size: int = 30) -> bytes:
    parts = [body[at : at + size] for at in range(0, len(body), size)]
    return b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


def brotli(body: bytes) -> bytes:
    from fastwarc.stream_io import BrotliWriter

    class Kept(io.BytesIO):
        def close(self) -> None:
            """Nothing: the writer closes what it wrote to."""

    out = Kept()
    writer = BrotliWriter(out)  # type: ignore[arg-type]
    writer.write(body)
    writer.close()
    return out.getvalue()


def texts(documents: list[Any]) -> dict[str, str]:
    return {document.key: document.text.strip() for document in documents}


@pytest.mark.parametrize("name", ["a.warc", "a.warc.gz", "members.warc.gz", "a.bin"])
def test_pages_are_documents_of_their_addresses(tmp_path: Path, take: Take, name: str) -> None:
    records = [*NOISE, *pages("six", "seven")]
    data = b"".join(map(gzipped, records)) if name[0] == "m" else b"".join(records)
    if name == "a.warc.gz":
        data = gzip.compress(data)
    (tmp_path / name).write_bytes(data)
    documents, bad, intake = take(tmp_path / name)
    expected = {f"http://a/{hour}": TEXT.format(hour) for hour in ("six", "seven")}
    assert (texts(documents), bad, dict(intake.other_records)) == (expected, [], OTHER)
    assert [document.line for document in documents] == [3, 4]
    assert documents[0].fields["WARC-Target-URI"] == "http://a/six"


def test_wet_files_hold_texts(tmp_path: Path, take: Take) -> None:
    text = "Ein Text mit Umlauten: äöü, 中文"
    (tmp_path / "a.wet").write_bytes(
        record("conversion", text.encode(), WARC_Target_URI="http://a/", Content_Type="text/plain")
    )
    documents, bad, _ = take(tmp_path / "a.wet")
    assert (texts(documents), bad) == ({"http://a/": text}, [])


def test_arc_files_are_read(tmp_path: Path, take: Take) -> None:
    block = answer(page("nine"))
    head = b"filedesc://a.arc 0.0.0.0 20260101000000 text/plain %d\n"
    version = b"1 0 a\nURL IP-address Archive-date Content-type Archive-length\n"
    arc = head % len(version) + version + b"\n"
    at = len(arc)
    arc += b"http://a/9 1.2.3.4 20260101000000 text/html %d\n" % len(block) + block + b"\n"
    (tmp_path / "a.arc").write_bytes(arc)
    documents, bad, _ = take(tmp_path / "a.arc")
    assert (texts(documents), bad) == ({"http://a/9": TEXT.format("nine")}, [])
    (tmp_path / "a.arc").write_bytes(arc[:-40])
    documents, bad, _ = take(tmp_path / "a.arc")
    assert documents == [] and bad == [
        f"a.arc:2: breaks off: 39 bytes of its body are missing (at byte {at})"
    ]


BROTLI = brotli(page("six"))


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (chunked(page("six")), {"Transfer_Encoding": "chunked"}),
        (page("six"), {"Transfer_Encoding": "chunked"}),  # which it is not
        (gzipped(page("six")), {"Content_Encoding": "gzip"}),
        (page("six"), {"Content_Encoding": "gzip"}),  # which it is not
        (BROTLI, {"Content_Encoding": "br"}), (page("six"), {"Content_Encoding": "br"}),
        (zlib.compress(page("six")), {"Content_Encoding": "deflate"}),
        (zlib.compress(page("six"))[2:-4], {"Content_Encoding": "deflate"}),
        (chunked(gzipped(page("six"))),
         {"Content_Encoding": "gzip", "Transfer_Encoding": "chunked"}),
    ],
)
def test_encodings_of_http_are_undone(
    tmp_path: Path, take: Take, body: bytes, headers: dict[str, str]
) -> None:
    (tmp_path / "a.warc").write_bytes(response("http://a/", body, **headers))
    documents, bad, _ = take(tmp_path / "a.warc")
    assert (texts(documents), bad) == ({"http://a/": TEXT.format("six")}, [])


def test_the_declared_characters_are_read(tmp_path: Path, take: Take) -> None:
    text = "Прочитайте это объявление полностью"
    body = f"<p>{text}</p>".encode("windows-1251")
    (tmp_path / "a.warc").write_bytes(
        response("http://a/", body, "text/html; charset=windows-1251")
    )
    documents, _, _ = take(tmp_path / "a.warc")
    assert texts(documents) == {"http://a/": text}


@pytest.mark.parametrize(
    ("block", "reason"),
    [
        (answer(gzipped(page("six"))[:-20], Content_Encoding="gzip"), "compressed body breaks off"),
        (answer(chunked(page("six"))[:-30], Transfer_Encoding="chunked"), "chunks of its body"),
        (answer(b"\x1f\x8b\x08rubbish" * 9, Content_Encoding="gzip"), "damaged compressed data"),
        (answer(page("six"), Content_Encoding="zebra"), "'zebra' cannot be read"),
        (b"\0\1\2 no headers at all", "damaged headers of HTTP"),
        (answer(b"<p>" + b"x" * 5000), "longer than 4000 bytes"),
        (answer(gzipped(b"x" * 10**6), Content_Encoding="gzip"), "longer than 4000 bytes"),
    ],
)
def test_what_is_no_page_is_a_bad_record_and_the_next_is_read(
    tmp_path: Path, take: Take, block: bytes, reason: str
) -> None:
    broken = record(
        "response", block, WARC_Target_URI="http://a/0", Content_Type="application/http"
    )
    (tmp_path / "a.warc").write_bytes(b"".join([NOISE[0], broken, *pages("seven")]))
    documents, bad, _ = take(tmp_path / "a.warc", max_record_bytes=4000)
    assert texts(documents) == {"http://a/seven": TEXT.format("seven")}
    assert len(bad) == 1 and bad[0].startswith("a.warc:2: ") and reason in bad[0]
    assert f"(at byte {len(NOISE[0])})" in bad[0]


def test_others_are_counted(tmp_path: Path, take: Take) -> None:
    (tmp_path / "a.warc").write_bytes(b"".join([
        response("http://a/", b"\x89PNG", "image/png"),
        response("http://a/", b"{}", "application/json"),
        record("response", answer(page("six"), status=503), Content_Type="application/http"),
        record("revisit", b""), record("resource", b"--log", WARC_Target_URI="metadata://a/log"),
        response("http://a/", b"\0\0", "text/plain"), response("http://a/", b""),
    ]))
    documents, bad, intake = take(tmp_path / "a.warc")
    assert (documents, bad) == ([], [])
    assert dict(intake.other_records) == {
        "image/png": 1, "application/json": 1, "status 503": 1, "revisit": 1, "metadata": 1,
        "text/plain that is binary data": 1, "empty": 1,
    }


def test_records_without_an_address_are_numbered_and_other_headers_name(
    tmp_path: Path, take: Take
) -> None:
    block = answer(page("six"))
    (tmp_path / "a.warc").write_bytes(
        record("response", block, Content_Type="application/http", WARC_Record_ID="<urn:1>")
    )
    (one,), _, intake = take(tmp_path / "a.warc")
    assert one.key.endswith("a.warc:1") and intake.numbered == 1
    (one,), _, _ = take(tmp_path / "a.warc", id_field="WARC-Record-ID")
    assert one.key == "<urn:1>"


def test_brackets_of_wget_are_no_part_of_an_address(tmp_path: Path, take: Take) -> None:
    (tmp_path / "a.warc").write_bytes(response("<http://a/>", page("six")))
    assert list(texts(take(tmp_path / "a.warc")[0])) == ["http://a/"]


@pytest.mark.parametrize("form", ["plain", "gzipped"])
@pytest.mark.slow
def test_every_cut_gives_whole_documents_and_is_told_of(
    tmp_path: Path, take: Take, form: str
) -> None:
    records = [NOISE[0], *pages("six", "seven"), NOISE[1]]
    made = records if form == "plain" else [gzipped(one) for one in records]
    data, ends, end = b"".join(made), set(), 0
    for one in made:
        end += len(one)
        # A cut in the empty lines after a record, or in front of the next, leaves it whole.
        ends |= {end - 4, end - 3, end - 2, end - 1, end} if form == "plain" else {end}
    whole = {f"http://a/{hour}": TEXT.format(hour) for hour in ("six", "seven")}
    path = tmp_path / ("a.warc" if form == "plain" else "a.warc.gz")
    for stop in range(8, len(data)):
        path.write_bytes(data[:stop])
        documents, bad, _ = take(path)
        assert texts(documents).items() <= whole.items()
        assert bool(bad) == (stop not in ends), (stop, bad)


def test_damage_raises_nothing_else(tmp_path: Path, take: Take) -> None:
    data = b"".join([NOISE[0], *pages("six", "seven"), NOISE[1]])
    draw = random.Random(7)
    for _ in range(300):
        damaged = bytearray(data)
        for _ in range(draw.choice([1, 1, 5])):
            damaged[draw.randrange(len(data))] = draw.randrange(256)
        (tmp_path / "a.warc").write_bytes(b"WARC/" + damaged[5:])
        documents, _, _ = take(tmp_path / "a.warc")
        assert len(documents) <= 2


@pytest.mark.parametrize(
    ("module", "name", "options"),
    [("fastwarc.warc", "a.warc", {}), ("warcio.recordloader", "a.arc", {}),
     ("resiliparse.parse.encoding", "a.warc", {"html": "raw"}),
     ("resiliparse.parse.encoding", "a.warc", {}), ("resiliparse.parse.encoding", "a.arc", {})],
)
def test_a_missing_package_is_named(
    tmp_path: Path, take: Take, monkeypatch: pytest.MonkeyPatch, module: str, name: str,
    options: dict[str, str],
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    head = b"filedesc://a\n" if name == "a.arc" else b""
    (tmp_path / name).write_bytes(head + b"".join(pages("six")))
    with pytest.raises(MissingExtra, match=r"archives needs .*: pip install 'simindex\[web\]'"):
        take(tmp_path / name, **options)


LONG = page("six " * 300)


def flipped(data: bytes, place: int) -> bytes:
    return data[:place] + bytes([data[place] ^ 8]) + data[place + 1 :]


def raw_deflate(data: bytes) -> bytes:
    made = zlib.compressobj(wbits=-15)
    return made.compress(data) + made.flush()


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (flipped(zlib.compress(LONG), 60), {"Content_Encoding": "deflate"}),
        (flipped(gzip.compress(LONG), 0), {"Content_Encoding": "gzip"}),
        (gzip.compress(LONG) + b"more", {"Content_Encoding": "gzip"}),
        (b"g" + chunked(LONG)[1:], {"Transfer_Encoding": "chunked"}),
        (b"0\r\n" + chunked(LONG)[4:], {"Transfer_Encoding": "chunked"}),
        (chunked(LONG).replace(b"\r\n1e\r\n", b"\r\n00\r\n", 3), {"Transfer_Encoding": "chunked"}),
    ],
    ids=["deflate", "gzip", "behind gzip", "no size", "first size", "size"],
)
def test_a_damaged_body_is_no_document(
    tmp_path: Path, take: Take, body: bytes, headers: dict[str, str]
) -> None:
    path = tmp_path / "a.warc"
    path.write_bytes(response("http://a/bad", body, **headers) + b"".join(pages("six")))
    documents, bad, _ = take(path)
    assert list(texts(documents)) == ["http://a/six"]
    assert len(bad) == 1 and "a.warc:1" in bad[0]


@pytest.mark.parametrize(
    ("body", "encoding"),
    [
        (gzip.compress(LONG[:200]) + gzip.compress(LONG[200:]), "gzip"), (LONG, "gzip"),
        (raw_deflate(LONG), "deflate"), (LONG, "deflate"),
    ],
    ids=["two members", "undone", "without a header", "undone, too"],
)
def test_a_body_is_read_whole(tmp_path: Path, take: Take, body: bytes, encoding: str) -> None:
    path = tmp_path / "a.warc"
    path.write_bytes(response("http://a/", body, Content_Encoding=encoding))
    (document,), bad, _ = take(path)
    assert bad == [] and document.text.count("six") == 300


def test_a_body_that_was_joined_before_is_taken_as_it_is(tmp_path: Path, take: Take) -> None:
    path = tmp_path / "a.warc"
    path.write_bytes(response("http://a/", LONG, Transfer_Encoding="chunked"))
    (document,), bad, _ = take(path)
    assert bad == [] and document.text.count("six") == 300
