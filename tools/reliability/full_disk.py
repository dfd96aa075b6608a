"""A small disk that really is full, with so many bytes left: a tmpfs of a few megabytes.

For each operation the disk is filled but for some kilobytes, from none up to what the operation
needs. It then succeeds or raises StorageFull; the index, and a reader that has it open, hold what
they held. Once there is space the same call on the same handle succeeds, and nothing is left over.
"""

from __future__ import annotations

import gc
import os
import shutil
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import simindex
from reliability import call_faults, namespaces
from reliability.calls import Call
from reliability.errors import scripted
from reliability.examination import examine, holds, open_descriptors
from reliability.report import Outcome, Pace
from reliability.steady import settle
from reliability.story import OPTIONS, Step, Story, difference, rows_in, step
from reliability.trials import Fault, Say, Tally, forked, parts_of, shared, workplace
from reliability.wreck import cleared, wreck
from simindex.errors import StorageFull

DISK_BYTES = 8 << 20
MOST_BYTES = 1800 << 10
"""More than any operation needs; that is shown by each succeeding at once."""

OPERATIONS = (
    "create", "append", "seal", "delete", "ingest", "replace", "rewrite", "install", "compact",
    "structures", "open", "close", "repair", "backup",
)


def run(goal: int, seed: int, jobs: int) -> list[Outcome]:
    """Operations of a story and every public call that writes, at so many amounts of space."""
    began = time.monotonic()
    if forked(lambda say: namespaces.enter()).code:
        why = f"{goal} full disks: nobody may mount a tmpfs here"
        return [Outcome("full disks", 0, 0, 0.0, seed, skipped=why)]
    tally = shared("full_disk", jobs, goal=goal)
    if not tally.counts.get("StorageFull"):
        tally.fault("wrong", "no disk was full")
    return [tally.outcome("full disks", goal, time.monotonic() - began, seed)]


