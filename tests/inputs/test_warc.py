"""WARC: what is between records, in their headers and lengths is damage, or is as it was."""

from __future__ import annotations

import gc
import gzip
import hashlib
import random
import re
import time
import tracemalloc
import zlib
from base64 import b32encode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from web_records import answer, gzipped, record, response

from simindex.inputs import decompressors
from simindex.inputs.fed_window import Window

Take = Callable[..., Any]

TEXTS = [f"Text {n} of six, with a few words of its own: {n * 37}." for n in range(6)]


def wet(number: int, **headers: str) -> bytes:
    return record(
        "conversion", TEXTS[number].encode(), WARC_Target_URI=f"http://a/{number}",
        Content_Type="text/plain", **headers,
    )


WET = [wet(number) for number in range(6)]


def digest(data: bytes) -> str:
    return "sha1:" + b32encode(hashlib.sha1(data, usedforsecurity=False).digest()).decode()


def relength(one: bytes, more: int) -> bytes:
    def changed(found: re.Match[bytes]) -> bytes:
        return b"Length: %d" % (int(found[1]) + more)

    return re.sub(rb"Length: (\d+)", changed, one, count=1)


def texts(path: Path, data: bytes, take: Take, **options: Any) -> tuple[list[str], list[str]]:
    path.write_bytes(data)
    documents, bad, _ = take(path, **options)
    return [document.text for document in documents], bad


def test_records_around_a_damaged_member_are_read(tmp_path: Path, take: Take) -> None:
    members = [gzipped(one) for one in WET]
    at, place = sum(map(len, WET[:3])), sum(map(len, members[:4]))
    for byte in range(len(members[3])):
        damaged = bytearray(members[3])
        damaged[byte] ^= 8
        data = b"".join([*members[:3], damaged, *members[4:]])
        found, bad = texts(tmp_path / "a.warc.gz", data, take)
        if byte in IDLE:  # what a header says of time, system and name
            assert (found, bad) == (TEXTS, [])
            continue
        assert found == TEXTS[:3] + TEXTS[4:] and len(bad) == 1, (byte, bad)
        assert bad[0].startswith("a.warc.gz:4: damaged compressed data: ")
        assert f"reading goes on at compressed byte {place:,} (at byte {at}" in bad[0]


IDLE = (4, 5, 6, 7, 8, 9)
"""Bytes of the header of a member that change nothing."""


def test_records_of_a_member_before_its_damage_are_read(tmp_path: Path, take: Take) -> None:
    """All of the file is one member, and the damage is where the fourth record is."""
    made = zlib.compressobj(6, zlib.DEFLATED, 31)
    parts = [made.compress(one) + made.flush(zlib.Z_FULL_FLUSH) for one in WET] + [made.flush()]
    at = sum(map(len, WET[:3]))
    for stop in (b"", b"\xff" * 9):
        data = b"".join(parts[:3]) + parts[3][:20] + stop
        found, bad = texts(tmp_path / "a.warc.gz", data, take)
        assert found == TEXTS[:3] and len(bad) == 1
        assert bad[0].startswith("a.warc.gz:4: ") and f"(at byte {at})" in bad[0]
        assert "the rest of the file was not read" in bad[0]


def test_a_cut_member_at_the_end_is_a_bad_record(tmp_path: Path, take: Take) -> None:
    members = [gzipped(one) for one in WET[:3]]
    for cut in range(1, len(members[2])):
        found, bad = texts(tmp_path / "a.warc.gz", b"".join(members)[:-cut], take)
        assert found in ([*TEXTS[:2]], TEXTS[:3]) and len(bad) == 1
        assert (bad[0].startswith(f"a.warc.gz:{1 + len(found)}: ") and "truncated" in bad[0]) or (
            "not a gzip member" in bad[0]
        )


