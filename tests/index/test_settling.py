"""A writer that is idle or leaves goes on merging until few segments are left."""

from __future__ import annotations

import _thread
import errno
import gc
import logging
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from leftovers import left_over
from looking import happens, looking
from reliability.examination import open_descriptors

import simindex
from simindex import Batch, IndexOptions
from simindex.errors import StorageFull
from simindex.index import handle, settling
from simindex.planning.costs import CALL_NS, SEGMENT_NS
from simindex.planning.question import Question
from simindex.storage.files.durable import NewFile
from simindex.storage.segment_files import SegmentFiles
from simindex.writing import policy
from simindex.writing.writer import Writer

OPTIONS = IndexOptions(batch_rows=32, structures=("psm", "bphs:G=3,g=1,r=2"))
"""Four rows make a segment, and eight segments a merge of a commit."""


class Gate:
    """Holds merges until it is opened; closed ones can be cancelled."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.begun = 0


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    made, real = Gate(), SegmentFiles.merge

    def merge(*given: Any, progress: Any = None, **named: Any) -> Any:
        if threading.current_thread().name == "simindex merge":
            made.begun += 1
            while not made.open.wait(0.001):
                progress(0, 1)
        return real(*given, progress=progress, **named)

    monkeypatch.setattr(SegmentFiles, "merge", merge)
    yield made
    made.open.set()


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer is idle at once."""
    monkeypatch.setattr(settling, "IDLE_S", 0.02)
    monkeypatch.setattr(settling, "LOOK_S", 0.01)


@pytest.fixture
def index(index_path: Path) -> Iterator[simindex.Index]:
    with simindex.open(index_path, "n", options=OPTIONS) as made:
        yield made


def rows(first: int, count: int = 4) -> Batch:
    values = np.arange(first, first + count, dtype=np.uint64)
    return Batch(values * np.uint64(0x9E3779B97F4A7C15), ids=values)


def commit(index: simindex.Index, *firsts: int) -> None:
    for first in firsts:
        index.append(rows(first))
        index.commit()


def sizes(index: simindex.Index) -> list[int]:
    return [len(segment) for segment in index._current().segments]


def ids_of(index: simindex.Index) -> list[int]:
    return sorted(i for part in index.rows() for i in (part.ids.tolist() if len(part) else []))


# -- idle -----------------------------------------------------------------------------------------


def test_idle_writer_merges_until_few_segments_are_left(
    index: simindex.Index, index_path: Path, soon: None
) -> None:
    with simindex.open(index_path) as reader:
        commit(index, 0, 4, 8, 12)
        assert happens(lambda: sizes(reader) == [16])
        assert ids_of(reader) == list(range(16))
        index.delete(ids=list(range(8)))
        index.commit()
        assert happens(lambda: sizes(reader) == [8]), "half of it was deleted"
    assert happens(lambda: looking() == []), "nobody looks once it is settled"
    assert index.check() == []
    assert left_over(index_path) == []


