"""Real shards on this machine: what the simulation begins with, and what it is compared with.

    measure    steps of a search as `simindex tune` has them, the disk, text, rows, calls, matches
    check      1 to 4 shards, built by a process for each core and asked by as many threads, which
               keep them open as actors do; predicted, measured

Constants are measured on other rows, sizes and numbers of shards than those that are compared.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from math import inf
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Self

import numpy as np
from benchmarks import ingesting, machine, texts

from simindex import Batch, IndexOptions
from simindex.arrays import U64
from simindex.distributed import (
    OpenShard,
    Shard,
    Shards,
    build_shard,
    merge_matches,
    plan_shards,
    query_shard,
)
from simindex.planning.fleet import Fleet, Rates, merge_passes, shard_work
from simindex.planning.forecast import Outline, outlines
from simindex.planning.machine import Machine
from simindex.planning.measurement import measure as measure_machine
from simulation import asking, building

CONSTANTS = Path(__file__).with_name("measured.json")

H = 3
CORES = len(machine.CORES)
SHARDS = (1, 2, 3, 4)
SAMPLE_ROWS = 1_000_000, 6_000_000
"""Of shards that constants are measured on: of one segment, and of several that are merged."""
CROWDED_ROWS = 2_500_000
CROWDED_ROUNDS = 9
"""Each has one build alone and then one for each core; one ratio is off by a third at times."""
QUERIES = 500_000
DOCUMENTS = 40_000
REPEATED = 3
ASKED = 7
"""Batches that are asked one after the other."""


@dataclass(frozen=True, slots=True)
class Constants:
    """What a simulation begins with."""

    host: str
    machine: Machine
    rates: Rates
    handed_bytes_s: float
    """How fast one process gives rows to those that build shards."""
    begun_s: float
    """Of a build of one shard with hardly any rows: files that are made, synced and read back, and
    the map. As much again for each further shard of a core."""

    @classmethod
    def read(cls, path: Path = CONSTANTS) -> Constants:
        """Those that `measure` wrote."""
        found = json.loads(path.read_text(encoding="utf-8"))
        return cls(
            found["host"], Machine.from_dict(found["machine"]), Rates(**found["rates"]),
            found["handed_bytes_s"], found["begun_s"],
        )

    def write(self, path: Path = CONSTANTS) -> None:
        """For `read`."""
        found = {
            "host": self.host, "rates": asdict(self.rates),
            "handed_bytes_s": self.handed_bytes_s, "begun_s": self.begun_s,
            "machine": self.machine.to_dict(),
        }
        path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def usual_outline(rows: int, constants: Machine) -> Outline:
    """Of an index with the structures that a new one has."""
    name = IndexOptions().structures[-1]
    return next(one for one in outlines(rows, h=H, machine=constants) if one.method == name)


def fingerprints(rng: np.random.Generator, rows: int) -> U64:
    """Random ones."""
    return rng.integers(0, 1 << 64, rows, np.uint64)


def questions(rng: np.random.Generator, rows: U64, queries: int) -> U64:
    """Half of them are within H of a row; the others are random."""
    made = fingerprints(rng, queries)
    near = queries // 2
    made[:near] = rows[rng.integers(0, len(rows), near)]
    for _ in range(H):
        made[:near] ^= np.uint64(1) << rng.integers(0, 64, near, np.uint64)
    return made[rng.permutation(queries)]


def measure(folder: Path) -> Constants:
    """Takes some minutes, and a GB of a disk."""
    large = folder / "read.bin"
    _write(large, np.random.default_rng(0).bytes(1 << 29))
    found = measure_machine(large)
    large.unlink()
    rates = measured_rates(folder, found, _text_bytes_s(folder))
    return Constants(
        machine.processor_name(), found, rates, _handed_bytes_s(), begun_s(folder)
    )


def begun_s(folder: Path) -> float:
    """Seconds of a build of four rows, the median of some."""
    rows = fingerprints(np.random.default_rng(4), 4)
    return statistics.median(
        _built(folder / f"begun-{number}.shards", rows, 1) for number in range(ASKED)
    )


def measured_rates(folder: Path, found: Machine, text_bytes_s: float) -> Rates:
    """What building and asking of shards takes: half a minute."""
    rng = np.random.default_rng(1)
    each_s: list[float] = []
    held, stored = [], []
    waited_s = 0.0
    for rows in SAMPLE_ROWS:
        stored.append(fingerprints(rng, rows))
        plan = plan_shards(rows, 1)
        built_s, other_s = [], []
        for number in range(REPEATED):
            began = time.process_time(), time.perf_counter()
            shard = build_shard(
                plan, 0, [plan.part(0, Batch(stored[-1]))], folder / f"{rows}-{number}"
            )
            built_s.append(time.process_time() - began[0])
            other_s.append(time.perf_counter() - began[1] - built_s[-1])
        each_s.append(statistics.median(built_s) / rows)
        waited_s = statistics.median(other_s)
        held.append(OpenShard.of(shard))
    written = sum(size for _, size in held[1].files) * (1 + merge_passes(SAMPLE_ROWS[1]))
    batch = Batch(questions(rng, stored[1], QUERIES))
    threads = max(2, CORES)
    alone_s, together_s = (
        _least_s(partial(query_shard, held[1], batch, H, threads=number))
        for number in (1, threads)
    )
    none_s = _least_s(partial(query_shard, held[0], batch, H, threads=1))
    some = Batch(questions(rng, stored[0], QUERIES))
    matched_s = _least_s(partial(query_shard, held[0], some, H, threads=1)) - none_s
    called = shard_work(usual_outline(SAMPLE_ROWS[1], found), Fleet(1, 1, shards=1), QUERIES)
    parts = [query_shard(shard, batch, H) for shard in (held[1], held[1])]
    merged_s = _least_s(lambda: merge_matches(parts, len(batch)))
    for shard in held:
        shard.index.close()
    return Rates(
        text_bytes_s=text_bytes_s,
        built_rows_s=1 / each_s[0],
        merged_rows_s=merge_passes(SAMPLE_ROWS[1]) / (each_s[1] - each_s[0]),
        written_bytes_s=written / max(waited_s, 1e-9),
        crowded=max(1.0, _crowded(folder)),
        undivided_share=undivided(together_s / alone_s, threads),
        called_share=alone_s / called.call.processor_s,
        match_ns=max(0.0, matched_s) / (QUERIES // 2) * 1e9,
        merged_ns=merged_s / sum(map(len, parts)) * 1e9,
    )


def _crowded(folder: Path) -> float:
    """How many times as long processes take that build at once, one for each core."""
    with ProcessPoolExecutor(CORES, mp_context=get_context("forkserver")) as pool:
        list(pool.map(import_engine, range(CORES)))
        ratios = []
        for _ in range(CROWDED_ROUNDS):
            alone_s = list(pool.map(partial(_sample_s, folder), range(1)))
            together_s = list(pool.map(partial(_sample_s, folder), range(CORES)))
            ratios.append(statistics.mean(together_s) / alone_s[0])
    return statistics.median(ratios)


def _sample_s(folder: Path, number: int) -> float:
    """Seconds of the build of a shard, without the time that passes until all have their rows. It
    is removed, so that what the system writes of it later does not slow the next one down."""
    rows = fingerprints(np.random.default_rng(number), CROWDED_ROWS)
    plan = plan_shards(len(rows), 1)
    part = [plan.part(0, Batch(rows))]
    with tempfile.TemporaryDirectory(dir=folder) as root:
        return _seconds(lambda: build_shard(plan, 0, part, Path(root, "shards")))


def undivided(ratio: float, threads: int) -> float:
    """The share of a call that threads do not divide, if they take `ratio` of the time of one."""
    return min(1.0, max(0.0, (ratio - 1 / threads) / (1 - 1 / threads)))


def _handed_bytes_s() -> float:
    """Rows that come from a batch to a process, as `Shards.build` gives them to a pool."""
    rows = fingerprints(np.random.default_rng(3), SAMPLE_ROWS[1])
    plan = plan_shards(len(rows), 1)
    with ProcessPoolExecutor(1, mp_context=get_context("forkserver")) as pool:
        list(pool.map(import_engine, range(1)))
        taken_s = _least_s(lambda: list(pool.map(len, [plan.part(0, Batch(rows))])))
    return building.HANDED_BYTES * len(rows) / taken_s


def _least_s(call: Callable[[], Any]) -> float:
    return min(_seconds(call) for _ in range(ASKED))


def _write(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _text_bytes_s(folder: Path) -> float:
    """JSON lines to an index by `simindex dedup` on one core, without the start of a process."""
    made = texts.documents(None, DOCUMENTS, 1)
    sizes, seconds = [], []
    for count in (DOCUMENTS // 8, DOCUMENTS):
        source = folder / f"documents-{count}.jsonl"
        kinds = ingesting.written(made.texts[:count], source, 1)
        runs = [ingesting.run(source, folder, kinds, 1) for _ in range(REPEATED)]
        sizes.append(source.stat().st_size)
        seconds.append(min(run.seconds for run in runs))
    return (sizes[1] - sizes[0]) / (seconds[1] - seconds[0])


@dataclass(frozen=True, slots=True)
class Spread:
    """What was predicted, and what several runs took."""

    predicted: float
    runs: tuple[float, ...]

    @property
    def median(self) -> float:
        """Of the runs."""
        return statistics.median(self.runs)

    @property
    def off(self) -> float:
        """How much more than measured was predicted, as a share; less than 0 if it was less."""
        return self.predicted / self.median - 1


@dataclass(frozen=True, slots=True)
class Compared:
    """One number of shards."""

    shards: int
    build_s: Spread
    batch_s: Spread
    matches: tuple[float, float]
    """Predicted, found."""

def predicted(
    constants: Constants, shards: int, rows: int, queries: int
) -> tuple[float, asking.Asked]:
    """Seconds of the build, and the batch, on this machine alone: nothing goes over a network."""
    fleet = Fleet(
        1, CORES, memory_bytes=1 << 60, network_bytes_s=inf, latency_s=0.0, shards=shards
    ).checked(rows)
    work = shard_work(usual_outline(-(-rows // shards), constants.machine), fleet, queries)
    disk = constants.machine.disk_bytes_s
    built = building.build(
        fleet, work, disk_bytes_s=disk, rates=constants.rates,
        handed_bytes_s=constants.handed_bytes_s,
    )
    asked = asking.ask(
        fleet, work, batch=queries, query_bytes=8, disk_bytes_s=disk, rates=constants.rates
    )
    return built.seconds + -(-shards // CORES) * constants.begun_s, asked


def check(folder: Path, constants: Constants, rows: int, queries: int) -> Iterator[Compared]:
    """Compares them, for each number of shards."""
    rng = np.random.default_rng(2)
    stored = fingerprints(rng, rows)
    batches = [Batch(questions(rng, stored, queries)) for _ in range(2)]
    for shards in SHARDS:
        build_s = []
        for number in range(REPEATED):
            root = folder / f"{shards}-{number}.shards"
            build_s.append(_built(root, stored, shards))
            if number + 1 < REPEATED:
                shutil.rmtree(root)
        taken, found = [], 0
        with ThreadPoolExecutor(CORES) as pool, Opened(pool) as run:
            held = Shards(root, run=run)
            threads = max(1, CORES // shards)
            for number in range(ASKED + 1):
                asked_s = time.perf_counter()
                found = len(held.query(batches[number % 2], h=H, threads=threads))
                taken.append(time.perf_counter() - asked_s)
        shutil.rmtree(root)
        expected_s, asked = predicted(constants, shards, rows, queries)
        yield Compared(
            shards, Spread(expected_s, tuple(build_s)),
            Spread(asked.batch_s[0], tuple(taken[1:])), (asked.matches, found),
        )


class Opened:
    """Runs tasks as the `map` of a pool, and keeps the shards of tasks open, as actors do."""

    def __init__(self, pool: ThreadPoolExecutor) -> None:
        self._pool = pool
        self._open: dict[str, OpenShard] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for shard in self._open.values():
            shard.index.close()

    def __call__(self, function: Callable[..., Any], *columns: Any) -> Any:
        return self._pool.map(function, *([*map(self._held, column)] for column in columns))

    def _held(self, given: Any) -> Any:
        if not isinstance(given, Shard):
            return given
        if given.path not in self._open:
            self._open[given.path] = OpenShard.of(given)
        return self._open[given.path]


def _built(root: Path, rows: U64, shards: int) -> float:
    """Seconds of a build from rows in memory, without the start of the processes."""
    with ProcessPoolExecutor(CORES, mp_context=get_context("forkserver")) as pool:
        list(pool.map(import_engine, range(CORES)))
        return _seconds(lambda: Shards.build(root, Batch(rows), shards, run=pool.map))


def import_engine(number: int) -> int:
    """In a process that is to be ready; this module has imported it."""
    time.sleep(0.2)  # so that the other process gets the other task
    return number


def _seconds(call: Callable[[], Any]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began
