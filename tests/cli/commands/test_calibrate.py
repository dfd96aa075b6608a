"""`simindex calibrate`, and `--calibrated`, which asks as it recommends."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simindex
from simindex import Advice, CalibrationReport
from simindex.cli.commands.calibrate import lines_of

Run = Callable[..., Any]


def pages(count: int) -> list[dict[str, str]]:
    random = np.random.default_rng(1)
    made = []
    for place in range(count):
        words = [f"w{number}" for number in random.integers(0, 900, 120)]
        for copy in "ab":
            made.append({"id": f"{place}{copy}", "text": " ".join(words)})
            for at in random.integers(0, 120, place % 9):
                words[at] = f"w{random.integers(0, 900)}"
    return made


@pytest.fixture
def built(run: Run, write_jsonl: Callable[..., Path]) -> str:
    run("build", "i.sim", write_jsonl("a.jsonl", pages(60)), "-q")
    return "i.sim"


@pytest.mark.slow
def test_a_recommendation_is_stored_shown_and_used(run: Run, built: str) -> None:
    missing = run("query", built, "a.jsonl", "--calibrated", code=2).stderr
    assert "simindex calibrate i.sim INPUT" in missing
    dry = run("calibrate", built, "a.jsonl", "--dry-run")
    assert "recommended  within" in dry.stdout and "stored" not in dry.stderr
    assert "advice" not in run("stats", built).stdout
    told = run("calibrate", built, "a.jsonl")
    assert told.stdout == dry.stdout and "and stored in i.sim" in told.stderr
    with simindex.open(built) as index:
        advice = index.advice
    assert advice is not None
    assert f"within {advice.h} bits: misses " in run("stats", built).stdout
    by_advice = run("query", built, "a.jsonl", "--calibrated")
    assert by_advice.stdout == run("query", built, "a.jsonl", "-d", advice.h).stdout
    assert f"within {advice.h} bits" in by_advice.stderr
    both = run("query", built, "a.jsonl", "--calibrated", "-d", 3, code=2).stderr
    assert "leave out --distance" in both
    measured = run("query", built, "a.jsonl", "--calibrated", "--measure", "jaccard", code=2).stderr
    assert "leave out --measure" in measured
    as_json = json.loads(run("calibrate", built, "a.jsonl", "--output", "jsonl").stdout)
    assert as_json["own"]["h"] == advice.h and as_json["pairs"] and as_json["edits"]
    assert len(run("calibrate", built, "a.jsonl", "-v").stdout) > len(told.stdout)


@pytest.mark.slow
@pytest.mark.parametrize("sketch_bits", [0, 512])
def test_pairs_and_clusters_are_those_of_the_recommendation(
    run: Run, write_jsonl: Callable[..., Path], sketch_bits: int
) -> None:
    """Within its radius, or where rows have sketches at its similarity."""
    written, sketch = write_jsonl("a.jsonl", pages(60)), ("--sketch-bits", sketch_bits)
    run("build", "i.sim", written, "-q", *(sketch if sketch_bits else ()))
    for command in ("pairs", "clusters"):
        told = run(command, "i.sim", "--calibrated", code=2).stderr
        assert "simindex calibrate i.sim INPUT" in told
    run("calibrate", "i.sim", written)
    with simindex.open("i.sim") as index:
        advice = index.advice
        assert advice is not None
        found = index.clusters(**advice.arguments)
        pairs = index.pairs(**advice.arguments)
        assert 60 <= found.clusters + found.alone < 120
        together = sum(map(len, pairs))
    if sketch_bits:
        asked = ("--similarity", advice.ask_similarity, "--recall", advice.ask_recall)
        reach = f"of similarity {advice.ask_similarity:g} or more"
    else:
        asked, reach = ("-d", advice.h), f"within {advice.h} bits"
    for command in ("pairs", "clusters"):
        done = run(command, "i.sim", "--calibrated")
        assert done.stdout == run(command, "i.sim", *asked).stdout and reach in done.stderr
        again = run(command, "i.sim", "--calibrated", *asked, code=2).stderr
        assert "--calibrated decides these" in again
    assert len(run("pairs", "i.sim", "--calibrated").stdout.splitlines()) == together
    verified = run(
        "clusters", "i.sim", written, "--calibrated", "--verify-text", code=0 if sketch_bits else 2
    )
    assert ("compared by text" if sketch_bits else "is a radius") in verified.stderr


@pytest.mark.slow
def test_files_that_keys_name_are_read_again(
    run: Run, tmp_path: Path, built: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pages").mkdir()
    for page in pages(40):
        (tmp_path / "pages" / f"{page['id']}.txt").write_text(page["text"])
    run("build", "files.sim", "pages", "-q")
    assert "measured on 80 documents" in run("calibrate", "files.sim").stderr


def test_without_documents_it_says_what_to_do(run: Run, built: str) -> None:
    assert "its keys name no files" in run("calibrate", built, code=2).stderr


def test_documents_without_similar_pairs_have_none(
    run: Run, built: str, write_jsonl: Callable[..., Path]
) -> None:
    lone = write_jsonl("lone.jsonl", [{"text": f"a{n} b{n} c{n}"} for n in range(9)])
    assert "nothing is recommended" in run("calibrate", built, lone, code=1).stderr
    few = write_jsonl("few.jsonl", [{"text": "one two"}, {"text": "!"}])
    assert "1 of 2 documents has a fingerprint" in run("calibrate", built, few, code=2).stderr
    none = write_jsonl("none.jsonl", [{"text": "!"}, {"text": "?"}])
    assert "0 of 2 documents have a fingerprint" in run("calibrate", built, none, code=2).stderr


def test_few_similar_pairs_recommend_and_store_nothing(
    run: Run, built: str, write_jsonl: Callable[..., Path]
) -> None:
    some = write_jsonl("some.jsonl", pages(12)[2:4])
    said = run("calibrate", built, some, code=1).stderr
    assert "of 2 documents only 1 pair that differs has a cosine of 0.9 or more" in said
    assert "20 are needed: give more documents, or a larger --sample" in said
    assert "has no recommendation" in run("query", built, some, "--calibrated", code=2).stderr


@pytest.mark.parametrize(("reached", "width", "line"), [
    (True, 0, "enough       without a sketch: within 9 bits"),
    (True, 512, "enough       with a sketch of 512 bits: "),
    (False, 512, "better       with a sketch of 512 bits: "),
    (False, 1024, None),
])
def test_another_sketch_is_better_only_if_the_own_does_not_reach_both(
    reached: bool, width: int, line: str | None
) -> None:
    """Else a narrower one, or none, is enough."""
    own = Advice(
        0.9, 0.95, 0.9, "words", 1024, 9, 0.9, 0.5, 0.04, 0.03, 0.05, 0.02, 0.01, 0.03, reached,
        80, 40, "own",
    )
    best = own if width == 1024 else replace(
        own, sketch_bits=width, ask_similarity=0.9 if width else None, reached=True
    )
    told = list(lines_of(CalibrationReport(80, 0, 0.9, (), (), (), best, own, 1.0)))
    assert told[0].startswith("recommended  similarity 0.9, candidates within 9 bits")
    assert told[1].startswith(line) if line else not told[1]


def test_a_wrong_precision_is_named_as_the_option(run: Run, built: str) -> None:
    said = run("calibrate", built, "a.jsonl", "--precision", 0, code=2).stderr
    assert "--precision 0.0 is not" in said
