"""`query --top` and `explain --top`: the nearest documents, as lines and as records."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import simindex

Run = Callable[..., Any]


@pytest.fixture
def built(run: Run, write_jsonl: Callable[..., Any]) -> str:
    rng = np.random.default_rng(3)
    words = [f"w{number}" for number in range(60)]
    records = [
        {"id": f"d{number}", "text": " ".join(rng.choice(words, 40))} for number in range(200)
    ]
    run("build", "i.sim", write_jsonl("a.jsonl", records), "-q", "--bits", 256,
        "--structures", "psm,issl", "--batch-rows", 128)
    return "i.sim"


def question() -> str:
    return " ".join(f"w{number}" for number in range(0, 60, 2))


def test_the_nearest_are_printed_nearest_first(run: Run, built: str, objects: Any) -> None:
    result = run("query", built, "--text", question(), "--top", 5)
    with simindex.open(built) as index:
        found = index.top(index.recipe.batch([question()]), k=5)
        (keys,) = found.keys() or [[]]
    assert result.stdout.splitlines() == [
        f"text:1\t{key}\t{distance}"
        for key, distance in zip(keys, found.distance[0].tolist(), strict=True)
    ]
    assert "1 of 1 query has neighbours: 5 documents, at most 5 of each" in result.stderr
    records = objects(run("query", built, "--text", question(), "--top", 5, "--json").stdout)
    assert [record["key"] for record in records] == keys
    assert [record["id"] for record in records] == found.id[0].tolist()
    assert [record["distance"] for record in records] == found.distance[0].tolist()


def test_slice_lists_say_what_they_promise(run: Run, built: str) -> None:
    plain = run("query", built, "a.jsonl", "--top", 3, "--method", "issl", "--rerank", 8)
    assert "recall below 1 and not measured: max_error 2, at most 8 rows" in plain.stderr
    for chosen in (["--recall", 0.6], ["--recall", 0.6, "--max-error", "auto"]):
        told = run("query", built, "a.jsonl", "--top", 3, "--method", "issl", *chosen)
        assert "0.6 asked" in told.stderr or "exact" in told.stderr
    exact = run("query", built, "a.jsonl", "--top", 3, "--recall", 1)
    assert "(exact)" in exact.stderr
    assert len(exact.stdout.splitlines()) == 600


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--top", 3, "-d", 3], "leave out --distance"),
        (["--top", 3, "--first"], "leave out --first"),
        (["--top", 3, "--memory", "1G"], "leave out --memory"),
        (["--top", 3, "--memory-limit", "1G"], "leave out --memory-limit"),
        (["--max-error", 2], "give --top, too"),
        (["--rerank", 20], "give --top, too"),
        (["--top", "x"], "is not a whole number"),
        (["--top", 0], "--top 0 is not a number"),
        (["--top", 201], "give at most 200"),
        (["--top", 3, "--max-error", "x"], 'or "auto"'),
        (["--top", 3, "--max-error", 17], "from 0 to 16"),
        (["--top", 3, "--rerank", 2], "--rerank 2 is not a number"),
        (["--top", 3, "--method", "psm"], "one of auto, issl, scan"),
        (["--top", 3, "--recall", 0.9, "--max-error", 2], "needs --max-error auto"),
    ],
)
def test_contradictions_are_refused(
    run: Run, built: str, arguments: list[Any], words: str
) -> None:
    assert words in run("query", built, "--text", question(), *arguments, code=2).stderr


def test_explain_says_what_else_was_open(run: Run, built: str, objects: Any) -> None:
    result = run("explain", built, "--text", question(), "--top", 3, "-v")
    heading, *lines = (line.split("\t") for line in result.stdout.splitlines())
    assert heading[0] == "segment" and heading[-1] == "otherwise"
    assert sum(int(line[1]) for line in lines) == 200
    assert all(len(line) == len(heading) for line in lines)
    assert any(line[-1].startswith("issl: ") for line in lines)
    assert "exact; predicted -> measured" in result.stderr
    (found,) = objects(
        run("explain", built, "--text", question(), "--top", 3, "--method", "issl", "--json").stdout
    )
    assert {one["method"] for one in found["segments"]} <= {"issl", "scan"}
    assert found["max_error"] == 2 and found["k"] == 3
    run("explain", built, "--text", question(), "--max-error", 3, code=2)
