"""The calls of the table while the process is killed, the system refuses, or the disk is full.

    kills         at each call that changes the disk, and in the middle of each write
    refusals      each fallible call at each use, once and for good
    on_full_disk  with so many kilobytes left

Each point is a fresh copy of a specimen in a child of its own, with merges that run at once, so
that every run takes the same steps. What is left is judged as after an interrupt (aftermath.py).
"""

from __future__ import annotations

import gc
import logging
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import simindex
from reliability.aftermath import answers, one_of, opened_anew
from reliability.brute import Rows, held
from reliability.calls import CALLS, ENDING, LOCATED, Call, allowed, closed_with
from reliability.examination import open_descriptors
from reliability.interposed import CHANGES, KILL, TEAR, Plan, arm, counts, disarm, disturbed
from reliability.report import Pace
from reliability.stages import Model, Stage, built, ready, staged
from reliability.trials import Fault, Say, Tally, forked, parts_of
from simindex.errors import (
    ClosedIndex,
    CommitFailed,
    IndexExists,
    ReadOnlyIndex,
    SimindexError,
    StorageFull,
)

WRITERS = tuple(call for call in CALLS if call.writes)

MEASURED_STRIDE = 6

ASKED_OF_FILES = tuple(call for call in CALLS if call.mode or call.method in LOCATED)
"""Calls that meet files of an index at all."""


def specimens(folder: Path) -> Path:
    """Builds them, in a child, as the interpreter that forks must not open an index."""
    folder.mkdir()

    def build(say: Say) -> None:
        ready()
        built(folder)

    ended = forked(build)
    assert ended.code == 0, ended.said
    return folder


