"""A file in an archive, `zip://a.jsonl::b.zip`, could not be read: the archive was closed. Patterns
and folders lost the address of the archive or cache, and the root of a system lost its slashes."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from simindex.inputs.document import Document, Intake
from simindex.inputs.paths import expanded
from simindex.inputs.reading import read
from simindex.inputs.remote_files import file_name, inside

fsspec = pytest.importorskip("fsspec", reason="the extra remote is not installed")

LINES = b'{"id": "a", "text": "some words"}\n'


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    with zipfile.ZipFile("b.zip", "w") as archive:
        archive.writestr("in/a.jsonl", LINES)
        archive.writestr("note.txt", "a note")
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain/a.jsonl").write_bytes(LINES)
    yield tmp_path
    fsspec.filesystem("memory").store.clear()


def texts(*names: str) -> list[str]:
    found = list(read(expanded(names), intake=Intake()))
    assert all(isinstance(one, Document) for one in found)
    return [one.text for one in found if isinstance(one, Document)]


@pytest.mark.parametrize("archive", ["b.zip", "file://{}/b.zip"])
def test_a_file_in_an_archive_is_read(folder: Path, archive: str) -> None:
    within = archive.format(folder)
    assert texts(f"zip://in/a.jsonl::{within}") == ["some words"]
    assert expanded([f"zip://in/*.jsonl::{within}"]) == (f"zip://in/a.jsonl::{within}",)
    assert texts(f"zip://in/*.jsonl::{within}") == ["some words"]
    assert sorted(texts(f"zip://::{within}")) == ["a note", "some words"]
    assert texts(f"zip://in::{within}") == ["some words"]


def test_a_file_behind_a_cache_is_read(folder: Path) -> None:
    there = f"file://{folder}/plain"
    assert texts(f"simplecache::{there}/*.jsonl") == ["some words"]
    assert expanded([f"simplecache::{there}/*.jsonl"]) == (f"simplecache::{there}/a.jsonl",)
    assert texts(f"simplecache::{there}") == ["some words"]


def test_a_root_keeps_its_slashes() -> None:
    fsspec.filesystem("memory").pipe("/a.jsonl", LINES)
    assert texts("memory://") == ["some words"]


@pytest.mark.parametrize(
    ("given", "path", "whole"),
    [
        ("s3://b/x", "a.txt", "s3://b/x/a.txt"), ("s3://b/x/", "a.txt", "s3://b/x/a.txt"),
        ("file:///", "a.txt", "file:///a.txt"), ("memory://", "d/a", "memory://d/a"),
        ("zip://::b.zip", "a", "zip://a::b.zip"), ("zip://d::s3://b/c", "a", "zip://d/a::s3://b/c"),
        ("simplecache::s3://b", "a", "simplecache::s3://b/a"),
        ("filecache::zip://d::b.zip", "a", "filecache::zip://d/a::b.zip"),
    ],
)
def test_an_address_has_what_is_in_front_and_behind(given: str, path: str, whole: str) -> None:
    assert inside(given, path) == whole


def test_the_name_of_a_file_is_that_of_the_innermost() -> None:
    assert file_name("simplecache::https://a.org/x.csv?v=1") == "/x.csv"
    assert os.path.splitext(file_name("zip://x.csv::b.zip"))[1] == ".csv"  # noqa: PTH122
    assert file_name("data/x.csv") == "data/x.csv"
