"""Input files made to harm end in documents or bad records, in bounded memory, and nothing else."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import os
import pickle
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import pytest
import zstandard

import simindex
from simindex import Recipe
from simindex.errors import CorruptFile, InvalidInput, SimindexError
from simindex.inputs.csv_table import MAX_COLUMNS, MAX_SEPARATORS
from simindex.inputs.document import Document, Intake
from simindex.inputs.json_lines import MAX_VALUES
from simindex.inputs.read_options import ReadOptions
from simindex.inputs.reading import read
from simindex.query import audit
from simindex.storage.catalog.records import Head

MOST_BYTES = 256 << 20
"""That a hostile file may take of memory beyond what its longest record is allowed."""

Maker = Callable[[Path], Path]

CHILD = """
import resource, sys
from simindex.inputs.document import Intake
from simindex.inputs.read_options import ReadOptions
from simindex.inputs.reading import read

before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
intake = Intake(max_errors=None)
found = sum(1 for _ in read([sys.argv[1]], ReadOptions(), intake))
grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
print(found, intake.bad_records, grown)
"""


def in_a_child(path: Path) -> tuple[int, int, int]:
    """Documents, bad records and grown bytes of reading a file in a process of its own."""
    ended = subprocess.run(
        [sys.executable, "-c", CHILD, str(path)], capture_output=True, text=True, timeout=120,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    found, bad, grown = map(int, ended.stdout.split())
    return found, bad, grown << 10


def taken(path: Path, **options: object) -> tuple[list[Document], list[str]]:
    bad: list[str] = []
    intake = Intake(max_errors=None, report=lambda record: bad.append(str(record)))
    return list(read([str(path)], ReadOptions(**options), intake)), bad  # type: ignore[arg-type]


# Expansion ----------------------------------------------------------------------------------------


def gz_line(path: Path) -> Path:
    """A line of 80 MiB in 80 kB, between good ones."""
    return long_line(path / "bomb.jsonl.gz", gzip.open)


def xz_line(path: Path) -> Path:
    """The same in 12 kB."""
    return long_line(path / "bomb.jsonl.xz", lzma.open)


def bz2_line(path: Path) -> Path:
    """The same in a few hundred bytes."""
    return long_line(path / "bomb.jsonl.bz2", bz2.open)


def long_line(path: Path, opened: Callable[..., Any]) -> Path:
    with opened(path, "wb") as file:
        file.write(b'{"text": "good"}\n{"text": "')
        for _ in range(80):
            file.write(b" " * (1 << 20))
        file.write(b'"}\n{"text": "good"}\n')
    return path


def zst_window(path: Path) -> Path:
    """A frame that asks for a window of 2 GiB and would fill a gigabyte of it, in 100 kB."""
    parameters = zstandard.ZstdCompressionParameters(window_log=27, strategy=1)
    compressor = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    made = compressor.compress(b'{"text": "good"}\n')
    made += b"".join(compressor.compress(bytes(1 << 22)) for _ in range(256)) + compressor.flush()
    # The window is an exponent above 2^10, in five bits of the byte behind magic and descriptor.
    assert made[5] >> 3 == 17
    (path / "bomb.jsonl.zst").write_bytes(made[:5] + bytes([21 << 3]) + made[6:])
    return path / "bomb.jsonl.zst"


def empty_lists(path: Path) -> Path:
    """A line of 60 MB, of twenty million lists, that would take more than a gigabyte."""
    with (path / "lists.jsonl").open("wb") as file:
        file.write(b'{"text": "good"}\n{"text": "a", "more": [')
        for _ in range(20):
            file.write(b"[]," * 1_000_000)
        file.write(b'1]}\n{"text": "good"}\n')
    return path / "lists.jsonl"


def columns(path: Path) -> Path:
    """A header of 60 million columns, and one of many named ones."""
    with (path / "wide.csv").open("wb") as file:
        file.write(b"," * 60_000_000 + b"\n")
    return path / "wide.csv"


def gigabyte_of_nothing(path: Path) -> Path:
    """A line of half a gigabyte, of which the disk holds none."""
    with (path / "hole.jsonl").open("wb") as file:
        file.write(b'{"text": "good"}\n')
        file.truncate(1 << 29)
    return path / "hole.jsonl"


@pytest.mark.parametrize(
    ("make", "found", "bad"),
    [
        (gz_line, 2, 1), (xz_line, 2, 1), (bz2_line, 2, 1), (zst_window, 1, 2),
        (empty_lists, 2, 1), (columns, 0, 1), (gigabyte_of_nothing, 1, 1),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_file_cannot_take_more_memory_than_its_record(
    tmp_path: Path, make: Maker, found: int, bad: int
) -> None:
    """Good records before and behind the bomb are read; a file that ends with it is bad as well."""
    *counts, grown = in_a_child(make(tmp_path))
    assert counts == [found, bad]
    assert grown < MOST_BYTES + 2 * ReadOptions().max_record_bytes


def unclosed_quotes(path: Path) -> Path:
    """A line of 1.4 MB in which an open string begins at each of 200,000 quotes."""
    line = b"," * (MAX_VALUES + 1) + b'"' + b'\\"' * 200_000
    (path / "quotes.jsonl").write_bytes(line + b'\n{"text": "good"}\n')
    return path / "quotes.jsonl"


def test_a_line_is_read_once_whatever_its_quotes(tmp_path: Path) -> None:
    """In time that is linear: the square of these took a quarter of an hour."""
    assert in_a_child(unclosed_quotes(tmp_path))[:2] == (1, 1)


LISTS = """
import resource, sys
from simindex.cli import main

