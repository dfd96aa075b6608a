"""Writers and readers that are killed, and a file system that stops, lose no acknowledged commit.

Quick forms of `python tools/torture.py kills syscalls shutdowns`.
"""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from children import in_child
from reliability import examination, kills, report, shutdowns, syscalls

import simindex
from simindex import IndexOptions
from simindex.storage import snapshot

SEED = 20_261_122


def require(outcomes: list[report.Outcome]) -> None:
    print(report.table(outcomes))
    for outcome in outcomes:
        if outcome.skipped:
            pytest.skip(outcome.skipped)
        outcome.require()


def test_writers_killed_at_random_lose_no_acknowledged_commit() -> None:
    """And what readers beside them see is a whole commit, each time."""
    require(kills.run(40, SEED, 2))


def test_writer_killed_at_a_call_leaves_the_last_commit_or_the_one_in_flight() -> None:
    """At every 90th of the calls that change the disk, and at all calls of some recoveries."""
    found = syscalls.outcomes(5, SEED, 2, stride=90)
    assert found[0].skipped or found[0].done > 6
    require(found)


def test_file_system_that_is_shut_down_keeps_every_acknowledged_commit() -> None:
    require(shutdowns.run(8, SEED, 2))


CALLS: dict[str, tuple[Callable[[simindex.Index], object], list[int]]] = {
    "append": (lambda index: index.append(ROWS, ids=[7, 8]), [1, 2]),
    "replace": (lambda index: index.replace(simindex.Batch(ROWS, ids=[2, 7])), [1, 2]),
    "delete": (lambda index: index.delete(ids=[1]), [1, 2]),
    "seen_or_add": (lambda index: index.seen_or_add(simindex.Batch(ROWS[:1], ids=[7])), [1, 2]),
    "commit": (lambda index: (index.delete(ids=[1]), index.commit()), [2]),
    "ingest": (
        lambda index: (index.delete(ids=[1]), index.ingest(ROWS, ids=[7, 8])), [2, 7, 8]
    ),
    "close": (lambda index: (index.append(ROWS, ids=[7, 8]), index.close()), [1, 2, 7, 8]),
    "discard": (
        lambda index: (index.append(ROWS, ids=[7, 8]), index.discard(), index.close()), [1, 2]
    ),
    "compact": (lambda index: (index.append(ROWS, ids=[7, 8]), index.compact()), [1, 2, 7, 8]),
    "compact(full=True)": (lambda index: (index.delete(ids=[1]), index.compact(full=True)), [2]),
    "seen_or_add after delete": (
        lambda index: (
            index.delete(ids=[1]), index.seen_or_add(simindex.Batch(ROWS[:1], ids=[7])),
        ),
        [2],
    ),
}  # fmt: skip

ROWS = np.array([1 << 20, 1 << 40], np.uint64) - np.uint64(1)


@pytest.mark.parametrize("call", CALLS)
def test_kill_leaves_what_the_call_promises(index_path: Path, call: str) -> None:
    """The table of docs/reference/promises.md that says when a change is durable."""
    work, left = CALLS[call]
    with simindex.open(index_path, "n") as index:
        index.append(np.array([0, 2**64 - 1], np.uint64), ids=[1, 2])

    def changed_and_killed() -> None:
        index = simindex.open(index_path, "w")
        work(index)
        os.kill(os.getpid(), signal.SIGKILL)

    assert in_child(changed_and_killed) == -signal.SIGKILL
    with simindex.open(index_path, "w") as index:
        assert sorted(np.concatenate([batch.ids for batch in index.rows()]).tolist()) == left
        assert index.check() == []


def test_closed_index_holds_no_file_before_garbage_is_collected(tmp_path: Path) -> None:
    """Else the space of what merges replaced comes back when it pleases the collector."""
    values = np.arange(64, dtype=np.uint64)
    options = IndexOptions(batch_rows=16, structures=("psm", "bphs:G=2,g=1", "issl"))
    gc.collect()
    gc.disable()
    try:
        with simindex.open(tmp_path / "index", "c", options=options) as index:
            index.append(values)
            index.commit()
            for method in ("psm", "bphs", "issl", "scan"):
                assert len(index.query(values[:5], h=1, method=method))
            assert index.check() == []
        assert examination.open_descriptors(tmp_path) == []
    finally:
        gc.enable()


def test_reader_that_met_a_removed_file_holds_none_of_what_it_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A compaction may replace a segment after the head was read and before its file is opened."""
    values = np.arange(64, dtype=np.uint64)
    with simindex.open(tmp_path / "index", "c", options=IndexOptions(batch_rows=16)) as index:
        index.append(values)
    opened = snapshot.open_segment
    missing = iter([True])

    def removed_once(*arguments: Any, **named: Any) -> Any:
        if next(missing, False):
            raise FileNotFoundError(2, "No such file or directory", "0.rows")
        return opened(*arguments, **named)

    gc.collect()
    gc.disable()
    try:
        with simindex.open(tmp_path / "index") as reader:
            assert len(reader) == 64
            with simindex.open(tmp_path / "index", "w") as writer:
                writer.append(values + np.uint64(64))
                writer.compact(full=True)
            with monkeypatch.context() as patch:
                patch.setattr(snapshot, "open_segment", removed_once)
                assert reader.refresh()
            assert next(missing, None) is None
            assert len(reader) == 128
        assert examination.open_descriptors(tmp_path) == []
    finally:
        gc.enable()
