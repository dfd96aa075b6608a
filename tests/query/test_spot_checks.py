"""A handle measures the recall of its own queries as brute force would, in little time."""

from __future__ import annotations

import logging
import pickle
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import oracle
import pytest

import simindex
from simindex import Batch, IndexOptions
from simindex.errors import CorruptFile
from simindex.planning.question import Question
from simindex.query import spot_checks
from simindex.query.audit import wilson
from simindex.query.spot_checks import REPEATS_OF_A_CALL, SpotChecks

STORED, ASKED = 3000, 1024


@pytest.fixture(scope="module")
def crawl(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, oracle.U64, oracle.F32]:
    """An index, its rows, and weights of rewrites of a third of them; some are stored, too."""
    rng = np.random.default_rng(4)
    weights = oracle.normal_weights(rng, STORED)
    rewrites, _ = oracle.near_duplicates(rng, weights[:ASKED], 3)
    weights[-200:] = rewrites[:200]
    rows = oracle.signs(weights)
    path = tmp_path_factory.mktemp("crawl") / "index"
    with simindex.open(path, "n") as index:
        index.append(Batch(rows, ids=np.arange(STORED), weights=weights))
    return path, rows, rewrites


@pytest.fixture
def generous(monkeypatch: pytest.MonkeyPatch) -> None:
    """Repeats may take any time, so that all of a call's queries are repeated."""
    monkeypatch.setattr(spot_checks, "SHARE", 1e9)


def asked(weights: oracle.F32) -> Iterator[Batch]:
    """Calls that are small enough to be repeated as a whole."""
    for start in range(0, len(weights) - REPEATS_OF_A_CALL + 1, REPEATS_OF_A_CALL):
        part = weights[start : start + REPEATS_OF_A_CALL]
        yield Batch(oracle.signs(part), weights=part)


def near(rows: oracle.U64, queries: oracle.U64) -> list[set[int]]:
    there: list[set[int]] = [set() for _ in range(len(queries))]
    for query, row, distance in oracle.matches(rows, queries, 3).tolist():
        if distance:
            there[query].add(row)
    return there


@pytest.mark.usefixtures("generous")
@pytest.mark.parametrize("recall", [0.5, 0.9])
def test_measured_recall_is_that_of_brute_force(crawl: Any, recall: float) -> None:
    path, rows, rewrites = crawl
    shares, pairs, found, queries = [], 0, 0, 0
    with simindex.open(path) as index:
        for batch in asked(rewrites):
            answer = index.query(batch, recall=recall, method="psm")
            there = near(rows, batch.rows)
            got: list[set[int]] = [set() for _ in there]
            for match in answer:
                if match.distance:
                    got[match.query].add(match.id)
            shares += [len(a) / len(b) for a, b in zip(got, there, strict=True) if b]
            pairs, found = pairs + sum(map(len, there)), found + sum(map(len, got))
            queries += len(batch)
        (told,) = index.stats().spot_checks
    assert (told.h, told.asked, told.first) == (3, recall, False)
    assert (told.queries, told.repeated) == (queries, queries)
    assert (told.with_match, told.matches, told.found) == (len(shares), pairs, found)
    assert told.recall == pytest.approx(np.mean(shares), abs=1e-12)
    assert (told.recall_low, told.recall_high) == wilson(told.recall, len(shares))
    assert found < pairs and told.with_match > 500
    assert told.kept == (told.recall_high >= recall)


@pytest.mark.usefixtures("generous")
def test_first_counts_queries_that_got_a_match(crawl: Any) -> None:
    path, rows, rewrites = crawl
    with simindex.open(path) as index:
        several = some = 0
        for batch in asked(rewrites):
            equal = set(rows[:, 0].tolist())
            answer = set(index.query(batch, recall=0.5, method="psm", first=True).query.tolist())
            for query, there in enumerate(near(rows, batch.rows)):
                if there or int(batch.rows[query, 0]) in equal:
                    several, some = several + 1, some + (query in answer)
        (told,) = index.stats().spot_checks
    assert told.first
    assert (told.with_match, told.found) == (several, some)
    assert told.recall == pytest.approx(some / several)


