"""`build` from fingerprints: what enters an index, and what is refused."""

from __future__ import annotations

import gzip
import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simindex

Run = Callable[..., Any]

ONE, TWO = "0" * 15 + "1", "0" * 15 + "2"

EXPORTED = f'{{"key": "a", "fingerprint": "{ONE}"}}\n{{"key": "b", "fingerprint": "{TWO}"}}\n'


def stored(path: str = "i.sim") -> list[tuple[Any, int]]:
    with simindex.open(path, "r") as index:
        return sorted(
            (name, value) for part in index.rows()
            for name, value in zip(
                part.keys or part.ids.tolist(), part.fingerprints.tolist(), strict=True
            )
        )


@pytest.fixture
def rows(run: Run, tmp_path: Path) -> Path:
    (tmp_path / "rows.jsonl").write_text(EXPORTED)
    np.save(tmp_path / "rows.npy", np.arange(5, dtype=np.uint64))
    return tmp_path


def test_an_index_of_fingerprints_has_no_recipe(run: Run, rows: Path, objects: Any) -> None:
    (told,) = objects(run("build", "i.sim", "rows.npy", "--json").stdout)
    assert (told["fingerprints"], told["bytes"], told["rows"]) == (5, 40, 5)
    assert stored() == [(n, n) for n in range(5)]
    for asked in (["query", "i.sim", "--text", "a"], ["dedup", "--index", "i.sim"]):
        said = run(*asked, code=2, input='{"text": "a"}').stderr
        assert "stores no recipe" in said
    (rows / "a.txt").write_text("some text")
    assert "stores no recipe" in run("build", "i.sim", "a.txt", "--append", code=2).stderr
    assert run("query", "i.sim", "--fingerprint", ONE, "-d", 0, "-q").stdout == f"{ONE}\t1\t0\n"


@pytest.mark.parametrize("words", [1, 3])
def test_the_width_is_that_of_the_data(run: Run, rows: Path, words: int) -> None:
    np.save(rows / "w.npy", np.ones((4, words), np.uint64))
    run("build", "i.sim", "w.npy")
    with simindex.open("i.sim", "r") as index:
        assert index.options.bits == 64 * words
    said = run("build", "j.sim", "w.npy", "--bits", 128, code=4).stderr
    assert f"a fingerprint of {64 * words} bits, and 128 are needed" in said
    assert not Path("j.sim").exists()


def test_texts_and_fingerprints_are_not_mixed(run: Run, rows: Path) -> None:
    (rows / "a.txt").write_text("some text")
    (rows / "folder").mkdir()
    for other in ("a.txt", "folder"):
        said = run("build", "i.sim", "rows.npy", other, code=4).stderr
        assert f"rows.npy holds fingerprints and {other} texts: read them in two runs" in said
    said = run("build", "i.sim", "rows.npy", "rows.jsonl", code=4).stderr
    assert "rows.jsonl:1: here rows have keys, and rows before it have ids or no names" in said
    assert "i.sim was not created" in said
    said = run("build", "i.sim", "rows.npy", "--weighting", "tf", "--idf-first", 3, code=2).stderr
    assert "leave out --weighting, --idf-first" in " ".join(said.split())
    assert "and this command needs the texts" in run("dedup", "rows.npy", code=4).stderr
    assert not Path("i.sim").exists()


def test_fingerprints_in_a_folder_of_texts_are_passed_over(run: Run, rows: Path) -> None:
    (rows / "folder").mkdir()
    for name in ("rows.npy", "rows.jsonl"):
        (rows / name).rename(rows / "folder" / name)
    (rows / "folder" / "a.txt").write_text("some text that is long enough")
    said = run("build", "i.sim", "folder").stderr
    assert "skipped 2 files: fingerprints" in said
    run("build", "j.sim", "folder", "--format", "npy", "--include", "*.npy")
    assert stored("j.sim") == [(n, n) for n in range(5)]


@pytest.mark.parametrize("name", ["-", "rows.csv", "rows.hex", "rows.jsonl.gz"])
def test_each_form_of_exported_rows_gives_the_same_index(
    run: Run, rows: Path, name: str, packed: Callable[[str], bytes]
) -> None:
    content = {
        "rows.csv": f"key,fingerprint\na,{ONE}\nb,{TWO}\n", "rows.hex": f"{ONE}\ta\n{TWO}\tb\n",
    }.get(name, EXPORTED)
    (rows / name).write_bytes(packed(content) if name.endswith(".gz") else content.encode())
    run("build", "i.sim", name, input=packed(content))
    assert stored() == [("a", 1), ("b", 2)]
    run("build", "j.sim", "-", input=content)
    assert stored("j.sim") == [("a", 1), ("b", 2)]


