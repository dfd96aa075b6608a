"""Merges that run beside commits: held, killed, failing, given up; nothing is lost or left."""

from __future__ import annotations

import gc
import logging
import mmap
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test
from index_machine import STRUCTURES, IndexMachine
from leftovers import left_over, pages_named, pages_stored

import simindex
from simindex import Batch, IndexOptions
from simindex.errors import (
    ClosedIndex,
    CommitFailed,
    CorruptFile,
    ReadOnlyIndex,
    StorageFull,
)
from simindex.storage.catalog.catalog import Catalog, Edit
from simindex.storage.catalog.records import SealedHead
from simindex.storage.files import disk, removal
from simindex.storage.files.durable import NewFile
from simindex.storage.segment_files import SegmentFiles
from simindex.storage.tables import compaction
from simindex.writing import merges, policy
from simindex.writing import writer as writing
from simindex.writing.releasing import Releases

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")

OPTIONS = IndexOptions(batch_rows=32, min_merge=2, structures=("psm", "bphs:G=3,g=1,r=2"))
"""Four rows make a segment, two segments a merge; a segment has three directories."""

REAL = SegmentFiles.merge


class Gate:
    """Lets merges beside commits begin, and write nothing until it is opened."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.open = threading.Event()
        self.begun = 0
        patch.setattr(SegmentFiles, "merge", lambda *given, **named: self.merge(*given, **named))

    def merge(self, *given: Any, progress: Any = None, **named: Any) -> Any:
        if threading.current_thread().name == "simindex merge":
            self.begun += 1
            while not self.open.wait(0.001):
                progress(0, 1)  # ends a merge that is given up
        return REAL(*given, progress=progress, **named)


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    made = Gate(monkeypatch)
    yield made
    made.open.set()


def rows(first: int, count: int = 4) -> Batch:
    values = np.arange(first, first + count, dtype=np.uint64)
    return Batch(values * np.uint64(0x9E3779B97F4A7C15), ids=values)


def commit(index: simindex.Index, *firsts: int) -> None:
    for first in firsts:
        index.append(rows(first))
        index.commit()


def ids_of(index: simindex.Index) -> list[int]:
    return sorted(i for part in index.rows() for i in (part.ids.tolist() if len(part) else []))


def merging_threads() -> list[threading.Thread]:
    return [t for t in threading.enumerate() if t.name == "simindex merge" and t.is_alive()]


def merges_of(index: simindex.Index) -> Any:
    assert index._handle.writer is not None
    return index._handle.writer.merges


def test_large_merges_give_freed_memory_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of few rows do not: it takes as long as they do."""
    given: list[str] = []
    monkeypatch.setattr(merges, "give_back", lambda: given.append(threading.current_thread().name))
    for large, times in ((9, 0), (8, 1)):
        monkeypatch.setattr(merges, "LARGE_ROWS", large)
        with simindex.open(tmp_path / "pages.sim", "n", options=OPTIONS, overwrite=True) as index:
            commit(index, 0, 100)
            merges_of(index).wait(lambda: False)
            assert given == ["simindex merge"] * times


# -- the model ------------------------------------------------------------------------------------


class MergingMachine(IndexMachine):
    """The index beside merges that begin at one step and end at a later one."""

    def __init__(self) -> None:
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        self.gate = Gate(self.patch)

    @initialize(
        batch_rows=st.just(32), min_merge=st.sampled_from([2, 3]),
        structures=st.sampled_from(STRUCTURES), pages=st.sampled_from([1, 16]),
    )
    def create(
        self, batch_rows: int, min_merge: int, structures: tuple[str, ...], pages: int = 16
    ) -> None:
        self.patch.setattr(writing, "STAGED_PAGES", pages)  # 1: several commits install a merge
        super().create(batch_rows, min_merge, structures)

    @rule(number=st.sampled_from([32, 48]))
    def append_and_commit(self, number: int) -> None:
        """Enough rows for a segment, of ids that others have, too."""
        rng = np.random.default_rng(self.seen + number)
        values = rng.integers(0, 2**64, number, dtype=np.uint64)
        names = (np.arange(number) % 16).tolist()
        self.writer.append(Batch(values, **self.named(names)))
        self.model.append(values[:, None], self.names(names))
        self.commit()

    @rule()
    def merges_end(self) -> None:
        """What they wrote waits for the next commit."""
        assert self.writer._handle.writer is not None
        with self.unheld():
            self.writer._handle.writer.await_merges()

    def unheld(self) -> Any:
        gate = self.gate

        class Unheld:
            def __enter__(self) -> None:
                gate.open.set()

            def __exit__(self, *error: object) -> None:
                gate.open.clear()

        return Unheld()

    @rule(full=st.booleans())
    def compact(self, full: bool) -> None:
        with self.unheld():
            super().compact(full)

    @rule()
    def leave_cleanly(self) -> None:
        """After a commit nothing is due then, whatever merges were given up before."""
        self.append_and_commit(32)
        with self.unheld():
            super().leave_cleanly()
        assert self.writer._handle.writer is not None
        assert self.writer._handle.writer.due() == []

    @rule()
    def check(self) -> None:
        with self.unheld():
            assert self.writer.check() == []

    def check_what_is_left(self) -> None:
        super().check_what_is_left()
        with simindex.open(self.path) as index:
            assert pages_stored(index) == pages_named(index)

    def teardown(self) -> None:
        self.gate.open.set()
        try:
            super().teardown()
        finally:
            self.patch.undo()
        assert merging_threads() == []
        BEGUN.append(self.gate.begun)