data = next(int(line.split()[1]) for line in open("/proc/self/status") if line[:7] == "VmData:")
resource.setrlimit(resource.RLIMIT_DATA, (data * 1024 + (256 << 20),) * 2)
main()
"""


@pytest.mark.parametrize("command", ["delete", "fingerprint"])
def test_a_list_without_lines_takes_no_memory(tmp_path: Path, command: str) -> None:
    """Of keys or stop words: a gigabyte that holds no line, of which the disk holds none."""
    hole = tmp_path / "hole"
    with hole.open("wb") as file:
        file.truncate(1 << 30)
    simindex.open(tmp_path / "x.sim", "n", options=simindex.IndexOptions(keys="str")).close()
    arguments = {
        "delete": [str(tmp_path / "x.sim"), "--keys-from", str(hole)],
        "fingerprint": ["--text", "a", "--stop-words", f"@{hole}"],
    }
    ended = subprocess.run(
        [sys.executable, "-c", LISTS, command, *arguments[command]], capture_output=True,
        text=True, timeout=120, check=False,
    )
    assert ended.returncode in (2, 4), ended.stderr
    assert "longer than" in ended.stderr


def test_the_limit_of_values_counts_no_text(tmp_path: Path) -> None:
    """A text may hold any number of commas and brackets; a record only so many values."""
    path = tmp_path / "commas.jsonl"
    text = ',[{"\\,' * (MAX_VALUES // 2)
    many = {"text": "a", "numbers": [0] * MAX_VALUES}
    path.write_text(json.dumps({"text": text}) + "\n" + json.dumps(many) + "\n")
    documents, bad = taken(path)
    assert [document.text for document in documents] == [text]
    assert len(bad) == 1
    assert "values" in bad[0]


def test_a_row_has_so_many_columns_and_separators(tmp_path: Path) -> None:
    """One column more is one bad record, and the rows behind it are read."""
    path = tmp_path / "wide.csv"
    wide = ",".join(["x"] * (MAX_COLUMNS + 1))
    quoted = '"' + "," * (MAX_SEPARATORS + 1) + '"'
    path.write_text(f"id,text\n{wide}\n1,{quoted}\n2,good\n")
    documents, bad = taken(path)
    assert [document.text for document in documents] == ["good"]
    assert ["columns" in bad[0], "separators" in bad[1], len(bad)] == [True, True, 2]


# Nesting and encoding -----------------------------------------------------------------------------


@pytest.mark.parametrize("depth", [1_000, 100_000, 500_000])
def test_nesting_ends_no_process(tmp_path: Path, depth: int) -> None:
    """As deep as the parser goes it is a document, beyond that a bad record."""
    path = tmp_path / "deep.jsonl"
    lines = [
        b'{"text": "a", "deep": ' + open_ * depth + close * depth + b"}"
        for open_, close in ((b"[", b"]"), (b'{"a":', b"}"))
    ]
    path.write_bytes(b"\n".join([*lines, b'{"text": "good"}']))
    documents, bad = taken(path)
    assert documents[-1].text == "good"
    assert len(documents) + len(bad) == 3


STRANGE = {
    "no utf-8": b'{"text": "\xff\xfe"}',
    "overlong": b'{"text": "\xc0\x80"}',
    "half a pair": b'{"text": "\\ud800"}',
    "beyond Unicode": b'{"text": "\xf4\x90\x80\x80"}',
    "digits": b'{"text": "a", "n": ' + b"9" * 100_000 + b"}",
    "a key of megabytes": b'{"text": "a", "id": "' + b"k" * (2 << 20) + b'"}',
    "a key that is a list": b'{"text": "a", "id": ["a"]}',
    "no number": b'{"text": NaN}',
    "a bare word": b"text",
}


@pytest.mark.parametrize("name", STRANGE)
def test_what_is_no_text_is_a_bad_record(tmp_path: Path, name: str) -> None:
    """The record behind it is read."""
    path = tmp_path / "strange.jsonl"
    path.write_bytes(STRANGE[name] + b'\n{"text": "good"}\n')
    documents, bad = taken(path)
    assert [document.text for document in documents] == ["good"]
    assert len(bad) == 1


def test_a_nul_character_is_text_in_a_record_and_a_binary_file_in_a_file(tmp_path: Path) -> None:
    """So a hostile key or text stays what it is, in an index, too."""
    path = tmp_path / "nul.jsonl"
    path.write_bytes(b'{"id": "a\\u0000b", "text": "one\\u0000two"}\n')
    documents, _ = taken(path)
    assert [(document.key, document.text) for document in documents] == [("a\0b", "one\0two")]
    (tmp_path / "nul.txt").write_bytes(b"one\0two")
    with pytest.raises(InvalidInput, match="binary"):
        list(read([str(tmp_path / "nul.txt")]))
    with simindex.open(tmp_path / "keys.sim", "n", options=simindex.IndexOptions(keys="str")) as i:
        i.append(np.ones(2, np.uint64), keys=["a\0b", "../../etc\n"])
        i.commit()
        assert sorted(i.query(np.ones(1, np.uint64), h=0).keys() or []) == ["../../etc\n", "a\0b"]


# Names, links and pipes ---------------------------------------------------------------------------


def test_a_folder_of_traps_is_walked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pipes, sockets' kin and links are passed over without waiting; names may be anything."""
    folder = tmp_path / "folder"
    folder.mkdir()
    os.mkfifo(folder / "pipe.txt")
    (folder / "loop").symlink_to(folder)
    (folder / "self").symlink_to(folder / "self")
    (folder / "up").symlink_to("/")
    (folder / "gone.txt").symlink_to(tmp_path / "nowhere")
    (folder / "zero").symlink_to("/dev/zero")
    (tmp_path / "outside.txt").write_text("of somebody else")
    (folder / "secret.txt").symlink_to(tmp_path / "outside.txt")
    (folder / "other.txt").symlink_to("../outside.txt")
    names = ["a\nb.txt", "-rf.txt", "$(id).txt", "\u202e.txt", "x" * 255, "\\..\\up.txt"]
    for name in names:
        (folder / name).write_text(f"text of {len(name)}")
    (folder / os.fsdecode(b"\xff.txt")).write_text("not UTF-8")
    intake = Intake(max_errors=0)
    monkeypatch.chdir(folder)
    found = {document.key: document.text for document in read(["."], intake=intake)}
    assert {name: found.get(name) for name in names} == {n: f"text of {len(n)}" for n in names}
    assert found["\\xff.txt"] == "not UTF-8"
    assert len(found) == len(names) + 1
    assert intake.passed_over["link that leads out of the folder"] == 2
    assert sum(intake.passed_over.values()) == 8


