"""`clusters --keep`: which documents of an index to keep and which to drop."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simindex

Run = Callable[..., Any]

RECORDS = [
    {"id": "a", "text": "the same words stand here", "n": 5, "date": "2024-01-01"},
    {"id": "b", "text": "The same words   stand here!", "n": 9, "date": "2024-01-03"},
    {"id": "c", "text": "the same, words stand here", "n": 1, "date": "2024-01-02"},
    {"id": "d", "text": "an altogether different text of words", "n": 3, "date": None},
    {"id": "e", "text": "another one that stands alone in it", "n": 3, "date": None},
    {"id": "f", "text": "another one, that stands alone in it", "n": 2, "date": "2024-01-01"},
]


@pytest.fixture
def built(run: Run, write_jsonl: Any) -> Path:
    path: Path = write_jsonl("a.jsonl", RECORDS)
    run("build", "i.sim", path)
    return path


@pytest.mark.parametrize(
    ("policy", "kept"),
    [
        ("first", "a d e"), ("longest", "b d f"), ("newest", "b d f"), ("highest:n", "b d e"),
    ],
)  # fmt: skip
def test_the_inputs_decide_which_document_is_kept(
    run: Run, built: Path, policy: str, kept: str
) -> None:
    done = run("clusters", "i.sim", built, "--keep", policy, "-d", 0)
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    assert sorted(name for verdict, name, _, _ in lines if verdict == "keep") == kept.split()
    assert sorted(name for _, name, _, _ in lines) == list("abcdef")
    for verdict, name, _, winner in lines:
        assert winner in kept.split() and (verdict == "keep") == (name == winner)
    assert "keep 3 of 6 documents, drop 3" in done.stderr
    listed = run("clusters", "i.sim", built, "--keep", policy, "-d", 0, "--list", "keep", "-q")
    assert sorted(listed.stdout.split()) == kept.split()
    records = [json.loads(line) for line in run(
        "clusters", "i.sim", built, "--keep", policy, "-d", 0, "--json"
    ).stdout.splitlines()]
    assert {one["key"] for one in records if one["keep"]} == set(kept.split())
    assert [one["kept"] for one in records] == [line[3] for line in lines]


@pytest.mark.parametrize("policy", ["highest:n", "newest"])
def test_columns_decide_as_fields_do(run: Run, tmp_path: Path, policy: str) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    table = pytest.importorskip("pyarrow").Table.from_pylist(RECORDS)
    parquet.write_table(table, tmp_path / "a.parquet")
    run("build", "i.sim", tmp_path / "a.parquet")
    done = run("clusters", "i.sim", tmp_path / "a.parquet", "--keep", policy, "-d", 0)
    kept = {"highest:n": "b d e", "newest": "b d f"}[policy]
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    assert sorted(line[1] for line in lines if line[0] == "keep") == kept.split()


@pytest.mark.parametrize("mode", ["components", "star"])
def test_what_is_dropped_can_be_deleted(run: Run, built: Path, mode: str) -> None:
    drop = run(
        "clusters", "i.sim", "--keep", "representative", "-d", 0, "--list", "drop", "-q",
        "--mode", mode,
    ).stdout
    said = run("delete", "i.sim", "--keys-from", "-", input=drop).stderr
    assert "deleted 3 documents; i.sim holds 3 rows" in said
    assert run("pairs", "i.sim", "-d", 0, "-q").stdout == ""
    assert run(
        "clusters", "i.sim", "--keep", "representative", "-d", 0, "--list", "drop", "-q"
    ).stdout == ""


def test_an_index_of_ids_keeps_the_first_without_inputs(run: Run) -> None:
    rows = np.random.default_rng(2).integers(0, 50, 400, np.uint64)
    with simindex.open("i.sim", "n") as index:
        index.append(rows)
    verdicts = [line.split("\t") for line in run(
        "clusters", "i.sim", "--keep", "first", "-d", 0
    ).stdout.splitlines()]
    kept = sorted(int(name) for verdict, name, _, _ in verdicts if verdict == "keep")
    first: dict[int, int] = defaultdict(int)
    for number, value in reversed(list(enumerate(rows.tolist()))):
        first[value] = number
    assert kept == sorted(first.values())
    drop = run("clusters", "i.sim", "--keep", "first", "-d", 0, "--list", "drop", "-q").stdout
    run("delete", "i.sim", "--keys-from", "-", input=drop)
    with simindex.open("i.sim", "r") as index:
        assert sorted(index.rows().__next__().ids.tolist()) == kept
    said = run("delete", "i.sim", "--keys-from", "-", input="1\nx\n", code=4).stderr
    assert "'x' is not an id" in said and "nothing was deleted" in said


def test_documents_that_no_input_has_come_last(run: Run, built: Path, write_jsonl: Any) -> None:
    part = write_jsonl("part.jsonl", RECORDS[2:])
    done = run("clusters", "i.sim", part, "--keep", "longest", "-d", 0, "--list", "keep")
    assert sorted(done.stdout.split()) == ["c", "d", "f"]
    assert "2 documents of clusters in no INPUT" in done.stderr
    quiet = run("clusters", "i.sim", part, "--keep", "longest", "-d", 0, "-q")
    assert "2 documents of clusters in no INPUT" in quiet.stderr


def test_inputs_that_hold_no_document_of_the_clusters_are_refused(
    run: Run, built: Path, write_jsonl: Any
) -> None:
    other = write_jsonl("other.jsonl", [{"id": "z", "text": "another text of some words"}])
    done = run("clusters", "i.sim", other, "--keep", "longest", "-d", 0, "-q", code=2)
    assert "the INPUTs hold none of the documents of the clusters" in done.stderr
    assert not done.stdout


def test_only_documents_with_a_near_duplicate_may_be_listed(run: Run, built: Path) -> None:
    done = run("clusters", "i.sim", built, "--keep", "first", "-d", 0, "--no-singletons")
    assert "\td\t" not in done.stdout and len(done.stdout.splitlines()) == 5
    assert "keep 3 of 6 documents, drop 3" in done.stderr


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["--keep", "longest"], "needs the inputs that the index was built of"),
        (["--keep", "first"], "does not store the order of documents"),
        (["--keep", "none"], "none is a policy of `simindex dedup`"),
        (["--keep", "last"], "is not a policy: give first, longest"),
        (["--list", "drop"], "--list needs --keep"),
        (["a.jsonl"], "an INPUT needs --keep"),
        (["--keep", "first", "--date-field", "n"], "--date-field needs --keep newest"),
        (["--keep", "representative", "a.jsonl"], "needs no INPUT"),
    ],
)  # fmt: skip
def test_what_cannot_be_decided_is_refused(
    run: Run, built: Path, given: list[str], told: str
) -> None:
    assert told in " ".join(run("clusters", "i.sim", *given, code=2).stderr.split())


def test_a_key_that_does_not_fit_on_a_line_is_not_listed(run: Run, write_jsonl: Any) -> None:
    path = write_jsonl("a.jsonl", [{"id": f"a\n{n}", "text": "the same text twice"} for n in "xy"])
    run("build", "i.sim", path)
    said = run("clusters", "i.sim", path, "--keep", "first", "--list", "drop", code=2).stderr
    assert "does not fit on a line" in said
    assert len(run("clusters", "i.sim", path, "--keep", "first", "-q").stdout.splitlines()) == 2


def test_an_empty_index_has_nothing_to_keep(run: Run) -> None:
    simindex.open("i.sim", "n").close()
    assert run("clusters", "i.sim", "--keep", "first", "-q").stdout == ""


OLD, NEW = "the same words stand here today", "the same words stand here tomorrow"


def test_records_without_an_id_are_known_by_the_names_of_the_index(
    run: Run, write_jsonl: Any
) -> None:
    """The index has FILE:LINE#2 of a line that held another record before."""
    log = write_jsonl("log.jsonl", [{"text": OLD}])
    run("build", "i.sim", log)
    write_jsonl("log.jsonl", [{"text": NEW}])
    run("build", "i.sim", log, "--append")
    done = run("clusters", "i.sim", log, "--keep", "longest", "-d", 64, "--list", "drop")
    assert done.stdout == "log.jsonl:1\n"
    assert "1 document of clusters in no INPUT" in done.stderr
    write_jsonl("log.jsonl", [{"text": OLD}])
    done = run("clusters", "i.sim", log, "--keep", "longest", "-d", 64, "--list", "drop")
    assert done.stdout == "log.jsonl:1#2\n"


