"""The recall of slice lists is measured as said: without oneself, and with confidence."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import oracle
import pytest
from hypothesis import given
from hypothesis import strategies as st

import simindex
from simindex import IndexOptions
from simindex.planning.machine import Machine
from simindex.planning.question import TopQuestion
from simindex.query import top_recall

NONE = 2**64 - 1
BITS = 256


@given(
    st.lists(
        st.tuples(st.integers(0, 9), st.lists(st.integers(0, 9), min_size=4, max_size=4)),
        min_size=1, max_size=5,
    )
)
def test_a_row_is_no_neighbour_of_its_own(rows: list[tuple[int, list[int]]]) -> None:
    """Where it was not found, the last place is left out, so that k places stay."""
    own = np.array([mine for mine, _ in rows], np.uint64)
    ids = np.array([found for _, found in rows], np.uint64)
    distances = np.arange(ids.size, dtype=np.uint16).reshape(ids.shape)
    left = top_recall.without_own(ids, distances, own)
    for place, (mine, found) in enumerate(rows):
        at = found.index(mine) if mine in found else 3
        expected = [far for here, far in enumerate(distances[place].tolist()) if here != at]
        assert left[place].tolist() == expected


def test_shares_count_neighbours_as_near_as_the_true_ones() -> None:
    """Equally near ones are as good; rows without a neighbour say nothing."""
    far = BITS + 1
    truth = np.array([[1, 2, 2], [4, far, far], [far] * 3, [0, 0, 9]], np.uint16)
    found = np.array([[2, 2, 3], [4, 5, far], [far] * 3, [0, 9, 9]], np.uint16)
    assert top_recall.shares(truth, found, BITS).tolist() == [2 / 3, 1.0, 1.0]


def test_confidence_is_a_one_sided_interval() -> None:
    assert top_recall.confident(np.empty(0)) == (0.0, 0.0)
    assert top_recall.confident(np.ones(9)) == (1.0, 1.0)
    rng = np.random.default_rng(0)
    held = 0
    for _ in range(400):
        mean, low = top_recall.confident(rng.binomial(10, 0.9, 200) / 10)
        assert low < mean
        held += low <= 0.9
    assert 0.92 <= held / 400 <= 0.98


@pytest.fixture
def index(index_path: Path) -> simindex.Index:
    """4,000 rows in families, half of them deleted, in several segments."""
    rows = oracle.flip(
        np.random.default_rng(1),
        oracle.skewed(np.random.default_rng(2), 4000, BITS // 64, templates=100, flips=1), 35,
    )
    options = IndexOptions(
        bits=BITS, structures=("psm", "issl"), batch_rows=4096, min_merge=0
    )
    with simindex.open(index_path, "n", options=options) as writer:
        for start in range(0, 4000, 1000):
            writer.append(rows[start : start + 1000], ids=np.arange(start, start + 1000))
            writer.commit()
        writer.delete(ids=np.arange(0, 4000, 2))
    return simindex.open(index_path)


def test_drawn_rows_are_live_and_come_from_everywhere(index: simindex.Index) -> None:
    snapshot = index._current()
    rows, ids = top_recall.drawn(snapshot, 200)
    assert len(np.unique(ids)) == 200 and (ids % 2 == 1).all()
    assert np.bincount((ids // 1000).astype(np.int64)).min() > 25
    again = top_recall.drawn(snapshot, 200)
    assert again[1].tolist() == ids.tolist()
    assert index.top(rows, k=1, method="scan").distance.max() == 0
    assert len(top_recall.drawn(snapshot, 5000)[0]) == 2000


@pytest.mark.slow
def test_the_least_max_error_that_reaches_the_recall_is_taken(index: simindex.Index) -> None:
    snapshot, options = index._current(), index.options

    def measured(recall: float) -> top_recall.Measured | None:
        question = TopQuestion(10, None, 30, "issl", recall)
        return top_recall.measure(snapshot, question, Machine(), options)

    steps = [measured(recall) for recall in (0.05, 0.5, 0.8, 0.95, 1.0)]
    assert all(step is not None for step in steps)
    errors = [step.max_error for step in steps if step is not None]
    assert errors == sorted(errors) and errors[0] < errors[-1]
    for recall, step in zip((0.05, 0.5, 0.8, 0.95, 1.0), steps, strict=True):
        assert step is not None
        assert step.recall >= step.low >= recall
        assert step.rows == 256
        if step.max_error:  # with less, the recall is not reached
            question = TopQuestion(10, None, 30, "issl", recall)
            assert _recall_at(index, step.max_error - 1, 8 * 30, question) < recall + 0.03


def _recall_at(
    index: simindex.Index, max_error: int, rerank: int, question: TopQuestion
) -> float:
    rows, own = top_recall.drawn(index._current(), 256)
    truth = index.top(rows, k=11, method="scan")
    found = index.top(rows, k=11, method="issl", max_error=max_error, rerank=rerank)
    shares = []
    for place in range(len(rows)):
        true = truth.distance[place][truth.id[place] != own[place]][:10]
        near = found.distance[place][found.id[place] != own[place]][:10]
        shares.append((near <= true[-1]).mean())
    return float(np.mean(shares))


def test_what_costs_more_than_a_scan_is_not_taken(index: simindex.Index) -> None:
    """Unless slice lists are asked for by name."""
    found = index.top(index._current().tables[0].fingerprints[:3], max_error="auto", recall=0.9)
    assert found.stats.method == "scan" and found.stats.exact


def test_a_recall_is_measured_once_for_the_same_segments(
    index: simindex.Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []
    measure = top_recall.measure
    monkeypatch.setattr(
        top_recall, "measure", lambda *asked: calls.append(asked) or measure(*asked)
    )
    queries = np.ascontiguousarray(index._current().tables[0].fingerprints[:3])
    ask = {"method": "issl", "max_error": "auto", "recall": 0.5}
    index.top(queries, **ask)
    index.top(queries[:1], **ask)
    with simindex.open(index.path, "w") as writer:
        writer.append(queries[:1], ids=[9001])
    assert 9001 in index.top(queries[:1], **ask).id  # pending, and compared
    assert len(calls) == 1
    index.top(queries, **{**ask, "recall": 0.6})
    assert len(calls) == 2
    with simindex.open(index.path, "w") as writer:
        writer.compact(full=True)
    index.top(queries, **ask)
    assert len(calls) == 3