@pytest.mark.usefixtures("generous")
def test_each_promise_is_measured_by_itself(crawl: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spot_checks, "MOST_KINDS", 3)
    path, _, rewrites = crawl
    batch = next(asked(rewrites))
    with simindex.open(path) as index:
        for recall, h, first in ((0.9, 3, False), (0.5, 3, False), (0.9, 2, True), (0.7, 3, False)):
            index.query(batch, recall=recall, h=h, first=first, method="psm")
        told = [(one.h, one.asked, one.first) for one in index.stats().spot_checks]
    assert told == [(2, 0.9, True), (3, 0.5, False), (3, 0.9, False)]


@pytest.mark.usefixtures("generous")
def test_exact_answers_are_not_watched(crawl: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    path, _, rewrites = crawl
    batch = next(asked(rewrites))

    def never(*_: object) -> None:
        raise AssertionError("an exact call was watched")

    monkeypatch.setattr(SpotChecks, "due", never)
    with simindex.open(path) as index:
        index.query(batch)
        index.query(batch, recall=1.0, method="psm")
        index.query(batch, recall=0.9, method="scan")
        index.query(batch.rows, recall=0.9, method="psm")
        index.query(Batch(batch.rows[:0], weights=batch.weights[:0]), recall=0.9, method="psm")
        index.audit(method="psm")
        assert index.stats().spot_checks == []


@pytest.mark.usefixtures("generous")
def test_answer_stays_when_a_repeat_fails(
    crawl: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A repeat reads more rows than the call did, and they may be damaged."""
    from simindex.query import answerer

    path, _, rewrites = crawl
    batch = next(asked(rewrites))
    real = answerer.search

    def search(snapshot: Any, plan: Any, *args: Any, **options: Any) -> Any:
        if plan.exact:
            raise CorruptFile("a segment is damaged", path="segments/x")
        return real(snapshot, plan, *args, **options)

    with simindex.open(path) as index:
        expected = index.query(batch, recall=0.5, method="psm")
        before = index.stats().spot_checks[0].repeated
        monkeypatch.setattr(answerer, "search", search)
        with caplog.at_level(logging.WARNING, logger="simindex"):
            for _ in range(3):
                got = index.query(batch, recall=0.5, method="psm")
                assert got.id.tolist() == expected.id.tolist()
        assert [record.message for record in caplog.records] == [
            "queries are no longer repeated to measure their recall: a segment is damaged"
        ]
        (told,) = index.stats().spot_checks
    assert (told.repeated, told.queries) == (before, 4 * len(batch))


@pytest.mark.usefixtures("generous")
def test_threads_count_together_and_get_their_own_answers(crawl: Any) -> None:
    path, _, rewrites = crawl
    batches = list(asked(rewrites))
    with simindex.open(path) as index:
        index.query(batches[0], recall=0.9, method="psm", threads=1)
        expected = [index.query(b, recall=0.6, method="psm").id.tolist() for b in batches]
        with ThreadPoolExecutor(8) as pool:
            calls = [pool.submit(index.query, b, recall=0.6, method="psm") for b in batches * 20]
            answers = [call.result().id.tolist() for call in calls]
        assert answers == expected * 20
        told = index.stats().spot_checks[0]
    assert told.queries == 21 * sum(map(len, batches))
    assert 0 < told.repeated <= told.queries
    assert told.found < told.matches


@pytest.mark.usefixtures("generous")
def test_handles_start_with_nothing_measured(crawl: Any) -> None:
    path, _, rewrites = crawl
    index = simindex.open(path)
    index.query(next(asked(rewrites)), recall=0.5, method="psm")
    again = pickle.loads(pickle.dumps(index))  # noqa: S301
    assert len(index.stats().spot_checks) == 1
    assert again.stats().spot_checks == []
    again.close()
    index.close()


@pytest.mark.usefixtures("generous")
@pytest.mark.slow
def test_repeats_load_no_permuted_tables(
    index_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their headers would fill the memory of a process that never asks for them."""
    from simindex.query import answerer

    plans = []
    real = answerer.search
    monkeypatch.setattr(  # of calls, and of their repeats
        answerer, "search",
        lambda snapshot, plan, *args, **named: (
            plans.append(plan.method), real(snapshot, plan, *args, **named)
        )[1],
    )
    rng = np.random.default_rng(4)
    weights = oracle.normal_weights(rng, 4000)
    batch = Batch(oracle.signs(weights), weights=weights)
    options = IndexOptions(structures=("psm", "bphs:G=4,g=1"), batch_rows=4000)
    with simindex.open(index_path, "n", options=options) as index:
        index.append(batch)
        index.commit()
        index.query(batch, recall=0.9, method="psm")
        assert index.query(batch).stats.method == "bphs:G=4,g=1"
    assert plans[0] == "psm"
    assert plans[1] in ("psm", "scan")
    assert plans[2:] == ["bphs:G=4,g=1"]


# -- time -----------------------------------------------------------------------------------------


class Clocked:
    """Calls of a given duration against exact repeats that take a given time a query."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, *, repeat_s: float, predicted_s: float
    ) -> None:
        self.checks, self.now, self.spent = SpotChecks(), 0.0, 0.0
        self.repeat_s, self.sizes, self.planned = repeat_s, [], 0
        self.tables = (SimpleNamespace(nanoseconds=predicted_s * 1e9),)
        monkeypatch.setattr(spot_checks, "time", SimpleNamespace(perf_counter=lambda: self.now))

    def call(self, queries: int, seconds: float, matches: int = 0) -> None:
        none = np.empty(0, np.uint16)
        answer: Any = SimpleNamespace(
            stats=SimpleNamespace(seconds=seconds), query=np.empty(0, np.int64), distance=none,
        )
        found: Any = type("Found", (), {
            "__len__": lambda self: matches, "stats": answer.stats, "query": answer.query,
            "distance": none,
        })()

        def ask(plan: Any, rows: Any) -> Any:
            self.sizes.append(len(rows))
            self.now += self.repeat_s * len(rows)
            self.spent += self.repeat_s * len(rows)
            return answer

        def plan(queries: int) -> Any:
            self.planned += 1
            return SimpleNamespace(tables=self.tables)

        saved_s = self.checks.due(3, 0.9, False, queries, seconds)
        if saved_s is not None:
            self.checks.repeat(
                np.zeros((queries, 1), np.uint64), found, plan, ask, Question(3, False, 0.9),
                saved_s=saved_s,
            )


@pytest.mark.parametrize("queries", [1, 20, 5000])
@pytest.mark.parametrize("repeat_s", [1e-6, 1e-4, 1e-3])
@pytest.mark.slow
def test_repeats_take_a_bounded_share_of_the_time(
    queries: int, repeat_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even where they take three times what the model says."""
    clocked = Clocked(monkeypatch, repeat_s=repeat_s, predicted_s=repeat_s / 3)
    call_s = 1e-5 * queries
    calls = max(200, 100_000 // queries)
    for _ in range(calls):
        clocked.call(queries, call_s)
    slack = 3 * max(spot_checks.LONGEST_S, spot_checks.SHARE * call_s)
    assert 0 < clocked.spent <= spot_checks.SHARE * calls * call_s + slack
    assert clocked.spent >= 0.2 * min(
        spot_checks.SHARE * calls * call_s, calls * min(queries, REPEATS_OF_A_CALL) * repeat_s
    )
    assert max(clocked.sizes) <= min(queries, REPEATS_OF_A_CALL)


def test_a_lone_query_is_not_repeated_for_being_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    clocked = Clocked(monkeypatch, repeat_s=1e-5, predicted_s=1e-5)
    clocked.call(1, 60.0)
    assert clocked.sizes == []
    clocked.call(1, 1e-6)
    assert clocked.sizes == [1]


@pytest.mark.slow
def test_no_call_waits_long_for_repeats(monkeypatch: pytest.MonkeyPatch) -> None:
    """However much was saved: half a second a repeat is for calls of half a minute."""
    clocked = Clocked(monkeypatch, repeat_s=0.5, predicted_s=0.5)
    for _ in range(100_000):
        clocked.call(1, 1e-3)
    assert clocked.sizes == []
    assert clocked.planned < 10, "it is not asked again at every call"
    clocked.call(10_000, 60.0)
    assert clocked.sizes == [2]


def test_hot_texts_are_repeated_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clocked = Clocked(monkeypatch, repeat_s=1e-9, predicted_s=1e-9)
    clocked.call(5000, 1.0, matches=5000 * 10_000)
    clocked.call(5000, 1.0, matches=5000 * 10_000_000)
    assert clocked.sizes == [spot_checks.MATCHES_OF_A_CALL // 10_001, 1]
