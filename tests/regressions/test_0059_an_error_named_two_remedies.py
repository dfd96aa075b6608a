"""An index whose LOCK was a folder was refused with two remedies in one message.

The remedy stood in the sentence, where what adds `simindex repair` to damage did not see it. The
shell lost remedies of errors that it told in the names of its options.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import simindex
from simindex.cli import program
from simindex.cli.recipes import asked_recipe
from simindex.errors import CorruptFile, InvalidOption

ANEW = "remove it; the next writer creates a new one"


def a_folder(index: Path) -> None:
    (index / "LOCK").unlink()
    (index / "LOCK").mkdir()


def another_name(index: Path) -> None:
    os.link(index / "LOCK", index.parent / "other")


def another_name_of_the_catalog(index: Path) -> None:
    os.link(index / "catalog" / "data.mdb", index.parent / "other")


def no_segments(index: Path) -> None:
    (index / "segments").rmdir()


@pytest.mark.parametrize(
    ("spoiled", "remedy"),
    [
        (a_folder, ANEW), (another_name, ANEW),
        (another_name_of_the_catalog, "replace it by a copy"),
        (no_segments, "restore it with its files from a backup"),
    ],
)
def test_damage_is_told_with_one_remedy(
    index_path: Path, spoiled: Callable[[Path], None], remedy: str
) -> None:
    with simindex.open(index_path, "n") as index:
        index.append(np.zeros(1, np.uint64))
        index.commit()
    spoiled(index_path)
    with pytest.raises(CorruptFile) as told:
        simindex.open(index_path, "w")
    assert told.value.remedy == remedy
    assert str(told.value) == f"{told.value.what}: {remedy}"
    assert remedy not in told.value.what


def test_the_shell_tells_of_a_lock_that_is_a_folder_with_one_remedy(index_path: Path) -> None:
    simindex.open(index_path, "n").close()
    a_folder(index_path)
    done = CliRunner().invoke(program, ["compact", str(index_path)])
    assert done.exit_code == 3
    assert done.stderr.rstrip().endswith(f"LOCK is not a regular file: {ANEW}")


def test_an_option_of_a_recipe_keeps_its_remedy_in_the_shell() -> None:
    with pytest.raises(InvalidOption) as meant:
        simindex.Recipe(bits=63)
    with pytest.raises(InvalidOption) as told:
        asked_recipe({"bits": 63})
    assert meant.value.remedy is not None
    assert told.value.remedy == meant.value.remedy
    assert told.value.what == "--bits 63 is not valid"
    assert told.value.data == meant.value.data


@pytest.mark.parametrize("command", [["build", "--append"], ["dedup", "--index"]])
def test_the_remedy_comes_after_what_is_left(tmp_path: Path, command: list[str]) -> None:
    """Of an error in the middle of a run, which adds to it."""
    index, good, bad = (tmp_path / name for name in ("pages.sim", "good.jsonl", "bad.jsonl"))
    good.write_text('{"id": "a", "text": "one two three four five six seven"}\n')
    bad.write_text("x\n")
    assert CliRunner().invoke(program, ["build", str(index), str(good)]).exit_code == 0
    done = CliRunner().invoke(program, [*command, str(index), str(bad)])
    assert done.exit_code == 4
    assert done.stderr.rstrip().endswith(
        f"; nothing of this run is committed, {index} is as it was: --max-errors N skips up to N "
        "bad records"
    )
