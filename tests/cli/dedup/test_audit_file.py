"""The audit of `dedup`: every dropped document, how near it was and why it went, told once."""

from __future__ import annotations

import csv
import json
import random
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from simindex.cli import program

Run = Callable[..., Any]
WORDS = [f"word{number}" for number in range(300)]
PLAIN = ("--weighting", "sublinear")


def text(seed: int) -> str:
    return " ".join(random.Random(seed).choices(WORDS, k=200))


def line(key: object, words: str) -> str:
    return json.dumps({"id": key, "text": words}) + "\n"


def lines_of(path: str | Path) -> list[dict[str, Any]]:
    return [json.loads(one) for one in Path(path).read_text().splitlines()]


EDITED = text(1).replace(" ", " more ", 1)
GIVEN = (
    line("a", text(1)) + line("b", text(1)) + line("c", text(1).upper()) + line("d", EDITED)
    + line("e", text(2))
)


@pytest.mark.parametrize("keep", ["first", "newest"])
def test_a_line_says_how_near_the_document_was_and_why_it_went(run: Run, keep: str) -> None:
    """In one buffer, and over all documents of a file."""
    Path("in.jsonl").write_text(GIVEN)
    run("dedup", *PLAIN, "in.jsonl", "--keep", keep, "--audit", "a")
    told = lines_of("a")
    assert [(one["dropped"], one["why"]) for one in told] == [
        ("b", "same text"), ("c", "same fingerprint"), ("d", "within 7 bits")
    ]
    assert [one["distance"] for one in told[:2]] == [0, 0]
    assert 0 < told[2]["distance"] <= 7
    assert {one["lost_to"] for one in told} == {"a"}


@pytest.mark.parametrize("option", ["--audit", "--certificates"])
def test_an_error_names_the_option_as_it_was_typed(run: Run, option: str) -> None:
    """The option has two names."""
    Path("in.jsonl").write_text(GIVEN)
    for typed, said in (
        ((option, "no/r"), "no/r cannot be written"),
        ((f"{option}=no/r.csv",), "no/r.csv cannot be written"),
        ((option, "in.jsonl"), "in.jsonl is the input in.jsonl, or in it"),
        ((option, "a.csv", "--index", "i.sim"), "a.csv is csv, and each run with --index adds"),
    ):
        refused = run("dedup", *PLAIN, "in.jsonl", *typed, code=2).stderr
        assert f"simindex: {option} {said}" in refused


def test_a_known_document_is_told_with_its_reason_once(run: Run) -> None:
    """Also one whose text differs in what fingerprints do not see."""
    Path("in.jsonl").write_text(GIVEN)
    options = ("dedup", "--index", "i.sim", "in.jsonl", "--audit", "a")
    run(*options, *PLAIN)
    first = lines_of("a")
    assert [one["dropped"] for one in first] == ["b", "c", "d"]
    assert "same id" not in {one["why"] for one in first}
    said = run(*options).stderr
    assert "kept 0 of 5 documents, dropped 3 within 7 bits of a kept one, " in said
    assert "and 2 that i.sim has" in said
    second = lines_of("a")[3:]
    told = {one["dropped"]: one for one in second}
    assert set(told) == {"a", "e"}, "the others were told"
    assert told["a"] == {
        "dropped": "a", "lost_to": "a", "distance": 0, "similarity": 1.0,
        "similarity_error": 0.0008, "dropped_at": "in.jsonl:1", "why": "same id",
        "lost_to_at": None,
    }
    assert told["e"]["why"] == "same id"
    before = Path("a").read_bytes()
    for _ in range(2):
        run(*options)
        assert Path("a").read_bytes() == before
    Path("in.jsonl").write_text("\n" + line("e", text(2) + "!"))
    run(*options)
    assert lines_of("a")[-1] == {**told["e"], "dropped_at": "in.jsonl:2"}


def test_what_is_stored_is_told_apart_from_near_duplicates_in_the_summary(run: Run) -> None:
    Path("in.jsonl").write_text(GIVEN)
    options = ("dedup", "--index", "i.sim", "in.jsonl")
    first = json.loads(run(*options, *PLAIN, "--json").stderr.splitlines()[-1])
    assert (first["dropped"], first["known"], first["rows_before"], first["rows"]) == (3, 0, 0, 2)
    assert first["peak_memory_bytes"] > 1 << 20
    second = run(*options, "--json", "--mark")
    told = json.loads(second.stderr.splitlines()[-1])
    assert (told["dropped"], told["known"], told["kept"], told["rows_before"]) == (3, 2, 2, 2)
    marked = [json.loads(one)["near_duplicate_of"] for one in second.stdout.splitlines()]
    assert sum(mark is not None for mark in marked) == told["dropped"]
    said = run(*options, "--mark").stderr
    assert "marked 3 of 5 documents as within 7 bits of a kept one" in said
    assert "MB of memory; i.sim had 2 rows and holds 2" in said


