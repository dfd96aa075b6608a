"""A further method is one module and one row: planned, run and explained, it keeps the contract.

The toy compares rows one word at a time with numpy, as slowly as it looks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from contract import Case, MethodContract

import simindex
from simindex.errors import InvalidOption
from simindex.methods.base import Asked, Found, TablePlan
from simindex.planning import registry
from simindex.planning.conditions import Conditions
from simindex.planning.registry import Method
from simindex.storage.files import readahead
from simindex.storage.files.checksums import verified
from simindex.storage.tables.table import Table


def toy_ns(rows: int, words: int) -> float:
    """What a query takes, by its author."""
    return 1e4 + 20.0 * rows * words


def toy_plans(table: Table, asked: Conditions) -> Iterator[TablePlan]:
    """All rows, exactly."""
    rows, words = table.fingerprints.shape
    yield TablePlan(
        "toy", header_bits=0, flips=0, exact=True, nanoseconds=toy_ns(rows, words),
        compared=float(rows),
    )


def toy_search(table: Table, plan: TablePlan, asked: Asked) -> Found:
    """Rows within h of each query, or the first of them. Deleted ones are left out elsewhere."""
    rows = verified(table.fingerprints)
    parts = [np.empty((3, 0), np.int64)]
    for number, query in enumerate(asked.queries):
        distance = np.bitwise_count(rows ^ query).sum(axis=1, dtype=np.int64)
        near = np.flatnonzero(distance <= asked.h)[: 1 if asked.first else None]
        parts.append(np.stack([np.full(len(near), number), near, distance[near]]))
    query, row, distance = np.concatenate(parts, axis=1)
    row = row.astype(np.uint32)
    return Found(
        query, row, distance.astype(np.uint16), readahead.take_at(table.ids, row),
        probes=0, compared=len(rows) * len(asked.queries),
    )


TOY = Method("toy", toy_plans, toy_search)


@pytest.fixture(autouse=True)
def toy(monkeypatch: pytest.MonkeyPatch) -> None:
    """The toy among the methods."""
    monkeypatch.setitem(registry.METHODS, TOY.name, TOY)


class TestToy(MethodContract):
    method = "toy"


def test_a_plan_that_names_no_row_says_so(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    def misnamed(table: Table, asked: Conditions) -> list[TablePlan]:
        return [replace(one, method="toys") for one in toy_plans(table, asked)]

    monkeypatch.setitem(registry.METHODS, "toy", replace(TOY, plans=misnamed))
    says = "'toys'.*give the plan the name of its row"
    with simindex.open(case.index.path) as index, pytest.raises(LookupError, match=says):
        index.query(case.queries, h=3, method="toy")


def test_auto_takes_a_further_method_that_is_cheapest(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    def free(table: Table, asked: Conditions) -> list[TablePlan]:
        return [replace(one, nanoseconds=0.0) for one in toy_plans(table, asked)]

    monkeypatch.setitem(registry.METHODS, "toy", replace(TOY, plans=free))
    with simindex.open(case.index.path) as index:
        assert index.query(case.queries, h=3).stats.method == "toy"


def test_a_further_method_answers_within_memory(case: Case) -> None:
    """It has no way in chunks, so that a scan answers in its place."""
    found = case.index.query(case.queries, h=3, method="toy", memory_limit=1 << 30)
    assert found.stats.method == "scan"
    rows = sum(table.fingerprints.nbytes for table in case.index._current().tables)
    assert case.index.query(case.queries, h=3, method="toy", memory=rows).stats.exact
    with pytest.raises(InvalidOption, match=f"at least {rows}"):
        case.index.query(case.queries, h=3, method="toy", memory=rows - 1)


def test_a_method_is_gone_once_it_is_no_longer_registered(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as without, simindex.open(case.index.path) as index:
        without.delitem(registry.METHODS, "toy")
        with pytest.raises(InvalidOption, match=", ".join(["auto", *registry.METHODS]) + ", or"):
            index.query(case.queries, method="toy")
