"""Building again what was built harms nothing: a key that the index has is replaced, or skipped."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import simindex

Run = Callable[..., Any]
WORDS = [f"word{number}" for number in range(500)]


def text(seed: int) -> str:
    return " ".join(random.Random(seed).choices(WORDS, k=300))


def test_a_retry_changes_nothing(
    run: Run, write_jsonl: Callable[..., Path], objects: Any
) -> None:
    write_jsonl("a.jsonl", [{"id": f"n{n}", "text": text(n)} for n in range(20)])
    for _ in range(2):
        run("build", "i.sim", "a.jsonl", "--append")
    (told,) = objects(run("build", "i.sim", "a.jsonl", "--append", "--json").stdout)
    assert told["rows"] == told["replaced"] == told["documents"] == 20
    assert told["skipped"] == 0
    told = run("build", "i.sim", "a.jsonl", "--append").stderr
    assert "replaced 20 documents that i.sim had" in told


@pytest.mark.parametrize("choice", ["replace", "skip", "error", None])
def test_a_key_that_is_there_is_replaced_skipped_or_an_error(
    run: Run, write_jsonl: Callable[..., Path], choice: str | None
) -> None:
    write_jsonl("a.jsonl", [{"id": f"n{n}", "text": text(n)} for n in range(4)])
    write_jsonl("b.jsonl", [{"id": f"n{n}", "text": text(n + 50)} for n in range(2, 6)])
    run("build", "i.sim", "a.jsonl")
    given = [] if choice is None else ["--on-existing", choice]
    told = run("build", "i.sim", "b.jsonl", "--append", *given, code=4 if choice == "error" else 0)
    with simindex.open("i.sim") as index:
        there = {f"n{n}" for n in range(6) if f"n{n}" in index}
        found = {
            match.key for n in range(2, 6) for match in index.query(text(n + 50), h=0)
        }
        assert len(index) == len(there)
    if choice == "error":
        assert "b.jsonl:1: the index has a document 'n2' already" in told.stderr
        assert there == {"n0", "n1", "n2", "n3"}
        assert found == set()
    elif choice == "skip":
        assert "skipped 2 documents that i.sim had" in told.stderr
        assert there == {f"n{n}" for n in range(6)}
        assert found == {"n4", "n5"}
    else:
        assert "replaced 2 documents that i.sim had" in told.stderr
        assert there == {f"n{n}" for n in range(6)}
        assert found == {"n2", "n3", "n4", "n5"}


def test_a_record_without_an_id_replaces_no_other(
    run: Run, write_jsonl: Callable[..., Path]
) -> None:
    """Its key is its place in a file, in which something else may stand the next day."""
    for day in range(3):
        write_jsonl("news.jsonl", [{"text": text(10 * day + n)} for n in range(3)])
        for _ in range(2):
            run("build", "i.sim", "news.jsonl", "--append")
    with simindex.open("i.sim") as index:
        assert len(index) == 9
        keys = {match.key for n in range(30) for match in index.query(text(n), h=0)}
    assert keys == {f"news.jsonl:{n}{more}" for n in (1, 2, 3) for more in ("", "#2", "#3")}


def test_on_existing_goes_with_append(run: Run, write_jsonl: Callable[..., Path]) -> None:
    write_jsonl("a.jsonl", [{"id": "a", "text": text(1)}])
    refused = run("build", "i.sim", "a.jsonl", "--on-existing", "skip", code=2).stderr
    assert "needs --append" in refused


def test_a_text_that_lost_its_fingerprint_replaces_the_old_one(run: Run) -> None:
    given = "".join(json.dumps({"id": key, "text": text(ord(key))}) + "\n" for key in "ab")
    run("build", "i.sim", "-", input=given)
    empty = json.dumps({"id": "a", "text": ""}) + "\n" + json.dumps({"id": "c", "text": ""})
    run("build", "i.sim", "-", "--append", "--on-existing", "skip", input=empty)
    assert '"a"' in run("export", "i.sim").stdout
    done = run("build", "i.sim", "-", "--append", "--json", input=empty)
    assert json.loads(done.stdout)["replaced"] == 1
    assert [json.loads(line)["key"] for line in run("export", "i.sim").stdout.splitlines()] == ["b"]
