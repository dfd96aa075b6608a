"""Every call that can fail does, at each of its uses, once and for good.

A script creates an index, appends, deletes, replaces, ingests, merges, compacts, changes
structures, asks and checks; a reader follows; at last the index is damaged, and repaired. It is run
again for each use of each kind of call, for each error that the call may give. So is every public
call (calls.py), on a copy of its specimen. This must hold:

1. What is raised is a SimindexError or MemoryError, says which file and what to do, and comes as an
   exception: no signal, no hang.
2. The step that failed can be done again once the error is gone, by the same call on the same
   handle; or the handle says that it no longer writes, after a failed commit, and the index opened
   anew holds that commit or the one before. Then the script ends as it does undisturbed.
3. A reader that pinned a commit sees it throughout.
4. Nothing is left: no temporary or unnamed file, unless the log says that it could not be removed
   or the outcome of a commit was unknown; no descriptor, no map.
"""

from __future__ import annotations

import errno
import gc
import logging
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

import simindex
from reliability import call_faults, interposed
from reliability.examination import examine, holds, open_descriptors
from reliability.interposed import (
    FAIL,
    FOREVER,
    PART,
    Plan,
    arm,
    counts,
    disarm,
    fired,
    rearm,
)
from reliability.report import Outcome, Pace
from reliability.steady import settle
from reliability.story import (
    OPTIONS,
    Step,
    Story,
    compared,
    difference,
    expected,
    rows_in,
    step,
    wrong_answers,
)
from reliability.trials import Fault, Say, Tally, forked, parts_of, shared, workplace
from reliability.wreck import cleared, wreck
from simindex.errors import CommitFailed, CorruptFile, ReadOnlyIndex, SimindexError
from simindex.storage.files import durable

DISK = (errno.EIO, errno.ENOSPC)

ERRORS: dict[str, tuple[int, ...]] = {
    "open": (errno.EIO, errno.EMFILE, errno.ENOMEM, errno.EINTR),
    "create": (*DISK, errno.EMFILE, errno.ENOMEM, errno.EINTR),
    "close": (errno.EIO, errno.EINTR),
    "duplicate": (errno.EMFILE,),
    "read": (errno.EIO, errno.EINTR),
    "write": (*DISK, errno.EINTR, PART),
    "truncate": (*DISK, errno.EINTR),
    "allocate": (*DISK, errno.EINTR),
    "sync": (*DISK, errno.EINTR),
    "sync_range": DISK,
    "rename": (*DISK, errno.ENOMEM),
    "unlink": (errno.EIO, errno.ENOMEM),
    "mkdir": DISK,
    "list": (errno.EIO, errno.EMFILE, errno.ENOMEM),
    "stat": (errno.EIO, errno.ENOMEM),
    "space": (errno.EIO, errno.EINTR),
    "map": (errno.ENOMEM,),
    "lock": (errno.EINTR, errno.ENOLCK),
    "memory": (errno.ENOMEM,),
    "thread": (errno.EAGAIN,),
}
"""What each call may fail with; PART is not an error but a short write."""

CALLS_STRIDE = 8
"""Of the errors of the public calls one in so many is taken; another seed takes others. There are
69,000, of which a third are allocations."""

PASSING = (errno.EINTR,)
"""Errors that the caller is to try again, for ever if need be: they come once only."""

log = logging.getLogger("simindex")

Call = Callable[[], Any]


def run(goal: int, seed: int, jobs: int) -> list[Outcome]:
    """All of them; `goal` is a least number, so that a script that shrinks is noticed."""
    return outcomes(goal, seed, jobs, stride=1)


def outcomes(goal: int, seed: int, jobs: int, stride: int) -> list[Outcome]:
    """Each `stride`-th of the errors."""
    if interposed.compiler() is None:
        return [Outcome("errors", 0, 0, 0, seed, skipped=f"{goal} errors: no C compiler")]
    began = time.monotonic()
    tally = shared("errors", jobs, interposed.environment(), seed=seed, stride=stride)
    return [tally.outcome("errors", max(goal, tally.counts.get("due", 0)),
                          time.monotonic() - began, seed)]


def of_calls(
    names: Sequence[str], kinds: Sequence[str], jobs: int, stride: int = 1
) -> Outcome:
    """Each `stride`-th error of some kinds of calls of the system, in some public calls.

    `names` are those of `calls.Call`. Kinds that have one error fail at each use with a stride of
    2, once instead of once and for good.
    """
    if interposed.compiler() is None:
        return Outcome("errors", 0, 0, 0, 0, skipped="no C compiler")
    began = time.monotonic()
    tally = shared("errors", jobs, interposed.environment(), seed=0, stride=stride,
                   names=list(names), kinds=list(kinds))
    return tally.outcome("errors", tally.counts.get("due", 0), time.monotonic() - began, 0)


