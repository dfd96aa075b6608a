"""Indexes that public calls are tried on: small, alike every time, and in each state there is.

    SPECIMENS   folders that are built once and copied for every trial
    STATES      what is done to the opened copy before the call: rows buffered, merges running, ...
    Model       what the index holds by then, and what it will hold after a commit
    Stage       one copy, its handle, and its model

A merge that is to be running when a call begins is held by `Gate`, within the thread that does it,
until it is cancelled or the gate opens.
"""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from signal import SIGKILL
from time import monotonic, sleep
from typing import Any, Literal

import numpy as np

import simindex
from reliability.brute import RECORDS, Rows, named
from reliability.wreck import wreck
from simindex import Batch, IndexOptions, Recipe
from simindex.index import deadline
from simindex.planning import measurement
from simindex.planning.machine import Machine
from simindex.storage.files import removal
from simindex.storage.segment_files import SegmentFiles
from simindex.storage.tables import times

MERGE_THREAD = "simindex merge"
"""Name of the threads that merge."""

THREADS = "simindex "
"""All threads of the package that outlive a call have names that begin so."""

RUNS_S = 2e-3
"""So long a merge goes on after the call begins that waits for it."""


def value(number: int, *flips: int) -> int:
    """A fingerprint of that number, with some bits flipped."""
    found = number * 0x9E3779B97F4A7C15 & (1 << 64) - 1
    for bit in flips:
        found ^= 1 << bit
    return found


def batch(rows: Mapping[int, int], *, weights: bool = True) -> Batch:
    """Ids with their fingerprints."""
    return Batch(
        np.array(list(rows.values()), np.uint64), ids=np.array(list(rows), np.uint64),
        weights=np.ones((len(rows), 64), np.float32) if weights else None,
    )


KEYED_H = 6
"""The radius of calls without an h where there is a recipe; 3 where there is none."""

RECIPE = Recipe(h=KEYED_H, sketch_bits=128)

WORDS = ("quick", "brown", "fox", "over", "lazy", "dogs", "while", "small", "segments", "merge")


def text(number: int) -> str:
    """A text of that number, unlike others, of 140 to 199 words: so many that the distances of
    sketches are told as they are."""
    steps = range(1, 141 + number * 7 % 60)
    return " ".join(WORDS[number * step % len(WORDS)] + str(number * step) for step in steps)


def keyed(*numbers: int, key: str = "key") -> Batch:
    """Texts of these numbers with their keys."""
    made = RECIPE.batch([text(n) for n in numbers], keys=[f"{key}{n}" for n in numbers])
    assert made.sketch is not None and made.sizes is not None
    records = zip(made.sketch, made.sizes.tolist(), strict=True)
    for value, (sketch, size) in zip(made.rows[:, 0].tolist(), records, strict=True):
        RECORDS[value] = int.from_bytes(sketch.tobytes(), "little"), size
    return made


PLAIN = IndexOptions(
    batch_rows=16, min_merge=2, reservoir_rows=8, structures=("psm", "bphs:G=2,g=1", "issl")
)
KEYED = IndexOptions(
    batch_rows=16, min_merge=2, reservoir_rows=8, keys="str", recipe=RECIPE,
    structures=("psm", "bphs:G=2,g=1"),
)

FIRST = (
    batch({1: value(1), 2: value(1, 0), 3: value(2, 5, 6), 4: value(3), 5: value(3), 6: value(2)}),
    batch({7: value(4), 8: value(1, 0, 1, 2), 9: value(5), 10: value(6)}),
    batch({11: value(7), 12: value(2, 0), 13: value(8)}),
)
FIRST_CAME = (1000, 2000, 3000)
"""When they did, where times are stored: in seconds since 1970, so that all else comes later."""
DELETED = (6, 9)
PENDING = batch({14: value(9)})

FIRST_KEYED = (keyed(1, 2, 3, 4), keyed(5, 6, 7), keyed(8, 9))
DELETED_KEYED = ("key2", "key6")
PENDING_KEYED = keyed(10)


# -- what is in it ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Model:
    """Rows of an index; None for `durable` where there is no index."""

    durable: Rows | None
    """That a process sees which opens it now."""
    waiting: Rows
    """That a commit by the handle would leave."""


Effect = Callable[[Model], Model]


def same(model: Model) -> Model:
    """Nothing changes."""
    return model


def committed(model: Model) -> Model:
    """What waits becomes durable."""
    return Model(model.waiting, model.waiting)


