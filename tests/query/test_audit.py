"""The index measures its own recall as brute force would, and keeps what it measured."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import oracle
import pytest

import simindex
from simindex import Batch, IndexOptions
from simindex.errors import CorruptFile, InvalidOption
from simindex.index import changes
from simindex.methods.base import TablePlan
from simindex.planning import registry
from simindex.query import answerer, audit

PSM = IndexOptions(structures=("psm",))
"""Without tables for exact queries, so that a recall below 1 is worth something."""

ROWS = 4000


def fill(index: simindex.Index, seed: int = 1) -> tuple[oracle.F32, oracle.U64]:
    """Rows of which a third rewrite others, and some are equal; appended, not committed."""
    rng = np.random.default_rng(seed)
    weights = oracle.normal_weights(rng, ROWS)
    rewrites, of = oracle.near_duplicates(rng, weights[: ROWS // 3], 3)
    weights[ROWS // 2 : ROWS // 2 + len(of)] = rewrites
    weights[-100:] = weights[:100]
    weights = weights[rng.permutation(ROWS)]
    rows = oracle.signs(weights)
    index.append(Batch(rows, ids=np.arange(ROWS), weights=weights))
    return weights, rows


def expected_share(index: simindex.Index, rows: oracle.U64, recall: float) -> tuple[float, int]:
    """Mean share, by brute force, and rows with a match; all rows asked as the index keeps them."""
    reservoir = index._current().reservoir
    assert len(reservoir) == ROWS
    truth = [
        {row for row, distance in zip(*there, strict=True) if distance}
        for there in matched(reservoir.fingerprints, rows)
    ]
    batch = Batch(reservoir.fingerprints, weights=reservoir.weights.astype(np.float32))
    got: list[set[int]] = [set() for _ in range(ROWS)]
    for match in index.query(batch, recall=recall, method="psm"):
        if match.distance:
            got[match.query].add(match.id)
    shares = [len(a & b) / len(b) for a, b in zip(got, truth, strict=True) if b]
    assert all(a <= b for a, b in zip(got, truth, strict=True))
    return float(np.mean(shares)), len(shares)


def matched(queries: oracle.U64, rows: oracle.U64) -> list[Any]:
    found = oracle.matches(rows, queries, 3)
    bounds = np.searchsorted(found[:, 0], np.arange(len(queries) + 1))
    return [
        (found[a:b, 1].tolist(), found[a:b, 2].tolist())
        for a, b in pairwise(bounds)
    ]


@pytest.mark.parametrize("recall", [0.6, 0.9])
def test_measured_recall_is_that_of_brute_force(index_path: Path, recall: float) -> None:
    with simindex.open(index_path, "n") as index:
        _, rows = fill(index)
        index.commit()
        found = index.audit(recall=recall, method="psm", sample=ROWS)
        share, with_match = expected_share(index, rows, recall)
    assert found.recall == pytest.approx(share, abs=1e-12)
    assert (found.rows, found.rows_with_match) == (ROWS, with_match)
    assert with_match > 1000
    assert found.recall_low < share < found.recall_high < 1
    assert recall - 0.05 < share
    assert found.kept == (found.recall_high >= recall)
    assert (found.asked, found.h, found.method) == (recall, 3, "psm")
    assert f"{recall:g}" in found.guarantee
    assert found.found < found.matches


def test_an_exact_method_is_measured_as_exact(index_path: Path) -> None:
    with simindex.open(index_path, "n") as index:
        fill(index)
        index.commit()
        found = index.audit(recall=0.9, method="scan", sample=300)
        assert (found.recall, found.recall_high, found.rows) == (1.0, 1.0, 300)
        assert 0.9 < found.recall_low < 1
        assert found.kept


def test_what_a_writer_measured_is_in_everybodys_stats_from_its_commit(index_path: Path) -> None:
    with simindex.open(index_path, "n") as writer, simindex.open(index_path) as reader:
        assert writer.stats().audit is None
        fill(writer)
        writer.commit()
        found = writer.audit(sample=200)
        assert writer.stats().audit == found
        assert reader.stats().audit is None
        writer.commit()
        assert reader.stats().audit == found
        own = reader.audit(sample=100)
        assert reader.stats().audit == own != found
        assert writer.stats().audit == found
        assert [one for one in writer.check() if one.severity == "error"] == []
    with simindex.open(index_path) as reader:
        assert reader.stats().audit == found


def test_a_later_measurement_of_a_writer_replaces_a_readers_own(index_path: Path) -> None:
    with simindex.open(index_path, "n") as writer, simindex.open(index_path) as reader:
        fill(writer)
        writer.commit()
        reader.audit(sample=100)
        fill(writer, seed=2)
        writer.commit()
        later = writer.audit(sample=100)
        writer.commit()
        assert reader.stats().audit == later


def test_nothing_to_measure_is_said(index_path: Path) -> None:
    with simindex.open(index_path, "n") as index:
        assert index.audit().recall is None
        index.append(oracle.uniform(np.random.default_rng(1), 1000))
        index.commit()
        found = index.audit()
        assert (found.recall, found.recall_low, found.recall_high) == (None, 0.0, 1.0)
        assert (found.rows, found.rows_with_match) == (0, 0)


def test_a_hot_text_does_not_fill_the_memory(
    index_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the first rows show how many matches there are, fewer are asked at once."""
    monkeypatch.setattr(audit, "MATCHES_AT_ONCE", 10_000)
    rng = np.random.default_rng(1)
    weights = np.repeat(oracle.normal_weights(rng, 1), 2000, axis=0)
    weights *= rng.choice([-1, 1], weights.shape, p=[0.01, 0.99])
    asked = []
    with simindex.open(index_path, "n", options=IndexOptions(reservoir_rows=1000)) as index:
        index.append(Batch(oracle.signs(weights), weights=weights))
        index.commit()

        def counting(batch: Batch, recall: float) -> simindex.Matches:
            found = index.query(batch, recall=1.0)
            asked.append(len(found))
            return found

        found = audit.audit(
            index._current().reservoir, counting, h=3, recall=0.9, sample=300, generation=1,
            index_rows=2000,
        )
    assert found.matches > 100_000
    assert max(asked[2:]) <= 12_000


