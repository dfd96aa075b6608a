"""After a commit only tables that are new are planned, and plans are those of a new handle."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simindex
from simindex.methods.base import TablePlan
from simindex.planning import planner
from simindex.query.plans import Plans
from simindex.storage.tables.table import Table


def test_a_commit_has_new_tables_planned_alone(
    index_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned: list[int] = []
    real = planner._plan_table

    def counted(table: Table, *rest: Any) -> TablePlan:
        planned.append(len(table))
        return real(table, *rest)

    monkeypatch.setattr(planner, "_plan_table", counted)
    rng = np.random.default_rng(1)
    options = simindex.IndexOptions(batch_rows=4000, min_merge=0)
    with (
        simindex.open(index_path, "c", options=options) as writer,
        simindex.open(index_path) as reader,
    ):
        for _ in range(4):
            writer.append(rng.integers(0, 2**63, 4000, dtype=np.uint64))
            writer.commit()
        query = rng.integers(0, 2**63, 1, dtype=np.uint64)
        answerer = reader._answerer
        for number in range(12):
            reader.query(query, h=3)
            planned.clear()
            if number == 6:
                writer.append(rng.integers(0, 2**63, 4000, dtype=np.uint64))
            else:
                writer.append(query)
            if number % 3 == 0:
                writer.delete(ids=[number])
            writer.commit()
            reader.query(query, h=3)
            assert len(planned) <= 1
            snapshot, question = reader._current(), answerer.question(h=3)
            mine = answerer.plans.plan(snapshot, question, 1, None)
            assert mine == Plans().plan(snapshot, question, 1, None)


def test_plans_keep_no_table_that_is_gone(index_path: Path) -> None:
    """It would keep its files mapped."""
    rng = np.random.default_rng(1)
    options = simindex.IndexOptions(batch_rows=4000, min_merge=0)
    with (
        simindex.open(index_path, "c", options=options) as writer,
        simindex.open(index_path) as reader,
    ):
        for _ in range(2):
            writer.append(rng.integers(0, 2**63, 4000, dtype=np.uint64))
            writer.commit()
        reader.query(np.zeros(1, np.uint64), h=3)
        old = [weakref.ref(segment.envelope) for segment in reader._current().segments]
        writer.compact(full=True)
        reader.query(np.zeros(1, np.uint64), h=4)  # another question: the old one is not planned
        gc.collect()
        assert [one() for one in old] == [None, None]
