"""`demo`: edited copies among functions, told so that a person can read it."""

from __future__ import annotations

import random
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import simindex

Run = Callable[..., Any]

WORDS = 200


def function(seed: int, name: str = "work", changed: str = "") -> str:
    """A function of random words that do not repeat, with some of them changed."""
    words = random.Random(seed).sample([f"w{n}" for n in range(5000)], WORDS)
    if changed:
        words[80:88] = [f"{changed}{n}" for n in range(8)]
    body = "\n".join(f"    {' '.join(words[n : n + 8])}" for n in range(0, WORDS, 8))
    return f'def {name}(one):\n    """A text.\n{body}\n    """\n'


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """Modules with two edited copies, an equal one, copies in one module, and 40 others."""
    root = tmp_path / "library"
    (root / "inner").mkdir(parents=True)
    (root / "tests").mkdir()
    (root / "edited.py").write_text(function(1))
    (root / "inner" / "copy.py").write_text(function(1, changed="swapped"))
    (root / "other.py").write_text(function(2, name="longer_name"))
    (root / "another.py").write_text(function(2, name="longer_name", changed="replaced"))
    (root / "equal.py").write_text(function(3))
    (root / "same.py").write_text(function(3))
    (root / "one.py").write_text(function(4) + function(4, changed="within"))
    (root / "tests" / "copy.py").write_text(function(1, changed="tested"))
    (root / "broken.py").write_text("print 'two'\n")
    for n in range(40):
        (root / f"alone{n:02}.py").write_text(function(100 + n))
    return root


def blocks(output: str) -> list[list[str]]:
    """What is shown between empty lines, without the indent."""
    return [[line.strip() for line in block.split("\n")] for block in output.split("\n\n")]


def test_edited_copies_are_shown_with_what_changed(run: Run, library: Path) -> None:
    output = run("demo", "--path", library, "-d", 12).stdout
    shown = {tuple(block[:2]): block[2:] for block in blocks(output) if "differ; " in str(block)}
    assert set(shown) == {
        ("edited.py:1 work", "inner/copy.py:1 work"),
        ("another.py:1 longer_name", "other.py:1 longer_name"),
    }
    told, *change = shown["edited.py:1 work", "inner/copy.py:1 work"]
    assert len(change) == 2
    assert told.endswith("; 96% of the words are the same")
    assert "{+swapped0 swapped1 " in " ".join(change)
    _, *change = shown["another.py:1 longer_name", "other.py:1 longer_name"]
    assert "[-replaced0 replaced1 " in " ".join(change)
    assert "3 pairs in different modules, within 12 of 64 bits; 1 of them equal" in output
    assert "48 functions of 40 words or more" in output
    assert all(len(line) < 80 for line in output.split("\n") if str(library) not in line)


def test_json_gives_the_same_as_objects(run: Run, library: Path, objects: Any) -> None:
    told = objects(run("demo", "--path", library, "-d", 12, "--json", "-q").stdout)
    read, built, pairs, *shown = told
    assert (read["modules"], read["functions"], built["rows"]) == (48, 48, 48)
    assert (pairs["h"], pairs["pairs"], pairs["equal"]) == (12, 3, 1)
    assert {(pair["a"], pair["b"]) for pair in shown} == {
        ("edited.py:1 work", "inner/copy.py:1 work"),
        ("another.py:1 longer_name", "other.py:1 longer_name"),
    }
    assert all(0 < pair["distance"] <= 12 and pair["similarity"] > 0.95 for pair in shown)


def commands(output: str) -> list[list[str]]:
    """What it says to type next, without `simindex`."""
    after = output.partition("Type next:")[2]
    lines = [line.partition("#")[0] for line in after.split("\n") if line.strip()]
    assert all(line.strip().startswith("simindex ") for line in lines)
    return [shlex.split(line.partition(">")[0])[1:] for line in lines]


def test_the_commands_to_type_next_work(
    run: Run, library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["simindex"])
    first = run("demo", "--path", library).stdout
    assert "The index was temporary and is removed" in first
    kept, pairs, dedup = commands(first)
    assert kept == ["demo", "--keep", "demo.sim"]
    second = run(*kept, "--path", library).stdout
    with simindex.open("demo.sim", "r") as index:
        assert len(index) == 48
    assert "The index is demo.sim" in second
    assert "same.py:1 work" in run(*pairs).stdout
    for command in commands(second)[:-1]:
        assert run(*command).stdout
    assert dedup == commands(second)[-1] == ["dedup", "FOLDER"]
    assert run("dedup", library).stdout


@pytest.mark.parametrize(
    ("called", "typed"),
    [("/elsewhere/bin/simindex", "/elsewhere/bin/simindex"), ("x/__main__.py", " -m simindex")],
)
def test_the_commands_are_those_of_this_installation(
    run: Run, library: Path, monkeypatch: pytest.MonkeyPatch, called: str, typed: str
) -> None:
    monkeypatch.setattr(sys, "argv", [called])
    assert f"{typed} pairs demo.sim" in run("demo", "--path", library).stdout


def test_an_index_is_not_overwritten(run: Run, library: Path) -> None:
    run("demo", "--path", library, "--keep", "kept.sim")
    assert "--keep" in run("demo", "--path", library, "--keep", "kept.sim", code=3).stderr


def test_a_folder_without_functions_is_refused(run: Run, tmp_path: Path) -> None:
    (tmp_path / "nothing").mkdir()
    assert "--path" in run("demo", "--path", "nothing", code=4).stderr
    run("demo", "--path", "missing", "--keep", "kept.sim", code=4)
    assert not (tmp_path / "kept.sim").exists()


def test_functions_without_copies_are_told(run: Run, library: Path) -> None:
    for module in library.rglob("*.py"):
        if not module.name.startswith("alone"):
            module.unlink()
    output = run("demo", "--path", library).stdout
    assert "none that differ by a few words" in output
    assert "0 pairs in different modules" in output


@pytest.mark.slow
def test_the_library_of_python_has_an_edited_copy(run: Run, objects: Any) -> None:
    read, _, pairs, *shown = objects(run("demo", "--json", "-q").stdout)
    assert read["functions"] > 1000
    assert pairs["pairs"] >= len(shown) > 0
    for pair in shown:
        assert pair["a"].partition(":")[0] != pair["b"].partition(":")[0]
        assert 0 < pair["distance"] <= pairs["h"]
        assert 0.8 <= pair["similarity"] < 1
        assert "[-" in pair["changed"] or "{+" in pair["changed"]
