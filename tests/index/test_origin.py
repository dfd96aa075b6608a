"""A name that was made of a path leads to one file only, from whatever folder a run is started."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import simindex
from simindex.cli import program
from simindex.errors import CorruptFile
from simindex.index.origin import keep_origin, origin_of
from simindex.inputs.files import name_from
from simindex.inputs.read_options import ReadOptions
from simindex.inputs.reading import read
from simindex.repair.check import require_usable

FOX = "The quick brown fox jumps over the lazy dog and runs into the dark wood"


def test_an_origin_is_stored_once_and_with_a_commit(
    index_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with simindex.open(index_path, "n") as index:
        assert origin_of(index) is None
        keep_origin(index)
        index.discard()
        index.append(np.arange(3, dtype=np.uint64))
        index.commit()
        assert origin_of(index) is None
        keep_origin(index)
        index.commit()
        assert origin_of(index) == os.path.realpath(tmp_path)
        monkeypatch.chdir("/")
        keep_origin(index)
        index.commit()
        assert origin_of(index) == os.path.realpath(tmp_path)
        assert index.check() == []
        with pytest.raises(CorruptFile, match="meta/origin"):
            require_usable("origin", b"relative", index.options)


@pytest.mark.slow
def test_a_name_leads_to_one_file_from_the_origin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over folders, links and `..`, it is the same however the file is reached."""
    tmp_path = tmp_path.resolve()
    for folder in ("a/b/c", "a/d", "e"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "e/link").symlink_to("../a/b")
    folders = [tmp_path, *(path for path in tmp_path.rglob("*") if path.is_dir())]
    for folder in folders:
        (folder / "f").write_text(str(folder.resolve()))
    draw = random.Random(1)
    for _ in range(200):
        here, origin = (draw.choice(folders).resolve() for _ in range(2))
        target = draw.choice(folders)
        monkeypatch.chdir(here)
        ways = [
            os.path.relpath(target / "f", here), str(target / "f"), str(target.resolve() / "f"),
            f"{target}/../{target.resolve().name}/f" if not target.is_symlink() else f"{target}/f",
        ]
        options = ReadOptions(origin=str(origin))
        (key,) = {document.key for way in ways for document in read([way], options)}
        assert (origin / key).resolve() == target.resolve() / "f"
        assert key == os.path.relpath(target.resolve() / "f", origin)
        assert len(list(read(ways, options))) == 1
    assert name_from("/data/f", "/home/ann") == "/data/f"
    assert name_from("/data/f", "/") == "data/f"
    assert name_from("/data/below/f", "/data") == "below/f"
    assert name_from("/srv/database/f", "/srv/data") == "../database/f"
    assert name_from("/data", "/data") == "."


DOCS = ("docs", "./docs", "{root}/docs", "link", "docs/../docs", "link/../docs", "../here/docs")
"""Ways from the folder `here` to one folder of it."""


@pytest.mark.parametrize("first", ["docs", "{root}/docs", "link", "docs/a.txt"])
@pytest.mark.parametrize("command", ["build", "dedup"])
def test_a_file_is_one_document_however_it_is_reached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: str, command: str
) -> None:
    here = tmp_path / "here"
    (here / "docs/sub").mkdir(parents=True)
    (here / "link").symlink_to("docs")
    monkeypatch.chdir(here)

    def add(*ways: str) -> Any:
        given = [way.format(root=here) for way in ways]
        if command == "build":
            return invoke("build", tmp_path / "i.sim", *given, "--append")
        return invoke("dedup", *given, "--index", tmp_path / "i.sim")

    for name in ("a", "sub/b"):
        # Texts of their own for every read, so that only names can tell that a file was read.
        (here / f"docs/{name}.txt").write_text(f"{name} word " * 20)
    (here / "docs/c.jsonl").write_text(json.dumps({"text": "one two three"}) + "\n")
    add(first)
    for way in DOCS:
        add(way)
    told = add(*DOCS).stderr
    assert "3 documents" in told
    monkeypatch.chdir(here / "docs/sub")
    assert "names of files start from" in add("..").stderr
    monkeypatch.chdir("/")
    add("{root}/link")
    with simindex.open(tmp_path / "i.sim") as index:
        keys = sorted(str(key) for batch in index.rows() for key in batch.keys or ())
    assert keys == ["docs/a.txt", "docs/c.jsonl:1", "docs/sub/b.txt"]


