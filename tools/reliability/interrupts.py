"""Every public call is interrupted at every line that it passes, one at a time.

    points     where to raise: each line of the package and of its waits that a call passes
               (points.py)
    sweep      makes a call once for each of some points, on a fresh copy of its specimen, and
               raises there: KeyboardInterrupt at odd points, an error of a signal handler of the
               caller's at even ones
    judged     while the exception and its frames are held: the handle is used further, closed, the
               index opened for writing, and its rows are those of all calls that returned, with
               the interrupted one as a whole or not at all. Of calls that have no handle, such as
               `repair`, the frames are let go first

A handle that was interrupted while it wrote may refuse to write (ReadOnlyIndex, ClosedIndex); what
was buffered and not committed may be gone then.

A point is a line with the line that called its function. One that is passed again, in a loop, is
taken once, or as often as `goal` is a multiple of FULL. Of fewer points than calls, some calls are
left out. Calls of one method in one state that
differ in how they ask (a method of search, a limit) share points: what the first has passed is not
taken again of the others. The output says how many events there are and how many were taken.

The storms (storms.py) raise at random moments by real signals, which come within a line, too.
`python -m reliability.interrupts WORD ...` sweeps all points of the calls whose names have a word.
"""

from __future__ import annotations

import errno
import faulthandler
import gc
import logging
import os
import re
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from shutil import rmtree
from types import FrameType
from typing import Any

import simindex
from reliability import storms
from reliability.aftermath import answers, one_of, opened_anew
from reliability.brute import Rows, held
from reliability.calls import CALLS, ENDING, Call, allowed, closed_with
from reliability.examination import open_descriptors
from reliability.model import descriptors
from reliability.planted import plant
from reliability.points import Event, Interruption, Point, events, traced
from reliability.report import Outcome, Pace, table
from reliability.stages import (
    GATE,
    MERGE_THREAD,
    RUNS_S,
    Model,
    Stage,
    adding,
    batch,
    built,
    ended,
    keyed,
    ready,
    staged,
    value,
    without,
)
from reliability.storms import Alarm
from reliability.trials import Child, Fault, Say, Tally, forked, shared, workplace
from simindex.errors import ClosedIndex, ReadOnlyIndex, SimindexError

FULL = 150_000
"""From this goal on all points are taken, else about as many as the goal, evenly spread."""

DECISIVE = ("mode", "apply", "full", "structures", "overwrite", "kind")
"""Arguments that tell calls apart which share no points."""

STORM_GOAL = 20
"""One random interrupt for so many points."""

HANG_S = 30.0
"""A point takes about ten milliseconds; where one hangs, the stacks go to the standard error."""

CLOSE_S = 5.0


# -- the points of a call --------------------------------------------------------------------------


def form(call: Call) -> tuple[Any, ...]:
    """What calls have in common that share points."""
    rows = len(call.arguments.get("batch", ())) if call.writes else 0
    given = tuple(call.arguments.get(name) or None for name in DECISIVE)
    return (call.method, call.on, call.mode, call.states, rows, given)


def points(
    call: Call, specimens: Path, path: Path, passages: int, taken: Counter[Any]
) -> tuple[list[Point], int]:
    """Where to raise, and how many events there are; `taken` is kept for the next call."""
    stage = staged(specimens / call.on, path, call.on, call.mode, call.states)
    if call.gate:
        GATE.open(RUNS_S)
    met = events(partial(call.made, stage))
    _closed(stage)
    alike, passed = form(call), Counter[Event]()
    chosen: list[Point] = []
    for number, event in enumerate(met, 1):
        passed[event] += 1
        if taken[alike, event] < passages:
            taken[alike, event] += 1
            code, line, kind, caller, caller_line = event
            chosen.append(Point(
                number, code.co_filename, line, kind, "" if caller is None else caller.co_filename,
                caller_line, passed[event],
            ))
    return chosen, len(met)


def _closed(stage: Stage) -> None:
    GATE.open()
    for handle in (*stage.others, stage.index):
        if handle is not None:
            handle.close()


# -- one point -------------------------------------------------------------------------------------


