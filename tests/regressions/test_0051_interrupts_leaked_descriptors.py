"""An exception of a signal handler came right after `os.open` had returned, and nobody had stored
what it returned: the descriptor stayed open, and a deleted file kept its space. LMDB's environment
stayed open where one came between the counting of a user and the caller's assignment.
"""

from __future__ import annotations

import gc
import os
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic, sleep
from types import FrameType, ModuleType
from typing import Any

import numpy as np
import pytest
from interrupts import Interrupt, Stop

import simindex
from simindex import IndexOptions
from simindex.errors import SimindexError
from simindex.index import handle
from simindex.repair import catalog_file, catalog_records, damaged_files, segment_remains
from simindex.resources.threads import begin
from simindex.storage import segment_files, view
from simindex.storage.catalog import (
    catalog,
    environment,
    leases,
    lmdb_files,
    pages,
    records,
    sealed_values,
)
from simindex.storage.files import (
    descriptor,
    disk,
    durable,
    envelope,
    envelope_writer,
    format,
    locks,
    removal,
)
from simindex.storage.files.descriptor import Descriptor
from simindex.storage.tables import segment
from simindex.writing import committer, releasing, waiting, writer

OPTIONS = IndexOptions(batch_rows=64, min_merge=2)
ROWS = np.arange(300, dtype=np.uint64)

OPENING = (
    catalog_file, catalog_records, descriptor, disk, durable, envelope, envelope_writer,
    environment, format, lmdb_files, locks, damaged_files, pages, leases, segment_remains, removal,
)
HOLDING = (
    *OPENING, catalog, committer, handle, records, segment, segment_files,
    sealed_values, view, waiting, writer
)

WHOLE_CALLS = 40
"""So often a whole call is interrupted, at places that are equally far from each other."""

def open_descriptors(root: Path) -> list[str]:
    """What this process has open at a folder or below."""
    found = []
    for entry in Path("/proc/self/fd").iterdir():
        try:
            target = str(entry.readlink())
        except OSError:  # the one that lists them
            continue
        if target.startswith(str(root)):
            found.append(target)
    return found


def settled(path: Path) -> list[str]:
    """What is open below a path once threads have given up what they had.

    `join` does not tell: a thread whose join was interrupted counts as ended while it runs on.
    """
    end = monotonic() + 60
    while monotonic() < end and any(
        thread.name in (releasing.THREAD_NAME, "simindex merge")
        for thread in threading.enumerate()
        if thread.ident is not None  # else its start was interrupted, and it never runs
    ):
        sleep(0.001)
    if open_descriptors(path):
        gc.collect()
    return open_descriptors(path)


def interrupted(
    path: Path, work: Callable[[], object], modules: tuple[ModuleType, ...], *,
    possible: bool, step: int, start: int = 0,
) -> Iterator[str]:
    """Does some work again and again, with an interrupt `step` places later each time.

    Yields where it came, and raises if anything below a path is open afterwards.
    """
    # From Python 3.12 on a frame has a trace of operations if one of its code has asked before.
    Interrupt(modules, sys.maxsize, possible=possible).during(work)
    place = start
    while True:
        interrupt = Interrupt(modules, place, possible=possible)
        interrupt.during(work)
        left = settled(path)
        assert left == [], f"interrupted at {interrupt.where}, place {place}"
        if interrupt.where is None:
            return
        yield interrupt.where
        place += step


@pytest.fixture
def filled(index_path: Path) -> Path:
    with simindex.open(index_path, "n", options=OPTIONS) as index:
        index.append(ROWS)
    assert settled(index_path) == []
    return index_path


def make_and_name(directory: Path) -> None:
    with durable.NewFile(directory) as file:
        file.reserve(9)
        file.write(b"nine more", 0)
        file.publish("file", lambda fd: None)


def unlink(path: Path) -> None:
    path.touch()
    removal.unlink_held(path)


OPENERS: dict[str, tuple[int, Callable[[Path, Path], object]]] = {
    "lock": (1, lambda index, rows: locks.unlock(locks.lock(index / "other"))),
    "read_format": (1, lambda index, rows: format.read_format(index)),
    "is_format": (1, lambda index, rows: format.is_format(index)),
    "format_agrees": (1, lambda index, rows: format.format_agrees(index)),
    "is_lock": (1, lambda index, rows: locks.is_lock(index / "LOCK")),
    "sync_directory": (1, lambda index, rows: durable.sync_directory(index)),
    "hold": (1, lambda index, rows: locks.hold(index)),
    "unlink_held": (1, lambda index, rows: unlink(index / "other")),
    "NewFile": (1, lambda index, rows: make_and_name(index)),
    "reserve_lock_file": (1, lambda index, rows: lmdb_files.reserve_lock_file(index / "new")),
    "open_envelope": (2, lambda index, rows: envelope.open_envelope(rows)),
    "ask_ahead": (1, lambda index, rows: envelope.ask_ahead([rows, rows])),
    "preflight": (5, lambda index, rows: pages.preflight(index / "catalog" / "data.mdb")),
    "SegmentRemains": (17, lambda index, rows: segment_remains.SegmentRemains(rows)),
    "CatalogRecords": (293, lambda index, rows: catalog_records.CatalogRecords.read(
        index / "catalog" / "data.mdb"
    )),
}