@pytest.mark.slow
def test_writer_that_is_not_idle_leaves_merges_to_commits(
    index: simindex.Index, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Any call that changes the index counts, also one that is not committed."""
    monkeypatch.setattr(settling, "IDLE_S", 0.5)
    commit(index, 0, 4)
    end = time.monotonic() + 1.5
    while time.monotonic() < end:
        began = time.monotonic()
        index.seen_or_add(rows(0, 1), h=0)  # there is one
        if time.monotonic() - began > 0.3:
            pytest.skip("the machine is too busy")
        time.sleep(0.01)
    assert gate.begun == 0
    assert happens(lambda: gate.begun == 1)
    gate.open.set()
    assert happens(lambda: sizes(index) == [8])


def test_commits_go_on_beside_the_merge_of_an_idle_writer(
    index: simindex.Index, gate: Gate, soon: None
) -> None:
    commit(index, 0, 4)
    assert happens(lambda: gate.begun == 1)
    commit(index, *range(8, 32, 4))
    index.delete(ids=[1, 9])
    index.commit()
    assert sizes(index) == [4] * 8
    assert not any(merge.late(10**9) for merge in index._handle.writer.merges)  # type: ignore[union-attr]
    gate.open.set()
    assert happens(lambda: len(sizes(index)) == 1)
    assert ids_of(index) == [n for n in range(32) if n not in (1, 9)]
    assert index.check() == []


def test_what_waits_for_a_commit_is_neither_committed_nor_lost(
    index: simindex.Index, gate: Gate, soon: None
) -> None:
    commit(index, 0, 4)
    assert happens(lambda: gate.begun == 1)
    index.append(rows(8))
    gate.open.set()
    assert happens(lambda: looking() == [])
    assert (ids_of(index), sizes(index)) == (list(range(8)), [4, 4])
    index.commit()
    assert happens(lambda: sizes(index) == [12])
    assert ids_of(index) == list(range(12))


def test_nothing_is_merged_where_commits_shall_not_merge(index_path: Path, soon: None) -> None:
    options = IndexOptions(batch_rows=32, min_merge=0)
    with simindex.open(index_path, "n", options=options) as index:
        commit(index, 0, 4, 8)
        assert looking() == []
        assert sizes(index) == [4] * 3
    with simindex.open(index_path, "w") as index:
        assert sizes(index) == [4] * 3
        index.compact()
        assert sizes(index) == [12]


@pytest.mark.slow
def test_idle_writer_gives_up_on_a_full_disk_until_the_next_commit(
    index: simindex.Index, index_path: Path, soon: None, monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    real, tries = NewFile.reserve, 0

    def reserve(self: NewFile, size: int) -> None:
        nonlocal tries
        if threading.current_thread().name == "simindex merge":
            tries += 1
            raise StorageFull("no space left")
        real(self, size)

    monkeypatch.setattr(NewFile, "reserve", reserve)
    commit(index, 0, 4)
    assert happens(lambda: "not merged: no space left" in caplog.text)
    assert happens(lambda: looking() == [])
    assert tries == 1
    assert left_over(index_path) == []
    commit(index, 8)
    assert happens(lambda: tries == 2)
    assert happens(lambda: looking() == [])
    monkeypatch.undo()
    monkeypatch.setattr(settling, "IDLE_S", 0.02)
    commit(index, 12)
    assert happens(lambda: sizes(index) == [16])
    assert ids_of(index) == list(range(16))


@pytest.mark.parametrize("end", ["close", "drop", "exception"])
@pytest.mark.slow
def test_other_ends_give_the_merge_of_an_idle_writer_up(
    index_path: Path, gate: Gate, soon: None, end: str
) -> None:
    index = simindex.open(index_path, "n", options=OPTIONS)
    commit(index, 0, 4)
    assert happens(lambda: gate.begun == 1)
    if end == "close":
        index.close()
    elif end == "exception":
        with pytest.raises(KeyError), index:
            raise KeyError
    del index
    gc.collect()
    assert happens(lambda: looking() == [])
    assert left_over(index_path) == []
    with simindex.open(index_path, "w") as again:
        assert sizes(again) == [4, 4]
        assert ids_of(again) == list(range(8))


# -- leaving --------------------------------------------------------------------------------------


def test_writer_that_leaves_merges_until_few_segments_are_left(index_path: Path) -> None:
    with simindex.open(index_path, "n", options=OPTIONS) as index:
        commit(index, *range(0, 12, 4))
        assert sizes(index) == [4] * 3
    with simindex.open(index_path) as reader:
        assert sizes(reader) == [12]
        assert ids_of(reader) == list(range(12))
        assert reader.check() == []
    assert left_over(index_path) == []


def test_writer_that_committed_nothing_leaves_at_once(index_path: Path, gate: Gate) -> None:
    index = simindex.open(index_path, "n", options=OPTIONS)
    commit(index, 0, 4)
    index.close()
    with simindex.open(index_path, "w") as index:
        assert sizes(index) == [4, 4]
    assert gate.begun == 0


@pytest.mark.slow
def test_the_log_tells_what_a_writer_that_leaves_waits_for(
    index_path: Path, gate: Gate, monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(settling, "FIRST_TOLD_S", 0.05)
    with caplog.at_level(logging.INFO, "simindex"):
        with simindex.open(index_path, "n", options=OPTIONS) as index:
            commit(index, 0, 4)
            threading.Timer(0.5, gate.open.set).start()
        told = [one.getMessage() for one in caplog.records]
    assert told == [f"{index_path} is closed once its segments are merged: 0 of 8 rows are"]


def test_ctrl_c_ends_the_waiting_of_a_writer_that_leaves_without_loss(
    index_path: Path, gate: Gate
) -> None:
    def ctrl_c() -> None:
        if happens(lambda: gate.begun == 1):
            _thread.interrupt_main()

    waiting = threading.Thread(target=ctrl_c)
    with (
        pytest.raises(KeyboardInterrupt), simindex.open(index_path, "n", options=OPTIONS) as index
    ):
        commit(index, 0, 4)
        index.append(rows(8))
        waiting.start()
    waiting.join()
    assert left_over(index_path) == []
    with simindex.open(index_path, "w") as again:
        assert sizes(again) == [4, 4, 4]
        assert ids_of(again) == list(range(12))
        assert again.check() == []


def test_writer_that_has_left_has_no_file_open(index_path: Path) -> None:
    """Nor does a thread give space back still."""
    with simindex.open(index_path, "n", options=OPTIONS) as index:
        commit(index, *range(0, 40, 4))
    assert open_descriptors(index_path) == []


def test_what_fails_while_a_writer_leaves_is_told_and_loses_nothing(
    index_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refused(*given: Any) -> Any:
        raise OSError(errno.EIO, "input")

    with simindex.open(index_path, "n", options=OPTIONS) as index:
        commit(index, 0, 4)
        monkeypatch.setattr(policy, "settling", refused)
    assert "not merged" in caplog.text
    with simindex.open(index_path, "w") as again:
        assert sizes(again) == [4, 4]
        assert ids_of(again) == list(range(8))


def test_process_that_ends_installs_no_merge_while_it_cancels_them(
    index: simindex.Index, index_path: Path, gate: Gate, soon: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else a commit could name files that are removed."""
    real = Writer.cancel_merges
    commit(index, 0, 4)
    assert happens(lambda: gate.begun == 1)

    def cancel(writer: Writer) -> None:
        if writer is index._handle.writer:  # not of another test
            gate.open.set()
            assert happens(lambda: all(merge.ended for merge in writer.merges))
            time.sleep(20 * settling.LOOK_S)
        real(writer)

    with monkeypatch.context() as patch:
        patch.setattr(Writer, "cancel_merges", cancel)
        handle._at_exit()
    assert happens(lambda: looking() == [])
    assert sizes(index) == [4, 4]
    assert left_over(index_path) == []


def test_compact_leaves_few_segments_and_tells_how_far_it_is(index_path: Path) -> None:
    with simindex.open(index_path, "n", options=OPTIONS) as index:
        commit(index, 0, 4, 8)
        told: list[tuple[int, int]] = []
        index.compact(progress=lambda done, total: told.append((done, total)))
        assert sizes(index) == [12]
        assert told == sorted(told), "further tables go on from where the rows ended"
        assert told[-1] == (12, 12)
        assert told[0][0] < 12


def test_stats_and_explain_tell_what_a_compaction_would_bring(index_path: Path) -> None:
    with simindex.open(index_path, "n", options=OPTIONS) as index:
        assert index.stats().compaction is None
        commit(index, 0, 4, 8)
        found = index.stats().compaction
        assert found is not None
        assert (found.segments, found.segments_after) == (3, 1)
        assert found.query_time_ratio > 1 > found.batch_rate_ratio
        assert index.explain(np.array([7], np.uint64), h=3).compaction == found
        index.compact(full=True)
        assert index.stats().compaction is None
        assert index.explain(np.array([7], np.uint64)).compaction is None


def test_what_a_compaction_brings_is_predicted_from_the_length_of_slice_lists(
    index_path: Path, rng: np.random.Generator
) -> None:
    """As the planner predicts it once they are there."""
    options = IndexOptions(bits=256, structures=("psm", "issl:w=8"), min_merge=0)
    with simindex.open(index_path, "n", options=options) as index:
        for _ in range(3):
            index.append(rng.integers(0, 2**64, (3000, 4), dtype=np.uint64))
            index.commit()
            index.compact(structures=options.structures)  # makes a segment of so few

        def planned() -> tuple[float, set[str]]:
            plan = index._answerer.plans.plan(index._current(), Question(h=3), 1, None)
            methods = {one.method for one in plan.tables}
            return CALL_NS + sum(SEGMENT_NS + one.nanoseconds for one in plan.tables), methods

        found = index.explain(np.zeros((1, 4), np.uint64), h=3).compaction
        assert found is not None
        assert (found.segments, found.segments_after) == (3, 1)
        now, methods = planned()
        assert methods == {"issl"}
        index.compact(full=True)
        then, _ = planned()
        assert found.query_time_ratio == pytest.approx(now / then, rel=0.05)
