"""What an index is put through while its disk is recorded, and what each step promises.

A workload is a base, which is durable when it begins, and a sequence of operations. Each of them
marks in the trace when it begins and when it has returned, so that what a crash leaves can be held
against it: the rows of the last operation that returned, or of the one under way.

Merges run at once, in the thread that starts them, and names are drawn by a seed, so that equal
sequences make equal traces and what two of them have in common is tried once. In some scripts
merges run during commits, as they do for users.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from dataclasses import replace as changed
from datetime import UTC, datetime
from math import inf
from pathlib import Path
from threading import Thread
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray

import simindex
from reliability.recorder import Recorder, record
from reliability.steady import AtOnce
from simindex import Batch, IndexOptions
from simindex.index import settling
from simindex.planning import measurement
from simindex.planning.machine import Machine
from simindex.storage.catalog.records import page_count
from simindex.storage.files.locks import unlock
from simindex.storage.tables import times
from simindex.writing import merges, releasing, writer

Row = tuple[str, bytes]
"""What names a row, as text, and its fingerprint, followed by its sketch and the set's size."""

Rows = tuple[Row, ...]

State = Rows | None
"""Sorted rows of an index; None where there is none."""

PLAIN = IndexOptions(
    batch_rows=16, min_merge=2, reservoir_rows=4, structures=("psm", "bphs:G=2,g=1", "issl:w=8")
)
KEYED = IndexOptions(
    bits=128, sketch_bits=192, keys="str", batch_rows=16, min_merge=2, reservoir_rows=4,
    structures=("psm", "bphs:G=2,g=1", "issl:w=8"),
)
AGED = changed(PLAIN, times=True, sketch_bits=64)
SKETCHED = changed(PLAIN, sketch_bits=64)
OTHER_STRUCTURES = ("psm", "bphs:G=2,g=1,r=1")


@contextmanager
def deterministic(seed: int, *, threads: bool = False) -> Iterator[None]:
    """Names of a seed, a machine that need not be measured and, without `threads`, merges that run
    at once."""
    chance = random.Random(seed)
    with (
        mock.patch.object(merges, "Thread", Thread if threads else AtOnce),
        mock.patch.object(releasing, "Thread", Thread if threads else AtOnce),
        mock.patch.object(settling, "IDLE_S", inf),
        mock.patch.object(writer, "STAGED_PAGES", 1),  # directories are stored ahead of them
        mock.patch.object(measurement, "measure", lambda file: Machine()),
        mock.patch.object(os, "urandom", chance.randbytes),
    ):
        yield


def rows_of(index: simindex.Index) -> Rows:
    """All live rows of an index."""
    found: list[Row] = []
    for batch in index.rows():
        found += named_rows(batch)
    return tuple(sorted(found))


def named_rows(batch: Batch) -> list[Row]:
    """The rows of a batch that has ids or keys."""
    names: Any = batch.keys if batch.ids is None else batch.ids.tolist()
    values = batch.rows
    if batch.sketch is not None:
        sizes: Any = np.zeros(len(batch), np.int64) if batch.sizes is None else batch.sizes
        values = np.hstack([values, batch.sketch, sizes[:, None].astype(np.uint64)])
    return list(zip(map(str, names), map(bytes, values), strict=True))


def sizes_of(numbers: NDArray[np.uint64]) -> NDArray[np.int64]:
    """How many features rows of these numbers have: powers of two, which a byte has exactly. Of one
    in seven it is not known."""
    powers = np.int64(1) << (numbers % np.uint64(31)).astype(np.int64)
    return np.where(numbers % np.uint64(7) == 3, 0, powers)


