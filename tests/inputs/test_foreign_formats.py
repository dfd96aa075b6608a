"""Formats that cannot be read are told by their first bytes, and never taken for a text."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import sqlite3
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Take = Callable[..., Any]
TEXT = b"one two three four five six seven eight\n" * 50


def squeezed(content: bytes) -> bytes:
    return gzip.compress(content, mtime=0)


def zipped() -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as archive:
        archive.writestr("a.txt", TEXT)
    return held.getvalue()


def tarred() -> bytes:
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w") as archive:
        member = tarfile.TarInfo("a.txt")
        member.size = len(TEXT)
        archive.addfile(member, io.BytesIO(TEXT))
    return held.getvalue()


def database(folder: Path) -> bytes:
    with sqlite3.connect(folder / "made.db") as made:
        made.execute("create table a (b)")
    made.close()
    return (folder / "made.db").read_bytes()


WARC = b"WARC/1.0\r\nWARC-Type: warcinfo\r\nContent-Length: 3\r\n\r\nabc\r\n\r\n"
PRETTY = json.dumps({"text": "a", "b": [1, 2]}, indent=2).encode()

KINDS = [
    ("a", zipped(), "a ZIP archive, or an Office document"),
    ("a.docx", zipped(), "a ZIP archive, or an Office document"),
    ("a.tar", tarred(), "a tar archive"),
    ("a.tar.gz", squeezed(tarred()), "a tar archive"),
    ("a", lzma.compress(TEXT), "an xz file"),
    ("a.txt", bz2.compress(TEXT), "a bzip2 file"),
    ("a", squeezed(TEXT), "a gzip file"),
    ("a", bytes.fromhex("28b52ffd") + b"rest", "a Zstandard file"),
    ("a.pdf", b"%PDF-1.7\n%\xe2\xe3\n", "a PDF file"),
    ("a.feather", b"FEA1" + bytes(20), "a Feather file of version 1"),
    ("a.txt", "one two".encode("utf-16"), "UTF-16 or UTF-32 text"),
    ("a.json", PRETTY, "a JSON document"),
    ("a.json", b'{"name": "no text"}\n', "a JSON document"),
]


@pytest.mark.parametrize(
    ("name", "content", "what"), KINDS, ids=[f"{name}-{n}" for n, (name, *_) in enumerate(KINDS)]
)
def test_a_named_file_is_refused_and_one_of_a_folder_is_passed_over(
    tmp_path: Path, take: Take, name: str, content: bytes, what: str
) -> None:
    (tmp_path / name).write_bytes(content)
    documents, bad, _ = take(tmp_path / name)
    assert documents == []
    assert len(bad) == 1 and bad[0].startswith(f"{name}: {what}, which cannot be read: ")
    documents, bad, intake = take(tmp_path)
    assert (documents, bad, intake.passed_over) == ([], [], {what: 1})


def test_a_database_is_refused(tmp_path: Path, take: Take) -> None:
    (tmp_path / "a").write_bytes(database(tmp_path))
    _, bad, _ = take(tmp_path / "a")
    assert bad[0].startswith("a: an SQLite database, which cannot be read: export")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.json", b'{"text": "a"}\n{"text": "b"}\n'),
        ("a.json", b'\xef\xbb\xbf\n {"id": 1, "text": "a"}'),
        ("a.json", json.dumps({"text": "x" * 9000}).encode()),
        ("a.json.gz", squeezed(b'{"text": "a"}\n')),
        ("a.jsonl", b'["not an object"]\n{"text": "b"}\n'),
    ],
)
def test_json_lines_are_read_whatever_their_suffix(
    tmp_path: Path, take: Take, name: str, content: bytes
) -> None:
    (tmp_path / name).write_bytes(content)
    documents, _, _ = take(tmp_path / name)
    assert documents and all(document.line is not None for document in documents)


def test_what_is_asked_for_as_text_is_read_as_text(tmp_path: Path, take: Take) -> None:
    (tmp_path / "a.json").write_bytes(PRETTY)
    (tmp_path / "b.warc").write_bytes(WARC)
    documents, bad, _ = take(tmp_path / "a.json", tmp_path / "b.warc", format="text")
    assert ([document.text.encode() for document in documents], bad) == ([PRETTY, WARC], [])


@pytest.mark.parametrize(
    "content",
    [b"BZhou is a surname", b"[1] a footnote", b"WARC is a format", b"{curly", b"", b"PK", b"\n"],
)
def test_a_text_that_begins_alike_is_a_text(tmp_path: Path, take: Take, content: bytes) -> None:
    (tmp_path / "a.txt").write_bytes(content)
    documents, bad, _ = take(tmp_path / "a.txt")
    assert ([document.text.encode() for document in documents], bad) == ([content], [])


@pytest.mark.parametrize(
    ("name", "content", "what"),
    [
        ("dump.xml", "<mediawiki><page>text</page></mediawiki>", "XML"),
        ("feed.xml", '<?xml version="1.0"?><rss version="2.0"><item/></rss>', "feed"),
        ("feed.atom", '<feed xmlns="http://www.w3.org/2005/Atom"></feed>', "feed"),
        ("two.mbox", "From a@example.org Mon Feb  5 10:00:00 2024\nSubject: x\n\nhello\n", "mail"),
    ],
)
@pytest.mark.parametrize("compress", [bytes, bz2.compress])
def test_files_of_several_texts_are_not_one_text(
    tmp_path: Path, take: Take, name: str, content: str, what: str, compress: Any
) -> None:
    path = tmp_path / (name if compress is bytes else f"{name}.bz2")
    path.write_bytes(compress(content.encode()))
    documents, (told,), _ = take(path)
    assert documents == [] and what in told and "cannot be read" in told


def test_json_lines_with_a_damaged_first_line_are_json_lines(tmp_path: Path, take: Take) -> None:
    """In a .json file of a folder, too, whose other lines would be lost without a word."""
    lines = [json.dumps({"id": str(row), "text": f"text {row}"}) for row in range(5)]
    (tmp_path / "a.json").write_text("\n".join([lines[0][:-3], *lines[1:]]))
    documents, bad, _ = take(tmp_path)
    assert [one.key for one in documents] == ["1", "2", "3", "4"]
    assert len(bad) == 1 and "a.json:1" in bad[0]


@pytest.mark.parametrize(
    ("magic", "what"),
    [
        (b"\x89PNG\r\n\x1a\n", "PNG"), (b"\xff\xd8\xff", "JPEG"), (b"GIF89a", "GIF"),
        (b"ORC", "ORC"), (b"Obj\x01", "Avro"), (b"\x7fELF", "program"), (b"\x1f\x9d", ".Z"),
    ],
)
def test_binary_files_are_named_by_what_they_are(
    tmp_path: Path, take: Take, magic: bytes, what: str
) -> None:
    (tmp_path / "a.dat").write_bytes(magic + bytes(200))
    documents, (told,), _ = take(tmp_path / "a.dat")
    assert documents == [] and what in told


@pytest.mark.parametrize(
    ("name", "content", "what", "suffix"),
    [
        ("a.csv", b"<!doctype html><p>text, of a page", "HTML with the suffix .csv", ".html"),
        ("a.jsonl", b"\n<html><p>text, of a page", "HTML with the suffix .jsonl", ".html"),
        ("a.tsv", b'{"id": "1", "text": "one"}\n', "JSON with the suffix .tsv", ".jsonl"),
        ("a.csv", b'[\n{"id": "1", "text": "one"}\n]', "JSON with the suffix .csv", ".json"),
    ],
)
def test_what_is_neither_a_table_nor_json_lines_is_named(
    tmp_path: Path, take: Take, name: str, content: bytes, what: str, suffix: str
) -> None:
    (tmp_path / name).write_bytes(content)
    documents, (told,), _ = take(tmp_path / name)
    assert documents == []
    assert told == f"{name}: {what}, which cannot be read: give its name the suffix {suffix}"


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf16_without_a_mark_is_told(
    tmp_path: Path, take: Take, name: str, encoding: str
) -> None:
    content = "id,text\n1,one two\n" if name == "a.csv" else '{"id": "1", "text": "one"}\n'
    (tmp_path / name).write_bytes(content.encode(encoding))
    documents, (told,), _ = take(tmp_path / name)
    assert documents == [] and "UTF-16" in told and "convert it to UTF-8" in told


def test_a_header_in_brackets_is_that_of_a_table(tmp_path: Path, take: Take) -> None:
    (tmp_path / "a.csv").write_text("[id],[text]\n1,one\n")
    documents, bad, _ = take(tmp_path / "a.csv", text_field="[text]")
    assert [one.text for one in documents] == ["one"] and not bad


def test_an_array_is_read_under_the_name_of_lines(tmp_path: Path, take: Take) -> None:
    """Each of its lines would be a bad record."""
    (tmp_path / "a.jsonl").write_text('[{"id": "1", "text": "one"},\n{"id": "2", "text": "two"}]')
    documents, bad, _ = take(tmp_path / "a.jsonl")
    assert [one.text for one in documents] == ["one", "two"] and not bad


def test_an_empty_file_of_json_has_no_documents(tmp_path: Path, take: Take) -> None:
    (tmp_path / "a.json").write_bytes(b"")
    documents, bad, _ = take(tmp_path / "a.json")
    assert documents == [] and not bad