def test_a_device_named_as_a_text_is_bounded(tmp_path: Path) -> None:
    """A file without an end is longer than a record may be."""
    (tmp_path / "endless.txt").symlink_to("/dev/zero")
    documents, bad = taken(tmp_path / "endless.txt", max_record_bytes=1 << 20)
    assert documents == []
    assert len(bad) == 1


# Code ---------------------------------------------------------------------------------------------


class Trap:
    """Leaves a file behind when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return os.mkdir, (str(self.path),)


def trapped(path: Path) -> dict[str, bytes]:
    """Files that run code where they are loaded without care."""
    objects = np.array([Trap(path)], dtype=object)
    np.save(path.parent / "objects.npy", objects, allow_pickle=True)
    return {
        "pickle": pickle.dumps(Trap(path)),
        "npy": (path.parent / "objects.npy").read_bytes(),
        "yaml": f"!!python/object/apply:os.mkdir [{path}]\n".encode(),
        "python": f"__import__('os').mkdir({str(path)!r})\n".encode(),
        "msgpack": msgpack.packb(msgpack.ExtType(1, pickle.dumps(Trap(path)))),
    }


@pytest.mark.parametrize("suffix", [".jsonl", ".csv", ".txt", ".npy", ".jsonl.gz", ".zst"])
def test_no_code_of_a_file_is_run(tmp_path: Path, suffix: str) -> None:
    """Whatever a file is, reading it writes nothing."""
    mark = tmp_path / "mark"
    for name, content in trapped(mark).items():
        path = tmp_path / f"{name}{suffix}"
        path.write_bytes(gzip.compress(content) if suffix.endswith(".gz") else content)
        taken(path)
        for reader in (Recipe.from_bytes, simindex.DocumentFrequencies.from_bytes):
            with pytest.raises(SimindexError):
                reader(content)
        with pytest.raises(CorruptFile):
            audit.decode(content)
        with pytest.raises(CorruptFile):
            Head.decode(content)
    assert not mark.exists()


# msgpack ------------------------------------------------------------------------------------------


BOMBS = {
    "maps": bytes([0xDD]) + (8_000_000).to_bytes(4, "big") + b"\x80" * 8_000_000,
    "lists of lists": (
        bytes([0xDD]) + (100).to_bytes(4, "big")
        + (bytes([0xDD]) + (80_000).to_bytes(4, "big") + b"\x90" * 80_000) * 100
    ),
    "forged count": bytes([0xDD, 0xFF, 0xFF, 0xFF, 0xFF]),
    "forged map": bytes([0xDF, 0xFF, 0xFF, 0xFF, 0xFF]),
    "forged string": bytes([0xDB, 0xFF, 0xFF, 0xFF, 0xFF]),
    "depth": b"\x91" * 5_000,
    "keys of one number": b"\x82\x01\x02\x01\x03",
    "an extension": bytes([0xC7, 4, 5]) + b"abcd",
    "a time": msgpack.packb(msgpack.Timestamp(1, 2)),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_value_of_the_catalog_cannot_take_more_memory_than_it_should(name: str) -> None:
    """Each is refused by type, in memory that the bound of a value gives."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for reader in (Head.decode, audit.decode):
        with pytest.raises(CorruptFile):
            reader(BOMBS[name])
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown << 10 < MOST_BYTES