def test_a_damaged_checksum_makes_a_bad_record(tmp_path: Path, take: Take) -> None:
    """All bytes of the record are there, and some are not what they were."""
    member = bytearray(gzipped(WET[1]))
    member[-6] ^= 1
    found, bad = texts(tmp_path / "a.warc.gz", gzipped(WET[0]) + member + gzipped(WET[2]), take)
    assert found == [TEXTS[0], TEXTS[2]]
    assert len(bad) == 1 and bad[0].startswith("a.warc.gz:2: damaged compressed data")


@pytest.mark.parametrize("size", [1 << 15, 1 << 16, 1 << 17, 100_000])
def test_a_long_record_with_a_wrong_checksum_is_no_document(
    tmp_path: Path, take: Take, size: int
) -> None:
    """Also where all its bytes have come before the checksum is looked at."""
    rest = size - len(record("conversion", b"x" * 10_000, Content_Type="text/plain"))
    text = random.Random(3).randbytes(size).hex().encode()[: 10_000 + rest]
    whole = record("conversion", text, Content_Type="text/plain")
    if len(whole) > size:  # its length has a digit more
        whole = record("conversion", text[:-1], Content_Type="text/plain")
    assert len(whole) == size
    member = bytearray(gzipped(whole))
    member[-6] ^= 1
    found, bad = texts(tmp_path / "a.warc.gz", gzipped(WET[0]) + member + gzipped(WET[1]), take)
    assert found == TEXTS[:2]
    assert len(bad) == 1 and "incorrect data check" in bad[0]


@pytest.mark.slow
def test_what_was_read_is_given_free_at_once(tmp_path: Path, take: Take) -> None:
    """An error that refers to a reader, and it to the error, keeps its buffers for long."""
    member = bytearray(gzipped(WET[0]))
    member[-6] ^= 1
    gc.collect()
    gc.disable()
    try:
        for data in (member + gzipped(WET[1]), gzipped(WET[0]) + gzipped(WET[1])[:-20]):
            texts(tmp_path / "a.warc.gz", data, take)
        assert not [one for one in gc.get_objects() if isinstance(one, Window)]
    finally:
        gc.enable()


