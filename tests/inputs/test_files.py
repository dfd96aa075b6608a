"""Which files there are, by which names."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simindex.inputs.document import Intake
from simindex.inputs.files import AGAIN, printable
from simindex.inputs.read_options import ReadOptions
from simindex.inputs.reading import read

Take = Callable[..., Any]

pytestmark = pytest.mark.usefixtures("inside")


def keys(outcome: Any) -> list[str]:
    return [document.key for document in outcome[0]]


def below_tree(outcome: Any) -> list[str]:
    names = keys(outcome)
    assert all(name.startswith("tree/") for name in names)
    return [name.removeprefix("tree/") for name in names]


def test_files_are_read_in_a_fixed_order_and_named_as_reached_from_the_input(
    tree: Path, take: Take
) -> None:
    outcome = take("tree")
    assert below_tree(outcome) == [
        ".hidden", "Sub.txt", "a.md", "b.txt", "sub/c.txt", "sub/deep/d.txt", "z/e.rst",
    ]  # fmt: skip
    assert outcome[0][4].path == "tree/sub/c.txt"
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
    assert below_tree(take("tree", include=include, exclude=exclude)) == expected


def test_links_are_no_trap(tree: Path, take: Take) -> None:
    (tree / "sub" / "loop").symlink_to(tree, target_is_directory=True)
    (tree / "self").symlink_to("self")
    (tree / "gone").symlink_to("nowhere")
    (tree / "linked.txt").symlink_to("b.txt")
    os.mkfifo(tree / "pipe")
    documents, bad, intake = take("tree")
    assert len(documents) == 7
    assert bad == []
    assert intake.passed_over == {
        "link to a folder": 1, "broken link or special file": 2, "link that leads to itself": 1,
        AGAIN: 1,
    }


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
    intake = Intake(max_errors=None, report=lambda record: bad.append(record.reason))
    documents = read(["tree"], ReadOptions(), intake)
    assert next(documents).key == "tree/.hidden"
    (tree / "z" / "e.rst").unlink()
    (tree / "z").rmdir()
    assert len(list(documents)) == 5
    assert bad == ["folder cannot be listed: No such file or directory"]


@pytest.mark.usefixtures("tree")
def test_a_named_file_is_named_as_it_was_given(take: Take) -> None:
    assert keys(take("tree/b.txt", "./tree/a.md")) == ["tree/b.txt", "tree/a.md"]
    Path("r.jsonl").write_text('{"text": "x"}\n')
    assert keys(take("r.jsonl")) == ["r.jsonl:1"]


def test_file_names_that_are_no_utf8_become_printable_keys(tmp_path: Path, take: Take) -> None:
    with open(os.fsencode(tmp_path) + b"/caf\xe9.txt", "wb") as file:  # noqa: PTH123
        file.write(b"text")
    assert keys(take(".")) == ["caf\\xe9.txt"]


# Each file once -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("inputs", "names"),
    [
        (["a", "b"], ["a/x.txt", "a/y.txt", "b/x.txt"]),
        (["a", "./a/", "a"], ["a/x.txt", "a/y.txt"]),
        ([".", "a"], ["a/x.txt", "a/y.txt", "b/x.txt"]),
        (["a", "."], ["a/x.txt", "a/y.txt", "b/x.txt"]),
        (["a/y.txt", "a", "a/y.txt"], ["a/y.txt", "a/x.txt"]),
        (["a", "b/../a/x.txt"], ["a/x.txt", "a/y.txt"]),
        (["also", "a"], ["also/x.txt", "also/y.txt"]),
    ],
)
def test_a_file_that_is_reached_twice_counts_once(
    take: Take, inputs: list[str], names: list[str]
) -> None:
    """By the name of the first way; files of equal content in two folders are two."""
    for name in ("a/x.txt", "a/y.txt", "b/x.txt"):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text("one")
    Path("also").symlink_to("a")
    outcome = take(*inputs)
    assert keys(outcome) == names
    assert outcome[2].files == len(names)


def test_a_file_that_was_left_out_before_is_read_where_it_is_named(take: Take) -> None:
    Path("a/deep").mkdir(parents=True)
    Path("a/deep/x.txt").write_text("one")
    Path("a/y.txt").write_text("two")
    assert keys(take("a", "a/deep/x.txt", exclude=("deep",))) == ["a/y.txt", "a/deep/x.txt"]
    assert keys(take("a", "a/deep", exclude=("deep",))) == ["a/y.txt", "a/deep/x.txt"]
    assert keys(take("a/deep", "a", include=("y*",))) == ["a/y.txt"]


def test_a_link_is_followed_where_its_file_is_not_reached_by_its_own_name(take: Take) -> None:
    Path("a/old").mkdir(parents=True)
    Path("a/old/x.txt").write_text("one")
    Path("a/best.txt").symlink_to("old/x.txt")
    Path("a/last.txt").symlink_to("old/x.txt")
    assert keys(take("a")) == ["a/old/x.txt"]
    assert keys(take("a", exclude=("old",))) == ["a/best.txt"]


NAMES = ["a", "a/b", "c"]
FILES = [f"{folder}/{name}" for folder in NAMES for name in ("x.txt", "y.md", "z.txt")]


@given(
    files=st.sets(st.sampled_from(FILES), min_size=1),
    links=st.dictionaries(
        st.sampled_from([f"{folder}/{name}" for folder in NAMES for name in ("l.txt", "a.md")]),
        st.sampled_from(FILES), max_size=3,
    ),
    inputs=st.lists(
        st.sampled_from([*NAMES, *FILES, ".", "./a", "c/../a"]), min_size=1, max_size=5
    ),
    include=st.sampled_from([(), ("*.txt",), ("b/*",)]),
    exclude=st.sampled_from([(), ("b",), ("x*",), ("a/*",)]),
)
@pytest.mark.slow
def test_what_a_search_of_every_input_finds_comes_once(
    tmp_path_factory: pytest.TempPathFactory, files: set[str], links: dict[str, str],
    inputs: list[str], include: tuple[str, ...], exclude: tuple[str, ...],
) -> None:
    """Beside reading each input by itself, and dropping what was there before."""
    root = tmp_path_factory.mktemp("files")
    with contextlib.chdir(root):
        for name in NAMES:
            Path(name).mkdir(parents=True, exist_ok=True)
        for name in files:
            Path(name).write_text(name)
        for name, target in links.items():
            if not Path(name).exists():
                Path(name).symlink_to(root / target)
        inputs = [name for name in inputs if Path(name).exists()]
        options = ReadOptions(include=include, exclude=exclude)
        alone: set[str] = set()
        for name in inputs:
            intake = Intake()
            alone |= {os.path.realpath(d.path) for d in read([name], options, intake)}
        together = [document.path for document in read(inputs, options)]
        assert sorted(map(os.path.realpath, together)) == sorted(alone)
        assert [document.key for document in read(inputs, options)] == [
            Path(path).as_posix() for path in together
        ]


# Names --------------------------------------------------------------------------------------------


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
    outcome = take("tree", without=(tree / "sub").resolve())
    assert "sub/c.txt" not in below_tree(outcome)
    assert len(keys(outcome)) == 5


@pytest.mark.slow
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
        assert keys(take(".")) == ["d/" * depth + "leaf"]
    finally:  # nobody else's recursive removal gets down there
        (tmp_path / ("d/" * depth) / "leaf").unlink()
        for level in range(depth, 0, -1):
            (tmp_path / ("d/" * level)).rmdir()
