"""Rows that `seen_or_add` added are committed in time, without another call."""

from __future__ import annotations

import gc
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from looking import happens, looking

import simindex
from simindex import Batch
from simindex.errors import CommitFailed, StorageFull
from simindex.index import arrivals
from simindex.storage.catalog.catalog import Catalog


def one(number: int) -> Batch:
    return Batch(np.array([number << 40 | number * 0x9E3779B9], np.uint64))


def test_a_row_is_committed_in_time_without_another_call(index_path: Path) -> None:
    with simindex.open(index_path, "n") as index, simindex.open(index_path) as reader:
        assert index.seen_or_add(one(1), h=0, commit_s=0.05) is None
        assert happens(lambda: len(reader) == 1)
        assert index.seen_or_add(one(2), h=0, commit_s=0.05) is None
        assert happens(lambda: len(reader) == 2)
        assert happens(lambda: looking() == [])


def test_the_earliest_of_several_rows_decides(index_path: Path) -> None:
    with simindex.open(index_path, "n") as index:
        index.seen_or_add(one(1), h=0, commit_s=None)
        index.seen_or_add(one(2), h=0, commit_s=3600)
        assert len(index) == 0
        index.seen_or_add(one(3), h=0, commit_s=0.01)
        assert happens(lambda: len(index) == 3)
        index.seen_or_add(one(4), h=0, commit_s=0)
        assert happens(lambda: len(index) == 4)


def test_without_a_time_only_calls_commit(index_path: Path) -> None:
    assert happens(lambda: looking() == [])
    with simindex.open(index_path, "n") as index:
        index.seen_or_add(one(1), h=0, commit_s=None)
        assert looking() == []


@pytest.mark.slow
def test_what_append_has_buffered_waits_for_its_own_commit(index_path: Path) -> None:
    """A time that has passed with a commit concerns nothing that came later."""
    with simindex.open(index_path, "n") as index:
        index.seen_or_add(one(1), h=0, commit_s=0.3)
        index.commit()
        index.append(np.array([9], np.uint64))
        assert happens(lambda: looking() == [])
        assert len(index) == 1
        index.discard()
    assert len(simindex.open(index_path)) == 1


@pytest.mark.slow
def test_a_closed_or_dropped_handle_is_not_waited_for(index_path: Path) -> None:
    assert happens(lambda: looking() == [])
    index = simindex.open(index_path, "n")
    index.seen_or_add(one(1), h=0, commit_s=3600)
    index.seen_or_add(one(3), h=0, commit_s=3600)
    assert len(looking()) == 1
    index.close()
    other = simindex.open(index_path, "w")
    other.seen_or_add(one(2), h=0, commit_s=3600)
    with pytest.warns(ResourceWarning):
        del index, other
        gc.collect()
    assert happens(lambda: looking() == [])
    assert len(simindex.open(index_path)) == 3


def test_a_commit_that_fails_is_tried_again(
    index_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(arrivals, "RETRY_S", 0.05)
    with simindex.open(index_path, "n") as index:
        with monkeypatch.context() as patch:
            def full(*_: object) -> None:
                raise StorageFull("no space left")

            patch.setattr(Catalog, "commit", full)
            index.seen_or_add(one(1), h=0, commit_s=0.01)
            assert happens(lambda: caplog.text.count("no space left") > 1)
            assert len(index) == 0
        assert happens(lambda: len(index) == 1)


def test_a_handle_that_refuses_to_write_is_not_said_to_wait(
    index_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(arrivals, "RETRY_S", 0.05)
    index = simindex.open(index_path, "n")
    with monkeypatch.context() as patch:
        def failing(*_: object) -> None:
            raise CommitFailed("the transaction failed")

        patch.setattr(Catalog, "commit", failing)
        index.seen_or_add(one(1), h=0, commit_s=0.01)
        assert happens(lambda: "the transaction failed" in caplog.text)
    assert "cannot be changed by this handle any more" in caplog.text
    assert "add these documents again" in caplog.text
    assert "wait on" not in caplog.text
    assert happens(lambda: looking() == [])
    index.close()


KILLED = """
import sys, time, numpy as np, simindex
index = simindex.open(sys.argv[1], "n")
index.seen_or_add(simindex.Batch(np.array([7], np.uint64)), h=0, commit_s=0.1)
print("added", flush=True)
time.sleep(60)
"""


@pytest.mark.slow
def test_a_row_outlives_a_kill_once_its_time_has_come(index_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(index_path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "added\n"
    with simindex.open(index_path) as reader:
        assert happens(lambda: len(reader) == 1)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    with simindex.open(index_path, "w") as index:
        assert len(index) == 1
        assert index.check() == []


def test_what_a_handler_raises_while_the_thread_begins_reaches_the_caller(
    index_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`threading` then forgets the thread twice where it is at work already, by KeyError."""
    starting = "_start_new_thread"
    if sys.version_info >= (3, 13):
        starting = "_start_joinable_thread"
    start = getattr(threading, starting)

    def interrupted(*arguments: object, **named: object) -> None:
        start(*arguments, **named)
        assert happens(lambda: not threading._limbo)  # type: ignore[attr-defined]
        raise TimeoutError("the caller's own")

    index = simindex.open(index_path, "n")
    with monkeypatch.context() as patch:
        patch.setattr(threading, starting, interrupted)
        with pytest.raises(TimeoutError, match="the caller's own"):
            index.seen_or_add(one(1), h=0)
    index.close()
