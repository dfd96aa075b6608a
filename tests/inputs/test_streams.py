"""Compressed files: read as they are, bounded in memory, and never silently cut short."""

from __future__ import annotations

import builtins
import bz2
import gzip
import io
import json
import lzma
import random
import sys
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from simindex.errors import InvalidInput, MissingExtra
from simindex.inputs import streams
from simindex.inputs.reading import read
from simindex.inputs.streams import Unreadable, line_blocks, lines

Take = Callable[..., Any]


SUFFIXES = [".gz", ".zst", ".xz", ".bz2"]


def jsonl(texts: list[str]) -> bytes:
    return b"".join(json.dumps({"text": text}).encode() + b"\n" for text in texts)


def compressed(data: bytes, suffix: str) -> bytes:
    made = {".gz": gzip, ".zst": zstandard, ".xz": lzma, ".bz2": bz2}[suffix]
    return bytes(made.compress(data))


@pytest.fixture
def texts() -> list[str]:
    rng = random.Random(7)
    return ["".join(rng.choices("abcdefghij \n", k=rng.randrange(400))) for _ in range(500)]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_compressed_files_give_the_same_documents(
    tmp_path: Path, take: Take, texts: list[str], suffix: str
) -> None:
    path = tmp_path / f"a.jsonl{suffix}"
    path.write_bytes(compressed(jsonl(texts), suffix))
    documents, bad, _ = take(path)
    assert [document.text for document in documents] == texts
    assert bad == []


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_several_members_or_frames_are_one_file(
    tmp_path: Path, take: Take, texts: list[str], suffix: str
) -> None:
    path = tmp_path / f"a.jsonl{suffix}"
    parts = [texts[:3], texts[3:4], [], texts[4:]]
    path.write_bytes(b"".join(compressed(jsonl(part), suffix) for part in parts))
    documents, _, _ = take(path)
    assert [document.text for document in documents] == texts


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_truncated_file_is_a_bad_record_and_the_next_file_is_read(
    tmp_path: Path, take: Take, texts: list[str], suffix: str
) -> None:
    whole = compressed(jsonl(texts), suffix)
    cut, after = tmp_path / f"cut.jsonl{suffix}", tmp_path / "after.jsonl"
    after.write_bytes(jsonl(["after"]))
    for size in [0, 1, 9, len(whole) // 2, len(whole) - 5, len(whole) - 1]:
        cut.write_bytes(whole[:size])
        documents, bad, _ = take(cut, after)
        assert documents[-1].text == "after"
        read_before = [document.text for document in documents[:-1]]
        assert read_before == texts[: len(read_before)], "what was read before stands"
        assert len(bad) == 1, size
        assert f"cut.jsonl{suffix}" in bad[0]
        # One byte is too short to be told from another kind of file.
        reason = "damaged" if suffix == ".gz" and size == 1 else "truncated"
        assert reason in bad[0]
        with pytest.raises(InvalidInput, match=reason):
            list(read([str(cut)]))


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.slow
def test_damage_is_a_bad_record_and_never_another_text(
    tmp_path: Path, take: Take, texts: list[str], suffix: str
) -> None:
    if suffix == ".zst":
        whole = zstandard.ZstdCompressor(write_checksum=True).compress(jsonl(texts))
    else:
        whole = compressed(jsonl(texts), suffix)
    path = tmp_path / f"a.jsonl{suffix}"
    rng = random.Random(11)
    for _ in range(30):
        damaged = bytearray(whole)
        damaged[rng.randrange(20, len(whole) - 8)] ^= 1 << rng.randrange(8)
        path.write_bytes(damaged)
        _, bad, _ = take(path)
        assert bad, "the checksum at the end does not match"
    path.write_bytes(b"\0 bytes, which no program has compressed\n")
    _, bad, _ = take(path)
    assert len(bad) == 1
    assert "damaged compressed data" in bad[0]


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.slow
def test_a_bomb_is_refused_at_bounded_memory(tmp_path: Path, take: Take, suffix: str) -> None:
    path = tmp_path / f"bomb.jsonl{suffix}"
    if suffix == ".gz":
        with gzip.open(path, "wb", compresslevel=9) as file:
            for _ in range(64):
                file.write(bytes(1 << 20))
    elif suffix != ".zst":
        path.write_bytes(compressed(bytes(1 << 26), suffix))
    else:
        compressor = zstandard.ZstdCompressor(level=1).compressobj()
        data = b"".join(compressor.compress(bytes(1 << 20)) for _ in range(256))
        path.write_bytes(data + compressor.flush())
    tracemalloc.start()
    _, bad, _ = take(path, max_record_bytes=1 << 20)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert bad == [f"bomb.jsonl{suffix}:1: line longer than 1048576 bytes"]
    assert peak < 160 << 20
    _, bad, _ = take(path, format="text", max_record_bytes=1 << 20)
    assert bad == [f"bomb.jsonl{suffix}: binary file: holds NUL bytes"]


def test_a_zst_of_a_long_window_is_read(tmp_path: Path, take: Take) -> None:
    parameters = zstandard.ZstdCompressionParameters(window_log=28, enable_ldm=True)
    compressor = zstandard.ZstdCompressor(compression_params=parameters)
    path = tmp_path / "long.jsonl.zst"
    out = io.BytesIO()
    with compressor.stream_writer(out, closefd=False) as writer:
        writer.write(jsonl(["a long window"]))
    path.write_bytes(out.getvalue())
    documents, bad, _ = take(path)
    assert [document.text for document in documents] == ["a long window"]
    assert bad == []


def test_zst_without_its_library_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.jsonl.zst"
    path.write_bytes(zstandard.compress(jsonl(["a"])))
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(MissingExtra, match=r"pip install 'simindex\[zst\]'"):
        list(read([str(path)]))


def test_other_formats_do_not_need_the_zst_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, take: Take
) -> None:
    found = builtins.__import__

    def refuse(name: str, *args: Any, **others: Any) -> Any:
        assert name != "zstandard"
        return found(name, *args, **others)

    monkeypatch.setattr(builtins, "__import__", refuse)
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(jsonl(["a"])))
    assert len(take(path)[0]) == 1


