"""A call is carried out as its plan says, and as the costs of the plan suppose."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pytest
from hypothesis import given
from hypothesis import strategies as st

import simindex
from simindex import Batch, IndexOptions
from simindex._kernels import _native
from simindex.methods import bphs, psm
from simindex.planning import costs, permuted_plans, table_plans

DESIGN = "bphs:G=4,g=1"
ROWS, FLIPS = 30_000, 9

SIZES = st.integers(1, 1 << 26)


def planned_for(queries: int) -> int:
    """The number of queries that a call's plan is made for: plans are kept by it."""
    return 1 << queries.bit_length() >> 1


@given(rows=st.integers(0, 1 << 31), flips=st.integers(0, 100), queries=SIZES)
def test_a_call_is_swept_where_the_plan_of_its_size_is(
    rows: int, flips: int, queries: int
) -> None:
    """6,881 queries of 9 flips on 2 M rows were costed one by one, as 4,096, and swept."""
    for many, few, asked in ((rows, flips, queries), (2_000_000, 9, 6_881)):
        enough = psm.pass_from(many, 1, 20, few, exact=False)
        if enough is not None:
            assert (asked >= enough) == (planned_for(asked) >= enough)
        enough = bphs.sweep_queries(many, 1, [(few + 1, 20)])
        assert enough is not None
        assert (asked >= enough) == (planned_for(asked) >= enough)


def test_permuted_tables_are_swept_from_where_probes_share_headers() -> None:
    """At 10 M rows a sweep of four tables pays from 512 queries of 17 probes on."""
    rows = 10_000_000
    assert bphs.sweep_queries(rows, 1, [(17, 16)] * 3 + [(1, 16)]) == 512
    assert bphs.sweep_queries(rows, 1, [(1, 16)] * 4) == 8192
    assert bphs.sweep_queries(rows, 1, [(232, 21), (22, 21), (22, 21)]) == 2048
    assert bphs.sweep_queries(rows, 1, [(1, 25)] * 10) == bphs.MOST_SWEEP_QUERIES
    assert bphs.sweep_queries(rows, 2, [(17, 16)]) is None


@given(
    rows=st.integers(0, 1 << 31), bits=st.integers(1, 40), probes=st.integers(1, 1000),
    more=st.integers(0, 1000),
)
def test_more_probes_are_swept_for_no_more_queries(
    rows: int, bits: int, probes: int, more: int
) -> None:
    few = bphs.sweep_queries(rows, 1, [(probes, bits)])
    many = bphs.sweep_queries(rows, 1, [(probes, bits), (probes + more, bits)])
    assert few is not None and many is not None
    assert bphs.LEAST_SWEEP_QUERIES <= many <= few <= bphs.MOST_SWEEP_QUERIES


@given(rows=st.integers(1 << 20, 1 << 31), flips=st.integers(1, 64))
def test_a_sweep_has_the_probes_that_it_was_measured_with(rows: int, flips: int) -> None:
    enough = psm.pass_from(rows, 1, 20, flips, exact=False)
    assert enough is not None and enough >= psm.SWEPT_QUERIES
    assert enough * (flips + 1) * psm.ROWS_PER_PROBE >= rows


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[simindex.Index]:
    path: Path = tmp_path_factory.mktemp("searched") / "i.sim"
    options = IndexOptions(structures=("psm", DESIGN), batch_rows=80_000)
    weights = oracle.normal_weights(np.random.default_rng(3), ROWS)
    with simindex.open(path, "n", options=options) as index:
        index.append(Batch(oracle.signs(weights)[:, 0], weights=weights))
        index.commit()
    with simindex.open(path) as index:
        yield index


@pytest.fixture
def sweeps(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows with every sweep of a table; small tables are swept for few queries, too."""
    seen: list[int] = []
    sweep, permuted = _native.sweep, _native.bphs

    def counted(*arguments: Any, **named: Any) -> Any:
        seen.append(1)
        return sweep(*arguments, **named)

    def counted_permuted(*arguments: Any, **named: Any) -> Any:
        queries, first, least = arguments[3], arguments[5], arguments[6]
        if least and len(queries) >= least:
            assert not first
            seen.append(1)
        return permuted(*arguments, **named)

    monkeypatch.setattr(_native, "sweep", counted)
    monkeypatch.setattr(_native, "bphs", counted_permuted)
    monkeypatch.setattr(psm, "SWEPT_ROWS", 1)
    monkeypatch.setattr(psm, "SWEPT_QUERIES", 1)
    monkeypatch.setattr(bphs, "LEAST_SWEEP_QUERIES", 1)
    monkeypatch.setattr(bphs, "MOST_SWEEP_QUERIES", 1 << 7)
    return seen


def asked(count: int) -> Batch:
    weights = oracle.normal_weights(np.random.default_rng(9), count)
    return Batch(oracle.signs(weights)[:, 0], weights=weights)


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("method", ["psm", "bphs"])
@pytest.mark.slow
def test_what_is_costed_is_what_runs_and_what_is_explained(
    stored: simindex.Index, sweeps: list[int], monkeypatch: pytest.MonkeyPatch, method: str,
    first: bool,
) -> None:
    """Of calls that share a plan with others of their size, above and below where sweeps begin."""
    supposed: list[bool] = []

    def noted(cost: Any) -> Any:
        def costed(*arguments: Any, **named: Any) -> float:
            supposed.append(named["swept"])
            taken: float = cost(*arguments, **named)
            return taken

        return costed

    for module, name in ((table_plans, "probing_ns"), (permuted_plans, "permuted_ns")):
        monkeypatch.setattr(module, name, noted(getattr(costs, name)))
    monkeypatch.setattr(
        "simindex.planning.calibration.Calibration.flips", lambda *_: FLIPS
    )
    monkeypatch.setattr(table_plans, "NARROWEST", 0)
    # Nothing is repeated to measure the recall: that would be planned and run by itself.
    monkeypatch.setattr(stored._answerer.spot_checks, "due", lambda *_: None)
    told = set()
    for queries in (1, 7, 63, 64, 65, 93, 94, 127, 128, 200, 300):
        stored._answerer.plans.forget()
        supposed.clear()
        options = {"recall": 0.9, "method": method}
        batch = asked(queries)
        stored.query(batch, threads=1, first=first, **options)
        (swept,) = set(supposed)
        told.add(swept)
        assert bool(sweeps) == swept, queries
        sweeps.clear()
        smaller = asked(planned_for(queries))
        stored.query(smaller, threads=1, first=first, **options)
        assert bool(sweeps) == swept, queries
        sweeps.clear()
        if not first:
            assert stored.explain(batch, **options).segments[0].method in (method, DESIGN)
            assert bool(sweeps) == swept, queries
            sweeps.clear()
    assert told == ({False} if method == "bphs" and first else {False, True})


def test_slices_of_a_swept_call_are_large_enough_for_a_sweep(
    stored: simindex.Index, sweeps: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One query more than a slice takes does not make a slice of a single query."""
    monkeypatch.setattr("simindex.query.search.SLICE_QUERIES", 256)
    monkeypatch.setattr("simindex.query.search.slice_queries", lambda plan, threads: 256)
    snapshot = stored._current()
    question = stored._answerer.question(h=3, method="bphs")
    batch = asked(257)
    plan = stored._answerer.plans.plan(snapshot, question, len(batch), None)
    assert plan.tables[0].swept_from == 128
    stored._answerer.search(snapshot, batch.rows, None, replace(question, threads=1))
    assert len(sweeps) == 2
