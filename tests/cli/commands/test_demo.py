"""`demo`: the main job on a folder of text, told so that a person can read it."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import simindex
from simindex.cli.commands.demo import _names

Run = Callable[..., Any]


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """Files of which five are alike, two are alike, and six stand alone."""
    root = tmp_path / "library"
    (root / "family").mkdir(parents=True)
    (root / "site-packages").mkdir()

    def words(seed: int) -> list[str]:
        return random.Random(seed).choices([f"w{n}" for n in range(400)], k=400)

    for n in range(6):
        (root / f"alone{n}.py").write_text(" ".join(words(n)))
    for n in range(5):
        (root / "family" / f"member{n}.py").write_text(" ".join(words(50)) + "\n" * n)
    for n in range(2):
        (root / f"pair{n}.txt").write_text(" ".join(words(60)))
    (root / "empty.py").write_text("")
    (root / "latin.py").write_bytes(b"caf\xe9")
    (root / "site-packages" / "member9.py").write_text(" ".join(words(50)))
    return root


def test_groups_and_one_answer_are_shown(run: Run, library: Path) -> None:
    result = run("demo", "--path", library, "--keep", "kept.sim")
    lines = result.stdout.splitlines()
    assert "7 files in 2 groups of near-duplicates (linked within 7 of 64 bits)" in lines
    table = lines[next(n for n, line in enumerate(lines) if "largest groups" in line) + 1 :]
    assert table[0].split()[:3] == ["5", "0", "family/member0.py"]
    assert table[1].split() == ["2", "0", "pair0.txt", "pair1.txt"]
    assert any(line.startswith("One query: ") for line in lines)
    assert any("a call (median of 101" in line for line in lines)
    assert all(len(line) <= 100 for line in lines if str(library) not in line)
    with simindex.open("kept.sim", "r") as index:
        assert len(index) == 13
    assert "kept" in result.stderr


def test_json_gives_the_same_as_objects(run: Run, library: Path, objects: Any) -> None:
    told = objects(run("demo", "--path", library, "--json", "-q").stdout)
    assert told[0]["documents"] == 14
    assert told[0]["rows"] == 13
    assert [record["size"] for record in told if "size" in record] == [5, 2]
    assert told[-1]["found"][0]["distance"] <= 6


def test_a_folder_without_text_is_refused(run: Run, tmp_path: Path) -> None:
    (tmp_path / "nothing").mkdir()
    assert "--path" in run("demo", "--path", "nothing", code=4).stderr
    run("demo", "--path", "missing", code=4)


def test_names_fit_and_the_rest_is_counted() -> None:
    keys = [f"encodings/cp{n}.py" for n in range(100, 130)]
    assert _names(keys[:2], 60) == "encodings/cp100.py cp101.py"
    shown = _names(keys, 60)
    assert len(shown) <= 60
    assert shown.endswith(f"and {30 - shown.count('.py')} more")
    assert _names(["a/x", "b/y", "b/z"], 60) == "a/x b/y z"
