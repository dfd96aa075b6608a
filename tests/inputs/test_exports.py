"""JSON lines and tables with a field of digits."""

from __future__ import annotations

import gzip
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from fingerprint_inputs import take_rows

from simindex.inputs.document import Intake
from simindex.inputs.exports import is_exported_lines, is_exported_table
from simindex.inputs.read_options import ReadOptions
from simindex.inputs.reading import read_fingerprints

ONE, TWO = "0" * 15 + "1", "0" * 15 + "2"


@pytest.mark.parametrize(
    ("name", "content", "names"),
    [
        ("a.jsonl", f'{{"key": "k", "fingerprint": "{ONE}"}}\n', ["k"]),
        ("a.jsonl", f'{{"key": "", "id": 4, "fingerprint": "{ONE}"}}\n', [""]),
        ("a.jsonl", f'{{"key_hex": "00ff", "fingerprint": "{ONE}"}}\n', [b"\x00\xff"]),
        ("a.jsonl", f'{{"id": {2**64 - 1}, "fingerprint": "{ONE}"}}\n', [str(2**64 - 1)]),
        ("a.jsonl", f'{{"id": "x", "fingerprint": "{ONE}"}}\n', ["x"]),
        ("a.jsonl", f'{{"url": "/x", "fingerprint": "{ONE}"}}\n', ["/x"]),
        ("a.csv", f"key,fingerprint\n\"a,\n\"\"b\",{ONE}\n", ['a,\n"b']),
        ("a.csv", f"fingerprint,id\n{ONE},7\n", ["7"]),
        ("a.csv", f"fingerprint,id\n{ONE},07x\n", ["07x"]),
        ("a.tsv", f"key\tfingerprint\nk\t{ONE}\n", ["k"]),
    ],
)  # fmt: skip
def test_rows_have_the_first_name_that_there_is(
    tmp_path: Path, name: str, content: str, names: list[Any]
) -> None:
    (tmp_path / name).write_text(content)
    read = take_rows(tmp_path / name)
    assert (read.values, read.names, read.bad) == ([1], names, [])


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv"])
def test_rows_without_a_name_are_told_by_their_line(tmp_path: Path, name: str) -> None:
    content = f'{{"fingerprint": "{ONE}"}}\n' if name == "a.jsonl" else f"fingerprint\n{ONE}\n"
    (tmp_path / name).write_text(content)
    (named,) = take_rows(tmp_path / name).names
    assert named == f"{tmp_path / name}:{1 if name == 'a.jsonl' else 2}"


def test_another_field_may_name_rows(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(f'{{"key": "k", "page": 7, "fingerprint": "{ONE}"}}\n')
    assert take_rows(tmp_path / "a.jsonl", id_field="page").names == ["7"]


def test_bad_records_are_told_with_their_line(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(
        f'{{"id": 1, "fingerprint": "{ONE}"}}\noops\n{{"id": 1}}\n{{"id": 1, "fingerprint": 5}}\n'
        f'{{"id": "x", "fingerprint": "{ONE}"}}\n{{"id": -1, "fingerprint": "{ONE}"}}\n'
        f'{{"fingerprint": "{ONE}"}}\n{{"id": true, "fingerprint": "{ONE}"}}\n'
        f'{{"id": 1, "fingerprint": null}}\n{{"id": 2, "fingerprint": "{TWO}"}}\n'
    )
    read = take_rows(tmp_path / "a.jsonl")
    assert (read.values, read.names) == ([1, 2], ["1", "2"])
    assert [told.split(": ")[0] for told in read.bad] == [f"a.jsonl:{n}" for n in range(2, 10)]
    (tmp_path / "a.csv").write_text(f"id,fingerprint\n1,{ONE}\n1\n1,zz\nx,{ONE}\n2,{TWO}\n")
    read = take_rows(tmp_path / "a.csv")
    assert (read.values, len(read.bad)) == ([1, 2], 3)
    (tmp_path / "b.csv").write_text("id,text\n1,a\n")
    read = take_rows(tmp_path / "b.csv", format="csv")
    assert len(read.bad) == 1 and "has no column 'fingerprint'" in read.bad[0]


@pytest.mark.parametrize(
    ("head", "lines", "table"),
    [
        (b'{"fingerprint": "00"}\n', True, False),
        (b'{"fingerprint": "00", "text": "a"}\n', False, False),
        (b'{"fingerprint": "00"', False, False),
        (b'["fingerprint"]', False, False),
        (b'id,"fingerprint"\r\n1,2', False, True),
        (b"id\tfingerprint\n", False, True),
        (b"id,fingerprint,text\n", False, False),
        (b"one fingerprint, two\n", False, False),
        (b"", False, False),
    ],
)  # fmt: skip
def test_the_first_line_tells_it(head: bytes, lines: bool, table: bool) -> None:
    assert (is_exported_lines(head, "text"), is_exported_table(head, "text")) == (lines, table)


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv", "a.hex"])
@pytest.mark.slow
def test_memory_does_not_grow_with_the_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr("simindex.inputs.fingerprints.CHUNK_ROWS", 500)
    line = {"a.jsonl": '{{"id": {0}, "fingerprint": "{0:016x}"}}', "a.csv": "{0},{0:016x}"}
    with (tmp_path / name).open("w") as file:
        file.write("id,fingerprint\n" if name == "a.csv" else "")
        file.writelines(line.get(name, "{0:016x}").format(n) + "\n" for n in range(60_000))
    tracemalloc.start()
    try:
        parts = read_fingerprints([str(tmp_path / name)], ReadOptions(), Intake())
        assert sum(len(part.batch) for part in parts) == 60_000
        # Two chunks, and the lines of one step of reading; all rows take 12 MiB.
        assert tracemalloc.get_traced_memory()[1] < 1 << 21
    finally:
        tracemalloc.stop()


def test_rows_before_a_break_are_read(tmp_path: Path) -> None:
    lines = "".join(f'{{"id": {n}, "fingerprint": "{n:016x}"}}\n' for n in range(5000))
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(lines.encode())[:-4])
    read = take_rows(tmp_path / "a.jsonl.gz")
    assert read.values == list(range(5000))
    assert len(read.bad) == 1 and "truncated" in read.bad[0]
