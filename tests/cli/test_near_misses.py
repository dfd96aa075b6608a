"""Queries without a match are answered with the nearest document, also among others."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import simindex
from simindex.cli import near_misses
from simindex.cli.near_misses import Unmatched

Run = Callable[..., Any]

FAR = [f"{number:016x}" for number in range(0x0FFF_FFF0, 0x0FFF_FFF9)]


@pytest.fixture
def keyed(run: Run) -> str:
    """Rows a, near 0, and b, of ones."""
    with simindex.open("i.sim", "n", options=simindex.IndexOptions(keys="str")) as index:
        index.append(np.array([1, 2**64 - 1], np.uint64), keys=["a", "b"])
    return "i.sim"


def asked(queries: list[str]) -> list[str]:
    return [part for query in queries for part in ("--fingerprint", query)]


def bits_from_a(query: str) -> int:
    return (int(query, 16) ^ 1).bit_count()


@pytest.mark.parametrize("queries", [1, 3, 5, 6, 9])
@pytest.mark.parametrize("matching", [0, 1])
def test_the_first_five_without_a_match_are_told_the_nearest(
    run: Run, keyed: str, queries: int, matching: int
) -> None:
    told = run("query", keyed, *asked([*["0" * 16] * matching, *FAR[:queries]])).stderr
    lines = [line for line in told.splitlines() if "the nearest to" in line]
    assert lines == [
        f"simindex: the nearest to {query} is a, at distance {bits_from_a(query)}"
        for query in FAR[: min(5, queries)]
    ]
    remark = f"the nearest documents to 5 of the {queries} queries without a match: --top 1 finds"
    assert (remark in told) is (queries > 5)


def test_json_has_an_object_for_each_of_them(run: Run, keyed: str, objects: Any) -> None:
    """On standard error: each line of standard output is a match."""
    found = run("query", keyed, *asked(["0" * 16, *FAR[:6]]), "--json")
    (match,) = objects(found.stdout)
    others = [json.loads(line) for line in found.stderr.splitlines() if line.startswith("{")]
    assert (match["query"], match["key"], match["distance"]) == ("0" * 16, "a", 1)
    assert [one["query"] for one in others] == FAR[:5]
    for one in others:
        assert one.keys() == {"query", "nearest"}
        assert one["nearest"] == {
            "id": match["id"], "key": "a", "distance": bits_from_a(one["query"]),
        }
    assert "the nearest to" not in found.stderr
    assert "5 of the 6 queries" in found.stderr


def test_quiet_and_listing_tell_no_nearest(run: Run, keyed: str) -> None:
    for options in (["-q"], ["--list", "unmatched"], ["--top", "1"]):
        told = run("query", keyed, *asked(FAR[:2]), *options)
        assert "nearest to" not in told.stderr + told.stdout
    told = run("query", keyed, *asked(FAR[:2]), "-q", "--json")
    assert (told.stdout, told.stderr) == ("", "")


def test_queries_of_several_batches_count_together(
    run: Run, keyed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And nothing is looked up where that would compare very many rows."""
    without = Unmatched(3)
    rows = np.array([[0, 2**40 - 1], [2**30 - 1, 2**31 - 1], [2**20 - 1, 7]], np.uint64)
    for number, row in enumerate(rows):
        without.add([f"{number}a", f"{number}b"], row, np.array([number == 0, False]))
    assert without.number == 5
    with simindex.open(keyed) as index:
        assert [name for name, _ in without.nearest(index)] == ["0b", "1a", "1b"]
        assert "to 3 of the 5 queries" in str(without.remark(index, "--top 1"))
        assert Unmatched(0).remark(index, "--top 1") is None
        monkeypatch.setattr(near_misses, "NEAREST_ROWS", 1)
        assert list(without.nearest(index)) == []
        told = str(without.remark(index, "--top 1"))
        assert "not looked up among 2 rows: --top 1 finds them" in told
