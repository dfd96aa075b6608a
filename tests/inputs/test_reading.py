"""Folders of text files, and text files named one by one."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simindex.errors import InvalidInput, InvalidOption
from simindex.inputs import ReadOptions, read, rereadable
from simindex.inputs.reading import printable

Take = Callable[..., Any]


def keys(outcome: Any) -> list[str]:
    return [document.key for document in outcome[0]]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "tree"
    for name in ["b.txt", "a.md", "sub/c.txt", "sub/deep/d.txt", "Sub.txt", ".hidden", "z/e.rst"]:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"text of {name}")
    return root


def test_files_are_read_in_a_fixed_order_and_named_relative_to_the_folder(
    tree: Path, take: Take
) -> None:
    outcome = take(tree)
    assert keys(outcome) == [
        ".hidden", "Sub.txt", "a.md", "b.txt", "sub/c.txt", "sub/deep/d.txt", "z/e.rst",
    ]  # fmt: skip
    assert outcome[0][4].path == str(tree / "sub/c.txt")
    assert outcome[0][4].text == "text of sub/c.txt"


@pytest.mark.parametrize(
    ("include", "exclude", "expected"),
    [
        (("*.txt",), (), ["Sub.txt", "b.txt", "sub/c.txt", "sub/deep/d.txt"]),
        (("*.txt", "*.md"), ("sub",), ["Sub.txt", "a.md", "b.txt"]),
        ((), ("deep/", ".*", "*.txt"), ["a.md", "z/e.rst"]),
        (("sub/*",), (), ["sub/c.txt", "sub/deep/d.txt"]),
        (("sub/*.txt",), ("sub/deep/*",), ["sub/c.txt"]),
        (("[ab].*",), (), ["a.md", "b.txt"]),
    ],
)
def test_patterns_choose_files(
    tree: Path, take: Take, include: tuple[str, ...], exclude: tuple[str, ...], expected: list[str]
) -> None:
    assert keys(take(tree, include=include, exclude=exclude)) == expected


def test_links_are_no_trap(tree: Path, take: Take) -> None:
    (tree / "sub" / "loop").symlink_to(tree, target_is_directory=True)
    (tree / "self").symlink_to("self")
    (tree / "gone").symlink_to("nowhere")
    (tree / "linked.txt").symlink_to("b.txt")
    os.mkfifo(tree / "pipe")
    documents, bad, intake = take(tree)
    assert len(documents) == 8
    assert [document.text for document in documents if document.key == "linked.txt"] == [
        "text of b.txt"
    ]
    assert bad == []
    assert intake.passed_over == {
        "link to a folder": 1, "broken link or special file": 2, "link that leads to itself": 1,
    }


def test_binary_files_are_passed_over_in_a_folder_and_refused_by_name(
    tree: Path, take: Take
) -> None:
    (tree / "image").write_bytes(b"P5\n\0\0")
    late = tree / "late"
    late.write_bytes(b"x" * 8192 + b"\0")
    documents, bad, intake = take(tree)
    assert "late" in keys((documents,)), "only the first 8 KiB tell a binary file"
    assert intake.passed_over == {"binary file": 1}
    _, bad, _ = take(tree / "image")
    assert bad == ["image: binary file: holds NUL bytes"]


def test_text_is_utf8_without_mark_and_with_its_line_ends(tmp_path: Path, take: Take) -> None:
    (tmp_path / "a").write_bytes(b"\xef\xbb\xbfone\r\ntwo\n")
    (tmp_path / "b").write_bytes(b"")
    (tmp_path / "c").write_bytes(b"one\ntwo caf\xe9\n")
    documents, bad, _ = take(tmp_path)
    assert [(document.key, document.text) for document in documents] == [
        ("a", "one\r\ntwo\n"), ("b", ""),
    ]  # fmt: skip
    assert bad == ["c:2: not UTF-8: byte 0xe9 at column 8"]


def test_a_text_over_the_limit_is_a_bad_record(tmp_path: Path, take: Take) -> None:
    (tmp_path / "a").write_bytes(b"x" * 101)
    (tmp_path / "b").write_bytes(b"x" * 100)
    documents, bad, _ = take(tmp_path, max_record_bytes=100)
    assert keys((documents,)) == ["b"]
    assert bad == ["a: longer than 100 bytes (records? then give --format)"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_what_may_not_be_read_is_a_bad_record(tree: Path, take: Take) -> None:
    (tree / "b.txt").chmod(0)
    (tree / "sub").chmod(0)
    try:
        documents, bad, _ = take(tree)
    finally:
        (tree / "sub").chmod(0o700)
    assert len(documents) == 4
    assert sorted(bad) == [
        "b.txt: cannot be opened: Permission denied",
        "sub: folder cannot be listed: Permission denied",
    ]


def test_a_folder_that_vanishes_is_a_bad_record(tree: Path, take: Take) -> None:
    bad: list[str] = []
    from simindex.inputs import Intake

    intake = Intake(max_errors=None, report=lambda record: bad.append(record.reason))
    documents = read([str(tree)], ReadOptions(), intake)
    assert next(documents).key == ".hidden"
    (tree / "z" / "e.rst").unlink()
    (tree / "z").rmdir()
    assert len(list(documents)) == 5
    assert bad == ["folder cannot be listed: No such file or directory"]


def test_a_named_file_is_named_as_it_was_given(
    tree: Path, take: Take, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tree.parent)
    assert keys(take("tree/b.txt", "./tree/a.md")) == ["tree/b.txt", "tree/a.md"]
    Path("r.jsonl").write_text('{"text": "x"}\n')
    assert keys(take("r.jsonl")) == ["r.jsonl:1"]


def test_the_format_asked_for_beats_the_suffix(tmp_path: Path, take: Take) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "x"}\n{"text": "y"}\n')
    assert [document.text for document in take(tmp_path / "a.jsonl")[0]] == ["x", "y"]
    assert len(take(tmp_path)[0]) == 1, "a folder holds texts"
    assert keys(take(tmp_path, format="jsonl")) == ["a.jsonl:1", "a.jsonl:2"]
    assert len(take(tmp_path / "a.jsonl", format="text")[0]) == 1
    with pytest.raises(InvalidOption, match="format 'xml'"):
        ReadOptions(format="xml")


def test_file_names_that_are_no_utf8_become_printable_keys(tmp_path: Path, take: Take) -> None:
    with open(os.fsencode(tmp_path) + b"/caf\xe9.txt", "wb") as file:  # noqa: PTH123
        file.write(b"text")
    assert keys(take(tmp_path)) == ["caf\\xe9.txt"]


PIECES = [
    b"\\", b"\\x", b"\\xe9", b"\\x5c", b"x5c", b"\xe9", "é".encode(), b"\xed\xa0\x80", b"a", b"9",
]  # fmt: skip


@given(st.lists(st.sampled_from(PIECES)).map(b"".join))
def test_the_name_of_a_file_can_be_turned_back_into_it(raw: bytes) -> None:
    """So no two files have one name, and one without escapes stays as it is."""
    name = printable(os.fsdecode(raw)).encode()
    back = re.sub(rb"\\x([0-9a-f]{2})", lambda found: bytes.fromhex(found[1].decode()), name)
    assert back == raw
    assert name == raw or b"\\x" in name


def test_a_folder_can_be_left_out(tree: Path, take: Take) -> None:
    outcome = take(tree, without=(tree / "sub").resolve())
    assert "sub/c.txt" not in keys(outcome)
    assert len(keys(outcome)) == 5


def test_missing_inputs_are_refused_before_any_is_read(tree: Path) -> None:
    with pytest.raises(InvalidInput, match="nowhere: no such file or folder"):
        next(read([str(tree), "nowhere"]))


def test_a_very_deep_folder_is_walked(tmp_path: Path, take: Take) -> None:
    depth = 1200
    here = os.open(tmp_path, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    with os.fdopen(os.open("leaf", os.O_WRONLY | os.O_CREAT, dir_fd=here), "w") as file:
        file.write("deep")
    os.close(here)
    try:
        assert keys(take(tmp_path)) == ["d/" * depth + "leaf"]
    finally:  # nobody else's recursive removal gets down there
        (tmp_path / ("d/" * depth) / "leaf").unlink()
        for level in range(depth, 0, -1):
            (tmp_path / ("d/" * level)).rmdir()


def test_pipes_and_standard_input_cannot_be_read_twice(tree: Path) -> None:
    os.mkfifo(tree.parent / "pipe")
    assert rereadable([str(tree), str(tree / "b.txt")])
    assert not rereadable(["-"])
    assert not rereadable([str(tree), str(tree.parent / "pipe")])