def share(
    part: int, parts: int, seed: int, stride: int, names: Sequence[str] = (),
    kinds: Sequence[str] = (),
) -> Tally:
    """One interpreter's part of the errors; of the public calls only if `names` tells which."""
    steady()
    tally = Tally()
    if names:
        with workplace() as place:
            calls = [call for call in call_faults.ASKED_OF_FILES if call.name in names]
            call_faults.refusals(
                place, tally, lambda uses: plans({kind: uses.get(kind, 0) for kind in kinds}),
                judged, calls, part=part, parts=parts, seed=seed, stride=stride,
            )
        return tally
    with workplace() as place:
        path = place / "index"
        due = plans(measured(path, tally))
        mine = parts_of(due[seed % stride :: stride], part, parts)
        pace = Pace(f"errors, part {part + 1} of {parts}", len(mine))
        for number, plan in enumerate(mine):
            pace.at(number)
            tally.count("due")
            shutil.rmtree(path, ignore_errors=True)
            ended = forked(partial(_run, path, plan))
            for value in ended.said:
                if "count" in value:
                    tally.count(value["count"])
            if tally.judge(ended, str(plan)):
                tally.done += 1
        shutil.rmtree(path, ignore_errors=True)
        call_faults.refusals(
            place, tally, plans, judged, call_faults.ASKED_OF_FILES, part=part, parts=parts,
            seed=seed, stride=stride * CALLS_STRIDE,
        )
    return tally


def _run(path: Path, plan: Plan, say: Say) -> None:
    Trial(path, plan, say).run()


def steady() -> None:
    """Runs are alike, and small files are written back as large ones are."""
    settle()
    durable.WRITE_BACK_BYTES, durable.WRITE_BACK_DEPTH = 1 << 12, 0


def measured(path: Path, tally: Tally) -> dict[str, int]:
    """How often the undisturbed script makes each call."""

    def work(say: Say, calls: tuple[str, ...]) -> None:
        trial = Trial(path, Plan(calls), lambda value: None)
        trial.run()
        uses = counts()
        say(uses)

    found: dict[str, int] = {}
    for calls in ((), ("thread",)):
        shutil.rmtree(path, ignore_errors=True)
        ended = forked(partial(work, calls=calls))
        if not tally.judge(ended, "the undisturbed script"):
            return {}
        found = {**ended.said[0], **{name: found[name] for name in found if name not in calls}}
    return found


def plans(uses: dict[str, int]) -> list[Plan]:
    """One for each use of each call, and error, once and for good."""
    found = []
    for call, errors in ERRORS.items():
        for use in range(1, uses.get(call, 0) + 1):
            for error in errors:
                action = PART if error == PART else FAIL
                lasts = (use,) if error in PASSING else (use, FOREVER)
                found += [Plan((call,), use, last, action, error) for last in lasts]
    return found


