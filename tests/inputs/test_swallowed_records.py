"""A length that ends where a later record does is damage, unless the block says it is right."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from web_records import answer, record, response

from simindex.inputs.swallowed_records import SWALLOWS, Heads, swallowed

Take = Callable[..., Any]


def _body(block: bytes, at: int) -> tuple[int, int] | None:
    found = re.compile(rb"HEAD ([0-9]+)\n").match(block, at)
    return None if found is None else (found.end(), found.end() + int(found[1]))


HEADS = Heads(re.compile(rb"\n(HEAD )"), _body)


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        (b"", None), (b"text", None), (b"text\nHEAD 3\nabc", 5), (b"text\nHEAD 3\nabcd", None),
        (b"text\nHEAD 3\nabc\nHEAD 0\n", 5), (b"text\nHEAD 3\nabc\nHEAD 9\n", None),
        (b"text\nHEAD 1\nabc\nHEAD 1\nd", 16), (b"text\nHEAD 3\nabc\n", None),
        (b"HTTP/1.1 200 OK\n\nHEAD 3\nabc\n", None),
        (b"HTTP/1.1 200 OK\nContent-Length: 1\n\na\nHEAD 9\nabc", 37),
        (b"HTTP/1.1 200 OK\nContent-Length: 12\n\na\nHEAD 3\nabc", None),
        (b"HTTP/1.1 200 OK\nTransfer-Encoding: x\nContent-Length: 12\n\na\nHEAD 3\nabc", 59),
    ],
)
def test_heads_that_lead_to_the_end_of_a_block_are_swallowed(
    block: bytes, expected: int | None
) -> None:
    assert swallowed(block, HEADS) == expected


def test_many_heads_take_no_time() -> None:
    started = time.monotonic()
    assert swallowed(b"\nHEAD 0\n" * 500_000 + b"end", HEADS) is None
    assert swallowed(b"\nHEAD 7\n" * 500_000 + b"end", HEADS) is None
    assert time.monotonic() - started < 10


def page(hour: str) -> bytes:
    return f"<html><body><main><p>Leaves at {hour} every day.</p></main></body></html>".encode()


def longer(data: bytes, more: int) -> bytes:
    def changed(found: re.Match[bytes]) -> bytes:
        return b"Content-Length: %d" % (int(found[1]) + more)

    return re.sub(rb"Content-Length: ([0-9]+)", changed, data, count=1)


def test_a_page_that_shows_records_is_a_page(tmp_path: Path, take: Take) -> None:
    """A served archive, and a page about the format, with and without the length of HTTP."""
    inner = response("http://inner/", page("nine"))
    served = response("http://a/", inner + inner, "text/plain")
    shown = response("http://b/", b"<p>How it looks:\r\n\r\n" + inner + b"</p>")
    body = b"<p>How it looks:\r\n\r\n" + inner[:-4]
    told = response("http://c/", body, Content_Length=str(len(body)))
    path = tmp_path / "a.warc"
    path.write_bytes(served + shown + told + response("http://d/", page("six")))
    documents, bad, _ = take(path)
    assert bad == []
    assert [one.key for one in documents] == ["http://a/", "http://b/", "http://c/", "http://d/"]


@pytest.mark.parametrize("known", [True, False])
def test_records_in_front_and_behind_are_read(tmp_path: Path, take: Take, known: bool) -> None:
    first, second, third = (response(f"http://{hour}/", page(hour)) for hour in ("a", "b", "c"))
    more = {"Content_Length": str(len(page("x")))} if known else {}
    wrong = response("http://x/", page("x"), **more)
    # The length of HTTP stands behind that of the record, which is the first.
    path = tmp_path / "a.warc"
    for behind, swallows in ([second, third], len(second)), ([second, third], len(second + third)):
        path.write_bytes(first + longer(wrong, swallows) + b"".join(behind))
        documents, bad, _ = take(path)
        assert [one.key for one in documents] == ["http://a/", "http://b/", "http://c/"]
        assert bad == [f"a.warc:2: {SWALLOWS} (at byte {len(first)})"]


def test_requests_swallow_nothing(tmp_path: Path, take: Take) -> None:
    one = response("http://a/", page("six"))
    request = record("request", b"GET / HTTP/1.1\r\n\r\n")
    path = tmp_path / "a.warc"
    path.write_bytes(longer(request, len(one)) + one + one)
    documents, bad, _ = take(path)
    assert len(documents) == 2 and bad == [f"a.warc:1: {SWALLOWS} (at byte 0)"]


def test_an_archive_of_the_older_form_swallows_nothing(tmp_path: Path, take: Take) -> None:
    def old(hour: str, more: int = 0) -> bytes:
        block = answer(page(hour))
        return b"http://%s/ 1.2.3.4 20260101000000 text/html %d\n%s\n" % (
            hour.encode(), len(block) + more, block
        )

    version = b"1 0 a\nURL IP-address Archive-date Content-type Archive-length\n"
    head = b"filedesc://a.arc 0.0.0.0 20260101000000 text/plain %d\n%s\n" % (len(version), version)
    path = tmp_path / "a.arc"
    path.write_bytes(head + old("a", len(old("b"))) + old("b") + old("c"))
    documents, bad, _ = take(path)
    assert [one.key for one in documents] == ["http://b/", "http://c/"]
    assert bad == [f"a.arc:2: {SWALLOWS} (at byte {len(head)})"]