def discarded(model: Model) -> Model:
    """What waits is forgotten."""
    return Model(model.durable, model.durable or ())


def adding(rows: Batch) -> Effect:
    """Rows wait for a commit."""
    new = named(rows)
    return lambda model: replace(model, waiting=tuple(sorted([*model.waiting, *new])))


def without(*names: Any) -> Effect:
    """Rows of these names wait for a commit to go; those appended after this call do not."""
    gone = set(names)
    return lambda model: replace(
        model, waiting=tuple(row for row in model.waiting if row[0] not in gone)
    )


def chain(*effects: Effect) -> Effect:
    """One after the other."""
    def together(model: Model) -> Model:
        for effect in effects:
            model = effect(model)
        return model

    return together


def replacing(rows: Batch) -> Effect:
    """Rows in the place of those of their names."""
    return chain(without(*(name for name, _ in named(rows))), adding(rows))


# -- merges that wait ------------------------------------------------------------------------------


class Gate:
    """Holds the merges of this process; `install` puts it there."""

    def __init__(self) -> None:
        self._until = 0.0

    def close(self) -> None:
        """From now on merges wait."""
        self._until = float("inf")

    def open(self, after_s: float = 0.0) -> None:
        """Lets them go on, after a while."""
        self._until = monotonic() + after_s

    def install(self) -> None:
        """For the rest of this process."""
        merge = SegmentFiles.merge

        def held(files: SegmentFiles, *arguments: Any, **named: Any) -> Any:
            if threading.current_thread().name == MERGE_THREAD:
                while monotonic() < self._until:
                    named["progress"](0, 1)  # raises once the merge is cancelled
                    sleep(2e-4)
            return merge(files, *arguments, **named)

        changed: Any = SegmentFiles
        changed.merge = held


GATE = Gate()


def ready() -> None:
    """Holds merges, and keeps `tune` from measuring the machine, for the rest of this process."""
    GATE.install()
    changed: Any = measurement
    changed.measure = lambda file: Machine()
    removal.FREE_PAUSE_S = 0.0


# -- specimens -------------------------------------------------------------------------------------


def moment(seconds: int) -> datetime:
    """So long after the beginning of 1970."""
    return datetime.fromtimestamp(seconds, UTC)


def _populated(path: Path, keys: bool, *, aged: bool = False) -> None:
    GATE.close()
    options, first = (KEYED, FIRST_KEYED) if keys else (PLAIN, FIRST)
    with_rows = simindex.open(path, "n", options=replace(options, times=aged))
    clock: Any = times.clock
    changed: Any = times
    for rows, came in zip(first, FIRST_CAME, strict=True):
        changed.clock = partial(float, came)
        with_rows.append(rows)
        with_rows.commit()
    changed.clock = clock
    if keys:
        with_rows.delete(keys=list(DELETED_KEYED))
    else:
        with_rows.delete(ids=list(DELETED))
    with_rows.commit()
    with_rows.append(PENDING_KEYED if keys else PENDING)
    with_rows.commit()
    with_rows.close()  # which gives up the merges, so that there are several segments
    GATE.open()


def _wrecked(path: Path) -> None:
    _populated(path, keys=False)
    wreck(path)


def _abandoned(path: Path) -> None:
    """As a writer leaves it that is killed with a file written and a merge ended."""
    _populated(path, keys=False)
    ended()
    pid = os.fork()
    if pid == 0:
        try:
            index = simindex.open(path, "w")
            index.append(MORE)
            index.commit()
            ended()
            index.append(LARGE)
        finally:
            os.kill(os.getpid(), SIGKILL)
    os.waitpid(pid, 0)


def _empty(path: Path) -> None:
    """New: its first rows decide whether they have keys, and by which recipe they were made."""
    simindex.open(path, "n", options=PLAIN).close()


def _nothing(path: Path) -> None:
    """No index."""


def _plain(path: Path) -> None:
    _populated(path, keys=False)


def _keyed(path: Path) -> None:
    _populated(path, keys=True)


def _aged(path: Path) -> None:
    """As the plain one, with times."""
    _populated(path, keys=False, aged=True)


SPECIMENS: dict[str, Callable[[Path], None]] = {
    "plain": _plain, "keyed": _keyed, "aged": _aged, "wrecked": _wrecked, "abandoned": _abandoned,
    "empty": _empty, "nothing": _nothing,
}

MORE = batch({31: value(31), 32: value(32)})
LARGE = batch({number: value(number) for number in range(201, 221)}, weights=False)
SMALL = batch({41: value(41), 42: value(1, 3)})
ONE = batch({51: value(51)})

