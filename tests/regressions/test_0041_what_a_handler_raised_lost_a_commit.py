"""A TimeoutError that a signal handler raised as a commit ended was taken for its failure, and the
files it names were removed; interrupts at other moments had later calls wait for ever, or told them
of another process; a compaction wrote into an index that had taken its own's place."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simindex
from simindex.errors import ClosedIndex, InvalidOption, ReadOnlyIndex
from simindex.index import handle
from simindex.storage.catalog import leases
from simindex.storage.catalog.environment import Environment, InTransaction
from simindex.storage.files import locks
from simindex.storage.segment_files import SegmentFiles
from simindex.writing import committer

ROWS = np.arange(1, 401, dtype=np.uint64)

SMALL = simindex.IndexOptions(batch_rows=100, min_merge=0)


@pytest.fixture
def filled(index_path: Path) -> Path:
    """Four segments of a hundred rows."""
    with simindex.open(index_path, "n", options=SMALL) as index:
        index.append(ROWS)
    return index_path


def raising(error: BaseException) -> Callable[..., Any]:
    """A call that only raises."""

    def call(*arguments: Any, **named: Any) -> Any:
        raise error

    return call


CHANGES: list[Callable[[Any], Any]] = [
    lambda index: index.append(ROWS),
    lambda index: index.commit(),
    lambda index: index.compact(full=True),
    lambda index: index.compact(structures=("psm", "bphs:G=4,g=1")),
    lambda index: index.ingest(ROWS),
]


@pytest.mark.parametrize("change", CHANGES[2:])
def test_what_is_raised_when_a_commit_has_ended_removes_nothing(
    filled: Path, change: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    index = simindex.open(filled, "w")
    index.append(ROWS[:7])
    index.commit()
    with monkeypatch.context() as patch:
        patch.setattr(committer, "Waiting", raising(TimeoutError("the caller's own")))
        with pytest.raises(TimeoutError, match="own"):
            change(index)
    with pytest.raises(ReadOnlyIndex, match="open the index again"):
        change(index)
    index.close()
    with simindex.open(filled, "w") as again:
        assert len(again) in (407, 807)
        assert again.check() == []


def test_what_is_raised_when_a_merge_is_installed_is_the_callers(
    index_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = simindex.IndexOptions(batch_rows=100, min_merge=2)
    index = simindex.open(index_path, "n", options=options)
    index.append(ROWS)
    index.commit()
    index._handle.writer.finish_merges(settle=False)
    index.append(ROWS[:200])
    index.commit()
    index._handle.writer.await_merges()
    with monkeypatch.context() as patch:
        patch.setattr(committer, "Waiting", raising(TimeoutError("the caller's own")))
        with pytest.raises(TimeoutError, match="own"):
            index._handle.writer.finish_merges(settle=False)
    index.close()
    with simindex.open(index_path) as again:
        assert len(again) == 600
        assert {finding.severity for finding in again.check()} <= {"note"}


def test_what_failed_before_the_commit_began_can_be_repeated(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with simindex.open(filled, "w") as index:
        index.append(ROWS[:50])
        with monkeypatch.context() as patch:
            patch.setattr(Environment, "reserve", raising(OSError(5, "input/output error")))
            with pytest.raises(OSError, match="output"):
                index.commit()
        index.commit()
        assert len(index) == 450
        assert index.check() == []


@pytest.mark.parametrize("call", ["append", "discard"])
def test_removing_that_is_interrupted_names_no_file_that_is_gone(
    filled: Path, call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real_write, real_remove = SegmentFiles.write, SegmentFiles.remove
    written: list[Any] = []

    def write(files: SegmentFiles, *arguments: Any) -> Any:
        if len(written) == 2:
            raise KeyboardInterrupt
        written.append(real_write(files, *arguments))
        return written[-1]

    def remove(files: SegmentFiles, records: Any) -> None:
        real_remove(files, records)
        raise KeyboardInterrupt

    index = simindex.open(filled, "w")
    with monkeypatch.context() as patch:
        patch.setattr(SegmentFiles, "remove", remove)
        if call == "append":
            patch.setattr(SegmentFiles, "write", write)
            with pytest.raises(KeyboardInterrupt):
                index.append(ROWS)
        else:
            index.append(ROWS)
            with pytest.raises(KeyboardInterrupt):
                index._handle.writer.committer.discard()
    if call == "append":
        with pytest.raises(ReadOnlyIndex, match="`append` was interrupted"):
            index.commit()
    else:
        index.commit()
    index.close()
    with simindex.open(filled, "w") as again:
        assert len(again) == 400
        again.append(ROWS[:3])
    with simindex.open(filled) as again:
        assert len(again) == 403
        assert again.check() == []


def test_an_append_that_fails_leaves_what_was_buffered_before(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its sample, too."""
    weights = np.ones((250, 64), np.float32)
    with simindex.open(filled, "w") as index:
        index.append(ROWS[:30], weights=weights[:30])
        with monkeypatch.context() as patch:
            patch.setattr(SegmentFiles, "write", raising(OSError(5, "input/output error")))
            with pytest.raises(OSError, match="output"):
                index.append(ROWS[:250], weights=weights)
        index.commit()
        assert len(index) == 430
        assert len(index._current().reservoir) == 30
        assert index.check() == []