def test_a_line_that_a_kill_has_cut_is_written_again(run: Run) -> None:
    Path("in.jsonl").write_text(GIVEN)
    options = ("dedup", "--index", "i.sim", "in.jsonl", "--audit", "a")
    run(*options, *PLAIN)
    run(*options)
    whole = Path("a").read_bytes()
    last = whole.rindex(b"\n", 0, -1) + 1
    for cut in (last + 1, last + 30, len(whole) - 1):
        Path("a").write_bytes(whole[:cut])
        run(*options)
        assert Path("a").read_bytes() == whole
    Path("a").write_bytes(b"some notes of mine")
    run(*options)
    assert Path("a").read_bytes().startswith(b"some notes of mine\n{")


def test_without_an_index_the_audit_is_of_this_run_alone(run: Run) -> None:
    Path("in.jsonl").write_text(GIVEN)
    run("dedup", *PLAIN, "in.jsonl", "--audit", "a")
    before = Path("a").read_bytes()
    run("dedup", *PLAIN, "in.jsonl", "--audit", "a")
    assert Path("a").read_bytes() == before


@settings(max_examples=40)
@given(
    st.lists(
        st.lists(st.tuples(st.integers(0, 5), st.integers(0, 4)), max_size=12), min_size=1,
        max_size=4,
    ),
    st.integers(1, 5),
)  # fmt: skip
@pytest.mark.slow
def test_every_dropped_document_is_in_the_audit_and_no_line_twice(
    runs: list[list[tuple[int, int]]], buffer: int
) -> None:
    """Over runs of some documents of few names and texts, whatever the buffer."""
    with tempfile.TemporaryDirectory() as folder:
        audit, given_file = Path(folder) / "a", Path(folder) / "in.jsonl"
        index = str(Path(folder) / "i.sim")
        for documents in runs:
            given_file.write_text("".join(
                line(f"k{key}", text(words)) for key, words in documents
            ))
            done = CliRunner().invoke(program, [
                "dedup", str(given_file), "--index", index, "--buffer", str(buffer), "--json",
                "--audit", str(audit),
            ])  # fmt: skip
            assert done.exit_code == 0, done.stderr
            told = lines_of(audit)
            summary = json.loads(done.stderr.splitlines()[-1])
            places = {one["dropped_at"] for one in told}
            printed = len(done.stdout.splitlines())
            assert printed + summary["dropped"] + summary["known"] == len(documents)
            assert len(places) >= summary["dropped"] + summary["known"]
            same = [json.dumps({**one, "why": "", "lost_to_at": None}) for one in told]
            assert len(same) == len(set(same))


@pytest.mark.parametrize("to", [">", "2>"])
def test_the_output_is_not_read_where_it_goes_into_the_folder_that_is_read(
    spawn: Callable[..., subprocess.Popen[bytes]], tmp_path: Path, to: str
) -> None:
    """Nor what is printed for people. Another name of the file is the same file."""
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "b.txt").write_text(text(1))
    with (folder / "a.jsonl").open("wb") as out:
        (folder / "z.jsonl").hardlink_to(folder / "a.jsonl")
        process = spawn(
            "dedup", "folder", "--buffer", 1, **{"stdout" if to == ">" else "stderr": out}
        )
        output, complaint = process.communicate(timeout=60)
    assert process.returncode == 0
    written = (folder / "a.jsonl").read_bytes()
    printed, said = (written, complaint) if to == ">" else (output, written)
    assert [json.loads(line)["id"] for line in printed.splitlines()] == ["folder/b.txt"]
    assert b"skipped 2 files: the output goes there" in said


def test_a_table_has_what_the_lines_have(run: Run, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    for name in ("gone.jsonl", "gone.csv", "gone.parquet"):
        run("dedup", "--audit", name, "-q", *PLAIN, "-d", 7, input=GIVEN)
    lines = lines_of("gone.jsonl")
    assert len(lines) == 3
    assert parquet.read_table("gone.parquet").to_pylist() == lines
    with Path("gone.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    told = [{name: "" if of is None else str(of) for name, of in row.items()} for row in lines]
    assert rows == told
    assert not list(tmp_path.glob(".simindex-*"))


@pytest.mark.parametrize("name", ["gone.csv", "gone.parquet"])
def test_a_run_that_fails_leaves_no_table(run: Run, tmp_path: Path, name: str) -> None:
    pytest.importorskip("pyarrow")
    run("dedup", "--audit", name, "-q", *PLAIN, input=GIVEN + "oops\n", code=4)
    assert list(tmp_path.iterdir()) == []
