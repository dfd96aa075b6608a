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
from simindex.inputs.finding import as_from
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


def test_a_name_leads_to_the_same_file_from_the_origin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names are equal where files are, and lead to them, over folders, links and `..`."""
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
        name = os.path.relpath(target / "f", here)
        named = as_from(name, str(origin))
        assert (origin / named).read_text() == (here / name).read_text()
        if here == origin:
            assert named == name
        if ".." not in Path(os.path.relpath(target, origin)).parts and not target.is_symlink():
            assert named == os.path.relpath(target / "f", origin)
        assert as_from(str(target / "f"), str(origin)) == str(target / "f")
        assert as_from("-", str(origin)) == "-"


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