def test_a_damaged_first_member_costs_one_record(tmp_path: Path, take: Take) -> None:
    members = [gzipped(one) for one in WET]
    damaged = bytearray(members[0])
    damaged[len(damaged) // 2] ^= 8
    found, bad = texts(tmp_path / "a.warc.gz", b"".join([damaged, *members[1:]]), take)
    assert found == TEXTS[1:]
    assert len(bad) == 1 and bad[0].startswith("a.warc.gz:1: damaged compressed data")


@pytest.mark.slow
def test_a_record_of_gigabytes_is_skipped_at_bounded_memory(tmp_path: Path, take: Take) -> None:
    made = zlib.compressobj(6, zlib.DEFLATED, 31)
    size = 200 << 20
    head = b"WARC/1.0\r\nWARC-Type: conversion\r\nContent-Length: %d\r\n\r\n" % size
    parts = [head, *[bytes(1 << 20)] * 200, b"\r\n\r\n"]
    bomb = b"".join(map(made.compress, parts)) + made.flush()
    data = gzipped(WET[0]) + bomb + gzipped(WET[1])
    tracemalloc.start()
    found, bad = texts(tmp_path / "a.warc.gz", data, take, max_record_bytes=1 << 20)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found == TEXTS[:2]
    assert bad == [f"a.warc.gz:2: longer than 1048576 bytes (at byte {len(WET[0])})"]
    assert peak < 16 << 20


def test_a_member_that_expands_without_end_is_given_up(
    tmp_path: Path, take: Take, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decompressors, "BOMB_BYTES", 1 << 20)
    monkeypatch.setattr(decompressors, "MAX_EXPANSION", 100)
    junk = gzipped(bytes(8 << 20))
    found, bad = texts(tmp_path / "a.warc.gz", gzipped(WET[0]) + junk + gzipped(WET[1]), take)
    assert found == TEXTS[:2]
    assert len(bad) == 1 and "expands more than 100 times" in bad[0]
    assert bad[0].endswith(": decompress it yourself if it is to be trusted")


@pytest.mark.parametrize("more", [b"\n", b"\r\n", b"\r\n\r\n"])
def test_more_line_ends_than_there_should_be_are_no_damage(
    tmp_path: Path, take: Take, more: bytes
) -> None:
    data = WET[0][:-4] + more + WET[0][-4:] + WET[1]
    assert texts(tmp_path / "a.wet", data, take) == (TEXTS[:2], [])


def test_many_empty_lines_behind_a_record_are_passed_over(tmp_path: Path, take: Take) -> None:
    data = WET[0] + b"\r\n" * 200_000 + WET[1]
    assert texts(tmp_path / "a.wet", data, take) == (TEXTS[:2], [])


@pytest.mark.slow
def test_records_that_each_claim_to_be_long_take_no_long_time(tmp_path: Path, take: Take) -> None:
    claims = b"WARC/1.0\r\nWARC-Type: conversion\r\nContent-Length: 900000\r\n\r\n" * 20_000
    start = time.perf_counter()
    found, bad = texts(tmp_path / "a.wet", claims + b"".join(WET), take)
    assert found == TEXTS and len(bad) == 20_000
    found, bad = texts(tmp_path / "a.wet", b"WARC/1.0\r\nA:" * 50_000 + WET[0], take)
    assert found == TEXTS[:1] and len(bad) > 44_000  # the last ones have headers that end
    assert time.perf_counter() - start < 30


def test_nothing_is_printed(tmp_path: Path, take: Take, capfd: pytest.CaptureFixture[str]) -> None:
    head = b"WARC/1.0\r\nWARC-Type: response\r\nContent-Type: application/http\r\n"
    data = WET[0] + b"junk\n" + head + b"Content-Length: 4\r\n\r\n\0\1\2\3\r\n\r\n" + WET[1][:-30]
    texts(tmp_path / "a.wet", data, take)
    texts(tmp_path / "a.warc.gz", gzipped(data)[:-30], take)
    assert capfd.readouterr() == ("", "")


def test_what_follows_the_members_is_told(tmp_path: Path, take: Take) -> None:
    data = b"".join(map(gzipped, WET))
    found, bad = texts(tmp_path / "a.warc.gz", data + b"garbage here", take)
    assert found == TEXTS
    assert len(bad) == 1 and bad[0].startswith("a.warc.gz:7: ") and "not a gzip member" in bad[0]
    assert texts(tmp_path / "a.warc.gz", data + bytes(600), take) == (TEXTS, [])


@pytest.mark.parametrize("more", [-100, -20, -4, -3, -2, -1, 1, 2, 3, 4, 5, 50, 500, 10**9])
@pytest.mark.parametrize("which", [2, 5])
def test_a_wrong_length_is_a_bad_record_and_loses_no_other(
    tmp_path: Path, take: Take, more: int, which: int
) -> None:
    length = len(TEXTS[which])
    damaged = relength(WET[which], max(more, -length))
    data = b"".join([*WET[:which], damaged, *WET[which + 1 :]])
    found, bad = texts(tmp_path / "a.wet", data, take)
    assert found == TEXTS[:which] + TEXTS[which + 1 :]
    assert len(bad) == 1 and bad[0].startswith(f"a.wet:{which + 1}: ")
    assert f"(at byte {sum(map(len, WET[:which]))})" in bad[0]


def test_a_text_that_is_cut_at_an_empty_line_is_a_bad_record(tmp_path: Path, take: Take) -> None:
    """The length is that of the first paragraph, and what a record ends with follows it."""
    whole = record("conversion", b"First.\r\n\r\nSecond.", Content_Type="text/plain")
    found, bad = texts(tmp_path / "a.wet", WET[0] + relength(whole, -11) + WET[1], take)
    assert found == TEXTS[:2] and len(bad) == 1


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"WARC/1.0", b"VARC/1.0"), (b"WARC/1.0", b"WARC/9.z"), (b"WARC/1.0\r", b"WARC/1.0M"),
        (b"WARC-Type", b"WARC-Typd"),
        (b"Content-Length", b"Content-Lengti"), (b"Length: ", b"Length: \xb2"),
        (b"Length:", b"Length;"), (b"URI:", b"URI\0"),
        (b"\r\n\r\n", b"\r\n\r\x0b"), (b"\nWARC-Target", b"JWARC-Target"),
        (b"WARC-Target", b"junk, and no header\r\nWARC-Target"),
    ],
)
def test_damaged_headers_are_a_bad_record(
    tmp_path: Path, take: Take, old: bytes, new: bytes
) -> None:
    damaged = WET[2].replace(old, new, 1)
    found, bad = texts(tmp_path / "a.wet", b"".join([*WET[:2], damaged, *WET[3:]]), take)
    assert found == TEXTS[:2] + TEXTS[3:]
    assert len(bad) == 1 and bad[0].startswith("a.wet:3: ")
    assert f"(at byte {sum(map(len, WET[:2]))})" in bad[0]


