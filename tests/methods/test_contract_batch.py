"""Batch mode keeps the contract: whole batches, any number of threads, any limit of memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pytest
from contract import Case, MethodContract, named

import simindex
from simindex import Batch, IndexOptions
from simindex.errors import InvalidOption
from simindex.methods import psm
from simindex.planning import memory_limit, permuted_plans
from simindex.query import call

ROOMY, TIGHT = 1 << 30, 40 << 20


@pytest.fixture(autouse=True)
def small_tables_are_streamed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The indexes of the contract are small: their tables are to be taken for large ones."""
    monkeypatch.setattr(memory_limit, "MOST_TIMES", 1e9)
    monkeypatch.setattr(psm, "SWEPT_ROWS", 1)
    monkeypatch.setattr(psm, "SWEPT_QUERIES", 1)
    monkeypatch.setattr(psm, "ROWS_PER_PROBE", 1 << 30)


class BoundedContract(MethodContract):
    limit = ROOMY

    def ask(self, case: Case, batch: Any, **options: Any) -> simindex.Matches:
        try:
            return case.index.query(
                batch, method=self.method, memory_limit=self.limit, **options
            )
        except InvalidOption as error:
            if "psm" not in self.method or options.get("recall") != 1.0:
                raise
            pytest.skip(str(error))

    def explained(self, case: Case, batch: Any, **options: Any) -> simindex.Explanation:
        pytest.skip("explain takes no memory_limit, which decides on tables over queries")


class TestTablesOverQueries(BoundedContract):
    method = "bphs"


class TestBoundedAuto(BoundedContract):
    method = "auto"
    limit = TIGHT


class TestBoundedScan(BoundedContract):
    method = "scan"
    limit = TIGHT


