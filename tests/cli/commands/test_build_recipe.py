"""`build --recipe INDEX`: two indexes of one recipe, so that one can be asked against the other."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import simindex

Run = Callable[..., Any]
WORDS = [f"word{number}" for number in range(400)]


def lines(*seeds: int) -> str:
    return "".join(
        json.dumps({"id": f"n{seed}", "text": " ".join(random.Random(seed).choices(WORDS, k=80))})
        + "\n" for seed in seeds
    )


@pytest.fixture
def learned(run: Run) -> str:
    """An index that has learned idf, and stores a radius of its own."""
    Path("a.jsonl").write_text(lines(*range(40)))
    Path("b.jsonl").write_text(lines(*range(30, 80)))
    run("build", "a.sim", "a.jsonl", "-d", 5)
    return "a.sim"


def test_the_first_documents_bring_an_index_its_recipe(run: Run, learned: str) -> None:
    """As they do for a new one; later runs use that."""
    for name in ("i.sim", "j.sim", "k.sim"):
        simindex.open(name, "n").close()
    run("build", "new.sim", "a.jsonl")
    run("build", "i.sim", "a.jsonl", "--append")
    run("build", "j.sim", "a.jsonl", "--append", "--weighting", "tf", "-d", 9)
    run("build", "k.sim", "b.jsonl", "--append", "--recipe", learned)
    indexes = [simindex.open(name) for name in ("new.sim", "i.sim", "j.sim", "k.sim", learned)]
    new, i, j, k, one = [(index.recipe, index.h) for index in indexes]
    for index in indexes:
        index.close()
    assert i == new
    assert j == (simindex.Recipe(weighting="tf", ngram=(1, 2)), 9)
    assert k == one
    said = run("build", "i.sim", "b.jsonl", "--append", "--weighting", "tf", code=2).stderr
    assert "it has --weighting balanced-tfidf: leave out --weighting tf" in said


def test_what_the_first_documents_cannot_change_is_refused(run: Run, learned: str) -> None:
    simindex.open("i.sim", "n").close()
    simindex.open("ids.sim", "n", options=simindex.IndexOptions(keys=False)).close()
    for asked, said in (
        (("i.sim", "a.jsonl", "--bits", 128), "--bits 128 does not fit i.sim"),
        (("i.sim", "a.jsonl", "--batch-rows", 8), "it has --batch-rows 1048576: leave out"),
        (("ids.sim", "a.jsonl"), "documents need text keys"),
    ):
        assert said in run("build", *asked, "--append", code=2).stderr
    Path("f.hex").write_text("0000000000000001\n")
    hexadecimal = ("build", "i.sim", "f.hex", "--append")
    assert "it has --bits 64" in run(*hexadecimal, "--bits", 128, code=2).stderr
    run(*hexadecimal, "--bits", 64)
    assert "stores no recipe" in run("build", "i.sim", "a.jsonl", "--append", code=2).stderr


def test_an_index_takes_the_recipe_of_another(run: Run, learned: str) -> None:
    run("build", "own.sim", "b.jsonl")
    told = run("query", learned, "--index", "own.sim", code=2).stderr
    assert "or build own.sim again with --recipe a.sim" in told
    run("build", "b.sim", "b.jsonl", "--recipe", learned)
    with simindex.open(learned) as one, simindex.open("b.sim") as other:
        assert one.recipe == other.recipe
        assert (one.h, other.h) == (5, 5)
    found = run("query", learned, "--index", "b.sim", "-q").stdout.splitlines()
    assert {tuple(line.split("\t")) for line in found} == {
        (f"n{n}", f"n{n}", "0") for n in range(30, 40)
    }
    run("build", "b.sim", "b.jsonl", "--recipe", learned, "-d", 2, "--overwrite")
    with simindex.open("b.sim") as other:
        assert other.h == 2


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (("--recipe", "none.sim"), 3, "none.sim"),
        (("--recipe", "a.jsonl"), 3, "a.jsonl"),
        (("--recipe", "raw.sim"), 2, "raw.sim stores no recipe"),
        (("--recipe", "a.sim", "--bits", 64), 2, "leave out the other options of a recipe"),
        (("--recipe", "a.sim", "--idf-first", 3), 2, "leave out the other options of a recipe"),
    ],
)
def test_what_is_no_index_with_a_recipe_is_refused(
    run: Run, learned: str, options: tuple[Any, ...], code: int, said: str
) -> None:
    simindex.open("raw.sim", "n").close()
    assert said in run("build", "b.sim", "b.jsonl", *options, code=code).stderr
    assert not Path("b.sim").exists()


def test_an_index_that_is_there_keeps_its_recipe(run: Run, learned: str) -> None:
    run("build", "b.sim", "b.jsonl")
    options = ("b.sim", "b.jsonl", "--append", "--recipe", learned)
    assert "keeps its own recipe" in run("build", *options, code=2).stderr
