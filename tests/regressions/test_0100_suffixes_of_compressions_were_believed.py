"""A file whose suffix names a compression was taken for damaged if it had another one, or none, as
where a program that copied the file has decompressed it. Of a file that was compressed twice the
advice was to give it the suffix that it had.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import sys
from pathlib import Path

import pytest
import zstandard

from simindex.inputs.document import Intake
from simindex.inputs.read_options import ReadOptions
from simindex.inputs.reading import read

LINES = b'{"id": "1", "text": "some words"}\n{"id": "2", "text": "other words"}\n'
SKIPPED = b"\x50\x2a\x4d\x18\x03\0\0\0abc"
MADE = {
    ".gz": gzip.compress(LINES), ".zst": zstandard.compress(LINES), ".xz": lzma.compress(LINES),
    ".bz2": bz2.compress(LINES), "": LINES, ".zst skipped": SKIPPED + zstandard.compress(LINES),
}


def taken(path: Path, data: bytes) -> tuple[list[str], list[str]]:
    path.write_bytes(data)
    bad: list[str] = []
    intake = Intake(max_errors=None, report=lambda one: bad.append(f"{one.reason}: {one.remedy}"))
    return [one.key for one in read([str(path)], ReadOptions(), intake)], bad


@pytest.mark.parametrize("suffix", [".gz", ".zst", ".xz", ".bz2"])
@pytest.mark.parametrize("made", MADE)
def test_a_file_is_read_by_its_first_bytes(tmp_path: Path, made: str, suffix: str) -> None:
    assert taken(tmp_path / f"a.jsonl{suffix}", MADE[made]) == (["1", "2"], [])


@pytest.mark.parametrize("made", MADE)
def test_standard_input_is_read_by_its_first_bytes(
    monkeypatch: pytest.MonkeyPatch, made: str
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(MADE[made])))
    assert [one.key for one in read(["-"], ReadOptions(), Intake())] == ["1", "2"]


@pytest.mark.parametrize("suffix", [".gz", ".zst", ".xz", ".bz2"])
@pytest.mark.parametrize("data", [b"\0\1\2", b"caf\xe9 au lait", b"", b"\x1f", b"B", b"("])
def test_other_bytes_are_damage(tmp_path: Path, suffix: str, data: bytes) -> None:
    if data in (b"\x1f", b"B", b"(") and not MADE[suffix].startswith(data):
        return
    found, bad = taken(tmp_path / f"a.txt{suffix}", data)
    assert found == [] and len(bad) == 1
    assert "damaged compressed data" in bad[0] or "truncated" in bad[0]


@pytest.mark.parametrize("name", ["a.jsonl.gz.zst", "a.jsonl.zst", "a.txt.zst", "a.warc.zst"])
def test_what_was_compressed_twice_says_so(tmp_path: Path, name: str) -> None:
    found, bad = taken(tmp_path / name, zstandard.compress(MADE[".gz"]))
    assert found == []
    assert bad == ["compressed more than once, which cannot be read: decompress it once"]
