"""Inputs in columns are read once by `build`, with the rows of those that are read twice."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

import simindex
from simindex.cli import learned_idf
from simindex.cli.commands import build
from simindex.inputs.formats import FORMATS
from simindex.simhash.feature_columns import FeatureKeeper

Run = Callable[..., Any]

DRAW = random.Random(3)
TEXTS = [" ".join(f"w{DRAW.randrange(90)}" for _ in range(25)) for _ in range(200)]
TEXTS[7], TEXTS[8], TEXTS[190] = " ?! ", "", "w1 Straße 漢字"
IDS = [f"k{number}" for number in range(200)]
IDS[20] = "k3"

Opened = list[str]


@pytest.fixture
def opened(run: Run, monkeypatch: pytest.MonkeyPatch) -> Opened:
    """The Parquet files that were read so far."""
    parquet.write_table(pa.table({"id": IDS, "text": TEXTS}), "t.parquet", row_group_size=90)
    names: Opened = []
    row = FORMATS["parquet"]

    def read(stream: Any, source: Any) -> Any:
        names.append(source.path)
        return row.read(stream, source)  # type: ignore[misc]

    monkeypatch.setitem(FORMATS, "parquet", replace(row, read=read))
    return names


def rows(run: Run, path: str) -> list[Any]:
    return [json.loads(line) for line in run("export", path).stdout.splitlines()]


def wanted(run: Run, monkeypatch: pytest.MonkeyPatch, *options: str) -> list[Any]:
    """The rows where features are not kept."""
    prepare = build.prepare
    with monkeypatch.context() as patch:
        patch.setattr(build, "prepare", lambda *a, **k: prepare(*a, **{**k, "kept": False}))
        run("build", "plain.sim", "t.parquet", *options)
    return rows(run, "plain.sim")


@pytest.mark.parametrize("options", [
    (), ("--commit-every", "7"), ("--weighting", "sublinear-tfidf", "--sketch-bits", "64"),
])
def test_columns_are_read_once(
    run: Run, opened: Opened, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]
) -> None:
    told = run("build", "i.sim", "t.parquet", *options)
    assert opened == ["t.parquet"]
    assert "learned from 200 documents, all of the inputs" in told.stderr
    assert "t.parquet:8: no fingerprint: it has no words that count" in told.stderr
    assert "t.parquet:9: no fingerprint: empty" in told.stderr
    assert "1 document has the id of an earlier one, 1 of them with another text" in told.stderr
    assert rows(run, "i.sim") == wanted(run, monkeypatch, *options)
    with simindex.open("i.sim", "r") as index:
        assert [one for one in index.check() if one.severity == "error"] == []


def test_counts_of_a_run_are_the_same(run: Run, opened: Opened) -> None:
    told = json.loads(run("build", "i.sim", "t.parquet", "--json").stdout)
    assert told["documents"] == 200 and told["without_fingerprint"] == 2
    assert told["characters"] == sum(map(len, TEXTS)) and told["repeated_ids"] == 1


def test_more_than_is_held_is_read_again(
    run: Run, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limit is passed in the second of three columns."""
    monkeypatch.setattr(learned_idf, "MOST_HELD_BYTES", 30_000)
    run("build", "i.sim", "t.parquet")
    assert opened == ["t.parquet", "t.parquet"]
    assert rows(run, "i.sim") == wanted(run, monkeypatch)


def test_features_without_numbers_are_not_kept(
    run: Run, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table numbers 16 million."""
    keep, counted = FeatureKeeper.keep, []

    def keeps_first(self: FeatureKeeper, column: Any, threads: int | None) -> Any:
        counted.append(len(column))
        found = keep(self, column, threads)
        return found if column.text(0).decode() == TEXTS[90] else None

    with monkeypatch.context() as patch:
        patch.setattr(FeatureKeeper, "keep", keeps_first)
        run("build", "i.sim", "t.parquet")
    assert len(counted) == 2 and opened == ["t.parquet", "t.parquet"]
    assert rows(run, "i.sim") == wanted(run, monkeypatch)


def test_too_few_documents_come_with_their_texts(
    run: Run, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The recipe that they get has other features than those that were counted."""
    parquet.write_table(pa.table({"id": IDS[:20], "text": TEXTS[:20]}), "t.parquet")
    told = run("build", "i.sim", "t.parquet")
    assert "20 documents are too few to learn word weights from" in told.stderr
    assert opened == ["t.parquet"]
    assert rows(run, "i.sim") == wanted(run, monkeypatch)


def test_files_of_both_kinds_are_read_in_one_run(
    run: Run, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A column is held as features, and single documents with their texts."""
    parquet.write_table(
        pa.table({"id": [None, *IDS[1:100]], "text": TEXTS[:100]}), "u.parquet"
    )
    run("build", "i.sim", "t.parquet", "u.parquet")
    assert opened == ["t.parquet", "u.parquet"]
    listed = rows(run, "i.sim")
    prepare = build.prepare
    monkeypatch.setattr(build, "prepare", lambda *a, **k: prepare(*a, **{**k, "kept": False}))
    run("build", "plain.sim", "t.parquet", "u.parquet")
    assert listed == rows(run, "plain.sim")