@pytest.mark.parametrize(
    "options", [{"sample": 0}, {"sample": 2.5}, {"recall": 2}, {"h": -1}, {"method": "none"}]
)
def test_options_out_of_range_are_refused(index_path: Path, options: dict[str, Any]) -> None:
    with simindex.open(index_path, "n") as index, pytest.raises(InvalidOption):
        index.audit(**options)


@pytest.mark.parametrize("payload", [b"", b"\xc1", b"\x01", b"\x81\xa4none\x01"])
def test_a_payload_that_is_no_audit_is_damage(payload: bytes) -> None:
    with pytest.raises(CorruptFile, match="audit"):
        audit.decode(payload)


# -- by itself ------------------------------------------------------------------------------------


@pytest.fixture
def small_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of rows are audited as millions are, and exact plans are never the cheapest."""
    monkeypatch.setattr(changes, "SELF_AUDIT_ROWS", ROWS)
    exact_takes(1e12, monkeypatch)


def exact_takes(nanoseconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, row in registry.METHODS.items():

        def plans(table: Any, asked: Any, real: Any = row.plans) -> list[TablePlan]:
            return [
                replace(one, nanoseconds=nanoseconds) if one.exact else one
                for one in real(table, asked)
            ]

        monkeypatch.setitem(registry.METHODS, name, replace(row, plans=plans))


@pytest.mark.usefixtures("small_is_large")
def test_compaction_measures_the_recall_of_an_index_that_has_doubled(index_path: Path) -> None:
    options = IndexOptions(structures=("psm",), min_merge=0, batch_rows=1 << 12)
    with simindex.open(index_path, "n", options=options) as index:
        fill(index)
        index.commit()
        assert index.stats().audit is None
        index.compact(full=True)
        first = index.stats().audit
        assert first is not None
        assert (first.h, first.asked, first.index_rows) == (3, 0.95, ROWS)
        fill(index, seed=2)
        index.compact(full=True)
        assert index.stats().audit == first, "twice as many rows are not over twice as many"
        fill(index, seed=3)
        index.compact()
        second = index.stats().audit
        assert second is not None
        assert second.index_rows == 3 * ROWS
        index.delete(ids=np.arange(ROWS))
        index.compact(full=True)
        assert index.stats().audit == second
    with simindex.open(index_path) as reader:
        assert reader.stats().audit == second
        assert [one for one in reader.check() if one.severity == "error"] == []


@pytest.mark.usefixtures("small_is_large")
def test_the_promise_that_was_audited_is_audited_again(index_path: Path) -> None:
    options = IndexOptions(structures=("psm",), min_merge=0, batch_rows=1 << 12)
    with simindex.open(index_path, "n", options=options) as index:
        fill(index)
        index.commit()
        index.audit(h=2, recall=0.8, sample=100)
        for seed in (2, 3):
            fill(index, seed)
        index.compact(full=True)
        found = index.stats().audit
    assert found is not None
    assert (found.h, found.asked, found.index_rows) == (2, 0.8, 3 * ROWS)


@pytest.mark.usefixtures("small_is_large")
def test_tuning_measures_the_recall_at_its_radius(index_path: Path) -> None:
    with simindex.open(index_path, "n", options=PSM) as index:
        fill(index)
        index.commit()
        index.tune(h=4, machine=False)
        found = index.stats().audit
        assert found is not None
        assert (found.h, found.asked) == (4, 0.95)
    with simindex.open(index_path) as reader:
        assert reader.stats().audit == found


def test_small_exact_and_weightless_indexes_are_not_audited_by_themselves(
    index_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object, **__: object) -> None:
        raise AssertionError("audited")

    monkeypatch.setattr(answerer.Answerer, "audit", never)
    with simindex.open(index_path, "n", options=PSM) as index:
        fill(index)
        index.compact(full=True)
        monkeypatch.setattr(changes, "SELF_AUDIT_ROWS", ROWS)
        exact_takes(0, monkeypatch)
        index.tune(machine=False)
    exact_takes(1e12, monkeypatch)
    with simindex.open(index_path, "n", options=PSM, overwrite=True) as index:
        index.append(oracle.uniform(np.random.default_rng(1), ROWS))
        index.compact(full=True)


@pytest.mark.usefixtures("small_is_large")
def test_compaction_stands_where_the_recall_cannot_be_measured(
    index_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def damaged(*_: object, **__: object) -> None:
        raise CorruptFile("the reservoir is damaged", path="meta/reservoir")

    monkeypatch.setattr(answerer.Answerer, "audit", damaged)
    with simindex.open(index_path, "n", options=PSM) as index:
        fill(index)
        index.compact(full=True)
        assert (len(index), index.stats().segments, index.stats().audit) == (ROWS, 1, None)
    assert "the recall was not measured: the reservoir is damaged" in caplog.text


def test_an_audit_ends_when_its_time_is_over(
    index_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(audit, "time", SimpleNamespace(perf_counter=lambda: now[0]))
    with simindex.open(index_path, "n", options=PSM) as index:
        fill(index)
        index.commit()

        def ask(batch: Batch, recall: float) -> simindex.Matches:
            now[0] += 0.01 * len(batch)
            return index.query(batch)

        def rows_asked(budget_s: float) -> int:
            return audit.audit(
                index._current().reservoir, ask, h=3, recall=0.9, sample=1000, generation=1,
                index_rows=ROWS, budget_s=budget_s,
            ).rows

        assert [rows_asked(budget_s) for budget_s in (0.0, 0.5, 1e9)] == [16, 48, 1000]