def scripted(story: Story, number: int) -> Step:
    """Eight commits through everything a writer does."""
    values = np.arange(100, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    script: list[Callable[[], Step]] = [
        lambda: step(1, "append", [1], values[1:2]),
        lambda: step(2, "delete", [], [], doomed=[1]),
        lambda: step(3, "append", range(20, 40), values[20:40]),
        lambda: step(4, "ingest", [50, 51], values[[20, 50]]),
        lambda: step(5, "replace", [20, 60], values[[61, 60]]),
        lambda: step(6, "append", [70], values[70:71], tidy="full"),
        lambda: step(7, "append", [70], values[71:72], tidy="psm+bphs:G=2,g=1,r=1"),
        lambda: step(8, "delete", [], [], doomed=[22, 23], tidy="some"),
    ]
    if number <= len(script):
        return script[number - 1]()
    return step(number, "append", [number], values[number : number + 1])


def judged(path: Path, error: Exception) -> None:
    """Raises unless an error says what happened to which file below a path, and what to do."""
    text = str(error)
    if isinstance(error, CorruptFile):
        raise Fault("signals", f"nothing is corrupt: {text}") from error
    if isinstance(error, SimindexError):
        if str(path) not in text + str(error.data.get("path")):
            raise Fault("signals", f"{type(error).__name__} names no file: {text}") from error
        if not error.remedy:
            raise Fault("signals", f"{type(error).__name__} has no remedy: {text}") from error


COMMITS = 8


class _Overhearing(logging.Handler):
    """Keeps what is logged, also by the loggers below, and keeps it from the standard error."""

    def __init__(self, told: list[str]) -> None:
        super().__init__()
        self._told = told

    def emit(self, record: logging.LogRecord) -> None:
        self._told.append(record.getMessage())


@dataclass(slots=True)
class Trial:
    """One run of the script under a plan."""

    path: Path
    plan: Plan
    say: Say
    unknown: bool = False
    """Whether a commit's outcome was unknown."""
    raised: int = 0
    told: list[str] = field(default_factory=list)
    """What the package has logged."""
    over: bool = False
    """Whether the error has been met, and is gone."""

    def run(self) -> None:
        """Raises Fault for what did not hold."""
        story = Story(0, scripted)
        story.state(COMMITS + 2)
        log.addHandler(_Overhearing(self.told))
        log.propagate = False
        arm(self.path, self.plan)
        disarm()  # but for the calls of the package, see `attempt`
        index = self.opened("c")
        reader = self.opened("r")
        for number in range(1, COMMITS + 1):
            index = self.commit(index, story, number)
            self.follow(index, reader, story, number)
        for handle in (reader, index):
            self.attempt(handle.close)
            handle.close()
        wreck(self.path)
        cleared(self.retried(partial(simindex.repair, self.path, apply=True)), self.path)
        times = fired()
        if self.plan.action and not times and "thread" not in self.plan.calls:
            raise Fault("wrong", "the script took other calls: none was disturbed")
        self.say({"count": "raised" if self.raised else "without any exception"})
        self.nothing_left()
        examine(self.path, story, COMMITS)

    def opened(self, mode: Literal["r", "w", "c"]) -> simindex.Index:
        """A handle, at the second try at the latest."""
        options = OPTIONS if mode == "c" else None
        found: simindex.Index = self.retried(
            partial(simindex.open, self.path, mode, options=options, refresh=mode != "r")
        )
        return found

    def retried(self, call: Call) -> Any:
        """What a call returns, at once or again after it failed."""
        error, found = self.attempt(call)
        return found if error is None else call()

    def attempt(self, call: Call) -> tuple[BaseException | None, Any]:
        """Calls, and judges what is raised; the error is over then, so that it can go on."""
        before = fired()
        try:
            if not self.over:
                rearm()
            found = call()
            disarm()
            return None, found
        except (SimindexError, MemoryError) as error:
            disarm()
            if fired() == before and not (self.over and isinstance(error, ReadOnlyIndex)):
                raise
            self.over = True
            self.raised += 1
            self.say({"count": type(error).__name__})
            judged(self.path, error)
            return error, None

    def commit(self, index: simindex.Index, story: Story, number: int) -> simindex.Index:
        """One step of the story, by as many tries as it takes; returns the handle to go on with."""
        step = story.step(number)
        calls: list[Call] = [*step.calls(index), partial(step.follow_up, index)]
        for call in calls:
            error, _ = self.attempt(call)
            if error is None:
                continue
            rows = rows_in(index)
            states = [story.state(number - 1), story.state(number)]
            if all(difference(rows, state) for state in states):
                raise Fault("wrong", f"step {number}: after {error!r} the handle sees neither")
            again, _ = self.attempt(call)
            if again is None:
                continue
            if not isinstance(again, ReadOnlyIndex):
                raise Fault("lost", f"step {number}: {error!r}, then {again!r}")
            if not isinstance(error, CommitFailed | MemoryError | OSError):
                raise Fault("wrong", f"step {number}: poisoned by {error!r}")
            self.unknown = True
            self.attempt(index.close)
            index = self.opened("w")
            if holds(index, story, number - 1) == number - 1:
                step.commit(index)
            step.follow_up(index)
            return index
        return index

    def follow(
        self, index: simindex.Index, reader: simindex.Index, story: Story, number: int
    ) -> None:
        """Asks and checks; the reader sees the commit before until it is told to follow."""
        threads = 2 if "thread" in self.plan.calls else 1
        handle, step = (index, number) if number % 2 else (reader, number - 1)
        rows = story.state(step)
        wrong = difference(self.retried(partial(rows_in, handle)), rows)
        queries, h = rows["fingerprint"][:4] ^ np.uint64(5), 3
        for method in ("auto", "psm", "issl", "scan"):
            if method == "issl" and step == 7:  # no lists any more
                continue
            found = self.retried(
                partial(handle.query, queries, h=h, method=method, threads=threads)
            )
            wrong = wrong or compared(found, expected(rows, queries, h), method)
        self.retried(partial(handle.top, queries, k=1, threads=threads))
        wrong = wrong or wrong_answers(handle, rows, np.random.default_rng(number))
        if wrong:
            raise Fault("wrong", f"after step {number}: {wrong}")
        self.retried(reader.refresh)
        if number not in (3, 7):
            return
        times = fired()
        findings = self.retried(index.check)
        if fired() > times:
            findings = index.check()
        if times or not fired():
            errors = [finding for finding in findings if finding.severity == "error"]
            if errors:
                raise Fault("wrong", f"after step {number}: {errors[0]}")

    def nothing_left(self) -> None:
        """Raises if a handle left files or descriptors, before another writer clears up."""
        gc.collect()  # an exception and the frames it passed hold each other
        left = open_descriptors(self.path)
        if left:
            raise Fault("leaked", f"open after close: {left}")
        said = [text for text in self.told if "not removed yet" in text or "unknown" in text]
        with simindex.open(self.path) as reader:
            notes = reader.check()
        if notes and not (self.unknown or said):
            raise Fault("leaked", f"left behind, and nobody says so: {notes}")
