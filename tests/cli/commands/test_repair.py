"""`simindex repair`: says first, does when told to."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simindex
from simindex.records.reports import Finding

Run = Callable[..., Any]


@pytest.fixture
def damaged(run: Run, write_jsonl: Callable[..., Path]) -> str:
    """An index of ten documents in segments, whose catalog is gone."""
    texts = [f"{n} some text that is number {n} of ten" for n in range(10)]
    path = write_jsonl("a.jsonl", [{"id": f"k{n}", "text": texts[n]} for n in range(10)])
    run("build", "i.sim", path, "-q", "--batch-rows", 8, "--commit-every", 2)
    run("compact", "i.sim", "--full", "-q")
    shutil.rmtree("i.sim/catalog")
    return "i.sim"


def test_what_would_be_done_is_told_and_then_done(run: Run, damaged: str) -> None:
    told = run("repair", damaged, code=3)
    kinds = [line.split("\t")[0] for line in told.stdout.splitlines()]
    assert set(kinds) == {"damage", "to do", "lost"}
    assert "recipe" in told.stdout
    assert "10 rows can be recovered" in told.stderr
    sentences = [line.split("\t")[2] for line in told.stdout.splitlines()]
    assert not any("segment" in sentence for sentence in sentences)
    assert "a new catalog of 1 file, 0 rows of the last commits and 0 deletions" in told.stdout
    assert "--apply" in told.stderr
    assert "repair i.sim" in run("stats", damaged, code=3).stderr.replace(str(Path.cwd()) + "/", "")
    done = run("repair", damaged, "--apply")
    assert {line.split("\t")[0] for line in done.stdout.splitlines()} == {"damage", "done", "lost"}
    assert "i.sim holds 10 rows again" in done.stderr
    assert run("check", damaged).stdout == ""
    again = run("repair", damaged)
    assert again.stdout == ""
    assert "nothing to repair" in again.stderr
    assert run("repair", damaged, "-q").stderr == ""


def test_the_report_is_an_object(run: Run, damaged: str, objects: Any) -> None:
    (told,) = objects(run("repair", damaged, "--json", "-q", code=3).stdout)
    assert (told["needed"], told["applied"], told["rows"], told["lost_rows"]) == (
        True, False, 10, 0
    )
    (done,) = objects(run("repair", damaged, "--json", "-q", "--apply").stdout)
    assert done["applied"]
    assert done["findings"] == told["findings"]


def test_what_a_repair_left_is_told_and_no_success(
    run: Run, damaged: str, objects: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = simindex.repair(damaged, apply=True)
    left = replace(report, remaining=(Finding("error", "a file", "is as it was"),))
    monkeypatch.setattr(simindex, "repair", lambda *arguments, **named: left)
    done = run("repair", damaged, "--apply", code=3)
    assert "left\ta file\tis as it was" in done.stdout.splitlines()
    assert "is still damaged in 1 place" in done.stderr
    (told,) = objects(run("repair", damaged, "--apply", "--json", code=3).stdout)
    assert told["remaining"] == [{"severity": "error", "path": "a file", "what": "is as it was"}]


def test_what_check_finds_in_a_segment_is_repaired(run: Run, tmp_path: Path) -> None:
    options = simindex.IndexOptions(batch_rows=1 << 16)
    with simindex.open("i.sim", "n", options=options) as index:
        index.append(np.arange(30_000, dtype=np.uint64))
    (file,) = (tmp_path / "i.sim" / "segments").glob("*.rows")
    content = bytearray(file.read_bytes())
    content[5000] ^= 1
    file.write_bytes(content)
    assert "simindex repair i.sim" in run("check", "i.sim", code=3).stderr
    done = run("repair", "i.sim", "--apply")
    assert "8,192 of the 30,000 rows" in done.stdout
    assert "8,192 rows lost, as far as is known; what was replaced is in" in done.stderr
    assert run("check", "i.sim").stdout.startswith("note\t")
    assert (tmp_path / "i.sim" / "damaged-1" / "segments" / file.name).read_bytes() == content


def test_repair_is_refused(run: Run) -> None:
    run("repair", "none", code=3)
    run("repair", code=2)
    with simindex.open("i.sim", "n"):
        assert "locked by a writer" in run("repair", "i.sim", code=3).stderr