class KeyedMergingMachine(MergingMachine):
    """The same with keys for names."""

    keyed = True


BEGUN: list[int] = []


@pytest.mark.slow
@pytest.mark.parametrize("machine", [MergingMachine, KeyedMergingMachine], ids=["ids", "keys"])
def test_index_with_merges_beside_it_behaves_as_a_list_of_rows(
    machine: type[RuleBasedStateMachine],
) -> None:
    BEGUN.clear()
    run_state_machine_as_test(machine, settings=settings(max_examples=14, stateful_step_count=30))
    assert sum(BEGUN) > 10, "merges must have begun"


# -- deletions, installing ------------------------------------------------------------------------


@pytest.mark.parametrize("keyed", [False, True])
def test_deletions_during_a_merge_reach_its_rows(
    index_path: Path, gate: Gate, keyed: bool
) -> None:
    """Its horizon is the commit it began from; later tombstones stay until it is merged again."""
    options = IndexOptions(batch_rows=32, min_merge=2, keys=keyed)
    with simindex.open(index_path, "c", options=options) as index:
        def named(first: int, count: int) -> dict[str, Any]:
            numbers = range(first, first + count)
            return {"keys": [f"k{n}" for n in numbers]} if keyed else {"ids": list(numbers)}

        def held() -> list[Any]:
            return sorted(
                name for part in index.rows()
                for name in (part.keys if keyed else part.ids.tolist()) or []
            )

        for first in (0, 10):
            index.append(Batch(np.arange(first, first + 10, dtype=np.uint64), **named(first, 10)))
            index.commit()
        assert len(merges_of(index)) == 1
        index.delete(**named(3, 2))
        index.commit()
        index.replace(Batch(np.array([99], np.uint64), **named(12, 1)))
        index.commit()
        expected = sorted(
            named(0, 3)["keys" if keyed else "ids"] + named(5, 15)["keys" if keyed else "ids"]
        )
        assert held() == expected
        gate.open.set()
        index._handle.writer.await_merges()  # type: ignore[union-attr]
        assert held() == expected
        generation = index.generation
        index.commit()  # nothing but the merge
        assert index.generation == generation + 1
        assert held() == expected
        assert len(index._current().segments[0]) == 20
        assert index.stats().tombstones == 3
        assert index.query(np.array([12], np.uint64), h=0).id.tolist() == []
        assert index.check() == []
        index.compact(full=True)
        assert (held(), index.stats().tombstones) == (expected, 0)
    assert left_over(index_path) == []


@pytest.mark.slow
def test_commits_go_on_while_a_merge_is_held(index_path: Path, gate: Gate) -> None:
    with simindex.open(index_path, "c", options=OPTIONS) as index:
        commit(index, *range(0, 80, 4))
        assert index._current().head.generation == 20 + 1
        assert len(merges_of(index)) == merges.MAX_MERGES
        inputs = [s.name for merge in merges_of(index)._merges for s in merge.inputs]
        assert len(inputs) == len(set(inputs)), "no segment is merged twice"
        gate.open.set()
    with simindex.open(index_path, "w") as index:
        assert ids_of(index) == list(range(80))
        assert policy.pick([len(s) for s in index._current().segments], 2) == []
        assert index.check() == []


def test_segments_stay_in_order_of_age(index_path: Path, gate: Gate) -> None:
    """A merged one stands where its inputs stood, before those that were committed meanwhile."""
    with simindex.open(index_path, "c", options=OPTIONS) as index:
        for number in range(3):
            values = np.full(4, 7, np.uint64)
            index.append(values, ids=np.arange(4 * number, 4 * number + 4))
            index.commit()
        gate.open.set()
        index._handle.writer.await_merges()  # type: ignore[union-attr]
        index.commit()
        assert index._current().segments[0].ids.tolist() == list(range(8))
        index.compact(full=True)
        assert index._current().segments[0].ids.tolist() == list(range(12))


def test_compact_uses_the_merge_that_runs(index_path: Path, gate: Gate) -> None:
    with simindex.open(index_path, "c", options=OPTIONS) as index:
        commit(index, 0, 4)
        threading.Timer(0.05, gate.open.set).start()
        index.compact()
        assert gate.begun == 1
        assert [len(s) for s in index._current().segments] == [8]
        assert len(merges_of(index)) == 0


@pytest.mark.parametrize("change", [{"full": True}, {"structures": ("psm",)}])
def test_full_and_restructuring_compactions_give_merges_up(
    index_path: Path, gate: Gate, change: dict[str, Any]
) -> None:
    with simindex.open(index_path, "c", options=OPTIONS) as index:
        commit(index, 0, 4)
        index.compact(**change)
        assert gate.begun == 1
        assert merging_threads() == []
        assert ids_of(index) == list(range(8))
        assert index.check() == []
    assert left_over(index_path) == []


def test_no_merge_where_commits_shall_not_merge(index_path: Path, gate: Gate) -> None:
    options = IndexOptions(batch_rows=32, min_merge=0)
    with simindex.open(index_path, "c", options=options) as index:
        commit(index, *range(0, 80, 4))
        assert (gate.begun, index.stats().segments) == (0, 20)
    with simindex.open(index_path) as index:
        assert index.stats().segments == 20


# -- directories stored ahead ---------------------------------------------------------------------


