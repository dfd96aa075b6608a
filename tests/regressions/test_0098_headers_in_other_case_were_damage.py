"""Names of headers of a WARC file, and media types, may be written in any case. A length in lower
case was taken for a wrong one, and a media type in lower case for damaged headers of HTTP.
"""

from __future__ import annotations

import gzip
import hashlib
from base64 import b32encode
from collections.abc import Callable
from pathlib import Path

import pytest
from web_records import answer, record

pytest.importorskip("fastwarc")
pytest.importorskip("resiliparse")

from simindex.inputs.document import Intake
from simindex.inputs.read_options import ReadOptions
from simindex.inputs.reading import read

TEXT = "The ferry leaves at six in the morning, every day."
PAGE = f"<html><body><main><p>{TEXT}</p></main></body></html>".encode()
BLOCK = answer(PAGE)


def digest(data: bytes) -> str:
    return "sha1:" + b32encode(hashlib.sha1(data, usedforsecurity=False).digest()).decode()


def page(of: bytes = BLOCK, media_type: str = "application/http; msgtype=response") -> bytes:
    return record(
        "response", BLOCK, WARC_Target_URI="http://a/", Content_Type=media_type,
        WARC_Block_Digest=digest(of),
    )


def recased(one: bytes, name: str, change: Callable[[str], str]) -> bytes:
    """The record with one name changed, or with all."""
    head, _, block = one.partition(b"\r\n\r\n")
    lines = head.split(b"\r\n")
    for number, line in enumerate(lines[1:], 1):
        found, _, value = line.partition(b":")
        if name in ("all", found.decode()):
            lines[number] = change(found.decode()).encode() + b":" + value
    return b"\r\n".join(lines) + b"\r\n\r\n" + block


def taken(path: Path, data: bytes) -> tuple[list[str], list[str]]:
    path.write_bytes(data)
    bad: list[str] = []
    intake = Intake(max_errors=None, report=lambda one: bad.append(one.reason))
    found = list(read([str(path)], ReadOptions(), intake))
    assert {one.key for one in found} <= {"http://a/"}
    assert {one.text.strip() for one in found} <= {TEXT}
    return [one.text for one in found], bad


NAMES = ("WARC-Type", "Content-Length", "Content-Type", "WARC-Target-URI", "WARC-Block-Digest")


@pytest.mark.parametrize("change", [str.lower, str.upper, str.capitalize])
@pytest.mark.parametrize("name", [*NAMES, "all"])
def test_names_are_read_in_any_case(
    tmp_path: Path, name: str, change: Callable[[str], str]
) -> None:
    one = recased(page(), name, change)
    found, bad = taken(tmp_path / "a.warc", one + page() + one + one)
    assert (len(found), bad) == (4, [])
    parts = [gzip.compress(part) for part in (one, page(), one)]
    found, bad = taken(tmp_path / "a.warc.gz", b"".join(parts))
    assert (len(found), bad) == (3, [])
    found, bad = taken(tmp_path / "a.warc", recased(page(b"other"), name, change) + page())
    assert len(found) == 1 and "its digest is not the one in its headers" in bad[0]
    length = b": %d\r\n"
    for wrong in (one.replace(length % len(BLOCK), length % (len(BLOCK) - 9)), one[:-40]):
        found, bad = taken(tmp_path / "a.warc", wrong)
        assert found == [] and len(bad) == 1


def test_media_types_are_read_in_any_case(tmp_path: Path) -> None:
    one = page(media_type="Application/HTTP; msgtype=response")
    assert taken(tmp_path / "a.warc", one + page() + one)[1] == []


def test_a_long_record_is_skipped_in_any_case(tmp_path: Path) -> None:
    long = record("response", answer(b"x" * 400_000), Content_Type="application/http")
    (tmp_path / "a.warc").write_bytes(recased(long, "all", str.lower) + page())
    bad: list[str] = []
    intake = Intake(max_errors=None, report=lambda one: bad.append(one.reason))
    asked = ReadOptions(max_record_bytes=1000)
    found = [one.text.strip() for one in read([str(tmp_path / "a.warc")], asked, intake)]
    assert (found, bad) == ([TEXT], ["longer than 1000 bytes (at byte 0)"])