class TestUnboundedBatches(MethodContract):
    method = "auto"

    @pytest.fixture(autouse=True)
    def every_call_is_a_batch(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(permuted_plans, "LEAST_BATCH", 1)
        monkeypatch.setattr(permuted_plans, "LEAST_STREAMED", 1)
        monkeypatch.setattr(permuted_plans, "query_tables_ns", lambda *_, **__: 0.0)


# -- PSM below a recall of 1 ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Case]:
    """40,000 rows in segments and pending runs, some deleted, and weighted queries about them."""
    path = tmp_path_factory.mktemp("batch") / "pages.sim"
    rng = np.random.default_rng(21)
    weights = oracle.normal_weights(rng, 40_000)
    rewritten, _ = oracle.near_duplicates(rng, weights[:6000], 3)
    weights[-len(rewritten) :] = rewritten
    weights[20_000:20_300] = weights[7]
    rows = oracle.signs(weights)
    model = oracle.Model()
    options = simindex.IndexOptions(batch_rows=1 << 16, structures=("psm",), min_merge=0)
    with simindex.open(path, "n", options=options) as index:
        for start in (0, 15_000, 30_000, 39_000):
            stop = {0: 15_000, 15_000: 30_000, 30_000: 39_000, 39_000: 40_000}[start]
            ids = np.arange(start, stop, dtype=np.uint64)
            index.append(Batch(rows[start:stop], ids=ids, weights=weights[start:stop]))
            index.commit()
            model.append(rows[start:stop], ids.tolist())
            model.commit()
        gone = np.arange(100, 3000, 7, dtype=np.uint64)
        index.delete(ids=gone)
        model.delete(gone.tolist())
        index.commit()
        model.commit()
        index.tune(machine=False)
        questions, _ = oracle.near_duplicates(rng, weights[rng.permutation(40_000)[:5000]], 3)
        questions = np.concatenate([questions, oracle.normal_weights(rng, 500)])
        questions[:40] = weights[7]
        yield Case(index, model, oracle.signs(questions), questions)


def columns(found: simindex.Matches) -> tuple[bytes, ...]:
    return tuple(column.tobytes() for column in (found.query, found.id, found.distance))


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("recall", [0.8, 0.95])
@pytest.mark.slow
def test_a_batch_has_the_same_bytes_for_every_thread_count_and_limit(
    stored: Case, monkeypatch: pytest.MonkeyPatch, first: bool, recall: float
) -> None:
    ask: Any = {"h": 3, "recall": recall, "first": first, "method": "psm"}
    expected = stored.index.query(stored.batch(), threads=1, **ask)
    assert not expected.stats.exact
    truth = stored.truth(3)
    if first:
        answered = {query for query, _, _ in truth}
        assert len(expected) == len(np.unique(expected.query)) >= 0.7 * len(answered)
        assert set(named(expected)) <= set(truth)
    else:
        assert recall * len(truth) < len(expected) <= len(truth)
        assert set(named(expected)) <= set(truth)
    for threads in (1, 2, 3):
        for limit in (None, ROOMY, 80 << 20):
            for probes in (1 << 24, 1 << 12):
                monkeypatch.setattr(psm, "LEAST_PROBES", probes)
                monkeypatch.setattr(psm, "MOST_PROBES", probes)
                found = stored.index.query(
                    stored.batch(), threads=threads, memory_limit=limit, **ask
                )
                assert columns(found) == columns(expected)


@pytest.mark.slow
def test_first_finds_a_match_for_each_query_that_all_finds_one_for(stored: Case) -> None:
    ask: Any = {"h": 3, "recall": 0.9, "method": "psm", "memory_limit": ROOMY}
    every = stored.index.query(stored.batch(), **ask)
    first = stored.index.query(stored.batch(), first=True, **ask)
    np.testing.assert_array_equal(first.query, np.unique(every.query))
    assert set(named(first)) <= set(named(every))


@pytest.mark.slow
@pytest.mark.parametrize(("flipped", "threads"), [(False, 3), (True, 1)])
def test_first_takes_no_more_room_than_one_match_a_query(
    index_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int, flipped: bool
) -> None:
    """200 queries match 300 rows each, by their own header or by a flipped one: where there is no
    room for all, queries are looked up by themselves, and as many are answered."""
    rng = np.random.default_rng(22)
    weights = oracle.normal_weights(rng, 30_000)
    weights[20_000:20_300] = weights[7]
    asked, _ = oracle.near_duplicates(rng, weights[:2000], 3)
    asked[500:700] = weights[7]
    if flipped:  # the header bit that is most likely to flip
        bit = int(np.abs(weights[7, :10]).argmin())
        asked[500:700, bit] *= -1
    looked_up: list[int] = []
    alone = psm._looked_up

    def counted(*arguments: Any) -> Any:
        looked_up.append(len(arguments[-1]))
        return alone(*arguments)

    monkeypatch.setattr(psm, "_looked_up", counted)
    monkeypatch.setattr(memory_limit, "HEADROOM_BYTES", 1 << 16)
    monkeypatch.setattr(call, "HEADROOM_BYTES", 1 << 16)
    ask: Any = {"h": 3, "recall": 0.95, "method": "psm", "first": True, "threads": threads}
    with simindex.open(index_path, "n", options=IndexOptions(structures=("psm",))) as index:
        index.append(Batch(oracle.signs(weights), weights=weights))
        index.commit()
        index.compact(full=True)
        batch = Batch(oracle.signs(asked), weights=asked)
        expected = index.query(batch, **ask)
        assert 500 in expected.query
        monkeypatch.setattr(call, "HELD_SHARE", 1 << 40)  # so that no table is looked up at random
        with pytest.raises(InvalidOption) as caught:
            index.query(batch, memory_limit=1 << 16, **ask)
        for more in (200_000, 2_000_000):
            limit = caught.value.data["expected"] + more
            found = index.query(batch, memory_limit=limit, **ask)
            assert np.array_equal(found.query, expected.query)
    assert looked_up
    truth = oracle.answers(oracle.signs(weights), range(30_000), batch.rows, 3)
    assert set(zip(found.query.tolist(), found.distance.tolist(), found.id.tolist(), strict=True)
               ) <= set(truth)


def test_queries_that_are_dropped_save_probes(stored: Case) -> None:
    ask: Any = {"h": 3, "recall": 0.9, "method": "psm"}
    every = stored.index.query(stored.batch(), **ask).stats.probes
    first = stored.index.query(stored.batch(), first=True, **ask).stats.probes
    assert first < 0.8 * every


def test_too_little_memory_says_the_least_that_works(stored: Case) -> None:
    ask: Any = {"h": 3, "recall": 0.9, "method": "psm"}
    with pytest.raises(InvalidOption, match="which need at least") as caught:
        stored.index.query(stored.batch(), memory_limit=1 << 20, **ask)
    least = caught.value.data["expected"]
    assert caught.value.data["option"] == "memory_limit"
    found = stored.index.query(stored.batch(), memory_limit=least, **ask)
    assert len(found) > 1000
    with pytest.raises(InvalidOption, match="which need at least"):
        stored.index.query(stored.batch(), memory_limit=least - 1, **ask)


@pytest.mark.parametrize("limit", [-1, 1.5, "1G", True])
def test_a_limit_that_is_no_size_is_refused(stored: Case, limit: Any) -> None:
    with pytest.raises(InvalidOption, match="memory_limit"):
        stored.index.query(stored.batch(), memory_limit=limit)


@pytest.mark.slow
def test_designs_can_be_named_for_the_tables_over_the_queries(stored: Case) -> None:
    expected = stored.truth(3)
    found = stored.index.query(
        stored.queries, h=3, method="bphs:G=5,g=2", memory_limit=ROOMY, threads=2
    )
    assert named(found) == expected
    assert "bphs:G=5,g=2" in found.stats.method
    with pytest.raises(InvalidOption, match="exact"):
        stored.index.query(stored.queries, h=6, method="bphs:G=5,g=2", memory_limit=ROOMY)