def _some(
    calls: Sequence[Call], part: int, parts: int, seed: int, stride: int
) -> tuple[Sequence[Call], int]:
    """One interpreter's share of calls, and the stride for what is done to each.

    Where that is long fewer calls are measured, which takes as long as to disturb them once.
    """
    fewer = max(1, min(MEASURED_STRIDE, stride // 16))
    return parts_of(calls[seed % fewer :: fewer], part, parts), stride // fewer


def measured(call: Call, source: Path, path: Path, tally: Tally) -> dict[str, int]:
    """How often a call that nothing disturbs makes each call of the system."""
    def work(say: Say) -> None:
        ready()
        stage = _staged(call, source, path)
        arm(path, Plan(()))
        call.made(stage)
        disarm()
        say(counts())

    shutil.rmtree(path, ignore_errors=True)
    ended = forked(work)
    if not tally.judge(ended, f"{call.name}, undisturbed"):
        return {}
    return dict(ended.said[0])


def _staged(call: Call, source: Path, path: Path) -> Stage:
    return staged(source / call.on, path, call.on, call.mode, call.states)


# -- kills -----------------------------------------------------------------------------------------


def kills(place: Path, tally: Tally, *, part: int, parts: int, seed: int, stride: int) -> None:
    """Of each call that writes, at each `stride`-th of its calls."""
    source, path = specimens(place / "specimens"), place / "killed"
    due: list[tuple[Call, Plan]] = []
    some, stride = _some(WRITERS, part, parts, seed, stride)
    for call in some:
        uses = measured(call, source, path, tally)
        changes = sum(uses.get(name, 0) for name in CHANGES)
        due += [(call, Plan(CHANGES, use, use, KILL)) for use in range(1, changes + 1)]
        due += [(call, Plan(("write",), use, use, TEAR))
                for use in range(1, uses.get("write", 0) + 1)]
    mine = due[seed % stride :: stride]
    pace = Pace(f"kills of calls, part {part + 1} of {parts}", len(mine))
    for number, (call, plan) in enumerate(mine):
        pace.at(number)
        tally.count("kills due")
        tally.count("kills of the calls of the table")
        shutil.rmtree(path, ignore_errors=True)
        ended = forked(partial(_killed, call, plan, source, path))
        note = f"{call.name}, {plan}"
        if ended.code == 0:
            tally.fault("wrong", f"{note}: it was not killed, so it took other calls")
        elif tally.judge(ended, note, killed=True):
            model = _heard(ended.said[0])
            if tally.judge(forked(partial(_left, call, path, model)), note):
                tally.done += 1
    shutil.rmtree(path, ignore_errors=True)


def _killed(call: Call, plan: Plan, source: Path, path: Path, say: Say) -> None:
    ready()
    stage = _staged(call, source, path)
    say([stage.model.durable, stage.model.waiting])
    with disturbed(path, plan):
        call.made(stage)


def _heard(said: Sequence[Any]) -> Model:
    durable, waiting = (
        None if rows is None else tuple((name, number) for name, number in rows) for rows in said
    )
    return Model(durable, waiting or ())


def _left(call: Call, path: Path, model: Model, say: Say) -> None:
    ready()
    opened_anew(call, path, allowed(call, model))
    with simindex.open(path, "w") as index:
        rows = held(index)
        index.compact(full=True)
        one_of(held(index), {rows}, "after a compaction the index holds")
        answers(index, rows)


# -- errors ----------------------------------------------------------------------------------------


def refusals(
    place: Path, tally: Tally, plans: Callable[[dict[str, int]], list[Plan]],
    judge: Callable[[Path, Exception], None], calls: Sequence[Call], *, part: int, parts: int,
    seed: int, stride: int,
) -> None:
    """Of each of some calls, each `stride`-th of the plans that `plans` makes of its uses."""
    source, path = specimens(place / "specimens"), place / "refused"
    due: list[tuple[Call, Plan]] = []
    some, stride = _some(calls, part, parts, seed, stride)
    for call in some:
        due += [(call, plan) for plan in plans(measured(call, source, path, tally))]
    mine = due[seed % stride :: stride]
    pace = Pace(f"errors of calls, part {part + 1} of {parts}", len(mine))
    for number, (call, plan) in enumerate(mine):
        pace.at(number)
        tally.count("due")
        tally.count("errors of the calls of the table")
        shutil.rmtree(path, ignore_errors=True)
        ended = forked(partial(_refused, call, plan, source, path, judge))
        if tally.judge(ended, f"{call.name}, {plan}"):
            tally.done += 1
    shutil.rmtree(path, ignore_errors=True)


def _refused(
    call: Call, plan: Plan, source: Path, path: Path, judge: Callable[[Path, Exception], None],
    say: Say,
) -> None:
    ready()
    with silent():
        stage = _staged(call, source, path)
        error: Exception | None = None
        arm(path, plan)
        try:
            _kept(stage, call.made(stage))
        except (SimindexError, MemoryError) as raised:
            error = raised
        finally:
            disarm()
        if error is None:
            _come_to_its_end(call, stage, {closed_with(call, stage.model)})
            return
        judge(path.parent, error)  # a backup is made beside the index, under a hidden name
        again = _repeated(call, stage, error)
        del error
        _come_to_its_end(call, stage, again)


def _kept(stage: Stage, found: Any) -> None:
    if isinstance(found, simindex.Index) and found is not stage.index:
        stage.others.append(found)


def _repeated(call: Call, stage: Stage, error: Exception) -> set[Rows | None]:
    """Makes the call again, now that nothing is refused; returns what the index may hold."""
    model, holds = stage.model, allowed(call, stage.model)
    if stage.index is not None and call.method not in ENDING:
        one_of(held(stage.index), holds, f"after {error!r} the handle sees")
    try:
        _kept(stage, call.made(stage))
    except (ReadOnlyIndex, ClosedIndex) as refused:
        if not isinstance(error, CommitFailed | MemoryError | OSError):
            raise Fault("wrong", f"poisoned by {error!r}") from refused
        return holds
    except IndexExists:  # the index was made, and then not opened
        if call.arguments.get("mode") != "n":
            raise
        return holds
    if call.method in ENDING:
        return holds
    after = call.effect(model)
    if call.mode == "w":
        try:
            stage.index.commit()
        except ReadOnlyIndex:  # of a reading call that was repeated after a commit had failed
            return holds
        one_of(held(stage.index), {after.waiting}, "once it was repeated, the handle sees")
        return {after.waiting}
    return {after.durable}


def _come_to_its_end(call: Call, stage: Stage, holds: set[Rows | None]) -> None:
    for handle in (*stage.others, stage.index):
        if handle is not None:
            handle.close()
    path = stage.path
    stage.index = None
    stage.others.clear()
    del handle
    gc.collect()
    left = open_descriptors(path)
    if left:
        raise Fault("leaked", f"open after close: {left}")
    opened_anew(call, path, holds)


@contextmanager
def silent() -> Iterator[None]:
    """Keeps what the package logs from the standard error."""
    log = logging.getLogger("simindex")
    log.disabled = True
    try:
        yield
    finally:
        log.disabled = False


# -- full disks ------------------------------------------------------------------------------------


def on_full_disk(
    call: Call, source: Path, place: Path, free: int, most: int,
    fill: Callable[[Path, int], Path], say: Say,
) -> None:
    """One call on a disk with so many bytes left; it succeeds from `most` on."""
    ready()
    path = place / "called"
    shutil.rmtree(path, ignore_errors=True)
    (place / "filler").unlink(missing_ok=True)
    with silent():
        stage = _staged(call, source, path)
        filled = fill(place, free)
        error: Exception | None = None
        try:
            _kept(stage, call.made(stage))
            say("succeeded")
        except StorageFull as raised:
            error = raised
            say("StorageFull")
        filled.unlink()
        if error is None:
            _come_to_its_end(call, stage, {closed_with(call, stage.model)})
        elif free >= most:
            raise Fault("wrong", f"it needs more than {most} bytes: {error}")
        else:
            holds = _repeated(call, stage, error)
            error = None
            _come_to_its_end(call, stage, holds)
    shutil.rmtree(path, ignore_errors=True)
