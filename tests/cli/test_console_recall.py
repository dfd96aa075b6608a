"""What the shell says of recall and memory: what was promised, what was measured, what fits."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import simindex
from simindex.planning.machine import Machine
from simindex.query import spot_checks

Run = Callable[..., Any]

ROWS = 2000


def text(number: int) -> str:
    """Texts that share most of their words with those of numbers near by."""
    return " ".join(f"word{number // 4}-{place}" for place in range(60)) + f" end{number % 4}"


@pytest.fixture
def built(run: Run, write_jsonl: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> str:
    """An index of groups of four near-duplicates; tuning measures no machine."""
    found = Machine(measured=True)
    monkeypatch.setattr("simindex.planning.measurement.measure", lambda file: found)
    path = write_jsonl("a.jsonl", [{"id": f"k{n}", "text": text(n)} for n in range(ROWS)])
    run("build", "i.sim", path, "-q", "--ngram", 3, "--weighting", "tf")
    return "i.sim"


@pytest.mark.slow
def test_tune_measures_the_recall_if_asked(run: Run, built: str, objects: Any) -> None:
    result = run("tune", built, "--audit", "--recall", 0.9, "--sample", 100, "-d", 6, "-v")
    (line,) = (line for line in result.stdout.splitlines() if line.startswith("audit"))
    for words in ("recall ", " - ", "at h=6, asked 0.9, on ", "of 100, commit 2; by "):
        assert words in line
    assert "looking up at most 100 documents within 6 bits, once at recall 0.9" in result.stderr
    told = run("stats", built, "-v").stdout
    assert line.split(maxsplit=1)[1] in told
    (stats,) = objects(run("stats", built, "--json").stdout)
    (found,) = objects(run("tune", built, "--audit", "--json", "-q", "-d", 6).stdout)
    assert (stats["audit"]["rows"], stats["audit"]["h"], stats["audit"]["asked"]) == (100, 6, 0.9)
    audit = found["audit"]
    assert (audit["rows"], audit["h"], audit["asked"], audit["kept"]) == (1000, 6, 0.95, True)
    assert audit["recall_low"] <= audit["recall"] <= audit["recall_high"]
    (stats,) = objects(run("stats", built, "--json").stdout)
    assert stats["audit"] == {name: value for name, value in audit.items() if name != "kept"}
    assert "no damage" in run("check", built).stderr


@pytest.mark.slow
def test_tune_measures_no_recall_unasked(run: Run, built: str, objects: Any) -> None:
    result = run("tune", built, "--json")
    (found,) = objects(result.stdout)
    assert "audit" not in found
    assert result.stderr.startswith("simindex: measuring this machine, which takes about ten sec")
    assert run("tune", built, "-q").stderr == ""
    assert "audit" not in run("stats", built, "-v").stdout


@pytest.mark.slow
def test_an_index_without_weights_has_no_recall_to_measure(run: Run, built: str) -> None:
    with simindex.open("plain.sim", "n") as index:
        index.append(np.arange(50, dtype=np.uint64))
    told = run("tune", "plain.sim", "--audit", "-v").stdout
    assert "recall unknown: the index keeps no weights" in told


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--recall", "0.9"], "give --audit"),
        (["--sample", "10"], "give --audit"),
        (["--audit", "--recall", "0"], "--recall 0.0 is not a share"),
        (["--audit", "--sample", "0"], "is not a whole number of 1 or more"),
        (["--audit", "-d", "65"], "--distance 65 is not"),
    ],
)
def test_tune_refuses_what_cannot_be_before_it_measures(
    run: Run, built: str, arguments: list[str], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(file: Any) -> None:
        raise AssertionError("measured")

    monkeypatch.setattr("simindex.planning.measurement.measure", never)
    assert words in run("tune", built, *arguments, code=2).stderr


@pytest.mark.slow
def test_query_tells_the_recall_it_measured(
    run: Run, built: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spot_checks, "SHARE", 1e9)
    asked = (built, "a.jsonl", "-d", 6)
    result = run("query", *asked, "--recall", 0.6, "--method", "psm")
    assert "psm, expected recall >= 0.6, learned from" in result.stderr
    last = result.stderr.splitlines()[-1]
    assert last.startswith("simindex: recall ")
    told = re.search(rf" measured on (\d+) queries of {ROWS:,} that were repeated exactly, ", last)
    assert told is not None and int(told[1]) >= 256
    for exact in (["--recall", 1], ["--recall", 0.9, "--method", "scan"]):
        assert "measured" not in run("query", *asked, *exact).stderr
    assert run("query", *asked, "--recall", 0.6, "--method", "psm", "-q").stderr == ""


def test_queries_without_weights_are_exact_and_it_is_said(run: Run, built: str) -> None:
    """Whichever of them come last."""
    with_weights = ["--text", text(7)]
    result = run("query", built, "--fingerprint", "0" * 16, "--recall", 0.9)
    assert "exact, since the queries have no weights" in result.stderr
    both = run(
        "query", built, "a.jsonl", "--fingerprint", "0" * 16, "-d", 6, "--recall", 0.6, "--method",
        "psm",
    )
    assert "exact, since the queries have no weights; psm, expected recall >= 0.6" in both.stderr
    explained = run("explain", built, "--fingerprint", "0" * 16, "--recall", 0.9, "-v")
    assert "exact, since the queries have no weights" in explained.stderr
    assert "flips is chosen by" not in explained.stderr
    explained = run("explain", built, *with_weights, "--recall", 0.9, "-v")
    assert "the number of flips is chosen by" in explained.stderr


# -- memory ---------------------------------------------------------------------------------------


@pytest.fixture
def permuted(run: Run, built: str) -> str:
    run("compact", built, "--full", "--structures", "psm,bphs:G=4,g=1", "-q")
    return built


def test_memory_decides_what_is_searched(run: Run, permuted: str) -> None:
    """2,000 rows are 16,000 bytes; with three more tables over 64,000."""
    asked = (permuted, "--fingerprint", "0" * 16, "-d", 3)
    for command in ("query", "explain"):
        for options in (("80k", "--method", "bphs"), (16000,)):
            told = run(command, *asked, "--memory", *options)
            assert "exact" in told.stdout + told.stderr
        for size, method in ((15999, "auto"), ("1B", "scan")):
            refused = run(command, *asked, "--memory", size, "--method", method, code=2)
            assert f"--method {method}, which needs at least 16000 bytes" in refused.stderr
        refused = run(command, *asked, "--memory", "16000", "--method", "bphs", code=2)
        assert "or use --method auto" in refused.stderr
        assert "'much' is not a size" in run(command, *asked, "--memory", "much", code=2).stderr
    lines = run("explain", *asked, "--memory", "16.1KB", "-v").stdout.splitlines()
    assert [line.split("\t")[2] for line in lines[1:]] == ["scan"]