@pytest.mark.parametrize("name", OPENERS)
def test_no_interrupt_loses_what_is_opened(filled: Path, name: str) -> None:
    step, opener = OPENERS[name]
    rows = min((filled / "segments").glob("*.rows"))
    where = set(interrupted(
        filled, lambda: opener(filled, rows), OPENING, possible=False, step=step
    ))
    assert any(place.startswith("descriptor.py") for place in where)


def test_dropped_descriptor_is_closed_whatever_a_handler_raises(tmp_path: Path) -> None:
    """Python would report an exception at the entry of `__del__`, and leave it undone."""
    file = Descriptor(tmp_path, os.O_RDONLY)
    entered: list[str] = []

    def trace(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            entered.append(frame.f_code.co_name)

    sys.settrace(trace)
    try:
        del file
    finally:
        sys.settrace(None)
    assert entered == []
    assert open_descriptors(tmp_path) == []


def test_descriptor_is_closed_once(tmp_path: Path) -> None:
    """The system gives its number to the next file."""
    file = Descriptor(tmp_path, os.O_RDONLY)
    number = file.fileno()
    file.close()
    assert file.closed
    with Descriptor(tmp_path, os.O_RDONLY) as other:
        assert other.fileno() == number
        file.close()
        with pytest.raises(ValueError, match="closed"):
            file.fileno()
        del file
        os.fstat(number)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(number)


def test_descriptor_that_fails_to_close_is_not_closed_again(tmp_path: Path) -> None:
    file = Descriptor(tmp_path, os.O_RDONLY)
    os.close(file.fileno())
    with pytest.raises(OSError, match="Bad file descriptor"):
        file.close()
    assert file.closed
    file.close()


def test_what_cannot_be_opened_has_no_descriptor(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nothing"):
        Descriptor(tmp_path / "nothing", os.O_RDONLY)


# -- the environment -------------------------------------------------------------------------------


def test_no_interrupt_keeps_the_environment(filled: Path) -> None:
    def work() -> None:
        with leases.acquire(filled / "catalog", writable=True):
            pass

    assert len(list(interrupted(filled, work, OPENING, possible=True, step=1))) > 50
    assert all(filled not in one.directory.parents for one in leases.environments())


def test_dropped_lease_is_no_claim(filled: Path) -> None:
    """Another user's release closes the environment; without another it closes as it goes."""
    with leases.acquire(filled / "catalog") as shared:
        leases.acquire(filled / "catalog")
        assert shared.leased
    assert shared.closed
    assert open_descriptors(filled) == []
    leases.acquire(filled / "catalog")
    assert open_descriptors(filled) == []


def test_lease_is_released_twice_and_ends_no_other(filled: Path) -> None:
    first, second = (leases.acquire(filled / "catalog") for _ in range(2))
    first.release()
    first.release()
    assert not second.environment.closed
    second.release()
    assert second.environment.closed


# -- whole calls -----------------------------------------------------------------------------------


def commit(path: Path) -> None:
    with simindex.open(path, "w") as index:
        index.append(ROWS[:150])
        index.commit()


def read(path: Path) -> None:
    with simindex.open(path) as index:
        index.query(ROWS[:3], h=1)


def compact(path: Path) -> None:
    with simindex.open(path, "w") as index:
        index.append(ROWS[:70])
        index.compact(full=True)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("work", [commit, read, compact])
def test_no_interrupt_leaves_a_descriptor(
    filled: Path, tmp_path: Path, work: Callable[[Path], None]
) -> None:
    """Python itself swallows an interrupt that comes within `__del__`, and warns."""

    def on_a_copy() -> None:
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(filled, copy)
        work(copy)

    copy = tmp_path / "copy.sim"
    counting = Interrupt(HOLDING, 1 << 40, possible=True)
    counting.during(on_a_copy)
    step = counting.passed // WHOLE_CALLS
    where = list(interrupted(copy, on_a_copy, HOLDING, possible=True, step=step, start=step // 2))
    assert len(where) > WHOLE_CALLS // 2


def test_thread_that_was_kept_from_starting_drops_its_descriptors(tmp_path: Path) -> None:
    """`threading` keeps its object for ever if an interrupt comes within `start`."""

    class Kept(threading.Thread):
        def start(self) -> None:
            raise Stop

    held = [Descriptor(tmp_path, os.O_RDONLY)]
    kept = Kept(target=held.clear)
    del held
    assert len(open_descriptors(tmp_path)) == 1
    with pytest.raises(Stop):
        begin(kept)
    assert open_descriptors(tmp_path) == []


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_no_signal_leaves_a_descriptor(filled: Path, rng: np.random.Generator) -> None:
    """Python itself swallows what a handler raises while a weak reference goes, and warns."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise Stop

    before = signal.signal(signal.SIGALRM, stop)
    interrupts = 0
    try:
        for _ in range(40):
            try:
                signal.setitimer(signal.ITIMER_REAL, rng.random() * 0.03 + 1e-4)
                try:
                    commit(filled)
                    compact(filled)
                finally:
                    signal.setitimer(signal.ITIMER_REAL, 0)
            except (Stop, SimindexError):
                interrupts += 1
    finally:
        signal.signal(signal.SIGALRM, before)
    assert interrupts
    assert settled(filled) == []