@pytest.mark.parametrize("suffix", ["", *SUFFIXES])
def test_standard_input_is_jsonl_also_when_compressed(
    monkeypatch: pytest.MonkeyPatch, take: Take, suffix: str
) -> None:
    data = jsonl(["a", "b"])
    if suffix:
        data = compressed(data, suffix)
    stdin = io.TextIOWrapper(io.BufferedReader(io.BytesIO(data)))  # type: ignore[arg-type]
    monkeypatch.setattr("sys.stdin", stdin)
    documents, _, _ = take("-")
    assert [(document.key, document.text) for document in documents] == [("-:1", "a"), ("-:2", "b")]


def test_standard_input_can_be_named_once() -> None:
    with pytest.raises(InvalidInput, match="once"):
        list(read(["-", "-"]))


def test_zeros_may_follow_streams_of_xz(tmp_path: Path, take: Take) -> None:
    path = tmp_path / "a.jsonl.xz"
    parts = [lzma.compress(jsonl([text])) for text in ("a", "b")]
    path.write_bytes(parts[0] + bytes(8) + parts[1] + bytes(1 << 16))
    assert [document.text for document in take(path)[0]] == ["a", "b"]


def test_an_xz_that_asks_for_much_memory_is_refused(tmp_path: Path, take: Take) -> None:
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 1 << 28}]
    path = tmp_path / "a.jsonl.xz"
    path.write_bytes(lzma.compress(jsonl(["a"]), filters=filters))
    documents, bad, _ = take(path)
    assert documents == []
    assert "takes more than 128 MiB of memory" in bad[0]
    assert bad[0].endswith(": decompress it yourself if it is to be trusted")


def test_lines_of_members_before_a_damaged_one_are_read(tmp_path: Path, take: Take) -> None:
    members = [gzip.compress(jsonl([f"text {n}"]), mtime=0) for n in range(9)]
    damaged = bytearray(members[5])
    damaged[-7] ^= 1
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(b"".join([*members[:5], damaged, *members[6:]]))
    documents, bad, _ = take(path)
    assert [document.text for document in documents] == [f"text {n}" for n in range(5)]
    assert len(bad) == 1 and bad[0].startswith("a.jsonl.gz:6: damaged compressed data")


def test_a_gzip_may_end_in_zeros_and_in_nothing_else(tmp_path: Path, take: Take) -> None:
    path = tmp_path / "a.jsonl.gz"
    data = gzip.compress(jsonl(["one"])) + gzip.compress(b"") + bytes(40_000)
    for end, whole in ((b"", True), (gzip.compress(jsonl(["two"])), True), (b"\x1f", False)):
        path.write_bytes(data + end)
        documents, bad, _ = take(path)
        assert documents[0].text == "one" and (bad == []) == whole
        assert len(documents) == 1 + (len(end) > 1)


def test_lines_before_damage_within_a_member_are_read(tmp_path: Path, take: Take) -> None:
    made = zlib.compressobj(6, zlib.DEFLATED, 31)
    parts = [
        made.compress(jsonl([f"text {n}"])) + made.flush(zlib.Z_FULL_FLUSH) for n in range(5000)
    ]
    path, at = tmp_path / "a.jsonl.gz", sum(map(len, parts[:4000]))
    path.write_bytes(b"".join(parts[:4000]) + b"\xff" * 9 + b"".join(parts[4000:]) + made.flush())
    documents, bad, intake = take(path)
    assert [document.text for document in documents] == [f"text {n}" for n in range(4000)]
    assert intake.bad_records == 1 and bad[0].startswith("a.jsonl.gz:4001: damaged compressed data")
    assert f"(compressed byte {at:,})" in bad[0]
    with pytest.raises(InvalidInput, match="damaged compressed data"):
        list(read([str(path)]))


