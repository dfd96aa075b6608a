"""Patterns and lists stand for paths; a path that is there stands for itself."""

from __future__ import annotations

import gzip
import io
from pathlib import Path
from types import SimpleNamespace

import pytest

from simindex.errors import InvalidInput
from simindex.inputs.paths import expanded

pytestmark = pytest.mark.usefixtures("inside")

FILES = ("a.txt", "b.txt", "in/c.txt", "in/deep/d.txt", "[x].txt", "@list", "e.md")


@pytest.fixture(autouse=True)
def files(inside: None) -> None:
    for name in FILES:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text("text")


@pytest.mark.parametrize(
    ("names", "paths"),
    [
        (["b.txt", "a.txt", "-", "nothere"], ["b.txt", "a.txt", "-", "nothere"]),
        (["?.txt"], ["a.txt", "b.txt"]),
        (["**/*.txt"], ["[x].txt", "a.txt", "b.txt", "in/c.txt", "in/deep/d.txt"]),
        (["[x].txt", "@list"], ["[x].txt", "@list"]),  # they are there
        (["i*", "e.*"], ["in", "e.md"]),
        (["./in/*.txt"], ["./in/c.txt"]),
        (["Is this a text?"], ["Is this a text?"]),
    ],
)
def test_names_stand_for_paths(names: list[str], paths: list[str]) -> None:
    assert expanded(names) == tuple(paths)


@pytest.mark.parametrize("packed", [False, True])
def test_a_list_has_a_path_on_each_line(packed: bool) -> None:
    content = b"\xef\xbb\xbfa.txt\r\n\nin\nno such\ncaf\xe9.txt"
    Path("l.gz" if packed else "l").write_bytes(gzip.compress(content) if packed else content)
    found = expanded(["@l.gz" if packed else "@l", "b.txt"])
    assert found == ("a.txt", "in", "no such", "caf\udce9.txt", "b.txt")


def test_a_list_can_be_piped(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = SimpleNamespace(buffer=io.BytesIO(b"a.txt\nb.txt\n"), isatty=lambda: False)
    monkeypatch.setattr("sys.stdin", stream)
    assert expanded(["@-"]) == ("a.txt", "b.txt")
    monkeypatch.setattr("sys.stdin", SimpleNamespace(isatty=lambda: True))
    with pytest.raises(InvalidInput, match="nothing is piped to it"):
        expanded(["@-"])


@pytest.mark.parametrize(
    ("name", "reason"),
    [("no*.txt", r"no\*\.txt: no file or folder matches"), ("@no", "@no: cannot be opened"),
     ("@bad", "@bad:2: a line that is not a path"), ("@long", "@long:1: a line that is not a path"),
     ("@in", "@in: cannot be opened")],
)
def test_what_stands_for_nothing_is_refused(name: str, reason: str) -> None:
    Path("bad").write_bytes(b"a.txt\n\0\n")
    Path("long").write_bytes(b"a" * 20_000)
    with pytest.raises(InvalidInput, match=reason):
        expanded([name])