@dataclass
class Work:
    """One workload while it runs: the index, what should be in it, and the recorder's marks."""

    path: Path
    options: IndexOptions
    recorder: Recorder
    states: list[State]
    index: Any = None
    number: int = 0
    """Of rows appended so far; no two have the same."""
    now: int = 1000
    """The clock, in seconds; it goes on with each batch."""
    came: dict[Row, int] = field(default_factory=dict)

    @property
    def rows(self) -> Rows:
        """What should be in the index now."""
        return self.states[-1] or ()

    def batch(self, count: int) -> Batch:
        """New rows; the first of them has the name of the oldest row that is there."""
        numbers = np.arange(self.number, self.number + count, dtype=np.uint64)
        self.number += count
        self.now += 1
        values = (numbers * np.uint64(0x9E3779B97F4A7C15)).repeat(self.options.words)
        fingerprints = values.reshape(count, -1)
        weights = np.ones((count, self.options.bits), np.float32)
        named: dict[str, Any] = {"ids": numbers}
        if self.options.keys:
            named = {"keys": [f"key {n}" for n in numbers]}
        if self.options.sketch_bits:
            sketch = (~values[:: self.options.words]).repeat(self.options.sketch_words)
            named["sketch"] = sketch.reshape(count, -1)
            named["features"] = sizes_of(numbers)
        return Batch(fingerprints, weights=weights, **named)

    @contextmanager
    def step(self, *states: State) -> Iterator[None]:
        """Marks an operation that leads to the last of some states, through the others."""
        self.states += states
        last = len(self.states) - 1
        self.recorder.begin(last)
        yield
        self.recorder.acknowledge(last, self.index.generation)

    def adding(self, batch: Batch, *, without: Sequence[str] = ()) -> Rows:
        """The rows there will be."""
        rows = [row for row in self.rows if row[0] not in without]
        fresh = named_rows(batch)
        self.came.update(dict.fromkeys(fresh, self.now))
        return tuple(sorted(rows + fresh))

    def open(self) -> None:
        """Opens the index for writing, as the next process would."""
        self.index = simindex.open(self.path, "w")

    def close(self) -> None:
        """Closes it, if it is open."""
        if self.index is not None:
            self.index.close()

    def abandon(self) -> None:
        """Leaves the index as a process does that is killed: nothing is discarded or removed."""
        index, self.index = self.index, None
        unlock(index._handle.writer.committer.lock)
        index._handle.writer.merges._merges.clear()
        index._handle.closed = index._handle._ended = True
        index._handle.lease.release()


def create(work: Work) -> None:
    """Makes an index where there is none."""
    work.states.append(())
    work.recorder.begin(len(work.states) - 1)
    work.index = simindex.open(work.path, "c", options=work.options)
    work.recorder.acknowledge(len(work.states) - 1, work.index.generation)


def recreate(work: Work) -> None:
    """Makes an empty one in the place of one that is there."""
    work.close()
    work.recorder.acknowledge(len(work.states) - 1, 0)  # generations begin anew
    work.states += (None, ())
    work.recorder.begin(len(work.states) - 1)
    work.index = simindex.open(work.path, "n", options=work.options, overwrite=True)
    work.recorder.acknowledge(len(work.states) - 1, work.index.generation)


def append(work: Work) -> None:
    """One row, which waits in the catalog, or joins others into a segment."""
    _append(work, 1)


def seal(work: Work) -> None:
    """Rows for a segment."""
    _append(work, 3)


def spill(work: Work) -> None:
    """More rows than a batch, so that a segment is written before the commit."""
    _append(work, 19)


def found(work: Work) -> None:
    """The first segment of a base: as many rows as `seal` makes of its own and a pending one."""
    _append(work, 4)


def _append(work: Work, count: int) -> None:
    batch = work.batch(count)
    with work.step(work.adding(batch)):
        work.index.append(batch)
        work.index.commit()


def delete(work: Work) -> None:
    """The oldest and the newest row."""
    names = [row[0] for row in (*work.rows[:1], *work.rows[-1:])] or ["7"]
    named = {"keys": names} if work.options.keys else {"ids": [int(name) for name in names]}
    with work.step(tuple(row for row in work.rows if row[0] not in names)):
        work.index.delete(**named)
        work.index.commit()


