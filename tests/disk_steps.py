"""The steps of a writer that change the disk: counted, so that each can be stopped or refused."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import lmdb
import numpy as np
import pytest
from reliability.steady import AtOnce

import simindex
from simindex import Batch
from simindex.storage.catalog.environment import Transaction
from simindex.storage.files import format as durable
from simindex.storage.files import removal
from simindex.writing import merges, releasing, writer

NO_SPACE = {
    "pwrite": OSError(errno.ENOSPC, "no space"),
    "fsync": OSError(errno.ENOSPC, "no space"),
    "posix_fallocate": OSError(errno.ENOSPC, "no space"),
    "rename": OSError(errno.ENOSPC, "no space"),
    "lmdb put": lmdb.MapFullError("MDB_MAP_FULL"),
    "lmdb delete": lmdb.DiskError("No space left on device"),
}


MERE_PUTS = ("lmdb put", "lmdb delete", "pwrite")
"""Between two of them nothing more can be seen on the disk."""


def met(steps: Sequence[str], *, after: bool, puts: int) -> Iterator[tuple[int, str]]:
    """Numbers and names of the steps where a quick test stops, before a step or after it.

    Both together meet each step once, and of mere puts one in `puts`. The long forms meet them all:
    `tools/torture.py syscalls` kills at each call of the system, `interrupts` raises at each line,
    and `errors` refuses each call.
    """
    for stop, name in enumerate(steps, 1):
        if stop // 2 % 2 == after and (name not in MERE_PUTS or stop % puts == 0):
            yield stop, name


@pytest.fixture(autouse=True, scope="module")
def merges_run_at_once() -> Iterator[None]:
    """Between commits; merges beside them are in tests/writing/test_merges.py."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(merges, "Thread", AtOnce)
        patch.setattr(releasing, "Thread", AtOnce)
        patch.setattr(writer, "STAGED_PAGES", 1)  # directories are stored ahead of the segment
        patch.setattr(removal, "FREE_PAUSE_S", 0.0)  # files are freed at once, too
        yield


State = dict[int, int]
"""Fingerprint -> number of rows."""


def rows(first: int, count: int) -> Batch:
    values = np.arange(first, first + count, dtype=np.uint64)
    return Batch(values, ids=values, weights=np.ones((count, 64), np.float32))


def added(state: State, first: int, count: int) -> State:
    return {**state, **{value: state.get(value, 0) + 1 for value in range(first, first + count)}}


def without(state: State, doomed: set[int]) -> State:
    return {value: count for value, count in state.items() if value not in doomed}


def state_of(index: simindex.Index) -> State:
    found: State = {}
    for batch in index.rows():
        for value in batch.fingerprints.tolist():
            found[value] = found.get(value, 0) + 1
    return found


@contextmanager
def counted(before: Callable[[int, str], None], *, after: bool = False) -> Iterator[None]:
    """Calls `before` with a running number ahead of each step that changes the disk.

    With `after`, behind each step instead: a crash there has seen it done.
    """
    number = 0

    def wrapped(real: Any, name: str) -> Any:
        def call(*arguments: Any, **named: Any) -> Any:
            nonlocal number
            number += 1
            mine = number
            if not after:
                before(mine, name)
            done = real(*arguments, **named)
            if after:
                before(mine, name)
            return done

        return call

    with pytest.MonkeyPatch.context() as patch:
        for name in ("pwrite", "fsync", "posix_fallocate"):
            patch.setattr(durable.os, name, wrapped(getattr(os, name), name))
        patch.setattr(Path, "rename", wrapped(Path.rename, "rename"))
        patch.setattr(Path, "unlink", wrapped(Path.unlink, "unlink"))
        for name in ("put", "delete", "commit"):
            patch.setattr(Transaction, name, wrapped(getattr(Transaction, name), f"lmdb {name}"))
        yield


def acknowledge(fd: int, number: int) -> None:
    """Says through a pipe that one step more is committed."""
    os.write(fd, b"x")


def fresh(template: Path, path: Path) -> Path:
    shutil.rmtree(path, ignore_errors=True)
    shutil.copytree(template, path)
    return path
