"""Every public method of one handle, called by several threads while another one writes.

    old rows     committed before the threads begin, and never touched: what is asked is of these
    new rows     far from the old ones and from each other; each thread adds and deletes its own
    a batch      of new rows has BATCH of them, so a commit that shows a part of one is seen
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from reliability.coverage import EXCEPTIONS, public

import simindex
from simindex import Batch, IndexOptions, Matches
from simindex.errors import ClosedIndex, InvalidBatch
from simindex.planning.machine import Machine

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")

OPTIONS = IndexOptions(
    batch_rows=64, min_merge=2, reservoir_rows=32, structures=("psm", "bphs:G=2,g=1", "issl"),
    times=True,
)
OLD, NEAR, BATCH = 40, 10, 8
ROUNDS, ASKERS = 60, 3
FIRST_NEW = 1000
RANGE = 1 << 20
"""Ids of one thread."""


def values(first: int, count: int) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """Fingerprints that are far from those of other numbers."""
    numbers = np.arange(first, first + count, dtype=np.uint64)
    mixed = (numbers + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def batch(first: int, count: int = BATCH, *, weights: bool = True) -> Batch:
    return Batch(
        values(first, count), ids=np.arange(first, first + count, dtype=np.uint64),
        weights=np.ones((count, 64), np.float32) if weights else None,
    )


ASKED = values(0, NEAR)
WEIGHTED = Batch(ASKED, weights=np.ones((NEAR, 64), np.float32))
OLD_IDS = {*range(OLD), *range(OLD, OLD + NEAR)}
"""The first NEAR of them have a twin each, one bit away."""
EXPECTED = sorted((i, j, d) for i in range(NEAR) for j, d in ((i, 0), (OLD + i, 1)))
PAIRS = [(i, OLD + i) for i in range(NEAR)]


def found_in(matches: Matches) -> list[tuple[int, int, int]]:
    columns = (matches.query, matches.id, matches.distance)
    return list(zip(*(column.tolist() for column in columns), strict=True))


class Caller:
    """One thread's calls, in an order of its own, and the new rows that it has made."""

    def __init__(self, index: simindex.Index, number: int, *, writes: bool) -> None:
        self.index = index
        self.rng = np.random.default_rng(number)
        self.next = FIRST_NEW + number * RANGE
        self.added: set[int] = set()
        self.generation = 0
        self.faults: list[str] = []
        self.calls = [*QUESTIONS, *(CHANGES if writes else ())]

    def run(self, done: threading.Event) -> None:
        try:
            while True:
                for place in self.rng.permutation(len(self.calls)).tolist():
                    self.one(self.calls[place])
                    if done.is_set() or self.faults:
                        return
        except BaseException as error:
            self.faults.append(repr(error))

    def one(self, call: Callable[[Caller], object]) -> None:
        try:
            good = call(self)
        except Exception as error:
            self.faults.append(f"{call.__name__}: {error!r}")
            raise
        if good is False:
            self.faults.append(f"{call.__name__}: a wrong answer")

    def fresh(self, count: int = BATCH) -> int:
        first, self.next = self.next, self.next + count
        return first


# -- questions -------------------------------------------------------------------------------------


def query(of: Caller) -> bool:
    method = ("auto", "psm", "scan", "issl")[of.rng.integers(4)]
    return found_in(of.index.query(ASKED, h=3, method=method)) == EXPECTED


def query_stream(of: Caller) -> bool:
    parts = list(of.index.query_stream(ASKED, h=3))
    return [match for part in parts for match in found_in(part)] == EXPECTED


def query_some(of: Caller) -> bool:
    return set(found_in(of.index.query(WEIGHTED, h=3, recall=0.8))) <= set(EXPECTED)


def query_first(of: Caller) -> bool:
    found = found_in(of.index.query(ASKED, h=3, first=True))
    return set(found) <= set(EXPECTED) and len(found) == NEAR


def gate(of: Caller) -> bool:
    found = of.index.gate(ASKED, h=3, limit=None)
    return found_in(found.matches) == EXPECTED and found.matched == NEAR and not found.passed


def top(of: Caller) -> bool:
    method = ("auto", "scan")[of.rng.integers(2)]
    found = of.index.top(ASKED, k=2, method=method)
    expected = [[i, OLD + i] for i in range(NEAR)]
    return bool(found.id.tolist() == expected and (found.distance == [0, 1]).all())


def top_auto(of: Caller) -> bool:
    found = of.index.top(ASKED, k=1, max_error="auto", recall=0.9)
    return found.distance.shape == (NEAR, 1)


def explain(of: Caller) -> bool:
    return bool(str(of.index.explain(WEIGHTED, recall=0.8)))


def explain_top(of: Caller) -> bool:
    return bool(str(of.index.explain_top(ASKED, k=1)))


def pairs(of: Caller) -> bool:
    found = [pair for part in of.index.pairs(h=3)
             for pair in zip(part.a.tolist(), part.b.tolist(), strict=True)]
    return sorted(found) == PAIRS


