"""`explain`: what a query would do, a line a segment."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Run = Callable[..., Any]


@pytest.fixture
def built(run: Run, write_jsonl: Callable[..., Any]) -> str:
    records = [{"id": f"k{n}", "text": f"text number {n} of a hundred or so"} for n in range(100)]
    run("build", "i.sim", write_jsonl("a.jsonl", records), "-q", "--structures",
        "psm,bphs:G=4,g=1", "--batch-rows", 64)
    return "i.sim"


def test_explain_prints_a_line_a_segment(run: Run, built: str, objects: Any) -> None:
    result = run(
        "explain", built, "--text", "text number 7 of a hundred or so", "--recall", 0.9, "-v"
    )
    heading, *lines = (line.split("\t") for line in result.stdout.splitlines())
    assert heading[0] == "segment" and heading[-1] == "matches"
    assert sum(int(line[1]) for line in lines) == 100
    assert all(len(line) == len(heading) for line in lines)
    assert sum(int(line[-1]) for line in lines) >= 1
    assert "constants of another machine: run `simindex tune`" in result.stderr
    (found,) = objects(
        run("explain", built, "--fingerprint", "0" * 16, "--method", "bphs", "-d", 3,
            "--json").stdout
    )
    assert {one["method"] for one in found["segments"]} <= {"bphs:G=4,g=1", "scan", "psm"}
    assert found["guarantee"] == "exact"


def test_explain_tells_what_is_compared_and_how_long_it_takes(run: Run, built: str) -> None:
    result = run("explain", built, "--text", "text number 7 of a hundred or so", "-d", 2)
    table = dict(line.split(maxsplit=1) for line in result.stdout.splitlines())
    assert table["query"] == "documents within 2 bits"
    assert (table["answer"], int(table["matches"]) >= 1) == ("exact", True)
    assert " of 100 rows, " in table["compared"]
    assert table["time"].endswith(" were predicted")
    assert "`simindex tune i.sim` measures this one" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "one query is explained"),
        (["--text", "a b c d e f", "--text", "b"], "one query is explained"),
        (["--text", ""], "no fingerprint"),
        (["--fingerprint", "0" * 32], "64"),
        (["--fingerprint", "0" * 16, "--method", "bphs", "-d", "4"], "exact up to distance 3, not"),
        (["--fingerprint", "0" * 16, "--recall", "2"], "--recall 2.0 is not a share"),
    ],
)
def test_explain_refuses_what_cannot_be(
    run: Run, built: str, arguments: list[str], words: str
) -> None:
    assert words in run("explain", built, *arguments, code=2).stderr


@pytest.mark.slow
def test_deleted_and_replaced_rows_are_no_matches(run: Run, built: str) -> None:
    text = "text number 7 of a hundred or so"
    before = run("query", built, "--text", text, "-d", 0).stdout.splitlines()
    run("build", built, "a.jsonl", "--append", "-q")
    for gone, left in (((), len(before)), (("--key", "k7"), len(before) - 1)):
        if gone:
            run("delete", built, *gone)
        said = run("explain", built, "--text", text, "-d", 0).stdout
        assert dict(line.split(maxsplit=1) for line in said.splitlines())["matches"] == str(left)
