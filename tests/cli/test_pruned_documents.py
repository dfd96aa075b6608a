"""`--prune` deletes what folders no longer have, and nothing else."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simindex
from simindex.cli import pruned_documents

Run = Callable[..., Any]
WORDS = [f"word{number}" for number in range(500)]
GIVEN = ["--weighting", "sublinear"]


def text(seed: int) -> str:
    return " ".join(random.Random(seed).choices(WORDS, k=60))


@pytest.fixture
def folders(tmp_path: Path) -> Path:
    for number, name in enumerate(["a/1.txt", "a/2.txt", "a/in/3.txt", "ab/4.txt", "b/5.txt"]):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text(number))
    (tmp_path / "b" / "6.jsonl").write_text(
        "".join(json.dumps({"text": text(60 + n)}) + "\n" for n in range(4))
        + json.dumps({"id": "named", "text": text(80)}) + "\n"
    )
    return tmp_path


def keys(path: str) -> set[str]:
    with simindex.open(path) as index:
        return {str(key) for batch in index.rows() for key in batch.keys or ()}


def test_what_is_gone_is_deleted_and_the_rest_stays(
    run: Run, folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pruned_documents, "CHUNK_KEYS", 2)
    run("build", "i.sim", "a", "ab", "b", *GIVEN)
    before = keys("i.sim")
    (folders / "a" / "1.txt").unlink()
    (folders / "a" / "in" / "3.txt").rename(folders / "a" / "in" / "7.txt")
    (folders / "ab" / "4.txt").unlink()
    told = run("build", "i.sim", "a", "--append", "--prune").stderr
    assert "pruned 2 documents that the folders no longer have" in told
    assert keys("i.sim") == before - {"a/1.txt", "a/in/3.txt"} | {"a/in/7.txt"}
    told = run("build", "i.sim", "a", "--append", "--prune").stderr
    assert "nothing to prune" in told


def test_lines_that_are_gone_are_deleted_and_ids_stay(
    run: Run, folders: Path, objects: Any
) -> None:
    run("build", "i.sim", "b", *GIVEN)
    lines = (folders / "b" / "6.jsonl").read_text().splitlines(keepends=True)
    (folders / "b" / "6.jsonl").write_text(lines[0] + json.dumps({"text": text(99)}) + "\n")
    (told,) = objects(run("build", "i.sim", "b", "--append", "--prune", "--json").stdout)
    assert told["pruned"] == 3  # lines 2 to 4; line 2 is another record now
    assert keys("i.sim") == {"b/5.txt", "b/6.jsonl:1", "b/6.jsonl:2#2", "named"}
    for pruned in (1, 0):  # the record of line 2 takes that name, which is free now
        (told,) = objects(run("build", "i.sim", "b", "--append", "--prune", "--json").stdout)
        assert told["pruned"] == pruned
        assert keys("i.sim") == {"b/5.txt", "b/6.jsonl:1", "b/6.jsonl:2", "named"}


def test_nothing_is_pruned_after_bad_records(run: Run, folders: Path) -> None:
    run("build", "i.sim", "b", *GIVEN)
    (folders / "b" / "6.jsonl").write_text("oops\n")
    told = run("build", "i.sim", "b", "--append", "--prune", "--max-errors", "1").stderr
    assert "nothing was pruned from i.sim" in told
    assert len(keys("i.sim")) == 6


@pytest.mark.parametrize(("choice", "left"), [("skip", True), ("replace", False)])
def test_an_emptied_page_is_not_gone(
    run: Run, folders: Path, choice: str, left: bool
) -> None:
    """Whether its old text stays is for the other option to say."""
    run("build", "i.sim", "a", *GIVEN)
    (folders / "a" / "1.txt").write_text("")
    told = run("build", "i.sim", "a", "--append", "--prune", "--on-existing", choice).stderr
    assert "nothing to prune" in told
    assert ("a/1.txt" in keys("i.sim")) is left


def test_fingerprints_have_nothing_to_prune(run: Run, folders: Path) -> None:
    (folders / "rows").mkdir()
    np.save(folders / "rows" / "r.npy", np.arange(3, dtype=np.uint64))
    given = ["rows", "--format", "npy", "--append", "--prune"]
    assert "the inputs hold fingerprints" in run("build", "i.sim", *given, code=2).stderr


def test_an_index_that_is_new_has_nothing_to_prune(run: Run, folders: Path) -> None:
    run("build", "i.sim", "a", "--append", "--prune", *GIVEN)
    assert keys("i.sim") == {"a/1.txt", "a/2.txt", "a/in/3.txt"}


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (["a", "--prune"], "--prune needs --append"),
        (["b/6.jsonl", "--append", "--prune"], "and b/6.jsonl is not a folder"),
        ([".", "--append", "--prune"], "run it from the folder above"),
    ],
)
def test_a_wrong_call_is_told_and_changes_nothing(
    run: Run, folders: Path, given: list[str], reason: str
) -> None:
    assert reason in run("build", "i.sim", *given, code=2).stderr
    assert not (folders / "i.sim").exists()
