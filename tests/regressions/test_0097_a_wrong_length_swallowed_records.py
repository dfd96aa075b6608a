"""The length of a record of a WARC file reached over the next record: that one was lost without a
word, and the text of the first one contained it.
"""

from __future__ import annotations

import hashlib
import time
from base64 import b32encode
from pathlib import Path

import pytest
from web_records import answer, record, response

pytest.importorskip("fastwarc")
pytest.importorskip("resiliparse")

from simindex.inputs.document import Intake
from simindex.inputs.read_options import ReadOptions
from simindex.inputs.reading import read

PAGE = "<html><body><main><p>Leaves at {} every day.</p></main></body></html>"


def page(name: str) -> bytes:
    return response(f"http://{name}/", PAGE.format(name).encode())


def taken(path: Path, data: bytes) -> tuple[list[str], list[str]]:
    path.write_bytes(data)
    bad: list[str] = []
    intake = Intake(max_errors=None, report=lambda one: bad.append(one.reason))
    return [one.key for one in read([str(path)], ReadOptions(), intake)], bad


def reaching(name: str, over: bytes) -> bytes:
    """The page, with a length that ends where the record behind it does."""
    one, length = page(name), len(answer(PAGE.format(name).encode()))
    stated = b"Content-Length: %d"
    assert one.count(stated % length) == 1
    return one.replace(stated % length, stated % (length + len(over)))


def test_the_record_behind_is_read(tmp_path: Path) -> None:
    data = page("a") + reaching("b", page("c")) + page("c") + page("d")
    assert taken(tmp_path / "a.warc", data) == (["http://a/", "http://c/", "http://d/"], [
        f"damaged: its length reaches over the records behind it (at byte {len(page('a'))})"
    ])
    found, bad = taken(tmp_path / "a.warc", reaching("b", page("c")) + page("c"))
    assert found == ["http://c/"] and len(bad) == 1


def test_a_digest_says_that_the_length_is_right(tmp_path: Path) -> None:
    block = answer(b"<p>A record looks so:</p>\r\n\r\n" + page("c")[:-4])
    digest = b32encode(hashlib.sha1(block, usedforsecurity=False).digest()).decode()
    for told, keys in ((digest, ["http://b/"]), (digest[::-1], ["http://c/"])):
        data = record(
            "response", block, WARC_Target_URI="http://b/", Content_Type="application/http",
            WARC_Block_Digest=f"sha1:{told}",
        )
        assert taken(tmp_path / "a.warc", data)[0] == keys


def test_records_that_all_reach_to_the_end_take_no_long_time(tmp_path: Path) -> None:
    started = time.monotonic()
    taken(tmp_path / "a.warc", nested(20_000))
    assert time.monotonic() - started < 20


def nested(number: int) -> bytes:
    """Records that all end where the last one does."""
    parts, size = [b"x"], 1
    for _ in range(number):
        head = b"WARC/1.0\r\nWARC-Type: metadata\r\nContent-Length: %d\r\n\r\n" % size
        parts.append(b"y\r\n\r\n" + head)
        size += len(parts[-1])
    return b"".join(reversed(parts))[5:] + b"\r\n\r\n"
