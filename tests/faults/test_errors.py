"""What the system refuses is a typed error, and the index and its handle survive it.

Quick form of `python tools/torture.py errors`.
"""

from __future__ import annotations

import errno
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import get_ident

import lmdb
import numpy as np
import pytest
from reliability import errors, report
from reliability.examination import open_descriptors
from reliability.steady import AtOnce

import simindex
from simindex.errors import CommitFailed, StorageFailed
from simindex.resources.threads import Pool
from simindex.storage.files import disk, removal
from simindex.writing import releasing

SEED = 20_261_122


def test_calls_that_fail_at_any_use_are_survived() -> None:
    """Each 541st of the errors; `tools/torture.py errors` takes all of them."""
    outcome, = errors.outcomes(14, SEED, 2, stride=541)
    print(report.table([outcome]))
    if outcome.skipped:
        pytest.skip(outcome.skipped)
    outcome.require()


@pytest.mark.parametrize(
    ("code", "kind"),
    [(errno.EIO, StorageFailed), (errno.EMFILE, StorageFailed), (errno.ENOMEM, MemoryError)],
)
def test_refusal_of_the_system_is_an_error_of_ours_and_the_call_can_be_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, kind: type[Exception]
) -> None:
    with simindex.open(tmp_path / "index", "c") as index:
        index.append(np.arange(9, dtype=np.uint64))

        def refuse(path: Path) -> None:
            raise OSError(code, os.strerror(code), str(path))

        with monkeypatch.context() as patch:
            patch.setattr(os, "statvfs", refuse)
            with pytest.raises(kind, match=str(tmp_path)):
                index.commit()
        index.commit()
        assert len(index) == 9


def test_readers_go_on_after_a_commit_that_lmdb_cannot_finish(tmp_path: Path) -> None:
    """LMDB lets no transaction begin after it failed to write a meta page, not even to read."""
    path = tmp_path / "index"
    index = simindex.open(path, "c")
    index.append(np.arange(9, dtype=np.uint64))
    index.commit()
    reader = simindex.open(path)
    index.append(np.arange(9, dtype=np.uint64))

    class Panic(disk.System):
        def lmdb(self, data, work):  # type: ignore[no-untyped-def]
            raise lmdb.PanicError("mdb_txn_commit: MDB_PANIC")

    system, disk.system = disk.system, Panic()
    try:
        with pytest.raises(CommitFailed):
            index.commit()
    finally:
        disk.system = system
    before = reader._handle.environment._env
    assert len(reader) == len(index) == 9
    assert reader._handle.environment._env is not before, "the environment was opened anew"
    index.close()
    with simindex.open(path, "w") as again:
        assert len(again) == 9


def test_work_is_done_by_the_caller_where_no_thread_can_be_had(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """None at all, or none but the first: every piece is done once, and errors arrive."""
    started = ThreadPoolExecutor._adjust_thread_count

    def square(number: int, done: list[int]) -> int:
        done.append(number)
        return number * number

    for most in (0, 1):
        def few(self: ThreadPoolExecutor, most: int = most) -> None:
            if len(self._threads) >= most:
                raise RuntimeError("can't start new thread")
            started(self)

        monkeypatch.setattr(ThreadPoolExecutor, "_adjust_thread_count", few)
        done: list[int] = []
        with Pool(4) as pool:
            squares = pool.map(square, range(50), [done] * 50)
            assert list(squares) == [number * number for number in range(50)]
            assert sorted(done) == list(range(50))
            if most == 0:
                assert pool.submit(get_ident).result() == get_ident()
            with pytest.raises(ZeroDivisionError):
                pool.submit(lambda: 1 // 0).result()


def test_space_that_cannot_be_given_back_keeps_no_descriptor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the files of one merge all are closed, and no thread ends in an error."""
    paths = [tmp_path / name for name in "abc"]
    for path in paths:
        path.write_bytes(bytes(9))
    held = [removal.unlink_held(path) for path in paths]

    class Failing(disk.System):
        def resize(self, fd: int, size: int) -> None:
            raise OSError(errno.EIO, "input")

    monkeypatch.setattr(disk, "system", Failing())
    monkeypatch.setattr(releasing, "Thread", AtOnce)
    releasing.Releases().release([], [file for file in held if file is not None])
    assert open_descriptors(tmp_path) == []
