"""Several indexes in one, against a dictionary of what each has."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import simindex
from simindex.cli import program
from simindex.index.origin import origin_of

Run = Callable[..., Any]
Rows = list[tuple[str, int]]

DOCUMENTS = st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(0, 9)), max_size=8)


def made(path: Path, rows: Rows, **options: Any) -> None:
    """An index of rows by name; deletes and adds its last one again."""
    options.setdefault("recipe", simindex.Recipe())
    with simindex.open(path, "n", options=simindex.IndexOptions(keys="str", **options)) as index:
        for name, number in rows:
            index.append(np.array([number], np.uint64), keys=[name])
            index.commit()
        if rows:
            index.delete(keys=[rows[-1][0]])
            index.append(np.array([rows[-1][1]], np.uint64), keys=[rows[-1][0]])


def rows_of(path: Path) -> Rows:
    with simindex.open(path, "r") as index:
        assert not index.check()
        return sorted(
            (key, int(row[0])) for batch in index.rows()
            for key, row in zip(batch.keys or [], batch.rows, strict=True)
        )


def stored(rows: Rows) -> Rows:
    """What `made` leaves: of the last name its last row alone."""
    return sorted([row for row in rows if row[0] != rows[-1][0]] + rows[-1:]) if rows else []


@settings(max_examples=20)
@given(st.lists(DOCUMENTS, min_size=1, max_size=3), st.sampled_from(["replace", "skip", "error"]))
@pytest.mark.slow
def test_a_document_comes_whole_from_one_index(indexes: list[Rows], choice: str) -> None:
    with TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{number}.sim" for number in range(len(indexes))]
        for path, rows in zip(paths, indexes, strict=True):
            made(path, rows)
        held = [stored(rows) for rows in indexes]
        order = held[::-1] if choice == "replace" else held
        expected: Rows = []
        for rows in order:
            names = {name for name, _ in expected}
            expected += [row for row in rows if row[0] not in names]
        clash = sum(len({name for name, _ in rows}) for rows in held) > len(
            {name for rows in held for name, _ in rows}
        )
        new = Path(folder) / "new.sim"
        done = CliRunner().invoke(
            program,
            ["merge", *map(str, paths), "-o", str(new), "--on-existing", choice, "--json"],
        )
        if not any(held):
            assert (done.exit_code, new.exists()) == (1, False)
        elif choice == "error" and clash:
            assert (done.exit_code, new.exists()) == (4, False), done.stderr
            assert "both have a document" in done.stderr
        else:
            assert done.exit_code == 0, done.stderr
            assert rows_of(new) == sorted(expected)
            told = json.loads(done.stdout)
            assert told["rows"] == len(expected)
            assert told["left_out"] == sum(map(len, held)) - len(expected)
        assert [rows_of(path) for path in paths] == held, "the inputs stay as they are"


def test_the_new_index_has_what_the_first_one_stores(run: Run, tmp_path: Path) -> None:
    recipe = simindex.Recipe(h=5)
    made(tmp_path / "a.sim", [("a", 1)], recipe=recipe, structures=("psm",), key_secret=bytes(16))
    made(tmp_path / "b.sim", [("b", 2)], recipe=simindex.Recipe(h=9))
    told = run("merge", "a.sim", "b.sim", "-o", "c.sim").stderr
    assert "copied 2 indexes" in told and "c.sim holds 2 rows" in told
    with simindex.open("c.sim", "r") as index, simindex.open("a.sim", "r") as first:
        assert index.recipe == recipe and index.h == 5
        assert index.options.structures == ("psm",)
        assert index.options.key_secret == first.options.key_secret
    run("merge", "a.sim", "b.sim", "-o", "d.sim", "--structures", "psm,bphs:G=4,g=1,r=2")
    with simindex.open("d.sim", "r") as index:
        assert index.options.structures == ("psm", "bphs:G=4,g=1,r=2")


def test_texts_of_the_new_index_find_those_of_all(run: Run, write_jsonl: Any) -> None:
    words = "the minister said on monday that the new railway line will open in spring"
    run("build", "a.sim", write_jsonl("a.jsonl", [{"id": "a", "text": words}]))
    run("build", "b.sim", write_jsonl("b.jsonl", [{"id": "b", "text": words + "!"}]))
    run("merge", "a.sim", "b.sim", "-o", "c.sim")
    found = run("query", "c.sim", "--text", words).stdout
    assert found == "text:1\ta\t0\ntext:1\tb\t0\n"
    with simindex.open("a.sim", "r") as first, simindex.open("c.sim", "r") as index:
        assert origin_of(index) == origin_of(first)


def numbered(path: str, rows: list[int]) -> None:
    with simindex.open(path, "n", options=simindex.IndexOptions(structures=("psm",))) as index:
        index.append(np.array(rows, np.uint64))


def test_ids_that_repeat_are_refused_unless_rows_are_renumbered(run: Run) -> None:
    """They were given by simindex, most often, and stand for other rows in each index."""
    numbered("a.sim", [5, 6])
    numbered("b.sim", [7])
    refused = run("merge", "a.sim", "b.sim", "-o", "c.sim", code=4).stderr
    assert "both have a document 0" in refused and "--renumber" in refused
    assert not Path("c.sim").exists()
    run("merge", "a.sim", "b.sim", "-o", "c.sim", "--renumber")
    with simindex.open("c.sim", "r") as index:
        (batch,) = index.rows()
        assert (batch.rows[:, 0].tolist(), batch.ids.tolist()) == ([5, 6, 7], [0, 1, 2])


def test_indexes_that_differ_are_refused(run: Run, tmp_path: Path) -> None:
    made(tmp_path / "a.sim", [("a", 1)])
    made(tmp_path / "other.sim", [("a", 1)], recipe=simindex.Recipe(seed=1))
    made(tmp_path / "wide.sim", [], recipe=simindex.Recipe(bits=128), bits=128)
    made(tmp_path / "raw.sim", [("a", 1)], recipe=None)
    numbered("ids.sim", [1])
    numbered("more.sim", [1])
    for path, code, said in (
        ("other.sim", 2, "another recipe than a.sim (seed 1 instead of 0)"),
        ("wide.sim", 2, "of 128"),
        ("raw.sim", 2, "one of them stores no recipe"), ("./a.sim", 4, "is named twice"),
    ):
        refused = run("merge", "a.sim", path, "-o", "c.sim", code=code).stderr
        assert said in refused
    assert "by text keys" in run("merge", "raw.sim", "ids.sim", "-o", "c.sim", code=2).stderr
    run("merge", "a.sim", "-o", "c.sim", "--renumber", code=2)
    assert not Path("c.sim").exists()
    before = rows_of(tmp_path / "other.sim")
    said = run("merge", "a.sim", "-o", "other.sim", code=3).stderr
    assert "other.sim is an index already: name another one with -o" in said
    assert rows_of(tmp_path / "other.sim") == before


@pytest.mark.parametrize("quiet", [(), ("-q",)])
def test_indexes_without_rows_make_none(run: Run, tmp_path: Path, quiet: tuple[str, ...]) -> None:
    made(tmp_path / "a.sim", [])
    told = run("merge", "a.sim", "-o", "c.sim", *quiet, code=1).stderr
    assert bool(told) is not bool(quiet)
    assert not Path("c.sim").exists()