def share(part: int, parts: int, goal: int) -> Tally:
    """One interpreter's part of them."""
    settle()
    tally = Tally()
    namespaces.enter()
    amounts = -(-goal // (2 * len(OPERATIONS)))
    step = -(-MOST_BYTES // max(1, amounts - 1) // 4096) * 4096
    due = [(operation, step * place) for operation in OPERATIONS for place in range(amounts)]
    of_calls = calls_due(goal // 2)
    with workplace() as elsewhere, workplace() as place:
        source = call_faults.specimens(elsewhere / "specimens")
        namespaces.mount("-t", "tmpfs", "-o", f"size={DISK_BYTES}", "none", str(place))
        try:
            mine = parts_of(due, part, parts)
            others = parts_of(of_calls, part, parts)
            pace = Pace(f"full-disk, part {part + 1} of {parts}", len(mine) + len(others))
            for number, (operation, free) in enumerate(mine):
                pace.at(number)
                ended = forked(partial(trial, place, operation, free))
                if tally.judge(ended, f"{operation} with {free} bytes free"):
                    tally.done += 1
                    tally.count(ended.said[0])
            for call, free in others:
                pace.at(tally.done)
                work = partial(
                    call_faults.on_full_disk, call, source, place, free, MOST_BYTES, fill
                )
                ended = forked(work)
                if tally.judge(ended, f"{call.name} with {free} bytes free"):
                    tally.done += 1
                    tally.count(ended.said[0])
        finally:
            namespaces.unmount(place)
    return tally


def calls_due(goal: int) -> list[tuple[Call, int]]:
    """Calls of the table with amounts of free space, `goal` or more: few, or a little more each."""
    amounts = -(-goal // len(call_faults.WRITERS))
    step = MOST_BYTES // max(1, amounts)
    return [
        (call, (step * place + 7919 * number) % MOST_BYTES // 4096 * 4096)
        for number, call in enumerate(call_faults.WRITERS) for place in range(amounts)
    ][:: max(1, len(call_faults.WRITERS) // max(1, goal))]


def trial(place: Path, operation: str, free: int, say: Say) -> None:
    """Raises Fault for what did not hold."""
    path = place / "index"
    story = Story(0, rewritten if operation in ("rewrite", "install") else scripted)
    shutil.rmtree(path, ignore_errors=True)
    shutil.rmtree(path.with_name("backup"), ignore_errors=True)
    (place / "filler").unlink(missing_ok=True)
    done, index, call = prepared(path, story, operation)
    reader = None if operation in ("create", "repair") else simindex.open(path, refresh=False)
    filled = fill(place, free)
    found: Any = None
    try:
        found = call()
        say("succeeded")
    except StorageFull as error:
        say("StorageFull")
        if free >= MOST_BYTES:
            raise Fault("wrong", f"it needs more than {MOST_BYTES} bytes: {error}") from error
        if index is not None and difference(rows_in(index), story.state(done)):
            raise Fault("wrong", "the handle sees another state") from error
        filled.unlink()
        found = call()
    filled.unlink(missing_ok=True)
    if reader is not None:
        holds(reader, story, done)
        if difference(rows_in(reader), story.state(done)):
            raise Fault("wrong", "the reader sees another state")
        reader.close()
    if isinstance(found, simindex.Index):
        index = found
    elif isinstance(found, simindex.BackupReport):
        with simindex.open(found.path) as copy:
            if holds(copy, story, done) != done or copy.check():
                raise Fault("wrong", "the backup is not the index")
        beside = {entry.name for entry in place.iterdir()} - {"index", "backup"}
        if beside:
            raise Fault("leaked", f"left behind: {beside}")
    elif isinstance(found, simindex.RepairReport):
        cleared(found, path)
    if index is not None:
        if operation not in ("open", "create", "close"):
            index.commit()
        index.close()
    del found, index
    gc.collect()
    left = open_descriptors(path)
    if left:
        raise Fault("leaked", f"open after close: {left}")
    with simindex.open(path) as again:
        notes = again.check()
    if notes:
        raise Fault("leaked", f"left behind: {notes}")
    examine(path, story, done)


def prepared(
    path: Path, story: Story, operation: str
) -> tuple[int, simindex.Index | None, Callable[[], Any]]:
    """The step that an index holds before the operation, its writer, and the operation."""
    if operation == "create":
        return 0, None, partial(simindex.open, path, "c", options=OPTIONS)
    index = simindex.open(path, "c", options=OPTIONS)
    numbers = {
        "append": 1, "delete": 2, "seal": 3, "close": 3, "ingest": 4, "replace": 5, "rewrite": 2,
        "install": 3,
    }
    before = numbers.get(operation, 6) - 1
    for number in range(1, before + 1):
        story.step(number).commit(index)
    if operation == "open":  # where LMDB's own file of locks is gone, as after a restored backup
        index.close()
        (path / "catalog" / "lock.mdb").unlink()
        return before, None, partial(simindex.open, path, "w")
    if operation == "repair":
        index.close()
        wreck(path)
        return before, None, partial(simindex.repair, path, apply=True)
    if operation == "backup":
        return before, index, partial(index.backup, path.with_name("backup"))
    if operation == "compact":
        return before, index, partial(index.compact, full=True)
    if operation == "structures":
        return before, index, partial(index.compact, structures=("psm", "bphs:G=2,g=1,r=1"))
    if operation == "close":  # which commits what waits in a file
        index.append(story.step(before + 1).batch())
        return before, index, index.close
    calls = story.step(before + 1).calls(index)
    for call in calls[:-1]:
        call()
    return before, index, calls[-1]


def rewritten(story: Story, number: int) -> Step:
    """A segment, deletions for which it is written again, and a commit that installs the new one.
    """
    values = np.arange(40, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    if number == 1:
        return step(1, "append", range(12), values[:12])
    doomed = range(8) if number == 2 else ()
    return step(number, "delete" if doomed else "append", [], [], doomed=doomed)


def fill(place: Path, free: int) -> Path:
    """Takes all the space of a disk but so many bytes; returns the file that has it."""
    disk, path = os.statvfs(place), place / "filler"
    taken = disk.f_bfree * disk.f_frsize - free
    with path.open("wb") as file:
        if taken > 0:
            os.posix_fallocate(file.fileno(), 0, taken)
    return path