def expire(work: Work) -> None:
    """The rows that came before half of the rows did; some of them wait for the commit."""
    fresh = work.batch(2)
    after = work.adding(fresh)
    before = sorted(work.came[row] for row in after)[len(after) // 2]
    with work.step(tuple(row for row in after if work.came[row] >= before)):
        work.index.append(fresh)
        work.index.expire(older_than=datetime.fromtimestamp(before, UTC))
        work.index.commit()


def replace(work: Work) -> None:
    """Two rows, in one commit with the deletion of those that had their names."""
    fresh = work.batch(2)
    gone = [row[0] for row in work.rows[:2]]
    names = [*gone, *(row[0] for row in named_rows(fresh)[len(gone):])]
    named = {"keys": names} if work.options.keys else {"ids": [int(name) for name in names]}
    fresh = Batch(fresh.fingerprints, sketch=fresh.sketch, features=fresh.sizes, **named)
    with work.step(work.adding(fresh, without=gone)):
        work.index.replace(fresh)
        work.index.commit()


def ingest(work: Work) -> None:
    """Rows that are looked for first."""
    batch = work.batch(2)
    with work.step(work.adding(batch)):
        work.index.ingest(batch, h=3)
        work.index.commit()


def merge(work: Work) -> None:
    """Merges segments if there are too many: background threads do, or `compact`."""
    with work.step(work.rows):
        work.index.compact()


def compact(work: Work) -> None:
    """All segments become one, without dead rows."""
    with work.step(work.rows):
        work.index.compact(full=True)


def restructure(work: Work) -> None:
    """Segments get other permuted tables, and lose or get slice lists."""
    usual = tuple(work.index.options.structures) != OTHER_STRUCTURES
    with work.step(work.rows):
        work.index.compact(structures=OTHER_STRUCTURES if usual else PLAIN.structures)


def tune(work: Work) -> None:
    """Constants of a machine are stored."""
    with work.step(work.rows):
        work.index.tune()
        work.index.commit()


def reopen(work: Work) -> None:
    """Another process goes on after one that was killed in the middle of an append and a merge."""
    work.index.append(work.batch(17))
    work.abandon()
    work.open()


def repair(work: Work) -> None:
    """What is damaged of an index is built anew; a sound one stays as it is."""
    sound = work.index is not None
    work.close()
    work.states.append(None)
    work.recorder.begin(len(work.states) - 1)
    simindex.repair(work.path, apply=True)
    work.open()
    work.states[-1] = rows_of(work.index)
    if sound and work.states[-1] != work.states[-2]:
        raise AssertionError("a repair changed an index that was sound")
    work.recorder.acknowledge(len(work.states) - 1, work.index.generation)


Operation = Callable[[Work], None]

OPERATIONS: dict[str, Operation] = {
    operation.__name__: operation
    for operation in (
        recreate, append, seal, spill, delete, replace, ingest, merge, compact, restructure, tune,
        reopen, repair,
    )
}

AGING: dict[str, Operation] = {**OPERATIONS, "expire": expire}
"""Those of an index that stores when rows came."""

POPULATED = (found, delete, append)
"""What the bases are made by: a segment, rows that are deleted in it, and one that is pending."""


@dataclass(frozen=True, slots=True)
class Workload:
    """A base and the operations on it; all names are of `BASES` and `AGING`."""

    base: str
    operations: tuple[str, ...]
    threads: bool = False
    """Whether merges run during commits, so that no two traces are alike."""

    def __str__(self) -> str:
        return " ".join((self.base, *self.operations, *["(threads)"] * self.threads))


Damage = Callable[[Path], None]


def lose_catalog(path: Path) -> None:
    """Takes away the catalog's file."""
    (path / "catalog" / "data.mdb").unlink()


def spoil_catalog(path: Path) -> None:
    """Changes a byte of each page of the catalog's but the meta pages and those of its tree."""
    with (path / "catalog" / "data.mdb").open("r+b") as file:
        for page in range(2, 40):
            file.seek(page * 4096 + 4000)
            file.write(b"\xa5")


def lose_format(path: Path) -> None:
    """Takes FORMAT away."""
    (path / "FORMAT").unlink()


def spoil_rows(path: Path) -> None:
    """Changes a byte of the fingerprints of a segment."""
    (name, *_) = sorted((path / "segments").glob("*.rows"))
    with name.open("r+b") as file:
        file.seek(4096 + 3)
        file.write(b"\xa5")


BASES: dict[str, tuple[IndexOptions, tuple[Operation, ...], Damage | None]] = {
    "nothing": (PLAIN, (), None),
    "index": (PLAIN, POPULATED, None),
    "keyed": (KEYED, POPULATED, None),
    "aged": (AGED, POPULATED, None),
    "no-catalog": (SKETCHED, POPULATED, lose_catalog),
    "spoilt-catalog": (PLAIN, POPULATED, spoil_catalog),
    "no-format": (PLAIN, POPULATED, lose_format),
    "spoilt-rows": (SKETCHED, (*POPULATED, spill), spoil_rows),
}
"""Options, what is done, and how the index is damaged then, so that `repair` comes first."""


def short() -> list[Workload]:
    """Every sequence of one or two operations, of which the first makes an index or finds one."""
    made = [Workload("nothing", ())]
    made += [Workload("nothing", (name,)) for name in OPERATIONS]
    made += [Workload("keyed", (name,)) for name in OPERATIONS]
    made += [Workload("index", (name,)) for name in OPERATIONS]
    made += [Workload("index", (one, two)) for one in OPERATIONS for two in OPERATIONS]
    made.append(Workload("aged", ("expire",)))
    made += [Workload("aged", ("expire", name)) for name in AGING]
    made += [Workload("aged", (name, "expire")) for name in OPERATIONS]
    for base, (_, _, damage) in BASES.items():
        if damage is not None:
            made.append(Workload(base, ("repair",)))
    made += [Workload("no-catalog", ("repair", name)) for name in OPERATIONS]
    return made


def long(seed: int, count: int = 200) -> Workload:
    """A script of many operations, appends most often."""
    chance = random.Random(seed)
    weights = {"append": 6, "seal": 6, "spill": 2, "delete": 3, "expire": 2, "ingest": 3,
               "recreate": 0, "repair": 0}
    names = list(AGING)
    drawn = chance.choices(names, [weights.get(name, 1) for name in names], k=count)
    return Workload("aged", tuple(drawn))


def threaded(seed: int, count: int) -> Workload:
    """A script in which merges run during commits."""
    chance = random.Random(seed)
    names = ["append", "seal", "spill", "delete", "expire", "ingest", "merge", "compact",
             "restructure"]
    drawn = chance.choices(names, [3, 6, 3, 3, 1, 1, 1, 1, 1], k=count)
    return Workload("aged", tuple(drawn), threads=True)


def run(
    workload: Workload, root: Path, seed: int, recorder: type[Recorder] = Recorder
) -> tuple[Recorder, list[State]]:
    """Runs a workload in an empty folder; the trace of its operations, and the states in it.

    Without a base the trace begins with making the index.
    """
    options, before, damage = BASES[workload.base]
    path = root / "index"
    with deterministic(seed, threads=workload.threads), ExitStack() as stack:
        work = Work(path, options, Recorder(root), [None])
        stack.enter_context(mock.patch.object(times, "clock", lambda: float(work.now)))
        if workload.base != "nothing":
            create(work)
            for operation in before:
                operation(work)
            work.close()
        if damage is not None:
            damage(path)
            work.index = None
        work.recorder = recorder(root)
        del work.states[:-1]
        with record(work.recorder):
            if workload.base == "nothing":
                create(work)
            elif damage is None:
                work.open()
                work.recorder.acknowledge(0, work.index.generation)
            for name in workload.operations:
                AGING[name](work)
            work.close()
    return work.recorder, work.states


def pages_left(index: simindex.Index) -> int:
    """Pages of header directories in the catalog that no segment names."""
    shared = index._handle.catalog.environment
    with shared._env.begin() as txn:
        stored: int = txn.stat(shared._databases["headers"])["entries"]
    named = sum(
        page_count(width) for segment in index._current().segments
        for _, width in segment.record.directories
    )
    return stored - named
