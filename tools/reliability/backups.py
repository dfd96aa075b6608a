"""Backups that are stopped at each step, cut off from power, or made beside a busy writer.

    backups          killed before and behind each step that changes the disk; each step refused
                     once, or from then on
    backup_cuts      the disk is recorded, and every state is judged that a power cut may leave
    backup_writers   a process commits, deletes and merges while another one backs up
    backup_scenes    what is backed up, and how what is left is judged
"""

from __future__ import annotations

import errno
import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import simindex
from reliability import backup_writers
from reliability.backup_scenes import (
    LACKING,
    VARIANTS,
    Scene,
    copied,
    examine,
    refuse_exchange,
    refuse_link,
    scene_at,
)
from reliability.report import Outcome, Pace
from reliability.trials import Fault, Say, Tally, forked, parts_of, shared, workplace
from reliability.workloads import rows_of
from simindex.errors import SimindexError
from simindex.storage.files import disk

REFUSED = (errno.ENOSPC, errno.EIO)

def run(goal: int, seed: int, jobs: int) -> list[Outcome]:
    """Stops, power cuts, and backups beside a writer: as many of the first two as the goal says,
    a tenth as many of the last."""
    began = time.monotonic()
    tally = shared("backups", jobs, goal=goal, seed=seed)
    outcomes = [tally.outcome("stopped backups", goal, time.monotonic() - began, seed)]
    began = time.monotonic()
    tally = shared("backup_cuts", jobs, goal=goal, seed=seed)
    outcomes.append(tally.outcome("power cuts of backups", goal, time.monotonic() - began, seed))
    began = time.monotonic()
    tally = backup_writers.beside(max(1, goal // 10))
    outcomes.append(tally.outcome(
        "backups beside a writer", max(1, goal // 10), time.monotonic() - began, seed
    ))
    return outcomes


class Steps(disk.System):
    """Counts the steps of a backup, and refuses what its variant has not."""

    def __init__(self, variant: str, index: Path) -> None:
        self.variant, self.index = variant, index
        self.number = 0
        self.at: Callable[[int, bool], None] = lambda number, done: None
        """Called before each step, and behind it."""

    def link(self, path: Path, to: Path) -> None:
        """Refused from one file system to another, or always."""
        refuse_link(self.variant, self.index, path)
        super().link(path, to)

    def exchange(self, path: Path, other: Path) -> None:
        """Refused where there is no such thing."""
        refuse_exchange(self.variant, path)
        super().exchange(path, other)


def _counted(name: str) -> Callable[..., Any]:
    def step(self: Steps, *arguments: Any, **named: Any) -> Any:
        self.number += 1
        number = self.number
        self.at(number, False)
        done = getattr(super(_Counting, self), name)(*arguments, **named)
        self.at(number, True)
        return done

    return step


class _Counting(Steps):
    """Whose steps call `at`."""


for _name in (
    "create", "write", "allocate", "resize", "lengthen", "sync", "rename", "exchange", "link",
    "unlink", "make_directory", "remove_directory", "sync_directory", "lmdb",
):
    setattr(_Counting, _name, _counted(_name))


@contextmanager
def stepping(system: disk.System) -> Iterator[None]:
    """Has all writing go through a system of ours."""
    real, disk.system = disk.system, system
    try:
        yield
    finally:
        disk.system = real


@dataclass(frozen=True, slots=True)
class Stop:
    """How one backup is stopped."""

    variant: str
    number: int
    """Of the step."""
    how: str
    """killed before it, killed behind it, refused once, refused from then on"""
    code: int = 0
    """What it is refused by."""


def stops(scene: Scene, place: Path) -> list[Stop]:
    """Every way to stop a backup at each of its steps."""
    found = []
    for variant in VARIANTS:
        def count(say: Say, variant: str = variant) -> None:
            mine = copied(scene, place / "counted", variant)
            system = _Counting(variant, mine.index)
            with stepping(system), simindex.open(mine.index) as index:
                index.backup(mine.backup)
            say(system.number)

        ended = forked(count)
        if not ended.said or ended.code:
            raise AssertionError(f"an undisturbed backup failed: {ended}")
        for number in range(1, ended.said[0] + 1):
            found += [Stop(variant, number, how) for how in ("killed before", "killed behind")]
            found += [
                Stop(variant, number, how, code)
                for how in ("refused once", "refused from then on") for code in REFUSED
            ]
    return found


def stopped(scene: Scene, place: Path, stop: Stop, say: Say) -> None:
    """Makes a backup that is stopped; it raises Fault for an error that is not a typed one."""
    mine = copied(scene, place, stop.variant)
    system = _Counting(stop.variant, mine.index)

    def at(number: int, done: bool) -> None:
        if stop.how.startswith("killed"):
            if number == stop.number and done == (stop.how == "killed behind"):
                os.kill(os.getpid(), signal.SIGKILL)
        elif not done and (
            number == stop.number if stop.how == "refused once" else number >= stop.number
        ):
            raise OSError(stop.code, os.strerror(stop.code), "a file")

    system.at = at
    with simindex.open(mine.index) as index:
        with stepping(system):
            try:
                index.backup(mine.backup)
                say("succeeded")
            except SimindexError as error:
                say(type(error).__name__)
        if rows_of(index) != scene.newer:
            raise Fault("wrong", "the handle sees other rows")


def judged_stop(scene: Scene, place: Path, stop: Stop, tally: Tally) -> None:
    """Tries one stop and adds to the tally."""
    note = f"{stop}"
    ended = forked(partial(stopped, scene, place, stop))
    killed = stop.how.startswith("killed")
    went_on = tally.judge(ended, note, killed=killed) or (killed and ended.code < 0)
    tally.count(ended.said[0] if ended.said else "killed")
    if not went_on:
        return
    left = Scene(place, scene.older, scene.newer)
    after = forked(lambda _say: examine(left, may_lack=stop.variant in LACKING))
    if tally.judge(after, note):
        tally.done += 1


def share(part: int, parts: int, goal: int, seed: int) -> Tally:
    """One interpreter's part of the stops."""
    tally = Tally()
    with workplace() as folder:
        (folder / "scene").mkdir()
        scene = scene_at(folder / "scene")
        every = stops(scene, folder)
        random.Random(seed).shuffle(every)
        mine = parts_of(every[:goal], part, parts)
        pace = Pace(f"backups, part {part + 1} of {parts}", len(mine))
        for number, stop in enumerate(mine):
            pace.at(number)
            judged_stop(scene, folder / "trial", stop, tally)
    return tally
