"""A place where no index can be gave CorruptFile; who holds a lock was told in raw bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import simindex
from simindex.cli import program
from simindex.errors import IndexExists, IndexLocked, IndexNotFound, UnsupportedStorage

MODES: list[Any] = ["n", "c", "w", "r"]

proc = pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="there is no /proc")


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Links that lead nowhere, and a file."""
    (tmp_path / "loop").symlink_to("other")
    (tmp_path / "other").symlink_to("loop")
    (tmp_path / "dangling").symlink_to("nothing")
    (tmp_path / "file").write_text("one two three four five six")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.txt").write_text("one two three four five six")
    monkeypatch.chdir(tmp_path)
    return tmp_path


LOOP = "symbolic links form a loop: correct the links, or name another path"
FILE = "file is not a folder"
MISSING = "there is no folder .*none for an index: create it first"

WRONG: list[tuple[str, str, type[simindex.SimindexError], str]] = [
    ("loop", "ncwr", IndexNotFound, LOOP),
    ("loop/x.sim", "ncwr", IndexNotFound, LOOP),
    ("loop/../x.sim", "ncwr", IndexNotFound, LOOP),
    ("file/x.sim", "ncwr", IndexNotFound, f"{FILE}.*name another path"),
    ("file/y/x.sim", "ncwr", IndexNotFound, f"{FILE}.*name another path"),
    ("file", "nc", IndexExists, f"{FILE}; not overwritten: name another path"),
    ("file", "wr", IndexNotFound, f"{FILE}.*name another path"),
    ("dangling", "nc", IndexExists, "link to nothing, .*not overwritten: create the folder"),
    ("dangling", "wr", IndexNotFound, "link to nothing, .*correct the link"),
    ("none/x.sim", "nc", IndexNotFound, MISSING),
    ("none/x.sim", "wr", IndexNotFound, "there is no index at .*x.sim: create one"),
]


@pytest.mark.parametrize(
    ("place", "mode", "kind", "said"),
    [(place, mode, kind, said) for place, modes, kind, said in WRONG for mode in modes],
)
def test_a_place_that_cannot_be_is_told(
    places: Path, place: str, mode: Any, kind: type[simindex.SimindexError], said: str
) -> None:
    """What is wrong and what to do, and nothing is made or removed; damage there is none."""
    before = sorted(places.rglob("*"))
    for path in (place, places / place):
        with pytest.raises(kind, match=said) as told:
            simindex.open(path, mode)
        assert "repair" not in str(told.value)
        assert "path" in told.value.data
    assert sorted(places.rglob("*")) == before


@proc
@pytest.mark.parametrize("mode", MODES)
def test_a_file_system_without_new_directories_is_told(mode: Any) -> None:
    """Such as that of processes."""
    kind: type[simindex.SimindexError] = UnsupportedStorage if mode in "nc" else IndexNotFound
    said = "file system there, proc, .*name another path" if mode in "nc" else "no index at"
    with pytest.raises(kind, match=said) as told:
        simindex.open("/proc/x.sim", mode)
    assert told.value.data["path"] == "/proc/x.sim"


@pytest.mark.parametrize("option", [[], ["--append"], ["--overwrite"]])
@pytest.mark.parametrize(
    "place", [*dict.fromkeys(row[0] for row in WRONG), pytest.param("/proc/x.sim", marks=proc)]
)
def test_build_tells_of_a_place_that_cannot_be(
    places: Path, place: str, option: list[str]
) -> None:
    """In one line, before any input is read but at /proc; other commands, too."""
    for call in (
        ["build", place, "docs", *option], ["dedup", "docs", "--index", place], ["stats", place],
        ["repair", place],
    ):
        done = CliRunner().invoke(program, call)
        assert (done.exit_code, done.stderr.count("\n")) == (3, 1), done.stderr
        assert isinstance(done.exception, SystemExit)
        assert "simindex repair" not in done.stderr
        assert "Too many levels" not in done.stderr


def test_build_looks_at_the_place_before_it_reads(places: Path) -> None:
    """A bad record would be told of first."""
    (places / "bad.jsonl").write_text("x\n")
    for place in ("loop", "file/x.sim", "none/x.sim", "dangling", "file", "a" * 300):
        for option in ([], ["--overwrite"]):
            call = ["build", place, "bad.jsonl", "--weighting", "tfidf", *option]
            assert CliRunner().invoke(program, call).exit_code == (2 if len(place) == 300 else 3)


# -- who holds the lock ----------------------------------------------------------------------------

HOLDERS = [
    (b"process 7 on here\n", "process 7 on here"),
    (b"\x1b]0;owned\x07\x9b31m", "\\x1b]0;owned\\x07\\x9b31m"),
    ("of a\u202e\u2028\x85host".encode(), "of a\\u202e\\u2028\\x85host"),
    (b"process 7 on a\0\0\0", "process 7 on a"),
    (b"\0" * 4096, "another process"),
    (b"", "another process"),
    (b"x" * 10_000, "x" * 197 + "..."),
    (b"\x1b" * 10_000, ("\\x1b" * 50)[:197] + "..."),
    ("é".encode() * 200, "é" * 200),
]


@pytest.mark.parametrize(("text", "shown"), HOLDERS, ids=[str(n) for n in range(len(HOLDERS))])
def test_who_holds_an_index_is_told_in_printable_characters(
    index_path: Path, text: bytes, shown: str
) -> None:
    """And in at most 200, whatever is in LOCK; in the message and in the data."""
    with simindex.open(index_path, "n") as index:
        index.append(np.zeros(1, np.uint64))
        index.commit()
        (index_path / "LOCK").write_bytes(text)
        with pytest.raises(IndexLocked) as told:
            simindex.open(index_path, "w")
        assert told.value.data["holder"] == shown
        assert f"is locked by a writer: {shown}: " in str(told.value)
        assert index_path.name in str(told.value)
        assert str(told.value).isprintable()
