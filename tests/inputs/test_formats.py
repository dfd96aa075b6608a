"""The table of formats: a new one is a reader and a row."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from simindex.errors import InvalidOption
from simindex.inputs.document import Document, Source
from simindex.inputs.formats import FORMATS, Format
from simindex.inputs.read_options import ReadOptions
from simindex.inputs.streams import Unreadable, decoded, lines

MAGIC = b"!notes\n"


def read_notes(stream: BinaryIO, source: Source) -> Iterator[Document]:
    """One document a line after the first."""
    for number, line in lines(stream, source.limit):
        if line is None or b"\0" in line:
            source.intake.bad(source.path, number, "no note")
        elif line != MAGIC:
            try:
                text = decoded(line).strip()
            except Unreadable as reason:
                source.intake.bad(source.path, number, str(reason))
                continue
            source.intake.numbered += 1
            yield Document(
                f"{source.name}:{number}", text, path=source.path, line=number, numbered=True
            )


NOTES = Format("notes", read_notes, suffixes=(".notes",), magics=(MAGIC,))

CONTENT = MAGIC + b"one\n\0\ntwo\n"


@pytest.fixture
def notes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FORMATS, NOTES.name, NOTES)


@pytest.mark.usefixtures("notes")
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.notes", CONTENT), ("a.NOTES", CONTENT.removeprefix(MAGIC)),
        ("a.notes.gz", gzip.compress(CONTENT, mtime=0)), ("a", CONTENT),
        ("a.gz", gzip.compress(CONTENT, mtime=0)),
        ("folder/a", CONTENT), ("folder/a.gz", gzip.compress(CONTENT, mtime=0)),
    ],
)  # fmt: skip
def test_a_new_format_is_recognised_by_its_suffix_or_first_bytes(
    tmp_path: Path, take: Callable[..., Any], name: str, content: bytes
) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    given = path.parent if "/" in name else path
    documents, bad, _ = take(given)
    assert [document.text for document in documents] == ["one", "two"]
    assert len(bad) == 1 and bad[0].endswith(": no note")


@pytest.mark.usefixtures("notes")
def test_each_file_of_a_folder_is_read_by_its_own_suffix(
    tmp_path: Path, take: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.notes").write_bytes(b"one\ntwo\n")
    Path("b").write_bytes(b"three\nfour\n")
    documents, _, _ = take(".")
    assert [document.key for document in documents] == ["a.notes:1", "a.notes:2", "b"]
    documents, _, _ = take(".", format="notes")
    assert [document.key for document in documents] == ["a.notes:1", "a.notes:2", "b:1", "b:2"]


@pytest.mark.usefixtures("notes")
def test_a_line_of_another_encoding_is_left_out_and_the_next_one_read(
    tmp_path: Path, take: Callable[..., Any]
) -> None:
    (tmp_path / "a.notes").write_bytes(b"one\n\xff\xfe\ntwo\n")
    documents, bad, _ = take(tmp_path / "a.notes")
    assert [document.text for document in documents] == ["one", "two"]
    assert len(bad) == 1 and ":2" in bad[0]


@pytest.mark.usefixtures("notes")
def test_a_refused_name_lists_the_new_format() -> None:
    with pytest.raises(InvalidOption, match=", ".join(["auto", *FORMATS]) + "$"):
        ReadOptions(format="note")


@pytest.mark.slow
def test_the_shell_offers_the_new_format(tmp_path: Path) -> None:
    """A program that adds its row before the command line is loaded needs no other change."""
    (tmp_path / "a.notes").write_bytes(CONTENT)
    program = """
from test_formats import NOTES
from simindex.inputs.formats import FORMATS
FORMATS[NOTES.name] = NOTES
from simindex.cli import main
main()
"""

    path = ":".join([str(Path(__file__).parent), *sys.path])

    def run(*arguments: str, **options: Any) -> Any:
        return subprocess.run(
            [sys.executable, "-c", program, *arguments], cwd=tmp_path, capture_output=True,
            check=True, env={**os.environ, "PYTHONPATH": path},
            **options,
        )

    usage = run("build", "--help", text=True).stdout
    usage = "".join(usage.split())  # whose lines end anywhere
    assert re.search(r"\|notes[|\]]", usage) and ".notes" in usage
    for given in ("a.notes", "-"):
        done = run("build", "i.sim", given, "--overwrite", "--max-errors", "1", "--json",
                   input=CONTENT)  # fmt: skip
        assert json.loads(done.stdout)["documents"] == 2