def test_what_waits_is_handed_over_once(filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the first rows, those with weights, are handed over and the others are not."""
    weights = np.full((1, 64), -1, np.float32)
    weights[0, -12] = 1  # of the row 1 << 11
    real = committer.Committer.append

    def append_fails(given: Any, batch: simindex.Batch) -> Any:
        if batch.weights is None:
            raise OSError(5, "input/output error")
        return real(given, batch)

    with simindex.open(filled, "w") as index:
        for batch in (simindex.Batch(np.array([1 << 11], np.uint64), weights=weights),
                      simindex.Batch(np.array([1 << 12], np.uint64))):
            assert index.seen_or_add(batch, h=0, commit_s=None) is None
        with monkeypatch.context() as patch:
            patch.setattr(committer.Committer, "append", append_fails)
            with pytest.raises(OSError, match="output"):
                index.commit()
        index.commit()
        assert len(index) == 402
        assert len(index.query(np.array([1 << 11, 1 << 12], np.uint64), h=0)) == 2


@pytest.mark.parametrize("change", CHANGES)
def test_nothing_is_written_where_another_index_took_the_place(
    filled: Path, change: Callable[[Any], Any]
) -> None:
    index = simindex.open(filled, "w")
    index.append(ROWS[:50])
    old = filled.with_name("old.sim")
    filled.rename(old)
    simindex.open(filled, "n").close()
    with pytest.raises(ClosedIndex, match="built again"):
        change(index)
        index.commit()
    with suppress(ClosedIndex):  # of what waits
        index.close()
    for path, rows in ((filled, 0), (old, 400)):
        with simindex.open(path) as again:
            assert len(again) == rows
            assert {finding.severity for finding in again.check()} <= {"note"}


def test_nothing_is_written_where_it_took_the_place_during_a_compaction(filled: Path) -> None:
    old = filled.with_name("old.sim")

    def replace(done: int, total: int) -> None:
        if not old.exists():
            filled.rename(old)
            simindex.open(filled, "n").close()

    index = simindex.open(filled, "w")
    with pytest.raises((ClosedIndex, OSError)):
        index.compact(full=True, progress=replace)
    index.close()
    for path, rows in ((filled, 0), (old, 400)):
        with simindex.open(path, "w") as again:
            assert len(again) == rows
            assert again.check() == []


def left(call: Callable[[], Any]) -> BaseException:
    """What a call raises, with the frames it was raised in."""
    with pytest.raises(KeyboardInterrupt) as found:
        call()
    return found.value


def test_a_transaction_that_was_left_is_not_waited_for(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An interrupt may come as its end begins; who keeps the traceback keeps the transaction."""
    index = simindex.open(filled, "w")
    index.append(ROWS[:3])
    with monkeypatch.context() as patch:
        patch.setattr(InTransaction, "__exit__", raising(KeyboardInterrupt()))
        reading = left(index.stats)
        opening = left(lambda: simindex.open(filled))
        committing = left(index.commit)
    index.close()
    with simindex.open(filled, "w") as again:
        again.append(ROWS[:5])
        again.commit()
        assert len(again) in (405, 408)
    assert all(filled not in one.directory.parents for one in leases.environments())
    del reading, opening, committing


def test_a_transaction_that_was_left_ends_with_its_traceback(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = simindex.open(filled)
    with monkeypatch.context() as patch:
        patch.setattr(InTransaction, "__exit__", raising(KeyboardInterrupt()))
        interrupt = left(index.stats)
        (held,) = index._handle.environment._active
        assert held() is not None
    del interrupt
    gc.collect()
    assert held() is None
    index.close()


def test_closing_that_is_interrupted_keeps_the_index_for_who_opens_it_next(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = simindex.open(filled)
    with monkeypatch.context() as patch:
        patch.setattr(Environment, "close", raising(KeyboardInterrupt()))
        interrupt = left(index.close)
    with simindex.open(filled) as again:
        assert len(again) == 400
    close = Environment.close

    def interrupted(self: Environment) -> None:
        close(self)
        raise KeyboardInterrupt

    index = simindex.open(filled)
    with monkeypatch.context() as patch:
        patch.setattr(Environment, "close", interrupted)
        interrupt = left(index.close)
    with simindex.open(filled) as again:
        assert len(again) == 400
    del interrupt


def test_a_lock_is_given_back_though_the_interrupt_is_kept(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(locks, "_tells_holder", raising(KeyboardInterrupt()))
        interrupt = left(lambda: simindex.open(filled, "w"))
    simindex.open(filled, "w").close()
    del interrupt


def test_an_opening_that_is_interrupted_when_it_has_ended_holds_nothing(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = handle.Handle._open

    def opened(*arguments: Any, **named: Any) -> None:
        real(*arguments, **named)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(handle.Handle, "_open", opened)
        interrupt = left(lambda: simindex.open(filled, "w"))
    simindex.open(filled, "w").close()
    assert all(filled not in one.directory.parents for one in leases.environments())
    del interrupt


@pytest.mark.parametrize("call", [
    lambda index: index.audit(), lambda index: index.tune(machine=False),
])
def test_what_a_compaction_would_forget_is_refused(
    filled: Path, call: Callable[[Any], Any]
) -> None:
    refused = []

    def measure(done: int, total: int) -> None:
        with pytest.raises(InvalidOption, match="progress"):
            call(index)
        refused.append(done)

    with simindex.open(filled, "w") as index:
        index.compact(full=True, progress=measure)
        assert refused
        call(index)


CALLS = """
import sys, numpy, simindex
options = simindex.IndexOptions(batch_rows=80, min_merge=2)
simindex.open(sys.argv[1], "n", options=options).close()
loaded = set(sys.modules)
with simindex.open(sys.argv[1], "w") as index:
    for count in (1, 90, 90, 90, 90):
        index.append(numpy.ones(count, numpy.uint64))
        index.commit()
    index.ingest(numpy.ones(3, numpy.uint64), h=0)
    index.seen_or_add(simindex.Batch(numpy.zeros(1, numpy.uint64)))
    index.delete(ids=[1])
    index.compact(full=True)
    index.query(numpy.ones(1, numpy.uint64), h=3)
    index.top(numpy.ones(1, numpy.uint64), k=2)
    list(index.rows())
print(sorted(name for name in set(sys.modules) - loaded if not name.startswith("numpy.")))
"""


def test_calls_load_no_modules(index_path: Path) -> None:
    """A child that was forked while a thread loaded one waited for it for ever.

    A fork waits for what rarer calls load, and numpy: see `tests/test_imports.py`.
    """
    ended = subprocess.run(
        [sys.executable, "-c", CALLS, str(index_path)], capture_output=True, text=True, check=True
    )
    assert ended.stdout == "[]\n"
