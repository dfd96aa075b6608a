"""A repair changes the index in steps: it may die or fail at any of them, and deletes nothing."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from repairable import (
    OPTIONS,
    Held,
    a_directory,
    a_fifo,
    a_link,
    a_socket,
    examine,
    fresh,
    hurt,
    named,
    put_aside,
    rows_of,
    segments,
)

import simindex
from simindex import IndexOptions
from simindex.errors import (
    SimindexError,
)
from simindex.storage.catalog.environment import Transaction
from simindex.storage.files import disk
from simindex.storage.files.file_names import KEPT_PREFIX, REPAIRED_CATALOG

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")


def a_file(path: Path) -> None:
    put_aside(path)
    path.write_bytes(b"x")


REPLACED = [
    *(("catalog/data.mdb", how) for how in (a_directory, a_fifo, a_socket)),
    *(("catalog", how) for how in (a_file, a_fifo, a_socket)),
    *(("segments", how) for how in (a_file, a_fifo, a_socket)),
    *(("FORMAT", how) for how in (a_link, a_directory, a_fifo, a_socket)),
]


@pytest.mark.parametrize(("what", "how"), REPLACED)
def test_what_has_the_name_of_a_file_is_put_aside(
    unkeyed: Held, tmp_path: Path, what: str, how: Callable[[Path], None]
) -> None:
    """The file counts as lost."""
    path = fresh(unkeyed, tmp_path / "index")
    how(path / what)
    kind = stat.S_IFMT((path / what).lstat().st_mode)
    told = simindex.repair(path)
    done = simindex.repair(path, apply=True)
    assert (done.findings, done.losses, done.rows) == (told.findings, told.losses, told.rows)
    kept = Path(str(done.kept)) / what
    assert stat.S_IFMT(kept.lstat().st_mode) == kind
    with simindex.open(path, "w") as index:
        assert len(index) == done.rows
        assert rows_of(index) == (
            unkeyed.live if what == "FORMAT" else
            named([3000], keyed=False) if what == "segments" else unkeyed.sealed
        )
        assert [f for f in index.check() if f.severity == "error"] == []


@pytest.mark.parametrize("how", [a_link, a_directory, a_fifo, a_socket])
@pytest.mark.parametrize("more", [False, True], ids=["", "and more damage"])
def test_a_lock_file_that_is_none_costs_no_catalog(
    unkeyed: Held, tmp_path: Path, how: Callable[[Path], None], more: bool
) -> None:
    path = fresh(unkeyed, tmp_path / "index")
    how(path / "catalog" / "lock.mdb")
    if more:
        segments(path, ".bphs")[1].unlink()
    catalog = (path / "catalog" / "data.mdb").stat().st_ino
    told = simindex.repair(path)
    done = simindex.repair(path, apply=True)
    assert (done.findings, done.steps, done.losses) == (told.findings, told.steps, ())
    kept = Path(str(done.kept)) / ("catalog/lock.mdb" if more else "lock.mdb")
    assert not stat.S_ISREG(kept.lstat().st_mode)
    assert ((path / "catalog" / "data.mdb").stat().st_ino == catalog) is not more
    assert examine(path) == unkeyed.live
    assert not simindex.repair(path).needed


@contextmanager
def counted(act: Callable[[int], None]) -> Iterator[None]:
    """Calls `act` with a running number ahead of each step that changes the disk."""
    number = 0

    def wrapped(real: Any) -> Any:
        def call(*arguments: Any, **more: Any) -> Any:
            nonlocal number
            number += 1
            act(number)
            return real(*arguments, **more)

        return call

    with pytest.MonkeyPatch.context() as patch:
        for name in ("fsync", "link"):
            patch.setattr(disk.os, name, wrapped(getattr(os, name)))
        for name in ("rename", "unlink", "mkdir", "rmdir"):
            patch.setattr(Path, name, wrapped(getattr(Path, name)))
        patch.setattr(Transaction, "commit", wrapped(Transaction.commit))
        yield


@pytest.mark.slow
@pytest.mark.parametrize("opened", [False, True], ids=["", "and a writer comes by"])
def test_a_repair_that_dies_at_any_step_can_be_run_again(
    unkeyed: Held, tmp_path: Path, opened: bool
) -> None:
    path = fresh(unkeyed, tmp_path / "index")
    hurt(path)
    steps: list[int] = []
    with counted(steps.append):
        report = simindex.repair(path, apply=True)
    assert report.lost_rows == 0
    assert examine(path) == unkeyed.live
    assert len(steps) > 20
    for stop in steps[:: 7 if opened else 4]:
        path = fresh(unkeyed, tmp_path / "index")
        hurt(path)
        damaged_bytes = segments(path)[0].read_bytes()
        pid = os.fork()
        if pid == 0:
            def die(number: int, stop: int = stop) -> None:
                if number == stop:
                    os._exit(9)

            with counted(die):
                simindex.repair(path, apply=True)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 9, stop
        if opened:
            with suppress(SimindexError):
                simindex.open(path, "w").close()
        simindex.repair(path, apply=True)
        assert not list(path.glob(f"{REPAIRED_CATALOG}*"))
        with simindex.open(path) as index:
            assert rows_of(index) == unkeyed.live, stop
            assert [f for f in index.check() if f.severity == "error"] == [], stop
        kept = [p.read_bytes() for p in path.glob(f"{KEPT_PREFIX}*/segments/*.rows")]
        assert damaged_bytes in kept, (stop, "what was damaged is kept")


def test_a_full_disk_leaves_the_index_as_it_was(
    unkeyed: Held, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tree: Callable[[Path], Any]
) -> None:
    path = fresh(unkeyed, tmp_path / "index")
    hurt(path)
    before = tree(path)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(disk.os, "posix_fallocate", full)
    with pytest.raises(simindex.StorageFull):
        simindex.repair(path, apply=True)
    assert tree(path) == before | {"LOCK": tree(path)["LOCK"]}
    monkeypatch.undo()
    simindex.repair(path, apply=True)
    assert examine(path) == unkeyed.live


def test_a_file_system_without_links_keeps_what_was_damaged(
    unkeyed: Held, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = fresh(unkeyed, tmp_path / "index")
    hurt(path)
    content = segments(path)[0].read_bytes()

    def refused(*_: object, **__: object) -> None:
        raise OSError(errno.EOPNOTSUPP, "no links here")

    monkeypatch.setattr(disk.os, "link", refused)
    report = simindex.repair(path, apply=True)
    assert content in [p.read_bytes() for p in segments(Path(str(report.kept)))]
    assert examine(path) == unkeyed.live


def test_what_was_kept_is_left_by_everyone(held: Held, tmp_path: Path) -> None:
    path = fresh(held, tmp_path / "index")
    (path / "catalog" / "data.mdb").write_bytes(b"")
    first = simindex.repair(path, apply=True)
    segments(path)[0].write_bytes(b"")
    second = simindex.repair(path, apply=True)
    assert [Path(str(r.kept)).name for r in (first, second)] == ["damaged-1", "damaged-2"]
    with simindex.open(path, "w") as index:
        assert [(f.severity, Path(f.path).name) for f in index.check()] == [
            ("note", "damaged-1"), ("note", "damaged-2")
        ]
    simindex.open(path, "n", overwrite=True, options=OPTIONS).close()
    assert (path / "damaged-1" / "catalog" / "data.mdb").exists()
    assert simindex.repair(path).needed is False


def test_repair_whose_commit_fails_removes_what_it_had_written(
    index_path: Path, monkeypatch: pytest.MonkeyPatch, tree: Callable[[Path], Any]
) -> None:
    with simindex.open(index_path, "c", options=IndexOptions(batch_rows=32, min_merge=0)) as index:
        index.append(np.arange(20, dtype=np.uint64))
        index.commit()
    for file in segments(index_path, ".bphs"):
        file.write_bytes(b"")
    (index_path / "FORMAT").unlink()
    before = tree(index_path)

    def full(self: Transaction) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Transaction, "commit", full)
    with pytest.raises(SimindexError):
        simindex.repair(index_path, apply=True)
    assert {name for name in tree(index_path) if name != "LOCK"} == before.keys() - {"LOCK"}
