"""Messages of the library in the words of the shell."""

from __future__ import annotations

import json
from typing import Any

import pytest

from simindex.cli.wording import told, with_files, with_options
from simindex.errors import IndexLocked, IndexNotFound, InvalidOption


@pytest.mark.parametrize(
    ("said", "typed"),
    [
        ("h=65 is not a valid distance", "--distance 65 is not a valid distance"),
        ("exact up to h=3, not h=4", "exact up to distance 3, not distance 4"),
        ("memory=20 is too little for method='auto'",
         "--memory 20 is too little for --method auto"),
        ("memory_limit=1,024 bytes is too little", "--memory-limit 1,024 bytes is too little"),
        ("similarity=-0.9 is not valid", "--similarity -0.9 is not valid"),
        ("no flips for header_bits=3", "no flips for header_bits=3"),
        ("ask for first=True", "ask for --first"),
        ("structures=['psm', 'foo'] is not valid", "--structures psm,foo is not valid"),
        ("structures=[''] is not valid", '--structures "" is not valid'),
    ],
)  # fmt: skip
def test_arguments_become_options(said: str, typed: str) -> None:
    assert with_options(said) == typed


@pytest.mark.parametrize(
    ("said", "plain"),
    [
        ("7 rows that waited for a segment, by their keys",
         "7 rows of the last commits, by their keys"),
        ("a new catalog of 2 segments, 3 rows waiting for one and 0 deletions takes",
         "a new catalog of 2 files, 3 rows of the last commits and 0 deletions takes"),
        ("rows that waited in the catalog for a segment and deletions since each segment was",
         "rows of the last commits and deletions since each file was"),
        ("i.sim/segments/a-segment.rows is written as a new segment",
         "i.sim/segments/a-segment.rows is written as a new file"),
    ],
)
def test_what_is_in_an_index_is_told_of_files(said: str, plain: str) -> None:
    assert with_files(said) == plain


def test_the_remedy_is_told_in_these_words_too() -> None:
    error = InvalidOption("k=0 is not a number", remedy="give recall=0.5, or k=3", option="k")
    assert told(error) == "--top 0 is not a number: give --recall 0.5, or --top 3"


def test_no_command_is_told_of_modes() -> None:
    """And files keep their names."""
    remedy = "create one with mode 'c' or `simindex build`"
    missing = IndexNotFound("no index at h=5", remedy=remedy)
    assert told(missing) == "no index at h=5: create one with `simindex build`"
    remedy = "wait until it has finished, or open it with mode 'r'"
    locked = IndexLocked("h=5 is locked", remedy=remedy)
    assert told(locked) == "h=5 is locked: wait until it has finished"


def test_errors_as_objects_have_the_words_of_the_shell(run: Any) -> None:
    run("build", "i.sim", "-", input='{"text": "a b c"}\n')
    said = json.loads(run("query", "i.sim", "--text", "a", "-d", 99, "--json", code=2).stderr)
    assert said["option"] == "--distance" and "h=" not in said["what"] + str(said["remedy"])
    said = json.loads(run("stats", "missing.sim", "--json", code=3).stderr)
    assert "mode" not in said["remedy"]
    said = json.loads(run("query", "i.sim", "--text", "", "--json", code=1).stderr.splitlines()[-1])
    assert said == {
        "message": "nothing was looked up: no document has a fingerprint", "exit_code": 1,
    }
