"""Power cuts during backups: every state that the disk may be left in is judged."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import simindex
from reliability.backup_scenes import (
    LACKING,
    VARIANTS,
    Scene,
    copied,
    examine,
    refuse_exchange,
    refuse_link,
    scene_at,
    whole,
)
from reliability.crash import Verdict, judged
from reliability.recorder import Recorder, record
from reliability.replay import CrashState, Replay, differences, plainest
from reliability.trials import Fault, Tally, parts_of, workplace
from reliability.workloads import deterministic

DRAWS = 12
"""Random subsets of what is pending, after each change of the disk."""


class _Recording(Recorder):
    """Of one variant."""

    def __init__(self, root: Path, variant: str) -> None:
        super().__init__(root)
        self.variant = variant

    def link(self, path: Path, to: Path) -> None:
        refuse_link(self.variant, self.root / "index", path)
        super().link(path, to)

    def exchange(self, path: Path, other: Path) -> None:
        refuse_exchange(self.variant, path)
        super().exchange(path, other)


def share(part: int, parts: int, goal: int, seed: int) -> Tally:
    """One interpreter's part of the variants."""
    mine = parts_of(VARIANTS, part, parts)
    verdict, tally = cut(-(-goal * len(mine) // len(VARIANTS)), seed, mine), Tally()
    for kind, what in verdict.faults:
        tally.fault(kind, what)
    tally.done = len(verdict.states)
    return tally


def cut(goal: int, seed: int, variants: Sequence[str] = VARIANTS) -> Verdict:
    """Judges the states that power cuts during backups may leave, about `goal` of them."""
    total = Verdict()
    with workplace() as folder:
        (folder / "scene").mkdir()
        scene = scene_at(folder / "scene")
        for place, variant in enumerate(variants):
            replay, crashes = _recorded(copied(scene, folder / "work", variant), variant, seed)
            crashes = [state for state in crashes if state.digest not in total.states]
            chosen = plainest(crashes, -(-(goal - len(total.states)) // (len(variants) - place)))
            work = partial(_judge, replay, chosen, scene, folder / "cut", variant)
            for verdict in judged(len(chosen), work):
                total.add(verdict)
    return total


def _recorded(scene: Scene, variant: str, seed: int) -> tuple[Replay, list[CrashState]]:
    """The trace of one backup, which is made in this process, and the states it may leave."""
    recorder = _Recording(scene.root, variant)
    with deterministic(seed + 1), simindex.open(scene.index) as index, record(recorder):
        recorder.begin(1)
        index.backup(scene.backup)
        recorder.acknowledge(1, index.generation)
    replay = Replay(recorder.start, recorder.trace)
    states = replay.states(draws=DRAWS, seed=seed)
    wrong = differences(replay, replay.final(), scene.root)
    if wrong:
        raise AssertionError(f"the trace of a backup is not complete: {wrong}")
    return replay, states


def _judge(
    replay: Replay, crashes: Sequence[CrashState], scene: Scene, root: Path, variant: str,
    number: int,
) -> Verdict:
    state = crashes[number]
    verdict = Verdict({state.digest})
    root.mkdir()
    try:
        replay.build(state.layout, root)
        mine = Scene(root, scene.older, scene.newer)
        promised = min(promise.acknowledged for promise in state.promises)
        if promised:
            whole(mine.backup, scene.newer)
        examine(mine, may_lack=not promised and variant in LACKING)
    except Fault as fault:
        verdict.faults.append((fault.kind, f"{variant}, {state.why}: {fault.note}"))
    except Exception as error:
        verdict.faults.append(("signals", f"{variant}, {state.why}: {error!r}"))
    finally:
        shutil.rmtree(root)
    return verdict
