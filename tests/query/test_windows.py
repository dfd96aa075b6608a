"""The matches of one query in windows: each once, nearest first, also of rows found by flips."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import oracle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import simindex
from simindex.methods.base import Asked, Found
from simindex.query import windows
from simindex.query.search import search
from simindex.storage.tables.table import Table, sort_table

EMPTY = (np.empty(0, np.int64), np.empty(0, np.uint32))


def table() -> Table:
    rows = np.zeros((1, 1), np.uint64)
    return sort_table("", rows, np.zeros(1, np.uint64), None, horizon=0)


@settings(max_examples=300)
@given(
    found=st.lists(
        st.lists(st.tuples(st.integers(0, 4), st.integers(0, 12)), max_size=30), max_size=8
    ),
    most=st.integers(1, 20),
)
@pytest.mark.slow
def test_windows_hold_all_matches_in_their_order(
    found: list[list[tuple[int, int]]], most: int
) -> None:
    """Each by itself is the least ones after the last, whatever comes in which piece; ids repeat.
    """
    expected = sorted({match for piece in found for match in piece})
    given: list[tuple[int, int]] = []
    after = None
    while True:
        window = windows._Window(most, after)
        for piece in found:
            columns = np.array(piece, np.int64).reshape(-1, 2)
            some = np.arange(len(piece))
            window.add(table(), Found(
                some, some.astype(np.uint32), columns[:, 0].astype(np.uint16),
                columns[:, 1].astype(np.uint64), 0, 0,
            ))
            assert sum(len(one.id) for _, one in window.parts) <= 2 * most
        held = sorted({
            match for _, one in window.parts
            for match in zip(one.distance.tolist(), one.id.tolist(), strict=True)
        })
        given += held
        if window.last is None:
            break
        assert held
        assert window.last == held[-1]
        after = window.last
    assert given == expected


@pytest.mark.parametrize("recall", [1.0, 0.3])
@pytest.mark.slow
def test_windows_give_what_a_search_finds(
    index_path: Path, rng: np.random.Generator, recall: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With few flips a search misses rows, and so do windows: the same ones."""
    monkeypatch.setattr(windows, "LEAST_ROWS", 64)
    monkeypatch.setattr(windows, "MOST_ROWS", 64)
    weights = oracle.normal_weights(rng, 1)
    near = np.repeat(weights, 4000, 0)
    near[1:] += (rng.laplace(size=(3999, 64)) * 0.3).astype(np.float32)
    rows = np.concatenate([oracle.signs(near), oracle.uniform(rng, 3000)])
    given = np.concatenate([near, oracle.normal_weights(rng, 3000)])
    options = simindex.IndexOptions(batch_rows=4096, structures=("psm",))
    with simindex.open(index_path, "n", options=options) as index:
        index.append(simindex.Batch(rows, weights=given))
        index.commit()
        index.delete(ids=np.arange(5, 300, dtype=np.uint64))
    with simindex.open(index_path) as index:
        snapshot = index._current()
        question = index._answerer.question(h=6, recall=recall, method="psm")
        plan = index._answerer.plans.plan(snapshot, question, 1, weights)
        if recall < 1:  # a table so small is planned to be compared whole
            few = [replace(one, header_bits=8, flips=1, exact=False) for one in plan.tables]
            plan = replace(plan, tables=tuple(few), exact=False)
        whole = search(
            snapshot, plan, rows[:1], weights, question, threads=1, options=index.options
        )
        asked = Asked(rows[:1], 6, False, weights, plan.volatility,
                      tombstones=snapshot.tombstones)
        some = list(windows.windows(
            snapshot.tables, plan, asked, most=100, limit=None, options=index.options
        ))
        assert len(some) > 2
        every = len(oracle.answers(rows[300:], range(300, 7000), rows[:1], 6))
        assert 0.1 * every < len(whole) < 0.9 * every if recall < 1 else len(whole) >= every
        for name in ("id", "distance"):
            joined = np.concatenate([getattr(part, name) for part in some])
            assert np.array_equal(joined, getattr(whole, name))
        few = list(windows.windows(
            snapshot.tables, plan, asked, most=100, limit=130, options=index.options
        ))
        assert np.array_equal(np.concatenate([part.id for part in few]), whole.id[:130])