@pytest.fixture
def staging(
    index_path: Path, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> Iterator[simindex.Index]:
    """A merge has ended, and a commit has stored the first of its three directories."""
    monkeypatch.setattr(writing, "STAGED_PAGES", 1)
    with simindex.open(index_path, "c", options=OPTIONS) as index:
        commit(index, 0, 4)
        gate.open.set()
        index._handle.writer.await_merges()  # type: ignore[union-attr]
        gate.open.clear()
        commit(index, 8)
        assert staged(index) == [1]
        yield index
        gate.open.set()


def staged(index: simindex.Index) -> list[int]:
    return [merge.staged for merge in merges_of(index)._merges if merge.staged]


def test_directories_of_a_merge_are_stored_by_several_commits(
    staging: simindex.Index, index_path: Path
) -> None:
    """Nobody sees them until the last of them makes the segment live."""
    with simindex.open(index_path, refresh=False) as reader:
        for generation, ahead in ((4, [1]), (5, [2])):
            assert staged(staging) == ahead
            assert staging.generation == generation
            assert pages_stored(staging) == pages_named(staging) + ahead[0]
            reader.refresh()
            assert [f for f in reader.check() if f.severity == "error"] == []
            count = 4 * (generation - 1)
            assert ids_of(reader) == list(range(count))
            assert [len(s) for s in reader._current().segments] == [4] * (count // 4)
            commit(staging, count)
        assert staged(staging) == []
        assert staging.generation == 7, "the merge got a commit of its own"
        assert [len(s) for s in staging._current().segments] == [8, 4, 4, 4]
        assert pages_stored(staging) == pages_named(staging)
        reader.refresh()
        assert [f for f in reader.check() if f.severity == "error"] == []
        assert ids_of(reader) == list(range(20))


@pytest.mark.parametrize("end", ["close", "full", "structures", "compact", "leave"])
def test_directories_stored_ahead_go_or_become_live(
    staging: simindex.Index, index_path: Path, gate: Gate, end: str
) -> None:
    gate.open.set()
    if end == "close":
        staging.close()
    elif end == "leave":
        staging.__exit__(None, None, None)
    elif end == "full":
        staging.compact(full=True)
    elif end == "structures":
        staging.compact(structures=("psm",))
    else:
        staging.compact()
    if end in ("close", "leave"):
        assert left_over(index_path) == []
        staging = simindex.open(index_path, "w")
    assert pages_stored(staging) == pages_named(staging)
    assert ids_of(staging) == list(range(12))
    assert staging.check() == []
    staging.close()


def test_directories_of_a_killed_writer_are_removed_by_the_next(
    staging: simindex.Index, index_path: Path, tmp_path: Path
) -> None:
    killed = tmp_path / "killed"
    shutil.copytree(index_path, killed)
    found = left_over(killed)
    assert len(found) == len(OPTIONS.structures)
    with simindex.open(killed) as reader:
        assert [f.severity for f in reader.check()] == ["note"] * len(found)
        assert ids_of(reader) == list(range(12))
        assert pages_stored(reader) == pages_named(reader) + 1
    with simindex.open(killed, "w") as again:
        assert pages_stored(again) == pages_named(again)
        assert again.check() == []
        assert ids_of(again) == list(range(12))
    assert left_over(killed) == []


def test_files_tell_of_directories_until_these_are_removed(
    staging: simindex.Index, index_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """On a full disk a writer opens all the same, and the one after it removes both."""
    def full(*arguments: object) -> None:
        raise StorageFull("no space left")

    killed = tmp_path / "killed"
    shutil.copytree(index_path, killed)
    with monkeypatch.context() as patch:
        patch.setattr(Catalog, "unstage", full)
        with simindex.open(killed, "w") as index:
            assert "not removed yet" in caplog.text
            assert pages_stored(index) == pages_named(index) + 1
            assert [Path(f.path).suffix for f in index.check()] == [".rows"]
            index.close()
        staging.close()
    for path in (killed, index_path):
        assert len(left_over(path)) > 0
        with simindex.open(path, "w") as index:
            assert pages_stored(index) == pages_named(index)
            assert index.check() == []
            assert ids_of(index) == list(range(12))


@pytest.mark.parametrize("end", ["commit", "close"])
def test_what_a_full_disk_kept_of_a_merge_goes_once_there_is_space(
    staging: simindex.Index, index_path: Path, gate: Gate, monkeypatch: pytest.MonkeyPatch,
    end: str,
) -> None:
    """Its bytes are given back at once, and only its name waits for the directories."""
    def full(*arguments: object) -> None:
        raise StorageFull("no space left")

    (merge,) = [merge for merge in merges_of(staging) if merge.staged]
    files = [index_path / "segments" / name for name in merge.files]
    with monkeypatch.context() as patch:
        patch.setattr(Catalog, "stage", full)
        patch.setattr(Catalog, "unstage", full)
        commit(staging, 12)
    assert [path.exists() for path in files] == [True] + [False] * (len(files) - 1)
    assert files[0].stat().st_size == 0
    gate.open.set()  # `check` waits for the merge that the commit began
    assert [f for f in staging.check() if files[0].name in f.path] == [], "it is the writer's own"
    assert pages_stored(staging) == pages_named(staging) + 1
    if end == "commit":
        commit(staging, 16)
        assert not files[0].exists()
    staging.close()
    assert left_over(index_path) == []
    with simindex.open(index_path) as index:
        assert pages_stored(index) == pages_named(index)


REFUSALS = [StorageFull("no space left"), MemoryError("no memory left")]


@pytest.mark.parametrize("error", REFUSALS)
def test_what_refuses_directories_puts_the_merge_off(
    staging: simindex.Index, gate: Gate, monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture, error: Exception,
) -> None:
    def full(*arguments: object) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(Catalog, "stage", full)
        commit(staging, 12)
    assert "not merged" in caplog.text
    assert staged(staging) == []
    assert ids_of(staging) == list(range(16))
    assert pages_stored(staging) == pages_named(staging)
    gate.open.set()
    staging.compact()
    assert staging.stats().segments == 1
    assert staging.check() == []


@pytest.mark.parametrize("error", REFUSALS)
def test_what_refuses_the_commit_that_installs_a_merge_puts_it_off(
    index_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture,
    error: Exception,
) -> None:
    """The commit before it has succeeded, and the handle goes on."""
    real, commits = Catalog.commit, 0

    def refused(catalog: Catalog, edit: Edit) -> SealedHead:
        nonlocal commits
        commits += 1
        if commits == 2:
            raise error
        return real(catalog, edit)

    with simindex.open(index_path, "c", options=OPTIONS) as index:
        commit(index, 0, 4)
        index._handle.writer.await_merges()  # type: ignore[union-attr]
        with monkeypatch.context() as patch:
            patch.setattr(Catalog, "commit", refused)
            commit(index, 8)
        assert commits == 2
        assert "not merged" in caplog.text
        assert ids_of(index) == list(range(12))
        commit(index, 12)
        index.compact(full=True)
        assert index.stats().segments == 1
        assert ids_of(index) == list(range(16))
        assert index.check() == []
    assert left_over(index_path) == []


def test_interrupt_while_directories_are_stored_leaves_them_to_the_next_writer(
    staging: simindex.Index, index_path: Path, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether they were stored or not is not known then."""
    real = Catalog.stage

    def stage(self: Catalog, *arguments: Any) -> None:
        real(self, *arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Catalog, "stage", stage)
        with pytest.raises(KeyboardInterrupt):
            commit(staging, 12)
    assert staged(staging) == [-1]
    with pytest.raises(ReadOnlyIndex, match="`commit` was interrupted"):
        commit(staging, 16)
    gate.open.set()
    staging.close()
    with simindex.open(index_path, "w") as again:
        assert pages_stored(again) == pages_named(again)
        again.compact()
        assert pages_stored(again) == pages_named(again)
        assert again.check() == []
        assert ids_of(again) == list(range(16))


def test_commit_that_fails_while_directories_are_stored_leaves_them_to_the_next_writer(
    staging: simindex.Index, index_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failed(self: Catalog, *arguments: Any) -> None:
        raise CommitFailed("outcome unknown")

    with monkeypatch.context() as patch:
        patch.setattr(Catalog, "stage", failed)
        with pytest.raises(CommitFailed):
            commit(staging, 12)
        with pytest.raises(ReadOnlyIndex):
            commit(staging, 16)
    staging.close()
    assert len(left_over(index_path)) > 0
    with simindex.open(index_path, "w") as again:
        assert ids_of(again) == list(range(16))
        assert pages_stored(again) == pages_named(again)
        assert again.check() == []


def test_too_many_segments_do_not_wait_for_directories(
    staging: simindex.Index, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "MAX_SEGMENTS", 4)
    commit(staging, 12)
    assert staged(staging) == []
    assert staging.stats().segments == 3
    gate.open.set()


# -- a writer that is too fast --------------------------------------------------------------------


def test_commit_waits_for_a_late_merge_a_part_of_its_own_time(
    index_path: Path, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float | None] = []
    real = merges.Merges.wait

    def wait(self: Any, needless: Callable[[], bool], patience_s: float | None = None) -> None:
        waits.append(None if needless() else patience_s)
        real(self, needless, patience_s)

    with simindex.open(index_path, "c", options=OPTIONS) as index:
        commit(index, 0, 4)
        monkeypatch.setattr(merges.Merges, "wait", wait)
        assert index._handle.writer is not None
        patience = []
        for first in (8, 12, 16):
            patience.append(writing.PATIENCE * index._handle.writer.committer.commit_s)
            commit(index, first)
        # The merge is of 8 rows and may take 4: it is late once more were appended.
        assert waits == [None, patience[1], patience[2]]
        assert all(0 < p < 1 for p in patience)
        gate.open.set()


@pytest.mark.slow
def test_commit_waits_where_segments_are_too_many(
    index_path: Path, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "MAX_SEGMENTS", 6)
    with simindex.open(index_path, "c", options=OPTIONS) as index:
        commit(index, *range(0, 24, 4))
        assert index.stats().segments == 6
        threading.Timer(0.1, gate.open.set).start()
        commit(index, 24)
        assert gate.open.is_set()
        assert index.stats().segments < 7
        commit(index, *range(28, 200, 4))
        assert index.stats().segments <= 7
        assert ids_of(index) == list(range(200))


@pytest.mark.slow
def test_writers_that_never_stay_cannot_pile_segments_up(
    index_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is closed at once, which gives its merges up."""
    monkeypatch.setattr(writing, "MAX_SEGMENTS", 6)
    simindex.open(index_path, "c", options=OPTIONS).close()
    most = 0
    for number in range(25):
        index = simindex.open(index_path, "w")
        commit(index, 4 * number)
        most = max(most, index.stats().segments)
        index.close()
    assert most <= 7
    with simindex.open(index_path, "w") as index:
        assert ids_of(index) == list(range(100))
        assert index.check() == []


# -- failures -------------------------------------------------------------------------------------


def failing(error: BaseException) -> Callable[..., Any]:
    def merge(*arguments: object, **named: object) -> Any:
        raise error

    return merge


@pytest.mark.parametrize(
    ("error", "traced"),
    [(StorageFull("full"), False), (CorruptFile("damaged"), False), (OSError(24, "fds"), False),
     (MemoryError(), True), (ZeroDivisionError(), True)],
)
def test_merge_that_fails_is_put_off_with_a_warning(
    index_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture,
    error: Exception, traced: bool,
) -> None:
    with simindex.open(index_path, "c", options=OPTIONS) as index:
        monkeypatch.setattr(compaction, "merge", failing(error))
        commit(index, *range(0, 40, 4))
        index._handle.writer.await_merges()  # type: ignore[union-attr]
        index.commit()
        warned = [r for r in caplog.records if "not merged" in r.getMessage()]
        assert warned
        assert {r.levelno for r in warned} == {logging.WARNING}
        assert all(bool(r.exc_info) == traced for r in warned)
        with pytest.raises(type(error)):
            index.compact()  # what is asked for is not put off
        assert index.stats().segments == 10
        monkeypatch.undo()
        if isinstance(error, ZeroDivisionError):  # no error of ours: nobody knows what was done
            with pytest.raises(ReadOnlyIndex):
                index.compact()
            index.close()
            index = simindex.open(index_path, "w")
        index.compact()
        assert index.stats().segments == 1
        assert ids_of(index) == list(range(40))
        assert index.check() == []


def test_merge_whose_thread_is_made_to_end_is_put_off(
    index_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """What is raised into a thread from outside is not a merge of segments without live rows."""
    with simindex.open(index_path, "c", options=OPTIONS) as index:
        monkeypatch.setattr(compaction, "merge", failing(SystemExit()))
        commit(index, 0, 4)
        index._handle.writer.await_merges()  # type: ignore[union-attr]
        index.commit()
        assert "not merged" in caplog.text
        monkeypatch.undo()
        assert ids_of(index) == list(range(8))
        assert index.check() == []


def test_disk_that_is_full_for_merges_costs_no_commit(
    index_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """At each file that a merge makes; a clean end neither hangs nor fails."""
    real = NewFile.reserve
    for allowed in range(len(OPTIONS.structures)):
        made = 0

        def reserve(self: NewFile, size: int, allowed: int = allowed) -> None:
            nonlocal made
            if threading.current_thread().name == "simindex merge":
                made += 1
                if made > allowed:
                    raise StorageFull("no space left")
            real(self, size)

        path = index_path / str(allowed)
        path.parent.mkdir(exist_ok=True)
        with simindex.open(path, "c", options=OPTIONS) as index:
            monkeypatch.setattr(NewFile, "reserve", reserve)
            commit(index, *range(0, 20, 4))
        assert "not merged" in caplog.text
        caplog.clear()
        assert left_over(path) == []
        monkeypatch.undo()
        with simindex.open(path, "w") as index:
            assert ids_of(index) == list(range(20))
            commit(index, 20)
        with simindex.open(path) as index:
            assert index.stats().segments < 3
            assert ids_of(index) == list(range(24))


@pytest.mark.parametrize("step", ["append", "replace", "commit"])
def test_merges_give_their_space_to_a_commit_that_lacks_it(
    index_path: Path, gate: Gate, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """A disk on which both do not fit; where no merge runs, it is the caller's to free some."""
    real = NewFile.reserve

    def reserve(self: NewFile, size: int) -> None:
        if merging_threads() or not roomy:
            raise StorageFull("no space left")
        real(self, size)

    roomy = True
    with simindex.open(index_path, "c", options=OPTIONS) as index:
        commit(index, 0, 4)
        assert len(merging_threads()) == 1
        monkeypatch.setattr(NewFile, "reserve", reserve)
        if step == "commit":
            commit(index, 8)
        else:
            getattr(index, step)(rows(8, 40))
            assert merging_threads() == []
            index.commit()
        index.close()
        assert left_over(index_path) == []
        index = simindex.open(index_path, "w")
        count = len(index)
        assert count == (12 if step == "commit" else 48)
        roomy = False
        with pytest.raises(StorageFull):
            commit(index, 100)
        index.discard()
        index.close()
    with simindex.open(index_path) as reader:
        assert ids_of(reader) == list(range(count))


def test_no_thread_to_be_had_puts_merges_off(
    index_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def start(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with simindex.open(index_path, "c", options=OPTIONS) as index:
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", start)
            commit(index, 0, 4, 8)
        assert "can't start" in caplog.text
        assert len(merges_of(index)) == 0
        commit(index, 12)
    with simindex.open(index_path) as index:
        assert ids_of(index) == list(range(16))
        assert index.stats().segments == 1


def test_merge_without_a_thread_is_not_waited_for_by_larger_ones(
    index_path: Path, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0})
    with simindex.open(index_path, "c", options=OPTIONS) as index:
        for first in (0, 8):
            index.append(rows(first, 8))
            index.commit()
        larger, = merges_of(index)._merges
        waiting = threading.Event()
        wait = larger._moved.wait

        def noted_wait(timeout: float | None = None) -> bool:
            if threading.current_thread() is larger.thread:
                waiting.set()
            return wait(timeout)

        def start(self: threading.Thread) -> None:
            assert waiting.wait(20)
            raise RuntimeError("can't start new thread")

        commit(index, 16)
        with monkeypatch.context() as patch:
            patch.setattr(larger._moved, "wait", noted_wait)
            patch.setattr(threading.Thread, "start", start)
            commit(index, 20)
        gate.open.set()
        larger.thread.join(20)
        ended, larger._ended = larger.ended, True  # or leaving waits for ever
        assert ended
    with simindex.open(index_path) as index:
        assert ids_of(index) == list(range(24))


# -- ends -----------------------------------------------------------------------------------------


def test_close_gives_merges_up(index_path: Path, gate: Gate) -> None:
    """Held ones and ended ones; the lock is free and no file is left."""
    index = simindex.open(index_path, "c", options=OPTIONS)
    commit(index, 0, 4)
    gate.open.set()
    index._handle.writer.await_merges()  # type: ignore[union-attr]
    gate.open.clear()
    assert index._handle.writer is not None
    assert len(index._handle.writer.uninstalled) == len(OPTIONS.structures)
    assert index.check() == []
    # The ended merge is not installed: nothing was committed since.
    index.close()
    assert left_over(index_path) == []
    index = simindex.open(index_path, "w")
    commit(index, 8, 12)
    assert len(merging_threads()) == 1
    index.close()
    index.close()
    assert merging_threads() == []
    assert left_over(index_path) == []
    with simindex.open(index_path, "w") as again:
        gate.open.set()
        assert ids_of(again) == list(range(16))
        assert again.check() == []


def test_leaving_by_an_exception_gives_merges_up(index_path: Path, gate: Gate) -> None:
    with pytest.raises(KeyError), simindex.open(index_path, "c", options=OPTIONS) as index:
        commit(index, 0, 4)
        index.append(rows(8))
        raise KeyError
    assert merging_threads() == []
    assert left_over(index_path) == []
    with simindex.open(index_path) as reader:
        assert ids_of(reader) == list(range(8))


def test_interrupt_while_merges_are_waited_for(
    index_path: Path, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C at the end of a block: what is committed stays, the lock is given back."""
    timer = threading.Timer(0.2, partial(signal.raise_signal, signal.SIGINT))
    with pytest.raises(KeyboardInterrupt), simindex.open(index_path, "c", options=OPTIONS) as index:
        commit(index, 0, 4)
        timer.start()
    timer.join()
    assert merging_threads() == []
    assert left_over(index_path) == []
    gate.open.set()
    with simindex.open(index_path, "w") as again:
        assert ids_of(again) == list(range(8))


@pytest.mark.slow
def test_dropped_handle_gives_the_lock_back(index_path: Path, gate: Gate) -> None:
    """No thread keeps a handle alive that nobody holds."""
    index = simindex.open(index_path, "c", options=OPTIONS)
    commit(index, 0, 4)
    del index
    gc.collect()
    assert merging_threads() == []
    with simindex.open(index_path, "w") as again:
        gate.open.set()
        assert ids_of(again) == list(range(8))


def test_handle_that_is_dropped_in_a_merges_thread_is_closed(
    index_path: Path, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the garbage collector may do; the thread must not wait for itself."""
    holder = [simindex.open(index_path, "c", options=OPTIONS)]
    commit(holder[0], 0)
    held = gate.merge

    def merge(*arguments: Any, **named: Any) -> Any:
        while len(holder) > 1:
            time.sleep(0.001)
        holder.clear()
        return held(*arguments, **named)

    monkeypatch.setattr(SegmentFiles, "merge", merge)
    holder.append(holder[0])
    commit(holder[0], 4)
    thread, = merging_threads()
    holder.pop()
    thread.join(20)
    assert not thread.is_alive()
    monkeypatch.undo()
    with simindex.open(index_path, "w") as again:
        assert ids_of(again) == list(range(8))
        assert again.check() == []


def test_handle_that_is_dropped_where_merges_take_turns_is_closed(
    index_path: Path, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A merge's thread may collect garbage while it holds what the others need to end."""
    real, holder, dropping = merges.Merge._smaller, [], threading.Event()

    def smaller(self: merges.Merge) -> int:
        if dropping.is_set():
            holder.clear()
        return real(self)

    monkeypatch.setattr(merges.Merge, "_smaller", smaller)
    holder.append(simindex.open(index_path, "c", options=OPTIONS))
    commit(holder[0], 0, 4, 8, 12)
    threads = merging_threads()
    assert len(threads) == 2
    dropping.set()
    for thread in threads:
        thread.join(20)
        assert not thread.is_alive()
    monkeypatch.undo()
    with simindex.open(index_path, "w") as again:
        assert ids_of(again) == list(range(16))
        assert again.check() == []


EXIT = """
import sys, threading, time, numpy as np, simindex
from simindex import IndexOptions
from simindex.storage.tables import compaction
def blocks(self):
    print("merging", flush=True)
    while True:
        time.sleep(0.001)
        none = np.empty(0, np.uint64)
        yield compaction.Block(none.reshape(0, 1), none, None, None, None)
compaction.MergedRows.blocks = blocks
index = simindex.open(sys.argv[1], "c", options=IndexOptions(batch_rows=32, min_merge=2))
for first in range(0, 8, 4):
    ids = np.arange(first, first + 4, dtype=np.uint64)
    index.append(ids * np.uint64(0x9E3779B97F4A7C15), ids=ids)
    index.commit()
while not any(name.name.startswith(".tmp-") for name in
              __import__("pathlib").Path(sys.argv[1], "segments").iterdir()):
    time.sleep(0.001)
"""


@pytest.mark.slow
def test_process_that_ends_does_not_wait_for_merges(index_path: Path) -> None:
    """Nobody closed the handle; the merge would never end, and its file is removed."""
    done = subprocess.run(
        [sys.executable, "-c", EXIT, str(index_path)], capture_output=True, text=True,
        timeout=60, check=False,
    )
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "merging\n")
    assert left_over(index_path) == []
    with simindex.open(index_path, "w") as again:
        assert ids_of(again) == list(range(8))


@pytest.mark.slow
def test_process_that_is_killed_during_a_merge_loses_nothing(index_path: Path) -> None:
    script = EXIT + "time.sleep(100)\n"
    with subprocess.Popen(
        [sys.executable, "-c", script, str(index_path)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "merging\n"
        with simindex.open(index_path) as reader:
            while len(reader) < 8:
                time.sleep(0.001)
        process.kill()
    assert len(left_over(index_path)) == 1
    with simindex.open(index_path, "w") as again:
        assert again.check() == []
        assert ids_of(again) == list(range(8))
    assert left_over(index_path) == []


KILLED = """
import sys, numpy as np, simindex
with simindex.open(sys.argv[1], "w") as index:
    for number in range(int(sys.argv[2]), 100_000):
        ids = np.arange(4 * number, 4 * number + 4, dtype=np.uint64)
        index.append(ids * np.uint64(0x9E3779B97F4A7C15), ids=ids)
        index.commit()
        print(number, flush=True)
"""


@pytest.mark.slow
def test_kills_at_any_time_leave_the_acknowledged_commits(index_path: Path) -> None:
    """Merges and their installing run all the time, between commits and beside them."""
    simindex.open(index_path, "c", options=OPTIONS).close()
    rng = np.random.default_rng(14)
    acknowledged = 0
    for _ in range(12):
        with subprocess.Popen(
            [sys.executable, "-c", KILLED, str(index_path), str(acknowledged)],
            stdout=subprocess.PIPE, text=True,
        ) as process:
            assert process.stdout is not None
            lines = [process.stdout.readline()]
            time.sleep(float(rng.uniform(0, 0.1)))
            process.kill()
            lines += process.stdout.readlines()
        told = len([line for line in lines if line.endswith("\n")])
        with simindex.open(index_path, "w") as index:
            found = ids_of(index)
            assert found == list(range(len(found)))
            assert len(found) // 4 - acknowledged - told in (0, 1)
            assert index.check() == []
            acknowledged = len(found) // 4
        assert left_over(index_path) == []


@pytest.mark.slow
def test_fork_beside_a_merge_leaves_it_to_the_parent(index_path: Path, gate: Gate) -> None:
    with simindex.open(index_path, "c", options=OPTIONS) as index:
        commit(index, 0, 4)
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                signal.alarm(20)
                with pytest.raises(ClosedIndex):
                    index.commit()
                index.close()
                del index
                gc.collect()
                code = 0
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        assert len(merging_threads()) == 1
        gate.open.set()
        index.compact()
        assert index.stats().segments == 1
        assert ids_of(index) == list(range(8))
        assert index.check() == []


# -- readers --------------------------------------------------------------------------------------

READER = """
import sys, numpy as np, simindex
path, rows = sys.argv[1], int(sys.argv[2])
with simindex.open(path) as reader:
    print("ready", flush=True)
    seen = set()
    while (count := len(reader)) < rows:
        assert count % 4 == 0, count
        some = np.arange(count, dtype=np.uint64)
        found = reader.query(some * np.uint64(0x9E3779B97F4A7C15), h=0)
        assert np.array_equal(np.sort(found.id), some), (count, found.id)
        seen.add(reader.generation)
    assert [f for f in reader.check() if f.severity == "error"] == []
print(len(seen))
"""


@pytest.mark.slow
def test_readers_of_other_processes_see_whole_commits_through_installs(index_path: Path) -> None:
    simindex.open(index_path, "c", options=OPTIONS).close()
    commits = 150
    with subprocess.Popen(
        [sys.executable, "-c", READER, str(index_path), str(4 * commits)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as reader:
        assert reader.stdout is not None
        assert reader.stdout.readline() == "ready\n"
        with simindex.open(index_path, "w") as index:
            commit(index, *range(0, 4 * commits, 4))
            assert index.generation > commits + 10, "merges must have been installed"
        out, errors = reader.communicate(timeout=120)
    assert reader.returncode == 0, errors
    assert int(out) > 3


# -- the space of merged files --------------------------------------------------------------------


def test_space_is_given_back_little_by_little_only_where_nobody_else_has_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A map in a reader, or a hard link in a backup, keeps every byte."""
    monkeypatch.setattr(removal, "FREE_BYTES", 100)
    lengths: list[tuple[int, int]] = []
    real = os.ftruncate
    monkeypatch.setattr(
        disk.os, "ftruncate", lambda fd, size: (lengths.append((fd, size)), real(fd, size))
    )

    def freed(path: Path) -> list[int]:
        lengths.clear()
        file = removal.unlink_held(path)
        assert file is not None
        assert not path.exists()
        fd = file.fileno()
        removal.free(file)
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(fd)
        # Threads of indexes that were closed before may still give back the space of others.
        return [size for of, size in lengths if of == fd]

    path = tmp_path / "file"
    content = bytes(range(250))
    path.write_bytes(content)
    assert freed(path) == [150, 50, 0]
    path.write_bytes(content)
    os.link(path, tmp_path / "backup")
    assert freed(path) == []
    assert (tmp_path / "backup").read_bytes() == content
    path.write_bytes(content)
    with path.open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    assert freed(path) == []
    assert mapped[:] == content
    assert removal.unlink_held(path) is None


def test_a_writer_that_waits_for_the_space_is_not_held_up_by_pauses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are for commits, of which there are none meanwhile: 400 MB took 4 s of them."""
    monkeypatch.setattr(removal, "FREE_BYTES", 100)
    pauses: list[float] = []
    waiting = threading.Event()

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        assert waiting.wait(60)

    monkeypatch.setattr(removal, "sleep", pause)
    path = tmp_path / "file"
    path.write_bytes(bytes(100_000))
    file = removal.unlink_held(path)
    assert file is not None
    releases = Releases()
    releases.release([], [file])
    begun = threading.Timer(0.1, waiting.set)  # while `wait` waits
    begun.start()
    releases.wait()
    begun.join()
    assert len(pauses) <= 1


@pytest.mark.slow
def test_reader_keeps_the_rows_of_merged_files(
    index_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its maps outlive the files' names; the writer gives back no byte of them."""
    monkeypatch.setattr(removal, "FREE_BYTES", 1024)
    simindex.open(index_path, "c", options=OPTIONS).close()
    with simindex.open(index_path, "w") as index:
        commit(index, 0)
        with simindex.open(index_path, refresh=False) as pinned:
            before = pinned._current().segments
            commit(index, *range(4, 40, 4))
            index.compact()
            for thread in threading.enumerate():
                if thread.name == "simindex release":
                    thread.join()
            names = {file.name for file in (index_path / "segments").iterdir()}
            assert not {segment.name for segment in before} & names
            assert ids_of(pinned) == [0, 1, 2, 3]
            assert all(segment.envelope.damaged_chunks() == [] for segment in before)


def test_merge_that_is_given_up_as_it_ends_leaves_no_file(
    index_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its segment is written, and nobody has been told yet."""
    real, written, given_up = SegmentFiles.merge, threading.Event(), threading.Event()

    def merge(self: SegmentFiles, *arguments: Any, **named: Any) -> Any:
        done = real(self, *arguments, **named)
        written.set()
        given_up.wait(30)
        return done

    monkeypatch.setattr(SegmentFiles, "merge", merge)
    index = simindex.open(index_path, "c", options=OPTIONS)
    commit(index, 0, 4)
    assert written.wait(30)
    for running in merges_of(index)._merges:
        running.cancel()
    given_up.set()
    index.close()
    assert left_over(index_path) == []
    with simindex.open(index_path) as reader:
        assert ids_of(reader) == list(range(8))


@pytest.mark.slow
def test_merge_that_failed_is_let_go_with_the_maps_of_its_inputs(
    index_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before garbage is collected."""

    def fail(*arguments: Any, **named: Any) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(compaction, "merge", fail)
    monkeypatch.setattr(merges.log, "warning", lambda *told, **named: None)  # keeps errors
    with simindex.open(index_path, "c", options=OPTIONS) as index:
        assert index._handle.writer is not None
        gc.collect()
        gc.disable()
        try:
            commit(index, 0, 4)
            failed = weakref.ref(merges_of(index)._merges[0])
            index._handle.writer.await_merges()
            commit(index, 8)
            assert failed() is None
        finally:
            gc.enable()


@pytest.mark.parametrize("keyed", [False, True])
def test_a_segment_with_many_dead_rows_is_written_again(index_path: Path, keyed: bool) -> None:
    """By a merge in the background, and by `compact`; one with fewer is not."""
    options = IndexOptions(batch_rows=3000, keys=keyed)
    with simindex.open(index_path, "c", options=options) as index:
        keys = [f"key {i}" for i in range(3000)]
        fingerprints = np.arange(3000, dtype=np.uint64)
        index.append(Batch(fingerprints, keys=keys) if keyed else fingerprints)
        index.commit()
        before = index._current().segments[0].name

        def delete(start: int, stop: int) -> None:
            index.delete(
                ids=None if keyed else np.arange(start, stop, dtype=np.uint64),
                keys=keys[start:stop] if keyed else None,
            )
            index.commit()

        delete(0, 990)
        index.compact()
        assert index._current().segments[0].name == before
        delete(990, 1020)
    with simindex.open(index_path, "w") as index:  # leaving it has waited for the merge
        segment = index._current().segments[0]
        assert segment.name != before
        assert (len(segment), len(index), index.stats().tombstones) == (1980, 1980, 0)
        delete(1020, 3000)
        index.compact()
        assert (index._current().segments, len(index), index.stats().tombstones) == ((), 0, 0)
        assert index.check() == []


@pytest.mark.slow
def test_tombstones_of_rows_that_are_gone_do_not_gather(index_path: Path) -> None:
    """An old segment that loses no row would keep all of them, for ever."""
    with simindex.open(index_path, "c", options=IndexOptions(batch_rows=8192)) as index:
        index.append(np.arange(8192, dtype=np.uint64))
        index.commit()
        for number in range(40):
            ids = np.arange(1 << 32, (1 << 32) + 1000, dtype=np.uint64) + np.uint64(1000 * number)
            index.append(Batch(ids, ids=ids))
            index.commit()
            index.delete(ids=ids)
            index.commit()
            index._handle.writer.finish_merges(settle=True)
            assert index.stats().tombstones <= 8000
        assert len(index) == 8192
        assert index.check() == []
