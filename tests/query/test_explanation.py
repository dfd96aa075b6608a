"""An explanation says what a query would do, and what doing it took."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import oracle
import pytest

import simindex
from simindex import Batch, IndexOptions
from simindex.errors import ClosedIndex, InvalidBatch, InvalidOption
from simindex.planning.machine import Machine

DESIGN = "bphs:G=4,g=1"
ROWS = (60_000, 30_000, 50)


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[simindex.Index]:
    """Two segments with permuted tables, and a pending run without."""
    path: Path = tmp_path_factory.mktemp("explained") / "i.sim"
    options = IndexOptions(structures=("psm", DESIGN), batch_rows=80_000, min_merge=0)
    rng = np.random.default_rng(7)
    with simindex.open(path, "n", options=options) as index:
        for rows in ROWS:
            weights = oracle.normal_weights(rng, rows)
            index.append(Batch(oracle.signs(weights)[:, 0], weights=weights))
            index.commit()
    with simindex.open(path) as index:
        yield index


def asked(count: int) -> Batch:
    weights = oracle.normal_weights(np.random.default_rng(9), count)
    return Batch(oracle.signs(weights)[:, 0], weights=weights)


@pytest.mark.parametrize("method", ["auto", "psm", "bphs", DESIGN, "scan"])
@pytest.mark.parametrize("recall", [0.9, 1.0])
@pytest.mark.slow
def test_what_is_explained_is_what_is_done(
    stored: simindex.Index, method: str, recall: float
) -> None:
    """Probes, rows compared, flips and guarantee are those of the query itself."""
    batch = asked(64)
    found = stored.explain(batch, recall=recall, method=method)
    stats = stored.query(batch, recall=recall, method=method, threads=1).stats
    assert [one.rows for one in found.segments] == list(ROWS)
    assert found.guarantee == stats.guarantee
    assert found.exact == stats.exact
    assert found.queries == 64
    assert "+".join(sorted({one.method for one in found.segments})) == stats.method
    assert max(one.flips for one in found.segments) == stats.flips
    assert sum(one.probes for one in found.segments) == pytest.approx(stats.probes / 64)
    assert sum(one.rows_compared for one in found.segments) == pytest.approx(
        stats.rows_compared / 64
    )


@pytest.mark.parametrize("method", ["psm", DESIGN, "scan"])
def test_predictions_hold_on_uniform_rows(stored: simindex.Index, method: str) -> None:
    """Counts alone: times are the machine's."""
    found = stored.explain(asked(2000), method=method)
    for one in found.segments[:2]:
        assert one.method == method
        assert one.probes == pytest.approx(one.expected_probes)
        assert one.rows_compared == pytest.approx(one.expected_rows, rel=0.1)
        assert one.expected_s > 0 and one.seconds > 0
    assert found.expected_s >= 2000 * sum(one.expected_s for one in found.segments)


def test_matches_are_counted(stored: simindex.Index) -> None:
    batch = next(iter(stored.rows(chunk_rows=100)))
    found = stored.explain(batch, h=0)
    matches = stored.query(batch, h=0)
    assert sum(one.matches for one in found.segments) * len(batch) == pytest.approx(len(matches))


@pytest.mark.slow
def test_no_weights_fall_back_to_an_exact_plan_that_is_named(stored: simindex.Index) -> None:
    """Also where permuted tables are there to do it."""
    words = asked(500).fingerprints
    with_weights = stored.explain(asked(500), recall=0.9, method="psm")
    without = stored.explain(words, recall=0.9, method="psm")
    assert not with_weights.exact and with_weights.guarantee.startswith("assumed: recall >= 0.9")
    assert without.exact and without.guarantee == "exact, since the queries have no weights"
    auto = stored.explain(words, recall=0.9)
    assert auto.exact and auto.guarantee == "exact, since the queries have no weights"
    truth = stored.query(words, method="scan")
    found = stored.query(words, recall=0.9)
    assert found.stats.exact
    assert found.stats.guarantee == "exact, since the queries have no weights"
    assert stored.query(words).stats.guarantee == "exact"
    assert list(zip(found.query, found.id, strict=True)) == list(
        zip(truth.query, truth.id, strict=True)
    )


def test_memory_decides_which_structures_are_used(stored: simindex.Index) -> None:
    """Permuted tables go first, then headers; below the rows themselves nothing is left."""
    words = asked(5000).fingerprints
    rows = 8 * sum(ROWS)
    free = stored.query(words)
    assert "bphs" in free.stats.method
    methods, answers = [], []
    for memory in (5 * rows, 2 * rows, rows):
        found = stored.query(words, memory=memory)
        methods.append(found.stats.method)
        answers.append(list(zip(found.query, found.id, strict=True)))
        assert found.stats.exact
        assert stored.explain(words[:64], memory=memory).exact
    assert "bphs" in methods[0] and "bphs" not in methods[1] and "psm" in methods[1]
    assert methods[2] == "scan"
    assert answers == [list(zip(free.query, free.id, strict=True))] * 3


@pytest.mark.parametrize(
    ("method", "memory"),
    [
        ("auto", 8 * sum(ROWS) - 1), ("scan", 0), ("psm", 8 * sum(ROWS)),
        ("bphs", 16 * sum(ROWS)), (DESIGN, 16 * sum(ROWS)),
    ],
)
def test_a_memory_too_small_says_the_least_that_does(
    stored: simindex.Index, method: str, memory: int
) -> None:
    with pytest.raises(InvalidOption, match="at least") as caught:
        stored.query(asked(1).fingerprints, method=method, memory=memory)
    assert memory < caught.value.data["expected"] < 50 * sum(ROWS)
    least = caught.value.data["expected"]
    assert stored.query(asked(1).fingerprints, method=method, memory=least).stats.exact


@pytest.mark.parametrize("memory", [-1, 1.5, "64G", True, []])
def test_a_memory_that_is_no_size_is_refused(stored: simindex.Index, memory: object) -> None:
    with pytest.raises(InvalidOption, match="memory="):
        stored.query(asked(1).fingerprints, memory=memory)  # type: ignore[arg-type]


@pytest.mark.slow
def test_it_says_whose_constants_it_goes_by(
    stored: simindex.Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not stored.explain(asked(1)).measured
    measured = Machine(measured=True)
    monkeypatch.setattr("simindex.planning.measurement.measure", lambda file: measured)
    with simindex.open(stored.path) as tuned:
        tuned.tune()
        assert tuned.explain(asked(1)).measured


def test_no_queries_and_no_rows_are_explained_too(
    stored: simindex.Index, index_path: Path
) -> None:
    assert stored.explain(np.empty(0, np.uint64)).queries == 0
    with simindex.open(index_path, "n") as empty:
        assert empty.explain(asked(1).fingerprints).segments == ()


def test_bad_asks_are_refused_as_by_a_query(stored: simindex.Index, index_path: Path) -> None:
    with pytest.raises(InvalidOption, match="h=65"):
        stored.explain(asked(1), h=65)
    with pytest.raises(InvalidOption, match="exact up to h=3"):
        stored.explain(asked(1), h=4, method=DESIGN)
    with pytest.raises(InvalidBatch):
        stored.explain(np.zeros((1, 2), np.uint64))
    closed = simindex.open(index_path, "n")
    closed.close()
    with pytest.raises(ClosedIndex):
        closed.explain(asked(1))
