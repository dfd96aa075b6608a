"""Records of archives that are no pages were counted by their whole media types, so a small file of
many long ones filled the memory."""

from __future__ import annotations

import gzip
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from simindex.inputs.document import KIND_CHARACTERS, MOST_KINDS, OTHER_KINDS, Intake
from simindex.inputs.reading import read

RECORDS = 1500
LONG = "x" * 15_000


def of_warc(kind: str, media_type: str) -> bytes:
    return (
        f"WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Target-URI: http://a/\r\n"
        f"Content-Type: {media_type}\r\nContent-Length: 5\r\n\r\nhello\r\n\r\n"
    ).encode()


def by_kind() -> Iterator[bytes]:
    for number in range(RECORDS):
        yield of_warc(f"{number}{LONG}", "text/plain")


def by_media_type() -> Iterator[bytes]:
    for number in range(RECORDS):
        yield of_warc("resource", f"{number}/{LONG}")


def of_arc() -> Iterator[bytes]:
    fields = b"1 0 x\nURL IP-address Archive-date Content-type Archive-length\n\n"
    yield b"filedesc://x 0.0.0.0 20000101000000 text/plain %d\n%b\n" % (len(fields), fields)
    for number in range(RECORDS):
        body = f"HTTP/1.1 200 OK\r\nContent-Type: {number}/{LONG}\r\n\r\nhello".encode()
        yield b"http://a/ 1.1.1.1 20000101000000 text/html %d\n%b\n" % (len(body), body)


@pytest.mark.parametrize(
    ("name", "records"),
    [("a.warc.gz", by_kind), ("a.warc.gz", by_media_type), ("a.arc.gz", of_arc)],
)
def test_kinds_are_counted_within_bounds(tmp_path: Path, name: str, records: object) -> None:
    with gzip.open(tmp_path / name, "wb", compresslevel=1) as file:
        for record in records():  # type: ignore[operator]
            file.write(record)
    intake = Intake(max_errors=None)
    tracemalloc.start()
    try:
        assert list(read([str(tmp_path / name)], None, intake)) == []
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 16 << 20
    kinds, first = intake.other_records, int(name.startswith("a.arc"))  # it names the file
    assert (kinds.total(), intake.bad_records) == (first + RECORDS, 0)
    assert len(kinds) == MOST_KINDS + 1
    assert kinds[OTHER_KINDS] == first + RECORDS - MOST_KINDS
    assert max(map(len, kinds)) == KIND_CHARACTERS
