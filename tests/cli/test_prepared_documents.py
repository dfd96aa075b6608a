"""Word weights are learned from the documents of a command, if there are enough of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import simindex
from simindex.cli.prepared_documents import LEAST_DOCUMENTS

Run = Callable[..., Any]


def lines(number: int) -> str:
    return "".join(
        json.dumps({"id": str(n), "text": f"page {n} says something of its own: {n * n}"}) + "\n"
        for n in range(number)
    )


def recipe_of(path: str) -> simindex.Recipe:
    with simindex.open(path, "r") as index:
        assert index.recipe is not None
        return index.recipe


@pytest.mark.parametrize("command", ["build", "dedup"])
@pytest.mark.parametrize("stream", [False, True], ids=["file", "stream"])
def test_idf_is_learned_from_enough_documents_only(run: Run, command: str, stream: bool) -> None:
    for number in (1, LEAST_DOCUMENTS - 1, LEAST_DOCUMENTS):
        Path("a.jsonl").write_text(lines(number))
        place = (f"{number}.sim",) if command == "build" else ("--index", f"{number}.sim")
        source = ("-",) if stream else ("a.jsonl",)
        told = run(command, *place, *source, input=lines(number) if stream else None).stderr
        recipe = recipe_of(f"{number}.sim")
        if number == LEAST_DOCUMENTS:
            assert (recipe.ngram, recipe.weighting) == (1, "balanced-tfidf")
            assert recipe.idf is not None and recipe.idf.documents == number
            assert f"word weights learned from {number} documents, all of" in told
        else:
            assert recipe == simindex.Recipe()
            assert "too few to learn word weights from (30 are needed)" in told


def test_few_documents_are_learned_from_if_that_is_asked(run: Run) -> None:
    asked = {"tfidf": ("--weighting", "tfidf"), "balanced-tfidf": ("--idf-first", 2)}
    for weighting, options in asked.items():
        run("build", f"{weighting}.sim", "-", *options, input=lines(2))
        recipe = recipe_of(f"{weighting}.sim")
        assert (recipe.ngram, recipe.weighting) == (1, weighting) and recipe.fitted
    (summary,) = map(json.loads, run("build", "i.sim", "-", "--json", input=lines(2)).stdout.split(
        "\n")[:-1])
    assert summary["idf"] == {"documents": 2, "learned": False}


def test_fingerprint_learns_only_if_that_is_asked(run: Run) -> None:
    plain = run("fingerprint", "-", "-q", input=lines(40)).stdout.splitlines()
    one = run("fingerprint", "-", "-q", input=lines(1)).stdout.splitlines()
    assert plain[0] == one[0]
    learned = run("fingerprint", "-", "-q", "--weighting", "tfidf", input=lines(40)).stdout
    assert learned.splitlines()[0] != one[0]


def test_an_error_of_the_first_pass_says_what_is_left(run: Run) -> None:
    bad = lines(2) + "oops\n"
    Path("bad.jsonl").write_text(bad)
    for source, given in (("bad.jsonl", None), ("-", bad)):
        refused = run("build", "i.sim", source, input=given, code=4).stderr
        assert ":3: not JSON" in refused and "; i.sim was not created" in refused
        refused = run("dedup", "--index", "i.sim", source, input=given, code=4).stderr
        assert "; i.sim was not created" in refused
        assert not Path("i.sim").exists()
    run("build", "i.sim", "-", input=lines(2))
    refused = run("build", "i.sim", "bad.jsonl", "--overwrite", code=4).stderr
    assert "; i.sim is as it was" in refused
