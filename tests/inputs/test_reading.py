"""What a reader is chosen for, and what is refused."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from simindex.errors import InvalidInput, InvalidOption
from simindex.inputs.read_options import ReadOptions
from simindex.inputs.reading import read, rereadable

Take = Callable[..., Any]

pytestmark = pytest.mark.usefixtures("inside")


def keys(outcome: Any) -> list[str]:
    return [document.key for document in outcome[0]]


def test_binary_files_are_passed_over_in_a_folder_and_refused_by_name(
    tree: Path, take: Take
) -> None:
    (tree / "image").write_bytes(b"P5\n\0\0")
    late = tree / "late"
    late.write_bytes(b"x" * 8192 + b"\0")
    documents, bad, intake = take("tree")
    assert "tree/late" in keys((documents,)), "only the first 8 KiB tell a binary file"
    assert intake.passed_over == {"binary file": 1}
    _, bad, _ = take(tree / "image")
    assert bad == ["image: binary file: holds NUL bytes"]


def test_text_is_utf8_without_mark_and_with_its_line_ends(tmp_path: Path, take: Take) -> None:
    (tmp_path / "a").write_bytes(b"\xef\xbb\xbfone\r\ntwo\n")
    (tmp_path / "b").write_bytes(b"")
    (tmp_path / "c").write_bytes(b"one\ntwo caf\xe9\n")
    documents, bad, _ = take(".")
    assert [(document.key, document.text) for document in documents] == [
        ("a", "one\r\ntwo\n"), ("b", ""),
    ]  # fmt: skip
    assert bad == ["c:2: not UTF-8: byte 0xe9 at column 8"]


def test_a_text_over_the_limit_is_a_bad_record(tmp_path: Path, take: Take) -> None:
    (tmp_path / "a").write_bytes(b"x" * 101)
    (tmp_path / "b").write_bytes(b"x" * 100)
    documents, bad, _ = take(".", max_record_bytes=100)
    assert keys((documents,)) == ["b"]
    assert bad == ["a: longer than 100 bytes: give --format if it has records, such as "
                   "JSON lines; a text cannot be longer"]


def test_the_format_asked_for_beats_the_suffix(tmp_path: Path, take: Take) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "x"}\n{"text": "y"}\n')
    assert [document.text for document in take(tmp_path / "a.jsonl")[0]] == ["x", "y"]
    assert keys(take(".")) == keys(take("a.jsonl")) == ["a.jsonl:1", "a.jsonl:2"]
    assert keys(take(".", format="text")) == ["a.jsonl"]
    assert len(take(tmp_path / "a.jsonl", format="text")[0]) == 1
    with pytest.raises(InvalidOption, match="format 'xml'"):
        ReadOptions(format="xml")


def test_missing_inputs_are_refused_before_any_is_read(tree: Path) -> None:
    with pytest.raises(InvalidInput, match="nowhere: no such file or folder"):
        next(read([str(tree), "nowhere"]))


def test_pipes_and_standard_input_cannot_be_read_twice(tree: Path) -> None:
    os.mkfifo(tree.parent / "pipe")
    assert rereadable([str(tree), str(tree / "b.txt")])
    assert not rereadable(["-"])
    assert not rereadable([str(tree), str(tree.parent / "pipe")])