def tried(call: Call, point: Point, specimen: Path, path: Path) -> tuple[str, str]:
    """Interrupts a call at one point: "ended" if it has no such one, "refused", "went on" or
    "swallowed"; and the line where it was.

    Raises Fault for what did not hold.
    """
    before, at = descriptors(), point.at
    stage = staged(specimen, path, call.on, call.mode, call.states)
    examined = not unchanging(call) or at % LOOK == 0
    kind: type[BaseException] = KeyboardInterrupt if at % 2 else Alarm
    interruption = Interruption(point, kind("the caller's own"))
    model = stage.model
    if call.gate:
        GATE.open(RUNS_S)
    try:
        try:
            found = traced(partial(call.made, stage), interruption.meet)
            if isinstance(found, simindex.Index) and found is not stage.index:
                stage.others.append(found)
            found = None  # matches hold the files that their keys are read from
        except BaseException as raised:
            if interruption.left > 0:
                raise Fault("wrong", f"without any interrupt: {raised!r}") from raised
            if not _is_of(raised, interruption.error):
                raise Fault("wrong", f"it became {raised!r}") from raised
            _let_go(raised, interruption, all_frames=stage.index is None)
            outcome = _judged(call, stage, model, allowed(call, model), examined=examined)
        else:
            outcome = "ended" if interruption.left > 0 else "swallowed"
            _closed(stage)
            if examined:
                opened_anew(call, path, {closed_with(call, model)})
    except Fault as fault:
        raise Misdeed(fault, call, at, interruption) from fault
    where = interruption.where
    interruption.forget()
    stage.index = None
    stage.others.clear()
    gc.collect()
    ended()
    if CLOSED_TWICE:
        CLOSED_TWICE.clear()
        raise Misdeed(Fault("wrong", "a descriptor was closed twice"), call, at, None, where)
    if descriptors() > before:
        left = open_descriptors(path)
        if left:
            what = sorted({_kind_of(name, path) for name in left})
            raise Misdeed(Fault("leaked", f"open after close: {what}"), call, at, None, where)
    return outcome, where