class Steps(io.RawIOBase):
    """Bytes that come in steps, and may break off."""

    def __init__(self, steps: list[bytes], *, breaks: bool = False) -> None:
        self._steps, self._breaks = [step for step in steps if step], breaks

    def read1(self, size: int) -> bytes:
        if self._steps:
            return self._steps.pop(0)
        if self._breaks:
            raise EOFError("cut")
        return b""


@given(st.lists(st.text("ab\n\r", max_size=12).map(str.encode)), st.integers(1, 8), st.booleans())
@pytest.mark.slow
def test_lines_are_the_same_in_whatever_steps_they_come(
    steps: list[bytes], limit: int, breaks: bool
) -> None:
    data = b"".join(steps)
    expected = [
        line if len(line.removesuffix(b"\n")) <= limit else None
        for line in io.BytesIO(data).readlines()
        if line.endswith(b"\n") or not breaks or len(line) > limit
    ]
    found: list[bytes | None] = []
    try:
        for first, block in line_blocks(Steps(steps, breaks=breaks), limit):
            assert first == len(found) + 1
            found += block
    except Unreadable as error:
        assert breaks and error.line == len(expected) + 1
    assert found == expected


def test_a_line_that_does_not_end_is_told_of_at_once() -> None:
    def steps() -> Iterator[bytes]:
        yield b"a\nb"
        while True:
            yield b"b" * 100

    endless = steps()
    stream = SimpleNamespace(read=None, read1=lambda size: next(endless))
    found = lines(stream, 1000)  # type: ignore[arg-type]
    assert [next(found), next(found)] == [(1, b"a\n"), (2, None)]


def test_no_more_of_a_long_line_is_held_than_the_limit() -> None:
    step = b"a" * (1 << 16)
    tracemalloc.start()
    try:
        found = list(lines(Steps([step] * 2000 + [b"\n", b"b\n"]), 1 << 18))  # type: ignore[arg-type]
        assert found == [(1, None), (2, b"b\n")]
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_a_small_file_is_not_asked_for_as_much_as_the_limit() -> None:
    """A reader takes the memory that it is asked for before it knows how much there is."""

    class Asked(io.BytesIO):
        most = 0

        def read(self, size: int | None = -1, /) -> bytes:
            assert size is not None
            self.most = max(self.most, size)
            return super().read(size)

    for length in (0, 1, streams.BUFFER_BYTES, 3 * streams.BUFFER_BYTES + 1):
        stream = Asked(bytes(length))
        assert streams.whole(stream, 1 << 40) == bytes(length)
        assert stream.most <= streams.BUFFER_BYTES
    assert streams.whole(io.BytesIO(bytes(10)), 4) == bytes(5)


WORDS = [f'{{"text": "text {number} of many that look alike"}}\n'.encode() for number in range(900)]
DICTIONARY = zstandard.train_dictionary(2000, WORDS)


def framed(dictionary: bytes, number: int = 0x5D) -> bytes:
    return b"%c\x2a\x4d\x18" % number + len(dictionary).to_bytes(4, "little") + dictionary


def with_dictionary(lines: list[bytes]) -> bytes:
    made = zstandard.ZstdCompressor(dict_data=DICTIONARY)
    return b"".join(made.compress(line) for line in lines)


@pytest.mark.parametrize("squeezed", [False, True])
def test_a_dictionary_in_front_of_a_zst_is_used(
    tmp_path: Path, take: Take, squeezed: bool
) -> None:
    held = DICTIONARY.as_bytes()
    path = tmp_path / "a.jsonl.zst"
    head = framed(zstandard.compress(held) if squeezed else held)
    path.write_bytes(head + with_dictionary(WORDS) + zstandard.compress(WORDS[0]))
    documents, bad, _ = take(path)
    assert (documents[-1].text, bad) == ("text 0 of many that look alike", [])
    assert len(documents) == len(WORDS) + 1


def test_a_dictionary_that_is_damaged_is_told(tmp_path: Path, take: Take) -> None:
    held, path = DICTIONARY.as_bytes(), tmp_path / "a.jsonl.zst"
    rest = with_dictionary(WORDS[:3])
    wrong = [
        rest, framed(held[:90]) + rest, framed(held[:4] + b"\xff" * 90) + rest, framed(b"") + rest,
        framed(zstandard.compress(held)[:-9]) + rest, framed(b"\x28\xb5\x2f\xfd") + rest,
        framed(held)[:900], framed(held)[:6], framed(held, 0x5C) + rest,
        b"\x5d\x2a\x4d\x18\xff\xff\xff\xff" + held + rest,
    ]
    for data in wrong:
        path.write_bytes(data)
        documents, bad, _ = take(path)
        assert documents == [] and len(bad) == 1, (data[:40], bad)
    path.write_bytes(framed(b"not a dictionary") + compressed(WORDS[0], ".zst"))
    assert len(take(path)[0]) == 1


def test_a_dictionary_is_not_made_without_bound(tmp_path: Path, take: Take) -> None:
    path = tmp_path / "a.jsonl.zst"
    path.write_bytes(framed(zstandard.compress(DICTIONARY.as_bytes() + bytes(1 << 28))))
    tracemalloc.start()
    try:
        take(path)
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
    finally:
        tracemalloc.stop()
