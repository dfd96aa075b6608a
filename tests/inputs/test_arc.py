"""ARC: what is between records, in their lines and lengths is damage, or is as it was."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from web_records import answer, gzipped

Take = Callable[..., Any]

VERSION = b"1 0 Alexa\nURL IP-address Archive-date Content-type Archive-length\n"
HEAD = b"filedesc://a.arc 0.0.0.0 20260101000000 text/plain %d\n%s\n" % (len(VERSION), VERSION)
TEXTS = [f"Page {number} with a few words of its own." for number in range(5)]


def arc_record(uri: str, text: str, middle: str = "text/html") -> bytes:
    block = answer(f"<html><body><p>{text}</p></body></html>".encode())
    return f"{uri} 10.0.0.1 20260131235958 {middle} {len(block)}\n".encode() + block + b"\n"


PAGES = [arc_record(f"http://a/{number}", text) for number, text in enumerate(TEXTS)]


def texts(path: Path, data: bytes, take: Take) -> tuple[list[str], list[str]]:
    path.write_bytes(data)
    documents, bad, _ = take(path)
    return [document.text.strip() for document in documents], bad


def test_records_have_the_headers_of_a_warc(tmp_path: Path, take: Take) -> None:
    (tmp_path / "a.arc").write_bytes(HEAD + PAGES[0])
    (one,), bad, intake = take(tmp_path / "a.arc")
    assert bad == [] and dict(intake.other_records) == {"warcinfo": 1}
    assert one.fields == {
        "WARC-Type": "response", "WARC-Target-URI": "http://a/0", "WARC-IP-Address": "10.0.0.1",
        "WARC-Date": "2026-01-31T23:59:58Z", "Content-Type": "application/http;msgtype=response",
        "Content-Length": str(len(PAGES[0].partition(b"\n")[2]) - 1),
    }


def test_addresses_keep_their_spaces_and_version_2_has_more_columns(
    tmp_path: Path, take: Take
) -> None:
    data = HEAD + arc_record("http://a/x y", "One.") + arc_record(
        "http://a/z", "Two.", "text/html 200 abcdef - 1234 a.arc.gz"
    )
    (tmp_path / "a.arc").write_bytes(data)
    documents, bad, _ = take(tmp_path / "a.arc")
    assert [document.key for document in documents] == ["http://a/x y", "http://a/z"] and bad == []


@pytest.mark.parametrize("more", [-100, -50, -2, -1, 1, 2, 3, 50, 300, 10**9])
@pytest.mark.parametrize("which", [2, 4])
def test_a_wrong_length_is_a_bad_record_and_loses_no_other(
    tmp_path: Path, take: Take, more: int, which: int
) -> None:
    damaged = re.sub(
        rb"text/html (\d+)", lambda found: b"text/html %d" % (int(found[1]) + more), PAGES[which],
        count=1,
    )
    data = HEAD + b"".join([*PAGES[:which], damaged, *PAGES[which + 1 :]])
    found, bad = texts(tmp_path / "a.arc", data, take)
    assert found == TEXTS[:which] + TEXTS[which + 1 :]
    assert len(bad) == 1 and bad[0].startswith(f"a.arc:{which + 2}: ")
    assert f"(at byte {len(HEAD) + sum(map(len, PAGES[:which]))})" in bad[0]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"HTTP/1.1 200", b"HTTP/1.1 \xb200"), (b"HTTP/1.1 200", b"HTTP/1.1 000"),
        (b"HTTP/1.1", b"HTTQ/1.1"),
        (b" 20260131235958 ", b" 2026x131235958 "), (b"://a", b":\n/a"),
        (b"\r\n\r\n", b"\r\n\r\x0b"),
    ],
)
def test_damaged_headers_are_a_bad_record(
    tmp_path: Path, take: Take, old: bytes, new: bytes
) -> None:
    data = HEAD + b"".join([*PAGES[:2], PAGES[2].replace(old, new, 1), *PAGES[3:]])
    found, bad = texts(tmp_path / "a.arc", data, take)
    assert set(found) >= {*TEXTS[:1], *TEXTS[3:]} and set(found) <= {*TEXTS[:2], *TEXTS[3:]}
    assert bad and bad[-1].startswith(("a.arc:4: ", "a.arc:3: "))


def test_records_around_a_damaged_member_are_read(tmp_path: Path, take: Take) -> None:
    members = [gzipped(one) for one in [HEAD, *PAGES]]
    damaged = bytearray(members[3])
    damaged[len(damaged) // 2] ^= 8
    data = b"".join([*members[:3], damaged, *members[4:]])
    found, bad = texts(tmp_path / "a.arc.gz", data, take)
    assert found == TEXTS[:2] + TEXTS[3:]
    assert len(bad) == 1 and bad[0].startswith("a.arc.gz:4: damaged compressed data")


def test_long_lines_are_refused_and_not_repeated_in_the_message(tmp_path: Path, take: Take) -> None:
    start = time.perf_counter()
    long = HEAD + b"http://" + b"a" * (20 << 20) + b"\n" + PAGES[0]
    found, bad = texts(tmp_path / "a.arc", long, take)
    assert found == TEXTS[:1]
    assert len(bad) == 1 and "header longer than 16,384 bytes" in bad[0] and len(bad[0]) < 200
    assert time.perf_counter() - start < 5


def test_what_is_no_archive_is_refused_with_what_it_looks_like(tmp_path: Path, take: Take) -> None:
    found, bad = texts(tmp_path / "a.arc", b"this is not an arc\n" * 20, take)
    assert found == []
    assert len(bad) == 1 and bad[0].startswith("a.arc: not an ARC file: it looks like text: ")


def test_nothing_is_printed(
    tmp_path: Path, take: Take, capfd: pytest.CaptureFixture[str]
) -> None:
    data = HEAD + PAGES[0] + b"junk\n" + PAGES[1].replace(b"HTTP", b"HTTQ") + PAGES[2][:-30]
    texts(tmp_path / "a.arc", data, take)
    assert capfd.readouterr() == ("", "")


def test_the_line_feed_behind_a_record_may_be_missing(tmp_path: Path, take: Take) -> None:
    """At the end, where the block does not have it, and behind the first record, where it has."""
    whole = b"".join(PAGES)
    assert texts(tmp_path / "a.arc", HEAD[:-1] + whole, take) == (TEXTS, [])
    assert texts(tmp_path / "a.arc", HEAD + whole[:-1], take) == (TEXTS, [])


@pytest.mark.slow
def test_headers_of_http_without_end_are_refused(tmp_path: Path, take: Take) -> None:
    block = b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 100_000 + b"\r\n<p>A page."
    one = b"http://a/ 1.2.3.4 20260131235958 text/html %d\n%s\n" % (len(block), block)
    found, bad = texts(tmp_path / "a.arc", HEAD + one + PAGES[0], take)
    assert found == TEXTS[:1]
    assert bad == [
        f"a.arc:2: damaged headers of HTTP: longer than 262,144 bytes (at byte {len(HEAD)})"
    ]