MORE_KEYED = keyed(31, 32)
SMALL_KEYED = keyed(41, 42)


def contents(specimen: str) -> Rows | None:
    """What the specimen holds."""
    if specimen in ("empty", "nothing"):
        return () if specimen == "empty" else None
    rows = [*FIRST_KEYED, PENDING_KEYED] if specimen == "keyed" else [*FIRST, PENDING]
    gone = set(DELETED_KEYED if specimen == "keyed" else DELETED)
    found = tuple(sorted(
        row for part in rows for row in named(part) if row[0] not in gone
    ))
    return tuple(sorted([*found, *named(MORE)])) if specimen == "abandoned" else found


# -- states ----------------------------------------------------------------------------------------


@dataclass(slots=True)
class Stage:
    """A copy of a specimen, with a handle on it."""

    path: Path
    keys: bool
    model: Model
    index: Any = None
    others: list[Any] = field(default_factory=list)
    """Further handles, closed at the end."""


def _buffered(stage: Stage) -> Effect:
    rows = SMALL_KEYED if stage.keys else SMALL
    stage.index.append(rows)
    return adding(rows)


def _spilled(stage: Stage) -> Effect:
    rows = keyed(*range(60, 80)) if stage.keys else LARGE
    stage.index.append(rows)
    return adding(rows)


def _deleting(stage: Stage) -> Effect:
    if stage.keys:
        stage.index.delete(keys=["key1"])
        return without("key1")
    stage.index.delete(ids=[2, 13])
    return without(2, 13)


def _expiring(stage: Stage) -> Effect:
    stage.index.expire(older_than=moment(FIRST_CAME[1]))
    return without(*(name for name, _ in named(FIRST[0])))


def _recent(stage: Stage) -> Effect:
    rows = keyed(51) if stage.keys else ONE
    stage.index.seen_or_add(rows, h=1, commit_s=None)
    return chain(committed, adding(rows))


def _named(stage: Stage) -> Effect:
    stage.index.append(MORE_KEYED)
    stage.keys = True
    return adding(MORE_KEYED)


def _merging(stage: Stage) -> Effect:
    rows = MORE_KEYED if stage.keys else MORE
    GATE.close()
    stage.index.append(rows)
    stage.index.commit()
    return chain(adding(rows), committed)


def _merged(stage: Stage) -> Effect:
    effect = _merging(stage)
    GATE.open()
    ended()
    return effect


def _behind(stage: Stage) -> Effect:
    with simindex.open(stage.path, "w") as other:
        other.append(ONE)
    return chain(adding(ONE), committed)


def _tuned(stage: Stage) -> Effect:
    stage.index.tune()
    return same


STATES: dict[str, Callable[[Stage], Effect]] = {
    "buffered": _buffered, "spilled": _spilled, "deleting": _deleting, "recent": _recent,
    "merging": _merging, "merged": _merged, "behind": _behind, "tuned": _tuned, "named": _named,
    "expiring": _expiring,
}
"""Of a handle when the call begins. Each returns what it does to the model."""


def ended() -> None:
    """Returns once no merge is at work in this process, and no files are given up."""
    GATE.open()
    for thread in threading.enumerate():
        if thread.name.startswith(THREADS) and thread.name != deadline.NAME:
            with suppress(RuntimeError):  # an interrupt of `start` has kept it from beginning
                thread.join()


def backup_of(path: Path) -> Path:
    """Where a call backs up the index."""
    return path.with_name(f"{path.name}-backup")


def copied(source: Path, path: Path) -> None:
    """A copy of a specimen, unless there is one already; none where there is no specimen."""
    if source.exists() and not path.exists():
        shutil.copytree(source, path, copy_function=shutil.copyfile)


Mode = Literal["", "r", "w"]


def staged(source: Path, path: Path, specimen: str, mode: Mode, states: tuple[str, ...]) -> Stage:
    """A fresh copy of a specimen in some state, opened unless `mode` is empty."""
    GATE.open()
    copied(source, path)
    shutil.rmtree(backup_of(path), ignore_errors=True)
    rows = contents(specimen)
    stage = Stage(path, specimen == "keyed", Model(rows, rows or ()))
    if mode:
        stage.index = simindex.open(path, mode)
    for state in states:
        stage.model = STATES[state](stage)(stage.model)
    return stage


def built(folder: Path) -> None:
    """Builds each specimen at `folder`/its name."""
    for name, make in SPECIMENS.items():
        make(folder / name)