def clusters(of: Caller) -> bool:
    found = of.index.clusters(h=3, singletons=False)
    return sorted(found.id.tolist()) == [*range(NEAR), *range(OLD, OLD + NEAR)]


def rows(of: Caller) -> bool:
    ids = [i for part in of.index.rows(chunk_rows=16) for i in part.ids.tolist()]
    return len(ids) == len(set(ids)) and set(ids) >= OLD_IDS and whole(ids)


def whole(ids: list[int]) -> bool:
    """Whether of every new batch all is there, or nothing."""
    new = np.array(sorted(set(ids) - OLD_IDS), np.uint64)
    new = new[new % RANGE < RANGE // 2]  # the others come one by one
    return len(new) % BATCH == 0 and bool(
        (np.diff(new.reshape(-1, BATCH).astype(np.int64), axis=1) == 1).all()
    )


def length(of: Caller) -> bool:
    return len(of.index) >= OLD + NEAR


def stats(of: Caller) -> bool:
    return of.index.stats(skew=bool(of.rng.integers(2))).rows >= OLD + NEAR


def metrics(of: Caller) -> bool:
    text = of.index.metrics(calls=bool(of.rng.integers(2)))
    return "simindex_live_rows{" in text and text.endswith("# EOF\n")


def check(of: Caller) -> bool:
    found = of.index.check()
    of.faults += [f"check: {one}" for one in found]
    return not found


def backup(of: Caller) -> bool:
    """Of a commit while other threads commit and merge; each thread has its own."""
    path = of.index.path.with_name(f"backup-{threading.get_ident()}")
    of.index.backup(path, verify=bool(of.rng.integers(2)))
    with simindex.open(path) as copy:
        whole = copy.contains(ids=list(range(OLD + NEAR))).all()
        return bool(whole) and copy.check() == []


def audit(of: Caller) -> bool:
    recall = of.index.audit(h=3, recall=0.8, sample=8).recall
    return recall is None or 0 <= recall <= 1


def tune(of: Caller) -> object:
    return of.index.tune(h=3, machine=bool(of.rng.integers(2)))


def refresh(of: Caller) -> bool:
    return of.index.refresh() in (True, False)


def generation(of: Caller) -> bool:
    before, of.generation = of.generation, of.index.generation
    return before <= of.generation


def looks(of: Caller) -> bool:
    with_it = bool(of.index) and of.index.recipe is None and isinstance(of.index.machine, Machine)
    with_it = with_it and of.index.h == 3
    return with_it and "mode" in repr(of.index) and len(of.index.__reduce__()) == 2


def contains(of: Caller) -> bool:
    return of.index.contains(ids=[0, 1 << 40]).tolist() == [True, False]


def get(of: Caller) -> bool:
    found = of.index.get(int(of.rng.integers(OLD)))
    return 1 in of.index and found is not None and len(found) == 1


def explain_pair(of: Caller) -> bool:
    """Row i and row OLD + i differ in one bit."""
    one = int(of.rng.integers(NEAR))
    found = of.index.explain_pair(ids=(one, OLD + one))
    return found.distance == 1 and found.match and found.features is None


def calibrate(of: Caller) -> bool:
    """Its rows came without a recipe."""
    try:
        of.index.calibrate(["one two", "one three"])
    except InvalidBatch:
        return True
    return False


def advice(of: Caller) -> bool:
    return of.index.advice is None


QUESTIONS: tuple[Callable[[Caller], object], ...] = (
    query, query_stream, query_some, query_first, gate, top, top_auto, explain, explain_top,
    pairs, clusters, rows, length, contains, get, explain_pair, calibrate, advice, stats,
    metrics, check, backup, audit, tune,
    refresh, generation, looks,
)


# -- changes ---------------------------------------------------------------------------------------


def append(of: Caller) -> bool:
    first = of.fresh()
    ids = of.index.append(batch(first, weights=bool(of.rng.integers(2)))).tolist()
    of.added.update(ids)
    return bool(ids == list(range(first, first + BATCH)))


def replace(of: Caller) -> bool:
    some = sorted(i for i in of.added if i % RANGE < RANGE // 2)
    if not some:
        return append(of)
    first = some[0] - some[0] % BATCH
    return bool(of.index.replace(batch(first)).tolist() == list(range(first, first + BATCH)))


def delete(of: Caller) -> bool:
    some = sorted(i for i in of.added if i % RANGE < RANGE // 2)
    if not some:
        return append(of)
    gone = list(range(some[-1] - BATCH + 1, some[-1] + 1))
    of.added.difference_update(gone)
    return of.index.delete(ids=gone) == BATCH


def expire(of: Caller) -> bool:
    """Nothing is that old; it must not disturb what is."""
    return of.index.expire(older_than=3600) == 0


def ingest(of: Caller) -> bool:
    first = of.fresh()
    of.added.update(range(first, first + BATCH))
    return len(of.index.ingest(batch(first), h=1)) == 0


def seen_or_add(of: Caller) -> bool:
    number = of.fresh(BATCH) + RANGE // 2
    one = batch(number, 1)
    of.added.add(number)
    added = of.index.seen_or_add(one, h=1, commit_s=0.01) is None
    seen = of.index.seen_or_add(one, h=1, commit_s=None)
    old = of.index.seen_or_add(Batch(ASKED[:1], ids=[number + 1]), h=1)
    return bool(
        added and seen is not None and (seen.id, seen.distance) == (number, 0)
        and old is not None and old.id == 0
    )


def commit(of: Caller) -> bool:
    return of.index.commit() is None


def compact(of: Caller) -> bool:
    return of.index.compact(full=of.rng.integers(4) == 0) is None


def restructure(of: Caller) -> bool:
    more = OPTIONS.structures if of.rng.integers(2) else (*OPTIONS.structures[:1], "issl")
    return of.index.compact(structures=more) is None


CHANGES: tuple[Callable[[Caller], object], ...] = (
    append, replace, delete, expire, ingest, seen_or_add, commit, compact, restructure,
)


# -- the trials ------------------------------------------------------------------------------------


def populated(path: Path) -> simindex.Index:
    index = simindex.open(path, "n", options=OPTIONS)
    index.append(batch(0, OLD))
    twins = Batch(
        ASKED ^ np.uint64(1), ids=np.arange(OLD, OLD + NEAR, dtype=np.uint64),
        weights=np.ones((NEAR, 64), np.float32),
    )
    index.append(twins)
    index.commit()
    return index


def write(of: Caller) -> None:
    """The thread that appends, commits and compacts."""
    for number in range(ROUNDS):
        of.one(append)
        of.one(append)
        of.one(commit)
        of.one(delete if number % 2 else replace)
        if number % 10 == 9:
            of.one(compact)


@pytest.mark.parametrize("mode", ["w", "r"])
@pytest.mark.slow
def test_every_call_is_right_while_another_thread_writes(
    index_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    """On the handle that writes, and on one that reads beside it."""
    monkeypatch.setattr("simindex.planning.measurement.measure", lambda file: Machine())
    index = populated(index_path)
    asked = index if mode == "w" else simindex.open(index_path)
    writer = Caller(index, 0, writes=True)
    callers = [Caller(asked, number + 1, writes=mode == "w") for number in range(ASKERS)]
    if mode == "r":  # to whom files that are being written are strays
        for caller in callers:
            caller.calls.remove(check)
    done = threading.Event()
    threads = [threading.Thread(target=caller.run, args=(done,)) for caller in callers]
    for thread in threads:
        thread.start()
    try:
        write(writer)
    finally:
        done.set()
        for thread in threads:
            thread.join()
    everyone = [writer, *callers]
    assert [fault for caller in everyone for fault in caller.faults] == []
    index.commit()
    expected = OLD_IDS.union(*(caller.added for caller in everyone))
    assert {i for part in index.rows() for i in part.ids.tolist()} == expected
    assert len(index) == len(expected)
    assert index.check() == []
    closing = [threading.Thread(target=one.close) for one in (index, asked) for _ in range(2)]
    for thread in closing:
        thread.start()
    for thread in closing:
        thread.join()
    with simindex.open(index_path) as again:
        assert {i for part in again.rows() for i in part.ids.tolist()} == expected
        assert again.check() == []


@pytest.mark.parametrize("mode", ["w", "r"])
def test_every_call_is_told_that_another_thread_has_closed_the_handle(
    index_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    monkeypatch.setattr("simindex.planning.measurement.measure", lambda file: Machine())
    populated(index_path).close()
    index = simindex.open(index_path, mode)  # type: ignore[arg-type]
    callers = [Caller(index, number, writes=mode == "w") for number in range(ASKERS)]
    told: list[str] = []

    def run(of: Caller) -> None:
        calls = [call for call in of.calls if call is not looks]
        for place in of.rng.permutation(len(calls)).tolist():
            try:
                calls[place](of)
            except ClosedIndex:
                pass
            except BaseException as error:
                told.append(f"{calls[place].__name__}: {error!r}")

    threads = [threading.Thread(target=run, args=(caller,)) for caller in callers]
    for thread in threads:
        thread.start()
    threads[0].join(0.2)
    index.close()
    for thread in threads:
        thread.join()
    assert told == []


def test_the_trial_calls_every_public_method() -> None:
    by_syntax = {"__len__": "length", "__bool__": "looks", "__repr__": "looks",
                 "__reduce__": "looks", "__contains__": "get", "recipe": "looks",
                 "machine": "looks", "h": "looks"}
    names = {call.__name__ for call in (*QUESTIONS, *CHANGES)}
    ends = {"close", "discard", "__enter__", "__exit__"}  # which end what others wait for
    methods = {
        name.removeprefix("Index.") for name in public()
        if name.startswith("Index.") and name not in EXCEPTIONS
    }
    assert {name for name in methods - ends if by_syntax.get(name, name) not in names} == set()