def test_an_id_that_looks_like_a_made_name_merges_no_documents(run: Run, write_jsonl: Any) -> None:
    """`build` stores both, and `clusters` and `dedup` tell them apart."""
    log = write_jsonl("log.jsonl", [{"id": "log.jsonl:2", "text": OLD}, {"text": OLD + " again"}])
    run("build", "i.sim", log)
    with simindex.open("i.sim") as index:
        assert "log.jsonl:2" in index and "log.jsonl:2#2" in index
    done = run("clusters", "i.sim", log, "--keep", "longest", "-d", 64, "--list", "drop")
    assert done.stdout == "log.jsonl:2\n"
    assert "no INPUT" not in done.stderr
    run("build", "i.sim", log, "--append")
    assert "of 2 documents" in run("clusters", "i.sim", log, "--keep", "first").stderr
    run("dedup", log, "-d", 64, "--audit", "a")
    (lost,) = (json.loads(line) for line in Path("a").read_text().splitlines())
    assert (lost["dropped"], lost["lost_to"]) == ("log.jsonl:2#2", "log.jsonl:2")


def test_rows_that_share_a_key_are_told_of(run: Run) -> None:
    with simindex.open("i.sim", "n", options=simindex.IndexOptions(keys="str")) as index:
        index.append(np.array([0, 1 << 63, 1], np.uint64), keys=["a", "a", "b"])
    done = run("clusters", "i.sim", "-d", 1, "--keep", "representative")
    assert "3 rows are 2 documents: all rows of a key are one document here" in done.stderr