def test_files_outside_the_origin_and_a_moved_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("here", "there/docs", "elsewhere"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "there/docs/a.txt").write_text(FOX)
    monkeypatch.chdir(tmp_path / "here")
    invoke("build", "i.sim", "../there/docs")
    invoke("build", "i.sim", tmp_path / "there/docs", "--append")
    Path("i.sim").rename(tmp_path / "elsewhere/moved.sim")
    monkeypatch.chdir(tmp_path / "there")
    invoke("build", "../elsewhere/moved.sim", "docs", "--append")
    with simindex.open("../elsewhere/moved.sim") as index:
        assert len(index) == 1
        assert "../there/docs/a.txt" in index
    (tmp_path / "here").rmdir()
    told = invoke("build", "../elsewhere/moved.sim", "docs", "--append").stderr
    assert "that folder is gone" in told


def test_an_index_without_an_origin_gets_that_of_its_first_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as one that a program made, with keys of its own."""
    monkeypatch.chdir(tmp_path)
    Path("docs").mkdir()
    Path("docs/a.txt").write_text(FOX)
    options = simindex.IndexOptions(keys=True, recipe=simindex.Recipe())
    with simindex.open("i.sim", "n", options=options) as index:
        index.seen_or_add(FOX, key="docs/a.txt")
    invoke("build", "i.sim", tmp_path / "docs", "--append")
    monkeypatch.chdir("docs")
    invoke("build", "../i.sim", "a.txt", "--append")
    with simindex.open("../i.sim") as index:
        assert len(index) == 1
        assert origin_of(index) == os.path.realpath(tmp_path)


def test_a_name_that_is_not_the_one_typed_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/a.txt").write_text(FOX)
    (tmp_path / "link").symlink_to("docs")
    monkeypatch.chdir(tmp_path)
    assert "link is named docs in i.sim: " in invoke("build", "i.sim", "link").stderr
    assert " is named " not in invoke("build", "i.sim", "docs", "--append").stderr
    assert " is named " not in invoke("build", "i.sim", "link", "--append", "-q").stderr


@pytest.fixture
def two(tmp_path: Path) -> Path:
    """Two folders with the same names and, of one file, the same text."""
    for folder in ("one", "two"):
        (tmp_path / folder / "docs").mkdir(parents=True)
        (tmp_path / folder / "docs/same.txt").write_text(FOX)
        (tmp_path / folder / "docs/other.txt").write_text(f"{folder} {folder[::-1]} " * 9)
        (tmp_path / folder / "lines.jsonl").write_text(json.dumps({"text": FOX[::-1]}) + "\n")
    return tmp_path


def invoke(*args: object) -> Any:
    done = CliRunner().invoke(program, list(map(str, args)))
    assert done.exit_code == 0, done.stderr
    return done


@pytest.mark.parametrize("command", ["build", "dedup"])
def test_equal_names_in_two_folders_are_two_documents(
    two: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    place = two / "i.sim"
    how: Callable[[], Any] = lambda: (  # noqa: E731
        invoke("build", place, "docs", "lines.jsonl", "--append") if command == "build"
        else invoke("dedup", "docs", "lines.jsonl", "--index", place, "--audit", two / "audit")
    )
    monkeypatch.chdir(two / "one")
    how()
    again = how()
    assert "start from" not in again.stderr
    own = {"docs/same.txt", "docs/other.txt", "lines.jsonl:1"}
    with simindex.open(place) as index:
        assert {key for batch in index.rows() for key in batch.keys or ()} == own
        assert len(index) == 3
    monkeypatch.chdir(two / "two")
    told = how().stderr
    assert f"names of files start from {(two / 'one').resolve()}, where" in told
    with simindex.open(place) as index:
        keys = {key for batch in index.rows() for key in batch.keys or ()}
    if command == "build":
        assert keys == own | {f"../two/{name}" for name in own}
        assert "2 clusters" in invoke("clusters", place).stderr
    else:
        assert keys == own | {"../two/docs/other.txt"}
        lost = [json.loads(line) for line in (two / "audit").read_text().splitlines()]
        lost = [one for one in lost if one["why"] != "same id"]
        assert {(one["dropped"], one["lost_to"]) for one in lost} == {
            (f"../two/{name}", name) for name in ("docs/same.txt", "lines.jsonl:1")
        }
    how()  # once more from here
    with simindex.open(place) as index:
        assert len(index) == len(keys)
        assert index.check() == []


def test_clusters_finds_documents_of_an_index_from_another_folder(
    two: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(two)
    invoke("build", "i.sim", "one/docs", "two/docs")
    monkeypatch.chdir(two / "two")
    inputs = "docs", "../one/docs"
    kept = invoke("clusters", "../i.sim", *inputs, "--keep", "first", "--list", "drop")
    assert kept.stdout.splitlines() == ["one/docs/same.txt"]