@pytest.mark.parametrize("junk", [b"junk junk\r\n" * 10, b"junk", b"\0" * 100_000])
def test_bytes_between_records_are_a_bad_record(tmp_path: Path, take: Take, junk: bytes) -> None:
    found, bad = texts(tmp_path / "a.wet", b"".join([*WET[:2], junk, *WET[2:]]), take)
    assert found == TEXTS
    assert len(bad) == 1 and bad[0].startswith("a.wet:3: no record begins")


@pytest.mark.slow
def test_every_flip_of_a_bit_of_a_header_is_told_or_changes_no_text(
    tmp_path: Path, take: Take
) -> None:
    head = WET[1].index(b"\r\n\r\n") + 4
    path = tmp_path / "a.wet"
    for bit in range(8 * head):
        damaged = bytearray(WET[1])
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(WET[0] + damaged + WET[2])
        documents, bad, intake = take(path)
        found = [document.text for document in documents]
        told = len(bad) + intake.other_records.total()  # kinds and media types that are unknown
        assert found == TEXTS[:3] or (found == [TEXTS[0], TEXTS[2]] and told == 1), (
            bytes(damaged[:head]), bad
        )


def test_empty_lines_are_not_missed_where_they_cannot_be_in_the_text(
    tmp_path: Path, take: Take
) -> None:
    data = b"".join(WET)
    for end in (b"", b"\r", b"\r\n", b"\r\n\r", b"\r\n\r\n\r\n\n"):
        assert texts(tmp_path / "a.wet", data[:-4] + end, take) == (TEXTS, [])


def test_records_with_bare_line_feeds_are_read(tmp_path: Path, take: Take) -> None:
    data = b"".join(WET).replace(b"\r\n", b"\n")
    assert texts(tmp_path / "a.wet", data, take) == (TEXTS, [])


def test_folded_headers_and_other_versions_are_read(tmp_path: Path, take: Take) -> None:
    one = WET[0].replace(b"text/plain", b"text/plain;\r\n charset=utf-8").replace(b"/1.0", b"/1.1")
    assert texts(tmp_path / "a.wet", one, take) == (TEXTS[:1], [])


def test_a_digest_is_compared(tmp_path: Path, take: Take) -> None:
    good = wet(0, WARC_Block_Digest=digest(TEXTS[0].encode()))
    wrong = wet(1, WARC_Block_Digest=digest(b"another text"))
    found, bad = texts(tmp_path / "a.wet", good + wrong + WET[2], take)
    assert found == [TEXTS[0], TEXTS[2]]
    assert len(bad) == 1 and "a.wet:2: damaged: its digest is not the one" in bad[0]


