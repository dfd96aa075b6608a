"""`query` of files of fingerprints, and of one index against another."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simindex

Run = Callable[..., Any]

RNG = np.random.default_rng(8)


def made(path: str, rows: Any, keys: Any = None, **options: Any) -> None:
    """An index of two segments and pending rows."""
    given = simindex.IndexOptions(keys=bool(keys), bits=64 * rows.shape[1], **options)
    with simindex.open(path, "n", options=given) as index:
        for some in np.array_split(np.arange(len(rows)), 3):
            index.append(rows[some], **({"keys": [keys[row] for row in some]} if keys else {}))
            index.commit()


@pytest.fixture
def near(run: Run) -> tuple[Any, Any]:
    """Rows of a.sim, by keys, and of b.sim, by ids, some of which are near to each other."""
    a = RNG.integers(0, 2**64, (300, 2), np.uint64)
    b = np.r_[a[:40] ^ np.uint64(1), a[40:70], RNG.integers(0, 2**64, (200, 2), np.uint64)]
    made("a.sim", a, [f"k{n}" for n in range(len(a))], batch_rows=100)
    made("b.sim", b, batch_rows=100)
    return a, b


def expected(a: Any, b: Any, h: int) -> list[str]:
    distance = np.bitwise_count(b[:, None] ^ a[None]).sum(axis=2)
    found = zip(*np.nonzero(distance <= h), strict=True)
    return sorted(f"{q}\tk{row}\t{distance[q, row]}" for q, row in found)


@pytest.mark.parametrize("limit", [[], ["--memory-limit", "8G"]])
def test_every_row_of_another_index_is_looked_up(
    run: Run, near: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch, limit: list[str]
) -> None:
    a, b = near
    lines = run("query", "a.sim", "--index", "b.sim", "-d", 3, *limit).stdout.splitlines()
    assert sorted(lines) == expected(a, b, 3)
    assert len(lines) == 70
    lines = run("query", "b.sim", "--index", "a.sim", "-d", 1, "--json").stdout.splitlines()
    assert len(lines) == 30
    assert {json.loads(line)["query"] for line in lines} == {f"k{n}" for n in range(40, 70)}


@pytest.mark.parametrize("limit", [[], ["--memory-limit", "8G"], ["--first"]])
def test_queries_with_and_without_a_match_are_listed(
    run: Run, near: tuple[Any, Any], limit: list[str]
) -> None:
    """What is in both of two indexes, and what is in one only."""
    a, b = near
    distance = np.bitwise_count(b[:, None] ^ a[None]).sum(axis=2)
    for asked, other, has in (
        ("a.sim", "b.sim", (distance <= 3).any(axis=1)),
        ("b.sim", "a.sim", (distance <= 3).any(axis=0)),
    ):
        printed = []
        for listed, wanted in (("matched", has), ("unmatched", ~has)):
            done = run("query", asked, "--index", other, "-d", 3, "--list", listed, *limit)
            printed += done.stdout.splitlines()
            number = int(wanted.sum())
            assert len(done.stdout.splitlines()) == number
            assert f"{number} of {len(has)} queries have {'no' if wanted is not has else 'a'} " \
                "match within 3 bits" in done.stderr
        assert len(set(printed)) == len(has)
    listed = ("query", "b.sim", "--index", "a.sim", "-d", 1, "--list", "matched")
    assert set(run(*listed).stdout.splitlines()) == {f"k{n}" for n in range(40, 70)}
    assert json.loads(run(*listed, "--json").stdout.splitlines()[0]).keys() == {"query"}


def test_a_listing_of_queries_takes_no_options_of_matches(run: Run, near: tuple[Any, Any]) -> None:
    listed = ("query", "a.sim", "--index", "b.sim", "--list", "unmatched")
    assert "leave out --limit" in run(*listed, "--limit", 2, code=2).stderr
    assert "leave out --list" in run(*listed, "--top", 2, code=2).stderr


@pytest.mark.parametrize("form", ["npy", "hex", "csv", "jsonl"])
def test_fingerprints_of_files_are_looked_up(
    run: Run, near: tuple[Any, Any], tmp_path: Path, form: str
) -> None:
    a, b = near
    digits = ["".join(f"{word:016x}" for word in row) for row in b.tolist()]
    path = tmp_path / f"b.{form}"
    if form == "npy":
        np.save(path, b)
    else:
        lines = {
            "hex": [f"{text}\t{n}\n" for n, text in enumerate(digits)],
            "csv": ["id,fingerprint\n", *(f"{n},{text}\n" for n, text in enumerate(digits))],
            "jsonl": [f'{{"id": {n}, "fingerprint": "{t}"}}\n' for n, t in enumerate(digits)],
        }
        path.write_text("".join(lines[form]))
    found = run("query", "a.sim", path.name, "-d", 3).stdout.replace("b.npy[", "").splitlines()
    assert sorted(line.replace("]\t", "\t") for line in found) == expected(a, b, 3)
    wrong = run("query", "a.sim", "-", "--format", "hex", code=4, input="0" * 16 + "\n")
    assert "a fingerprint of 64 bits, and 128 are needed" in wrong.stderr


def test_indexes_that_cannot_be_compared_are_refused(
    run: Run, write_jsonl: Any, near: tuple[Any, Any]
) -> None:
    path = write_jsonl("d.jsonl", [{"id": "x", "text": "some text of five words"}])
    run("build", "c.sim", path, "--ngram", 3)
    run("build", "d.sim", path, "--ngram", 1)
    said = run("query", "c.sim", "--index", "d.sim", code=2).stderr
    assert "d.sim has another recipe than c.sim (n-gram sizes 1 instead of 3)" in said
    assert "build d.sim again with --recipe c.sim" in said
    told = json.loads(run("query", "c.sim", "--index", "d.sim", "--json", code=2).stderr)
    assert told["differences"] == {"ngram": [1, 3]}
    for name, texts in ("g", "some text of five words"), ("h", "other words than those before"):
        run("build", f"{name}.sim", write_jsonl(f"{name}.jsonl", [{"id": "x", "text": texts}]),
            "--weighting", "tfidf")
    said = run("query", "g.sim", "--index", "h.sim", code=2).stderr
    assert "idf learned from other documents" in said
    assert "give the files of h.sim instead, as in `simindex query g.sim FILES`" in said
    said = run("query", "c.sim", "--index", "a.sim", code=2).stderr
    assert "a.sim has fingerprints of 128 bits, c.sim of 64" in said
    run("query", "c.sim", "--index", "missing.sim", code=3)
    made("e.sim", np.zeros((1, 1), np.uint64), ["y"])
    run("query", "c.sim", "--index", "e.sim", "-q")  # a recipe that is not known may be the same
    simindex.open("f.sim", "n", options=simindex.IndexOptions(bits=128)).close()
    assert "nothing was looked up" in run("query", "a.sim", "--index", "f.sim", code=1).stderr


def test_questions_of_all_kinds_go_together(run: Run, write_jsonl: Any) -> None:
    path = write_jsonl("d.jsonl", [{"id": "x", "text": "some text of five words"}])
    run("build", "c.sim", path)
    digits = run("fingerprint", path, "-q").stdout.split("\t")[0]
    given = ["--fingerprint", digits, "--text", "some text of five words", "--index", "c.sim", path]
    lines = run("query", "c.sim", *given).stdout.splitlines()
    assert lines == [f"{name}\tx\t0" for name in (digits, "text:1", "x", "x")]


def test_nothing_is_near_a_text_in_an_index_without_rows(run: Run) -> None:
    """Also without a recipe, which the first documents bring."""
    simindex.open("i.sim", "n", options=simindex.IndexOptions(bits=128)).close()
    Path("a.txt").write_text("some text")
    for asked in (["--text", "some text"], ["a.txt"]):
        result = run("query", "i.sim", *asked)
        assert result.stdout == ""
        assert "no match" in result.stderr
    assert "compared    0 of 0 rows" in run("explain", "i.sim", "--text", "some text").stdout
