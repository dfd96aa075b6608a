"""A writer is killed at every call that changes the disk, in a script of some commits.

The script creates the index, and appends, replaces, deletes, ingests and compacts; merges run at
once, so that every run makes the same calls; at last the index is damaged, and repaired. Before
each of them, in the middle of each write, and at each call of some recoveries, the process ends by
SIGKILL; what is then found is compared with the commits it had acknowledged. The same is done with
every public call that writes (calls.py), on a copy of its specimen.
"""

from __future__ import annotations

import shutil
import time
from functools import partial
from pathlib import Path

import simindex
from reliability import call_faults, interposed
from reliability.examination import examine, holds, open_descriptors
from reliability.interposed import CHANGES, KILL, TEAR, Plan, arm, counts, disarm, disturbed, rearm
from reliability.report import Outcome, Pace
from reliability.steady import settle
from reliability.story import OPTIONS, Story, opened
from reliability.trials import Fault, Say, Tally, forked, parts_of, shared, workplace
from reliability.wreck import mend, wreck

LEAST_KILLS = 100
"""A commit, that a script which shrinks is noticed."""

WRECKED = -1
"""Said once the index needs a repair."""

RECOVERY_STRIDE = 8
"""Of so many kills one has its recovery killed at every call, too."""


def run(goal: int, seed: int, jobs: int) -> list[Outcome]:
    """Kills at every call of a script of `goal` commits."""
    return outcomes(goal, seed, jobs)


def outcomes(commits: int, seed: int, jobs: int, stride: int = 1) -> list[Outcome]:
    """Of every call, or of each `stride`-th; goal and done are numbers of kills."""
    if interposed.compiler() is None:
        return [Outcome("syscalls", 0, 0, 0, seed, skipped=f"{commits} commits: no C compiler")]
    began = time.monotonic()
    tally = shared(
        "syscalls", jobs, interposed.environment(), seed=seed, commits=commits, stride=stride
    )
    goal = max(tally.counts.get("kills due", 0), commits * LEAST_KILLS // stride)
    return [tally.outcome("syscalls", goal, time.monotonic() - began, seed)]


def share(part: int, parts: int, seed: int, commits: int, stride: int) -> Tally:
    """One interpreter's part of the kills."""
    settle()
    story, tally = Story(seed), Tally()
    story.state(commits + 1)
    with workplace() as place:
        path = place / "index"
        calls = measured(path, story, commits, tally)
        due = [Plan(CHANGES, use, use, KILL) for use in range(1, 1 + sum(calls.values()))]
        due += [Plan(("write",), use, use, TEAR) for use in range(1, 1 + calls["write"])]
        offset = seed % stride
        mine = parts_of(due[offset::stride], part, parts)
        pace = Pace(f"syscalls, part {part + 1} of {parts}", len(mine))
        for number, plan in enumerate(mine):
            pace.at(number)
            recovered = number % RECOVERY_STRIDE == seed % RECOVERY_STRIDE
            kill(path, story, commits, plan, tally, recovered=recovered)
        fresh(path)
        call_faults.kills(place, tally, part=part, parts=parts, seed=seed, stride=stride)
    return tally


def measured(path: Path, story: Story, commits: int, tally: Tally) -> dict[str, int]:
    """How often the whole script makes each call that changes the disk."""

    def work(say: Say) -> None:
        arm(path, Plan(()))
        write(path, story, commits, lambda value: None)
        disarm()
        say(counts())
        with simindex.open(path) as reader:
            holds(reader, story, commits)
        left = open_descriptors(path)
        if left:
            raise Fault("leaked", f"open after the script: {left}")

    fresh(path)
    ended = forked(work)
    tally.judge(ended, "the undisturbed script")
    return {name: times for name, times in ended.said[0].items() if name in CHANGES}


def write(path: Path, story: Story, commits: int, say: Say) -> None:
    """The script."""
    with simindex.open(path, "c", options=OPTIONS) as index:
        for number in range(1, commits + 1):
            step = story.step(number)
            step.commit(index)
            say(number)
            step.follow_up(index)
    disarm()
    wreck(path)
    say(WRECKED)
    rearm()
    mend(path)


def fresh(path: Path) -> None:
    """Nothing at the path."""
    shutil.rmtree(path, ignore_errors=True)


def kill(
    path: Path, story: Story, commits: int, plan: Plan, tally: Tally, *, recovered: bool
) -> None:
    """Runs the script to the call where it ends, and examines what is left."""

    def work(say: Say) -> None:
        with disturbed(path, plan):
            write(path, story, commits, say)

    fresh(path)
    tally.count("kills due")
    ended = forked(work)
    if ended.code == 0:
        tally.fault("wrong", f"{plan}: the script was not killed, so it took other calls")
        return
    if not tally.judge(ended, str(plan), killed=True):
        return
    acknowledged, wrecked = max(ended.said, default=0), WRECKED in ended.said
    if recovered:
        kill_recoveries(path, story, acknowledged, plan, tally, wrecked=wrecked)
    if tally.judge(forked(partial(found, path, story, acknowledged, wrecked)), str(plan)):
        tally.done += 1


def found(path: Path, story: Story, acknowledged: int, wrecked: bool, say: Say) -> None:
    """What the next process finds."""
    if wrecked:
        mend(path)
    say(examine(path, story, acknowledged))


def kill_recoveries(
    path: Path, story: Story, acknowledged: int, plan: Plan, tally: Tally, *, wrecked: bool
) -> None:
    """On copies of what a kill left: the next writer is killed at each of its calls, too."""
    copy = path.with_name("copy")
    use = 0
    while True:
        use += 1
        again = Plan(CHANGES, use, use, KILL)

        def work(say: Say, again: Plan = again) -> None:
            with disturbed(copy, again):
                if wrecked:
                    simindex.repair(copy, apply=True)
                with opened(copy):
                    pass

        fresh(copy)
        if path.exists():
            shutil.copytree(path, copy)
        ended = forked(work)
        note = f"{plan}, then {again} in its recovery"
        if ended.code == 0:
            break
        tally.count("kills due")
        tally.count("kills of recoveries")
        if not tally.judge(ended, note, killed=True):
            break  # an error that is there at each further call, too
        if tally.judge(forked(partial(found, copy, story, acknowledged, wrecked)), note):
            tally.done += 1
    fresh(copy)
