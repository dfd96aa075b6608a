"""What is read before a plan is made, table by table."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pytest

import simindex
from simindex import IndexOptions
from simindex.errors import CorruptFile
from simindex.methods import scan
from simindex.planning import registry, table_plans
from simindex.planning.planner import plan, plan_top
from simindex.planning.question import Question, TopQuestion
from simindex.planning.registry import Method
from simindex.query import surveys

ROWS = (300, 200, 20)


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[simindex.Index]:
    """A segment without slice lists, one with them, and a pending run."""
    path: Path = tmp_path_factory.mktemp("surveyed") / "i.sim"
    rng = np.random.default_rng(7)
    options = IndexOptions(bits=128, structures=("psm",), batch_rows=800, min_merge=0)
    with simindex.open(path, "n", options=options) as index:
        index.append(oracle.uniform(rng, ROWS[0], 2))
        index.commit()
        index.compact(structures=("psm", "issl:w=8"))
        for rows in ROWS[1:]:
            index.append(oracle.uniform(rng, rows, 2))
            index.commit()
    with simindex.open(path) as index:
        yield index


def test_lists_are_counted_in_the_tables_that_have_them(index: simindex.Index) -> None:
    snapshot = index._current()
    listed = [table.slices is not None for table in snapshot.tables]
    assert True in listed and False in listed
    within = surveys.within(snapshot.tables, registry.asked("auto"), 15, needed=False)
    top = surveys.top(snapshot.tables, TopQuestion(3, 0, None, "auto", None))
    assert set(within) == {"issl", "psm", "bphs"} and set(top) == {"issl"}
    for found in (within["issl"], top["issl"]):
        assert [one is not None for one in found] == listed
    # Of 16 slices two fingerprints within 15 bits share one.
    assert within["issl"] == top["issl"]
    assert surveys.within(snapshot.tables, registry.asked("scan"), 15, needed=True) == {}
    assert surveys.top(snapshot.tables, TopQuestion(3, 0, None, "scan", None)) == {}


def test_it_is_known_which_segments_have_no_lists(index: simindex.Index) -> None:
    snapshot = index._current()
    carried = surveys.carried(snapshot)
    assert carried.sliced and carried.segments == len(snapshot.segments) > 0
    assert carried.unlisted == tuple(
        segment.name for segment in snapshot.segments if segment.slices is None
    )
    assert carried.designs == snapshot.designs


def test_a_plan_goes_by_what_was_surveyed_and_by_nothing_else(
    index: simindex.Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No list is read while a plan is made; without a survey, lists are not planned with."""
    tables = index._current().tables
    question, top = Question(h=15, method="issl"), TopQuestion(3, 0, None, "issl", None)
    within = surveys.within(tables, registry.asked("issl"), 15, needed=True)
    listed = surveys.top(tables, top)

    def none_read(*_: Any) -> None:
        raise AssertionError("planning reads")

    for name in ("listed", "listed_within"):
        monkeypatch.setattr(f"simindex.methods.issl.{name}", none_read)
    found = plan(tables, question, queries=1, surveys=within)
    assert "issl" in found.method
    assert "issl" not in plan(tables, question, queries=1).method
    machine = index.machine
    assert "issl" in plan_top(tables, top, queries=1, machine=machine, surveys=listed).method
    assert "issl" not in plan_top(tables, top, queries=1, machine=machine).method


def test_damage_is_left_with_a_warning_unless_it_is_needed(
    index: simindex.Index, caplog: pytest.LogCaptureFixture
) -> None:
    def damaged(table: Any, bits: int) -> None:
        raise CorruptFile("lists of nothing", path="lists")

    tables = index._current().tables
    row = Method("toy", table_plans.scans, scan.search, survey=damaged)
    with caplog.at_level(logging.WARNING, "simindex"):
        assert surveys.within(tables, [row], 3, needed=False) == {"toy": [None] * len(tables)}
    assert "lists of nothing" in caplog.text
    with pytest.raises(CorruptFile, match="lists of nothing"):
        surveys.within(tables, [row], 3, needed=True)
