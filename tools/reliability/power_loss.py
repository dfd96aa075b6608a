"""Power cuts: every state the disk may be left in is opened, and holds what was promised.

    workloads   what is done to an index, with marks of what was promised
    recorder    what that does to the disk
    replay      what of it a power cut may leave
    crash       what is left is opened, recovered and compared
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path

from reliability import crash, workloads
from reliability.crash import Trial, Verdict
from reliability.recorder import Recorder
from reliability.replay import Replay, differences, plainest
from reliability.report import Outcome
from reliability.workloads import Workload

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108  (a folder of its own is made in it)

LONG_OPERATIONS, LONG_SHARE = 200, 0.15
"""Of the long script, and the share of its changes of the disk after which a crash is tried."""

THREADED, THREADED_OPERATIONS = 4, 20
"""Scripts in which merges run while batches are committed."""

FURTHER_OPERATIONS = 20

DRAWS = 12
"""Random subsets of what is pending, after each change of the disk."""

AGAIN = 40
"""The recovery of one state in so many is recorded and crashed in turn."""


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder for states, in memory where there is some: nothing in it is to last."""
    parent = SHARED_MEMORY if os.access(SHARED_MEMORY, os.W_OK) else None
    folder = Path(tempfile.mkdtemp(prefix="simindex-power-loss-", dir=parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def tried(
    workload: Workload,
    seed: int,
    *,
    draws: int,
    most: int | None = None,
    share: float = 1.0,
    known: set[bytes] | None = None,
    again: int = 0,
    again_states: int = 64,
    recorder: type[Recorder] = Recorder,
) -> Verdict:
    """Runs a workload, and judges at most `most` of the states that it may leave.

    Parameters
    ----------
    draws : int
        Random subsets of what is pending, after each operation.
    share : float
        Of the operations after which a crash is tried.
    known : set of digests, optional
        States that were judged before and need not be again; those judged now are added.
    again, again_states : int
        See `Trial`.

    Raises
    ------
    AssertionError
        If all operations of the trace do not make the directory that the workload left.
    """
    with scratch() as folder:
        root = folder / "work"
        root.mkdir()
        recorded, states = workloads.run(workload, root, seed, recorder)
        replay = Replay(recorded.start, recorded.trace)
        crashes = replay.states(draws=draws, seed=seed, share=share)
        if recorder is Recorder:
            wrong = differences(replay, replay.final(), root)
            assert wrong == [], (str(workload), wrong)
        known = set() if known is None else known
        fresh = [state for state in crashes if state.digest not in known]
        if most is not None:
            fresh = plainest(fresh, most)
        options, _, damage = workloads.BASES[workload.base]
        trial = Trial(
            replay, states, options, seed, damaged=damage is not None, again=again,
            again_states=again_states,
        )
        verdict = Verdict()
        for found in crash.judged(len(fresh), lambda n: trial.judge(fresh[n], folder / str(n))):
            verdict.add(found)
        known |= verdict.states
        verdict.faults = [(kind, f"{workload}, {what}") for kind, what in verdict.faults]
        return verdict


def group(members: Sequence[Workload], seed: int, share: float = 1.0) -> Verdict:
    """Workloads that begin alike, so that what they share is judged once."""
    verdict = Verdict()
    for workload in members:
        verdict.add(tried(
            workload, seed, draws=DRAWS, share=share, known=set(verdict.states), again=AGAIN
        ))
    return verdict


def run(goal: int, seed: int, jobs: int) -> list[Outcome]:
    """Every workload of at most two operations, and a long script; recoveries included.

    Where these have fewer states than the goal, further scripts are tried.
    """
    began = time.monotonic()
    everything = workloads.short()
    groups: dict[tuple[str, ...], list[Workload]] = {}
    for workload in everything:
        groups.setdefault((workload.base, *workload.operations[:1]), []).append(workload)
    total = Verdict()

    def take(tasks: Iterable[Future[Verdict]]) -> None:
        for task in as_completed(tasks):
            total.add(task.result())
            print(
                f"power-loss: {len(total.states):,} states, {total.recoveries:,} recoveries, "
                f"{len(total.faults)} faults, {time.monotonic() - began:,.0f} s",
                file=sys.stderr, flush=True,
            )

    with ProcessPoolExecutor(jobs, get_context("fork")) as pool:
        # The long one first: it takes longest.
        script = workloads.long(seed, LONG_OPERATIONS)
        first = [pool.submit(group, [script], seed, LONG_SHARE)]
        first += [
            pool.submit(group, [workloads.threaded(seed + number, THREADED_OPERATIONS)], seed)
            for number in range(THREADED)
        ]
        take(first + [pool.submit(group, members, seed) for members in groups.values()])
        count, further = len(everything) + len(first), seed
        while len(total.states) < goal and not total.faults:
            seeds = range(further + 1, further + 1 + jobs)
            further += jobs
            count += jobs
            take([
                pool.submit(group, [workloads.long(each, FURTHER_OPERATIONS)], each)
                for each in seeds
            ])
    for kind, what in total.faults[:50]:
        print(f"power-loss: {kind}: {what}", file=sys.stderr)
    what = f"power-loss states ({count} workloads, {total.recoveries:,} recoveries)"
    return [outcome(what, goal, total, time.monotonic() - began, seed)]


def outcome(what: str, goal: int, total: Verdict, seconds: float, seed: int) -> Outcome:
    """A verdict as a line of the table."""
    return Outcome(
        what, goal, len(total.states), seconds, seed,
        lost=total.count("lost"), wrong=total.count("wrong"), signals=total.count("signals"),
        hangs=total.count("hangs"), leaked=total.count("leaked"),
    )
