"""An interrupt while `compact(full=True)` waited for the merges that it had cancelled left these
listed. The next commit took one of them for a merge that had found all rows deleted, and removed
its inputs. Other interrupts left a handle that could neither be used nor closed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simindex
from simindex.errors import CommitFailed, ReadOnlyIndex
from simindex.repair.steps import Steps
from simindex.storage.segment_files import Merged, SegmentFiles
from simindex.storage.view import View
from simindex.writing.committer import Committer
from simindex.writing.merges import State
from simindex.writing.waiting import Waiting
from simindex.writing.writer import Writer

OPTIONS = simindex.IndexOptions(batch_rows=4, min_merge=2)

COMPACTIONS: list[Callable[[simindex.Index], None]] = [
    lambda index: index.compact(full=True),
    lambda index: index.compact(structures=["psm", "bphs:G=2,g=1"]),
]


def append(index: simindex.Index, *firsts: int) -> None:
    for first in firsts:
        numbers = np.arange(first, first + 4, dtype=np.uint64)
        index.append(numbers << np.uint64(40), ids=numbers)
        index.commit()


def ids_of(index: simindex.Index) -> list[int]:
    return sorted(number for batch in index.rows() for number in batch.ids.tolist())


@pytest.fixture
def released() -> threading.Event:
    """Lets merges end by themselves."""
    return threading.Event()


@pytest.fixture
def merging(
    index_path: Path, released: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> Iterator[simindex.Index]:
    """A writer of two segments that are being merged, and of a third."""
    began, real = threading.Event(), SegmentFiles.merge

    def merge(*given: Any, progress: Any = None, **named: Any) -> Any:
        if threading.current_thread() is not threading.main_thread():
            began.set()
            while not released.is_set():
                progress(0, 1)  # raises once the merge is cancelled
        return real(*given, progress=progress, **named)

    monkeypatch.setattr(SegmentFiles, "merge", merge)
    index = simindex.open(index_path, "n", options=OPTIONS)
    append(index, 0, 4, 8)
    assert began.wait(30)
    yield index
    index.close()


def interrupted(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> Any:
    def interrupt(*arguments: Any, **named: Any) -> None:
        raise KeyboardInterrupt

    return monkeypatch.setattr(owner, name, interrupt)


@pytest.mark.parametrize("compact", COMPACTIONS)
def test_handle_that_was_interrupted_refuses_to_write_until_it_is_opened_again(
    merging: simindex.Index, compact: Callable[[simindex.Index], None],
    released: threading.Event, monkeypatch: pytest.MonkeyPatch,
) -> None:
    with monkeypatch.context() as patch:
        interrupted(patch, threading.Thread, "join")
        with pytest.raises(KeyboardInterrupt):
            compact(merging)
    for change in (
        lambda: append(merging, 12), lambda: merging.delete(ids=[1]), merging.commit,
        merging.compact, lambda: merging.ingest(np.zeros(1, np.uint64)),
        lambda: merging.seen_or_add(simindex.Batch(np.zeros(1, np.uint64))),
        lambda: merging.tune(machine=False), lambda: merging.audit(),
        lambda: merging.replace(simindex.Batch(np.zeros(1, np.uint64), ids=[1])),
    ):
        with pytest.raises(ReadOnlyIndex, match=r"`compact` was interrupted.*open the index"):
            change()
    assert ids_of(merging) == list(range(12))
    assert len(merging.query(np.array([5 << 40], np.uint64), h=0)) == 1
    merging.close()
    released.set()  # leaving waits for merges
    with simindex.open(merging.path, "w") as again:
        assert ids_of(again) == list(range(12))
        compact(again)
        append(again, 12)
        assert ids_of(again) == list(range(16))
        assert again.check() == []


@pytest.mark.parametrize("compact", COMPACTIONS)
def test_merge_that_was_cancelled_is_never_installed(
    merging: simindex.Index, compact: Callable[[simindex.Index], None],
    released: threading.Event, monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Not even where the handle goes on."""
    with monkeypatch.context() as patch:
        interrupted(patch, threading.Thread, "join")
        with pytest.raises(KeyboardInterrupt):
            compact(merging)
    merging._handle.note = None
    merging._handle.writer.committer.failed = None
    (merge,) = merging._handle.writer.merges._merges
    assert merge.state is State.CANCELLED
    merge.thread.join(30)
    released.set()
    append(merging, *range(12, 40, 4))
    assert ids_of(merging) == list(range(40))
    compact(merging)
    assert ids_of(merging) == list(range(40))
    assert merging.check() == []


