"""`backup` makes a folder a backup of an index, and says what it has done."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simindex

Run = Callable[..., Any]


@pytest.fixture
def index(run: Run) -> Path:
    """Of two files; `run` is in its folder."""
    options = simindex.IndexOptions(batch_rows=16, min_merge=0)
    with simindex.open("i.sim", "c", options=options) as made:
        made.append(np.arange(40, dtype=np.uint64))
    return Path("i.sim").absolute()


def test_a_backup_is_an_index(index: Path, run: Run) -> None:
    told = run("backup", "i.sim", "copy")
    assert told.stdout == ""
    assert told.stderr.startswith("simindex: backed up commit ")
    assert " of i.sim in copy: " in told.stderr
    assert run("check", "copy").stdout == ""
    assert run("stats", "copy").stdout.splitlines()[1].split() == ["rows", "40"]


def test_what_was_done_as_json(index: Path, run: Run, objects: Any) -> None:
    (first,) = objects(run("backup", "i.sim", "copy", "--json").stdout)
    (then,) = objects(run("backup", "i.sim", "copy", "--json", "--verify").stdout)
    assert first["linked"] == then["kept"] > 0
    assert (first["kept"], first["copied"], then["linked"], then["copied"]) == (0, 0, 0, 0)
    assert (first["verified"], then["verified"]) == (False, True)
    assert first["path"] == "copy"
    assert set(first) == {
        "path", "generation", "linked", "kept", "copied", "bytes_copied", "verified", "seconds",
    }


def test_the_summary_counts_new_files(index: Path, run: Run) -> None:
    run("backup", "i.sim", "copy", "-q")
    with simindex.open("i.sim", "w") as grown:
        grown.append(np.arange(40, 80, dtype=np.uint64))
    assert " of them new" in run("backup", "i.sim", "copy").stderr
    assert "every byte verified" in run("backup", "i.sim", "copy", "--verify").stderr
    assert run("backup", "i.sim", "copy", "-q").stderr == ""


def test_a_wrong_place_is_a_wrong_call(index: Path, run: Run) -> None:
    assert "is within the index" in run("backup", "i.sim", "i.sim/copy", code=2).stderr
    run("backup", "i.sim", code=2)


def test_what_is_there_stays(index: Path, run: Run, objects: Any) -> None:
    Path("copy").mkdir()
    Path("copy/letter.txt").write_text("a text")
    assert "letter.txt" in run("backup", "i.sim", "copy", code=3).stderr
    (error,) = objects(run("backup", "i.sim", "copy", "--json", code=3).stderr)
    assert error["remedy"].startswith("name another folder")


def test_an_index_that_is_not_there(run: Run) -> None:
    run("backup", "i.sim", "copy", code=3)
    assert not Path("copy").exists()


def test_an_index_that_is_being_written(index: Path, run: Run) -> None:
    with simindex.open("i.sim", "w") as writer:
        writer.append(np.arange(40, 50, dtype=np.uint64))
        run("backup", "i.sim", "copy")
        writer.commit()
        run("backup", "i.sim", "copy")
    with simindex.open("copy") as backup:
        assert len(backup) == 50