@pytest.fixture
def packed() -> Callable[[str], bytes]:
    return lambda text: gzip.compress(text.encode())


def test_a_pipe_with_a_name_is_read_once(run: Run, rows: Path) -> None:
    for form, content in (("hex", f"{ONE}\ta\n"), ("jsonl", '{"id": "a", "text": "some text"}\n')):
        os.mkfifo(rows / form)
        writer = threading.Thread(target=(rows / form).write_text, args=[content])
        writer.start()
        run("build", f"{form}.sim", form, "--format", form)
        writer.join()
        assert [name for name, _ in stored(f"{form}.sim")] == ["a"]


def test_bad_rows_are_counted_and_named(run: Run, rows: Path, objects: Any) -> None:
    (rows / "bad.jsonl").write_text(EXPORTED + "oops\n" + '{"key": "c", "fingerprint": "1"}\n')
    said = run("build", "i.sim", "bad.jsonl", code=4).stderr
    assert "bad.jsonl:3: not JSON" in said and not Path("i.sim").exists()
    done = run("build", "i.sim", "bad.jsonl", "--max-errors", 2, "--json")
    assert objects(done.stdout)[0]["bad_records"] == 2
    assert "bad.jsonl:4: '1' is not a fingerprint" in done.stderr
    assert "the inputs hold no fingerprint" in run(
        "build", "j.sim", "-", "--format", "hex", code=1, input=""
    ).stderr


def test_what_breaks_off_leaves_an_index_as_it_was(run: Run, rows: Path) -> None:
    run("build", "i.sim", "rows.npy")
    np.save(rows / "more.npy", np.arange(200_000, dtype=np.uint64))
    cut = (rows / "more.npy").read_bytes()[:-5]
    (rows / "more.npy").write_bytes(cut)
    for options in ([], ["--append"], ["--overwrite"]):
        path = "i.sim" if options else "new.sim"
        said = run("build", path, "more.npy", *options, code=4).stderr
        assert "truncated: 199,999 of its 200,000 rows are there" in said
        assert len(stored()) == 5 and not Path("new.sim").exists()


@pytest.mark.parametrize("named", ["key", "id"])
def test_adding_named_rows_again_changes_nothing(
    run: Run, rows: Path, objects: Any, named: str
) -> None:
    names = ["a", "b"] if named == "key" else [7, 2**64 - 1]
    content = "".join(
        json.dumps({named: name, "fingerprint": digits}) + "\n"
        for name, digits in zip(names, (ONE, TWO), strict=True)
    )
    (rows / "r.jsonl").write_text(content)
    run("build", "i.sim", "r.jsonl", "--append")
    before = stored()
    (told,) = objects(run("build", "i.sim", "r.jsonl", "--append", "--json").stdout)
    assert (told["replaced"], stored()) == (2, before)
    (rows / "r.jsonl").write_text(content.replace(TWO, "f" * 16))
    run("build", "i.sim", "r.jsonl", "--append", "--on-existing", "skip")
    assert stored() == before
    said = run("build", "i.sim", "r.jsonl", "--append", "--on-existing", "error", code=4).stderr
    assert f"r.jsonl:1: the index has a document {names[0]!r} already" in said
    run("build", "i.sim", "r.jsonl", "--append")
    assert stored() == [(names[0], 1), (names[1], 2**64 - 1)]
    said = run("build", "i.sim", "rows.npy" if named == "key" else "rows.jsonl", "--append", code=4)
    assert "and those of the index have" in said.stderr and len(stored()) == 2


def test_rows_of_one_key_are_all_stored(run: Run, rows: Path) -> None:
    run("build", "i.sim", "-", input=EXPORTED.replace('"b"', '"a"'))
    assert stored() == [("a", 1), ("a", 2)]


def test_commits_in_between_keep_what_they_had(run: Run, rows: Path) -> None:
    lines = "".join(f"{n:016x}\n" for n in range(10)) + "oops\n"
    said = run("build", "i.sim", "-", "--format", "hex", "--commit-every", 4, code=4, input=lines)
    assert "8 fingerprints of this run are committed" in said.stderr
    assert len(stored()) == 8


def test_fingerprints_that_join_texts_are_said_to_be_unchecked(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("The quick brown fox jumps over the lazy dog")
    run("build", "texts.sim", "a.txt")
    exported = run("export", "texts.sim").stdout
    (tmp_path / "rows.jsonl").write_text(exported)
    said = run("build", "texts.sim", "rows.jsonl", "--append").stderr
    assert "do not say which recipe made them, so it was not checked" in said
    assert "which recipe" not in run("build", "copy.sim", "rows.jsonl").stderr
    assert "which recipe" not in run("build", "copy.sim", "rows.jsonl", "--append").stderr