def test_merge_without_an_outcome_is_no_merge_of_deleted_rows(
    index_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A commit that drops the inputs of a merge which wrote nothing is refused."""
    index = simindex.open(
        index_path, "n", options=simindex.IndexOptions(batch_rows=4, min_merge=0)
    )
    append(index, 0, 4, 8)
    with monkeypatch.context() as patch:
        patch.setattr(
            SegmentFiles, "merge",
            lambda _, inputs, *given, **named: Merged(None, [], {one.name: 0 for one in inputs}),
        )
        with pytest.raises(CommitFailed, match="kept 0 of 12 rows: it was refused"):
            index.compact(full=True)
    with pytest.raises(ReadOnlyIndex):
        index.compact(full=True)
    index.close()
    with simindex.open(index_path, "w") as again:
        assert ids_of(again) == list(range(12))
        assert again.check() == []


@pytest.mark.parametrize(
    ("owner", "name"),
    [(Committer, "hand_over"), (View, "check_place"), (Writer, "install_merges")],
)
def test_handle_that_was_interrupted_can_be_closed(
    merging: simindex.Index, owner: type, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the interrupt is kept with the frames that it went through."""
    kept: BaseException | None = None
    merging.append(np.array([7], np.uint64), ids=[99])
    with monkeypatch.context() as patch:
        interrupted(patch, owner, name)
        try:
            merging.commit()
        except KeyboardInterrupt as interrupt:
            kept = interrupt
    assert kept is not None
    with pytest.raises(ReadOnlyIndex):
        merging.commit()
    merging.close()
    with simindex.open(merging.path, "w") as again:
        assert set(ids_of(again)) - {99} == set(range(12))
    del kept


def test_full_disk_gives_up_merges_for_good(
    merging: simindex.Index, released: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the waiting for them is interrupted."""
    real = Committer.append

    def full(committer: Committer, batch: simindex.Batch, times: object = None) -> Any:
        monkeypatch.setattr(Committer, "append", real)
        raise simindex.errors.StorageFull("full")

    monkeypatch.setattr(Committer, "append", full)
    with monkeypatch.context() as patch:
        interrupted(patch, threading.Thread, "join")
        with pytest.raises(KeyboardInterrupt):
            append(merging, 12)
    with pytest.raises(ReadOnlyIndex, match="`append` was interrupted"):
        append(merging, 12)
    merging.close()
    released.set()
    with simindex.open(merging.path, "w") as again:
        assert ids_of(again) == list(range(12))
        append(again, *range(12, 24, 4))
        assert ids_of(again) == list(range(24))
        assert again.check() == []


@pytest.mark.parametrize("call", ["close", "commit"])
def test_refusal_that_a_signal_handler_passes_on_is_an_interrupt(
    index_path: Path, call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is an error of ours, and comes at any place of the call that it ends."""
    index = simindex.open(index_path, "n", options=OPTIONS)
    append(index, 0)

    def handler(committer: Committer, *arguments: Any) -> None:
        getattr(index, call)()

    with monkeypatch.context() as patch:
        patch.setattr(Committer, "append", handler)
        with pytest.raises(simindex.errors.InvalidOption, match="`append` is changing"):
            append(index, 4)
    with pytest.raises(ReadOnlyIndex, match="`append` was interrupted"):
        append(index, 4)
    index.close()
    with simindex.open(index_path) as again:
        assert ids_of(again) == list(range(4))


def test_refusal_that_a_signal_handler_keeps_to_itself_changes_nothing(
    index_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = simindex.open(index_path, "n", options=OPTIONS)
    real = Committer.append

    def handler(committer: Committer, *arguments: Any) -> Any:
        with pytest.raises(simindex.errors.InvalidOption):
            index.close()
        return real(committer, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(Committer, "append", handler)
        append(index, 0)
    append(index, 4)
    assert ids_of(index) == list(range(8))
    index.close()


@pytest.mark.parametrize("count", [3, 5])
@pytest.mark.parametrize("deletion", [False, True])
def test_rows_that_vanish_from_the_buffer_are_missed(
    index_path: Path, count: int, deletion: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are not taken for rows that were deleted before their commit."""
    index = simindex.open(index_path, "n", options=OPTIONS)
    append(index, 0)
    if deletion:
        index.delete(ids=[1])
    with monkeypatch.context() as patch:
        patch.setattr(Waiting, "living", lambda waiting: ([], 0))
        index.append(np.arange(count, dtype=np.uint64), ids=np.arange(count) + 10)
        with pytest.raises(CommitFailed, match=f"kept 0 of {count} rows"):
            index.commit()
    index.close()
    with simindex.open(index_path, "w") as again:
        assert ids_of(again) == list(range(4))
        assert again.check() == []


def test_repair_that_writes_too_few_rows_is_refused(
    index_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = simindex.IndexOptions(batch_rows=4, min_merge=0)
    with simindex.open(index_path, "n", options=options) as index:
        append(index, 0, 4, 8)
    (index_path / "catalog" / "data.mdb").unlink()
    with monkeypatch.context() as patch:
        real = Steps._edit
        patch.setattr(Steps, "_edit", lambda repair, records: real(repair, records[1:]))
        with pytest.raises(CommitFailed, match="kept 8 of 12 rows"):
            simindex.repair(index_path, apply=True)
    simindex.repair(index_path, apply=True)
    with simindex.open(index_path) as again:
        assert ids_of(again) == list(range(12))