def _let_go(raised: BaseException, interruption: Interruption, *, all_frames: bool) -> None:
    """Clears frames that a kept exception holds.

    Where there is no handle to close, what a call had open goes when its exception does. And no
    signal is met as a function returns, but after its frame is gone.
    """
    frames: list[FrameType] = []
    error: BaseException | None = raised if all_frames else None
    while error is not None:
        frames += [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
        error = error.__context__
    if interruption.point.event == "return" and interruption.frame is not None:
        frames.append(interruption.frame)
    for frame in frames:
        with suppress(RuntimeError):  # it is at work
            frame.clear()


def _is_of(raised: BaseException, error: BaseException) -> bool:
    """Whether what was raised is the interrupt, or tells of it.

    A condition of `threading` that loses its lock to an interrupt raises RuntimeError instead.
    """
    if raised is error or isinstance(raised, SimindexError):
        return True
    trace = raised.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    within_threading = trace is not None and trace.tb_frame.f_code.co_filename == threading.__file__
    return isinstance(raised, RuntimeError) and within_threading and raised.__context__ is error


def _kind_of(name: str, path: Path) -> str:
    """A file of an index without what is drawn of its name."""
    return re.sub(r"[0-9a-f]{8,}", "*", name.removeprefix(str(path)))


class Misdeed(Fault):
    """A fault with the point where it was made."""

    def __init__(
        self, fault: Fault, call: Call, at: int, interruption: Interruption | None, where: str = ""
    ) -> None:
        self.where = interruption.where if interruption is not None else where
        kind = "KeyboardInterrupt" if at % 2 else "Alarm"
        super().__init__(
            fault.kind, f"{call.name}, point {at}, {kind} at {self.where or 'none'}: {fault.note}"
        )
        function = re.sub(r":\d+ \w+", "", self.where)
        self.likeness = [function, re.sub(r"\d+", "*", fault.note)[:60]]
        """What faults have in common of which one is told in full."""


CLOSED_TWICE: list[int] = []
"""Descriptors that were closed when they were no longer open: by then they may be of others."""


def _close_watched() -> None:
    close = os.close

    def watched(fd: int) -> None:
        try:
            close(fd)
        except OSError as error:
            if error.errno == errno.EBADF:
                CLOSED_TWICE.append(fd)
            raise

    os.close = watched


LOOK = 16
"""A copy that readers share is opened for writing, and checked, after so many points."""


def unchanging(call: Call) -> bool:
    """Whether a call changes nothing on the disk, so that one copy serves for all points."""
    return call.mode == "r" and not call.states


def _judged(
    call: Call, stage: Stage, model: Model, holds: set[Rows | None], *, examined: bool
) -> str:
    """What became of an interrupted call: "refused" or "went on"."""
    GATE.open()
    outcome = "went on"
    index = stage.index
    if index is not None:
        closed = call.method in ENDING
        try:
            visible = held(index)
            one_of(visible, holds, "the handle sees")
            answers(index, visible)
            if call.mode == "w":
                holds = _gone_on(call, stage, model, holds)
        except ClosedIndex:
            if not closed:
                raise Fault("wrong", "the handle is closed") from None
            outcome = "refused"
        except _Refused as refused:
            outcome, holds = "refused", refused.holds
        except Fault:
            raise
        except Exception as error:
            raise Fault("wrong", f"the handle then raises {error!r}") from error
        began = time.monotonic()
        try:
            index.close()
        except Exception as error:
            raise Fault("wrong", f"the handle cannot be closed: {error!r}") from error
        if time.monotonic() - began > CLOSE_S:
            raise Fault("hangs", f"closing took more than {CLOSE_S} s")
        if any(thread.name == MERGE_THREAD and thread.is_alive()
               for thread in threading.enumerate()):
            raise Fault("leaked", "a merge is at work after close")
    if examined:
        opened_anew(call, stage.path, holds)
    return outcome


class _Refused(Exception):
    """The handle no longer writes; the index may hold these rows."""

    def __init__(self, holds: set[Rows | None]) -> None:
        self.holds = holds


LATER = batch({900: value(900)})
LATER_KEYED = keyed(900)
LATER_NAMED = simindex.Batch(LATER_KEYED.rows, keys=LATER_KEYED.keys)


def _gone_on(
    call: Call, stage: Stage, model: Model, holds: set[Rows | None]
) -> set[Rows | None]:
    """Appends, deletes and compacts; returns what the index then holds, or raises _Refused."""
    index = stage.index
    has_keys = index.options.keyed
    later = LATER
    if has_keys:  # an index that had no rows has taken sketches from its first ones, or not
        later = LATER_KEYED if index.options.sketch_bits else LATER_NAMED
    ends = {  # with names of one kind: an index without rows may have taken keys or not
        rows for rows in (model.waiting, call.effect(model).waiting)
        if not rows or isinstance(rows[0][0], str) == has_keys
    }
    with_later = {adding(later)(Model((), rows)).waiting for rows in ends}
    try:
        index.append(later)
        index.commit()
        rows = held(index)
        one_of(rows, set(with_later), "after another commit the handle sees")
        holds = {rows}
        gone = rows[0][0]
        without_it = without(gone)(Model((), rows)).waiting
        index.delete(**{"keys" if has_keys else "ids": [gone]})
        holds.add(without_it)
        index.compact()
        holds = {without_it}
        one_of(held(index), holds, "after a deletion and a compaction the handle sees")
        answers(index, without_it)
    except (ReadOnlyIndex, ClosedIndex):
        raise _Refused(holds) from None
    return holds


# -- many points -----------------------------------------------------------------------------------


def prepare() -> None:
    """For the rest of this process, which opens indexes and does not fork."""
    logging.getLogger("simindex").setLevel(logging.CRITICAL)
    sys.unraisablehook = lambda unraisable: None  # of what the collector closes
    threading.excepthook = lambda arguments: None  # judged by what it leaves
    _close_watched()
    ready()


def _counted(specimens: Path, place: Path, numbers: Sequence[int], passages: int, say: Say) -> None:
    prepare()
    built(specimens)
    taken: Counter[Any] = Counter()
    for number in numbers:
        path = place / f"count{number}"
        chosen, total = points(CALLS[number], specimens, path, passages, taken)
        rmtree(path, ignore_errors=True)
        files = sorted({name for one in chosen for name in (one.file, one.caller)})
        say({"call": number, "events": total, "files": files, "points": [
            [one.at, files.index(one.file), one.line, one.event, files.index(one.caller),
             one.caller_line, one.passage] for one in chosen
        ]})


def sweep(call: Call, due: Sequence[Point], specimens: Path, place: Path, say: Say) -> None:
    """Tries some points of a call, and says what became of each."""
    prepare()
    for point in due:
        at = point.at
        faulthandler.dump_traceback_later(HANG_S, exit=True)
        say({"at": at})
        path = place / ("copy" if unchanging(call) else str(at))
        try:
            outcome, where = tried(call, point, specimens / call.on, path)
            say({"outcome": outcome, "where": where})
        except Misdeed as fault:
            say({"kind": fault.kind, "note": fault.note, "of": fault.likeness})
        except Exception as error:  # as of another point that has closed what was not its own
            say({"kind": "wrong", "note": f"{call.name}, point {at}: {error!r}", "of": []})
        if not unchanging(call):
            rmtree(path, ignore_errors=True)
    rmtree(place / "copy", ignore_errors=True)
    left = open_descriptors(place)
    if left:
        note = f"{call.name}: open in the end: {left[:5]}"
        say({"kind": "leaked", "note": note, "of": []})


def swept(
    call: Call, due: Sequence[Point], specimens: Path, place: Path, tally: Tally,
    seen: set[tuple[str, ...]],
) -> None:
    """The same in a child, and another where one hangs or ends; `seen` are faults told already."""
    left = list(due)
    outcomes: Counter[str] = Counter()
    while left:
        child = Child(partial(sweep, call, left, specimens, place))
        ended = child.wait(len(left) * HANG_S)
        said = [one for one in ended.said if isinstance(one, dict)]
        last = max((one["at"] for one in said if "at" in one), default=0)
        for one in said:
            if "kind" in one:
                what = (one["kind"], *one["of"])
                if what in seen:  # the same fault met by another call, or in another round
                    setattr(tally, one["kind"], getattr(tally, one["kind"]) + 1)
                else:
                    tally.fault(one["kind"], one["note"])
                seen.add(what)
                outcomes[one["kind"]] += 1
            elif "outcome" in one:
                outcomes[one["outcome"]] += 1
                if one["outcome"] == "swallowed":
                    tally.count(f"swallowed at {one['where']}")
        left = [point for point in left if point.at > last]
        if ended.hung or ended.code == 1:
            tally.fault("hangs", f"{call.name}, point {last}")
            outcomes["hung"] += 1
        elif ended.code:
            tally.judge(ended, f"{call.name}, point {last}")
            outcomes["died"] += 1
    tried_here = sum(outcomes.values()) - outcomes["ended"]
    tally.done += tried_here
    tally.count(f"{call.name}: points", tried_here)
    for name, times in outcomes.items():
        tally.count(f"{call.name}: {name}", times)


def share(
    part: int, parts: int, goal: int, seed: int, only: Sequence[str] = (), fault: str = ""
) -> Tally:
    """One interpreter's part of the points of all calls, or of those whose names have a word.

    `fault` is one of `planted.FAULTS`, for a test of this trial.
    """
    tally = Tally()
    if fault:
        plant(fault)
    forms = list(dict.fromkeys(map(form, CALLS)))  # those that share points stay together
    numbers = [number for number, call in enumerate(CALLS)
               if (not only or any(word in call.name for word in only))
               and forms.index(form(call)) % parts == part]
    few = max(1, len(forms) // goal)  # below one point a call, calls are left out before they run
    numbers = numbers[seed % few :: few] if not only else numbers
    with workplace() as place:
        specimens = place / "specimens"
        specimens.mkdir()
        passages = max(1, goal // FULL)
        gc.collect()
        gc.freeze()  # so that the collections of the children are short
        seen: set[tuple[str, ...]] = set()
        counted = forked(partial(_counted, specimens, place, numbers, passages), 600.0)
        if not tally.judge(counted, "the undisturbed calls"):
            return tally
        total = sum(len(value["points"]) for value in counted.said)
        stride = 1 if goal >= FULL else max(1, total * parts // goal)
        tally.count("events that the calls pass", sum(v["events"] for v in counted.said))
        pace = Pace(f"interrupts, part {part + 1} of {parts}", total // stride)
        offset = seed % stride
        for one in counted.said:
            chosen, files = one["points"], one["files"]
            due = chosen[offset % max(1, min(stride, len(chosen))) :: stride]
            tally.count("points due", len(due))
            offset += 1  # so that short calls are not always met at the same points
            pace.at(tally.done)
            places = [
                Point(at, files[file], line, event, files[caller], caller_line, passage)
                for at, file, line, event, caller, caller_line, passage in due
            ]
            swept(CALLS[one["call"]], places, specimens, place, tally, seen)
    return tally


def described(tally: Tally) -> None:
    """Prints what became of each call, and takes that out of the counts."""
    for name in [name for name in tally.counts if name.endswith(": points")]:
        call, told = name.removesuffix(": points"), []
        for other in [other for other in tally.counts if other.startswith(f"{call}: ")]:
            told.append(f"{tally.counts.pop(other):,} {other.removeprefix(f'{call}: ')}")
        print(f"{call}: {', '.join(told)}", file=sys.stderr)


def run(
    goal: int, seed: int, jobs: int, only: Sequence[str] = (), fault: str = ""
) -> list[Outcome]:
    """The points of all calls, and storms of random interrupts, by real signals.

    With `only` the points of the calls whose names have one of these words.
    """
    began = time.monotonic()
    tally = shared("interrupts", jobs, goal=goal, seed=seed, only=list(only), fault=fault)
    described(tally)
    # Waits that take other rounds than when they were counted end some calls before their points.
    least = tally.counts.get("points due", 0) * 9 // 10
    found = tally.outcome("interrupts", max(1, least), time.monotonic() - began, seed)
    return [found] if only else [found, *storms.run(max(1, goal // STORM_GOAL), seed, jobs)]


if __name__ == "__main__":
    print(table(run(FULL, 0, 2, sys.argv[1:])))