@pytest.mark.parametrize("name", ["a.warc", "a.warc.gz"])
def test_the_digest_of_a_body_is_compared_unless_the_body_is_encoded(
    tmp_path: Path, take: Take, name: str
) -> None:
    """Some crawlers state that of the decoded body, and gzip has a checksum of its own."""
    page = b"<html><body><p>One page of some words.</p></body></html>"
    for stated, encoded, documents in (
        (page, False, 1), (b"another", False, name != "a.warc"), (b"another", True, 1),
    ):
        block = answer(gzip.compress(page), Content_Encoding="gzip") if encoded else answer(page)
        one = record(
            "response", block, Content_Type="application/http", WARC_Target_URI="http://a/",
            WARC_Payload_Digest=digest(stated),
        )
        found, bad = texts(tmp_path / name, gzipped(one) if "gz" in name else one, take)
        assert len(found) == documents and len(bad) == 1 - documents


@pytest.mark.parametrize("stated", ["sha9:zzz", "", "sha1:", "zzz", "sha1:" + "a" * 32])
def test_digests_of_other_forms_are_not_compared(tmp_path: Path, take: Take, stated: str) -> None:
    one = wet(0, WARC_Block_Digest=stated)
    assert texts(tmp_path / "a.wet", one, take) == (TEXTS[:1], [])


@pytest.mark.parametrize(
    ("name", "content", "what"),
    [
        ("a.warc", b"A plain text.\n\nAnother paragraph.\n" * 20, "text"),
        ("a.wet", b"<!doctype html><html>x</html>", "HTML"),
        ("a.warc", b"\1\2\3\0" * 50, "binary data"),
        ("a.warc", b'{"text": "one"}\n', "JSON"),
    ],
)
def test_what_is_no_archive_is_refused_with_what_it_looks_like(
    tmp_path: Path, take: Take, name: str, content: bytes, what: str
) -> None:
    found, bad = texts(tmp_path / name, content, take)
    assert found == []
    assert len(bad) == 1 and bad[0].startswith(f"{name}: not a WARC file: it looks like {what}: ")


def test_an_empty_file_holds_no_records(tmp_path: Path, take: Take) -> None:
    assert texts(tmp_path / "a.warc", b"", take) == ([], [])


def test_long_headers_are_refused_and_not_repeated_in_the_message(
    tmp_path: Path, take: Take
) -> None:
    long = WET[1].replace(b"WARC-Target", b"X: " + b"a" * (9 << 20) + b"\r\nWARC-Target")
    start = time.perf_counter()
    found, bad = texts(tmp_path / "a.wet", WET[0] + long + WET[2], take)
    assert found == [TEXTS[0], TEXTS[2]]
    assert len(bad) == 1 and "headers longer than 65,536 bytes" in bad[0] and len(bad[0]) < 200
    page = response("http://a/", b"x").replace(b"200 OK", b"200 OK\r\nX: " + b"a" * (3 << 20))
    found, bad = texts(tmp_path / "a.warc", relength(page, (3 << 20) + 5) + WET[2], take)
    assert found == [TEXTS[2]] and "Maximum header length" in bad[0] and len(bad[0]) < 200
    assert time.perf_counter() - start < 5


def test_headers_of_documents_that_are_not_utf8_are_damage(tmp_path: Path, take: Take) -> None:
    found, bad = texts(tmp_path / "a.wet", WET[0].replace(b"http://a/", b"http://\xe9/"), take)
    assert found == [] and "a.wet:1: damaged headers: WARC-Target-URI is not UTF-8" in bad[0]


def test_addresses_keep_their_spaces(tmp_path: Path, take: Take) -> None:
    (tmp_path / "a.warc").write_bytes(response("http://a/x y", b"<p>words"))
    assert [document.key for document in take(tmp_path / "a.warc")[0]] == ["http://a/x y"]
