"""`export`: the rows of an index, as `build` reads them back."""

from __future__ import annotations

import csv
import io
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import simindex
from simindex.cli import program

Run = Callable[..., Any]


def test_export_prints_csv_that_reads_back(run: Run, keyed: str, objects: Any) -> None:
    table = list(csv.DictReader(io.StringIO(run("export", keyed, "--output", "csv").stdout)))
    rows = objects(run("export", keyed, "--json").stdout)
    assert len(rows) == 10
    assert rows == table
    assert rows == sorted(rows, key=lambda row: (row["fingerprint"], row["key"]))


TEXT_KEYS = st.text(st.characters(codec="utf-8"), max_size=4) | st.text(
    '\r\n\t",\\ \0', max_size=3
)

VALUES = st.integers(0, 2**64 - 1) | st.integers(0, 3)
"""Often equal, so that rows are ordered by their names."""


@st.composite
def indexes(draw: st.DrawFn) -> tuple[Any, list[tuple[list[tuple[int, ...]], list[Any]]]]:
    """Kind of names, and the rows with their names of some commits."""
    kind: Any = draw(st.sampled_from(["str", "bytes", False]))
    names: Any = {
        "str": TEXT_KEYS, "bytes": st.binary(max_size=4), False: st.integers(0, 2**64 - 1)
    }[kind]
    words = draw(st.integers(1, 2))
    row = st.tuples(st.tuples(*[VALUES] * words), names)
    commits = draw(st.lists(st.lists(row, min_size=1, max_size=8), min_size=1, max_size=5))
    return kind, [([r for r, _ in commit], [name for _, name in commit]) for commit in commits]


def exported(path: Path, form: str) -> bytes:
    done = CliRunner().invoke(program, ["export", str(path), "--output", form])
    assert done.exit_code == 0, done.stderr
    return done.stdout_bytes


@settings(max_examples=12)
@given(indexes(), st.sampled_from(["jsonl", "csv"]), st.booleans(), st.integers(1, 9))
@pytest.mark.slow
def test_an_exported_index_is_built_again_exactly(
    made: Any, form: str, piped: bool, batch_rows: int
) -> None:
    """Whatever segments and commits either index has."""
    kind, commits = made
    folder = Path(tempfile.mkdtemp())
    try:
        options = simindex.IndexOptions(
            bits=64 * len(commits[0][0][0]), keys=kind, batch_rows=batch_rows
        )
        with simindex.open(folder / "a.sim", "n", options=options) as index:
            for rows, names in commits:
                named = {"keys": names} if kind else {"ids": np.array(names, np.uint64)}
                index.append(np.array(rows, np.uint64), **named)
                index.commit()
        before = exported(folder / "a.sim", form)
        (folder / f"a.{form}").write_bytes(before)
        source = "-" if piped else str(folder / f"a.{form}")
        done = CliRunner().invoke(
            program,
            ["build", str(folder / "b.sim"), source, "--batch-rows", str(10 - batch_rows)],
            input=before if piped else None,
        )
        assert done.exit_code == 0, done.stderr
        assert exported(folder / "b.sim", form) == before
        with simindex.open(folder / "b.sim", "r") as index:
            assert len(index) == sum(len(rows) for rows, _ in commits)
            assert index.options.keys == kind
    finally:
        shutil.rmtree(folder)


@given(st.lists(st.tuples(st.integers(0, 3), st.text("ab", max_size=2)), min_size=1), st.randoms())
@settings(max_examples=30)
@pytest.mark.slow
def test_equal_rows_give_equal_bytes_whatever_their_order(
    rows: list[tuple[int, str]], random: Any
) -> None:
    shuffled = random.sample(rows, len(rows))
    with tempfile.TemporaryDirectory() as folder:
        for name, some in (("a.sim", rows), ("b.sim", shuffled)):
            options = simindex.IndexOptions(keys=True, batch_rows=3)
            with simindex.open(Path(folder) / name, "n", options=options) as index:
                values = np.array([value for value, _ in some], np.uint64)
                index.append(values, keys=[key for _, key in some])
        assert exported(Path(folder) / "a.sim", "csv") == exported(Path(folder) / "b.sim", "csv")


@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_what_fingerprint_prints_gives_the_index_of_the_texts(
    run: Run, write_jsonl: Any, form: str
) -> None:
    path = write_jsonl("a.jsonl", [
        {"id": f"k\t{n}", "text": f"{n % 7} a text of some words, {n % 7}"} for n in range(30)
    ])
    run("build", "i.sim", path)
    wanted = run("export", "i.sim", "--output", form).stdout
    asked = ("fingerprint", path, "-q", "--recipe", "i.sim")
    Path("a.hex").write_text(run(*asked).stdout)
    run("build", "j.sim", "a.hex")
    assert run("export", "j.sim", "--output", form).stdout == wanted
    run("build", "k.sim", "-", input=run(*asked, "--json").stdout)
    assert run("export", "k.sim", "--output", form).stdout == wanted


def test_an_empty_index_has_a_header(run: Run) -> None:
    simindex.open("i.sim", "n").close()
    assert run("export", "i.sim", "--output", "csv").stdout == "id,fingerprint\n"
    assert run("export", "i.sim").stdout == ""
