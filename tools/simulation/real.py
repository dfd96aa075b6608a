"""Real shards on this machine: what the simulation begins with, and what it is compared with.

    measure    steps of a search as `simindex tune` has them, the disk, text, rows, matches
    check      1 to 4 shards, built by two processes and asked by two threads; predicted, measured

Constants are measured on other rows, sizes and numbers of shards than those that are compared.
"""

from __future__ import annotations

import json
import os
import statistics
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from math import inf
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks import ingesting, machine, texts

from simindex import Batch, IndexOptions
from simindex.arrays import U64
from simindex.distributed import (
    Shards,
    build_shard,
    merge_matches,
    of_shards,
    plan_shards,
    query_shard,
    write_map,
)
from simindex.planning.fleet import Fleet, Rates, shard_work
from simindex.planning.forecast import Outline, outlines
from simindex.planning.machine import Machine
from simindex.planning.measurement import measure as measure_machine
from simulation import asking, building

CONSTANTS = Path(__file__).with_name("measured.json")

H = 3
CORES = 2
SHARDS = (1, 2, 3, 4)
SAMPLE_ROWS = 2_000_000
"""Of the shard that constants are measured on."""
DOCUMENTS = 40_000
REPEATED = 3


@dataclass(frozen=True, slots=True)
class Constants:
    """What a simulation begins with."""

    host: str
    machine: Machine
    rates: Rates

    @classmethod
    def read(cls, path: Path = CONSTANTS) -> Constants:
        """Those that `measure` wrote."""
        found = json.loads(path.read_text(encoding="utf-8"))
        return cls(found["host"], Machine.from_dict(found["machine"]), Rates(**found["rates"]))

    def write(self, path: Path = CONSTANTS) -> None:
        """For `read`."""
        found = {
            "host": self.host, "rates": asdict(self.rates), "machine": self.machine.to_dict()
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


def measure(folder: Path, memory: Path) -> Constants:
    """Takes about a minute. `memory` is a folder of a file system in memory."""
    rng = np.random.default_rng(1)
    rows = fingerprints(rng, SAMPLE_ROWS)
    built_s, shards = [], []
    for number in range(REPEATED):
        root = memory / f"sample-{number}"
        plan = plan_shards(len(rows), 1)
        began = time.process_time()
        shards.append(build_shard(plan, 0, [plan.part(0, Batch(rows))], root))
        built_s.append(time.process_time() - began)
    large, content = folder / "read.bin", rng.bytes(1 << 29)
    written_s = _seconds(lambda: _write(large, content))
    found = measure_machine(large)
    large.unlink()
    batch = Batch(questions(rng, rows, 1_000_000))
    parts = [query_shard(shards[0], batch, H), query_shard(shards[1], batch, H)]
    merged_s = [_seconds(lambda: merge_matches(parts, len(batch))) for _ in range(REPEATED)]
    rates = Rates(
        text_bytes_s=_text_bytes_s(folder),
        built_rows_s=SAMPLE_ROWS / min(built_s),
        written_bytes_s=len(content) / written_s,
        merged_ns=min(merged_s) / sum(map(len, parts)) * 1e9,
    )
    return Constants(machine.processor_name(), found, rates)


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
class Compared:
    """One number of shards."""

    shards: int
    build_s: tuple[float, float]
    """Predicted, measured."""
    batch_s: tuple[float, float]
    matches: tuple[float, float]


def predicted(
    constants: Constants, shards: int, rows: int, queries: int
) -> tuple[float, asking.Asked]:
    """Seconds of the build, and the batch, on this machine alone: nothing goes over a network."""
    fleet = Fleet(
        1, CORES, memory_bytes=1 << 60, network_bytes_s=inf, latency_s=0.0, shards=shards
    ).checked(rows)
    work = shard_work(usual_outline(-(-rows // shards), constants.machine), fleet, queries)
    disk = constants.machine.disk_bytes_s
    built = building.build(fleet, work, disk_bytes_s=disk, rates=constants.rates)
    asked = asking.ask(
        fleet, work, batch=queries, query_bytes=8, disk_bytes_s=disk, rates=constants.rates
    )
    return built.seconds, asked


def check(folder: Path, constants: Constants, rows: int, queries: int) -> Iterator[Compared]:
    """Compares them, for each number of shards."""
    rng = np.random.default_rng(2)
    stored = fingerprints(rng, rows)
    batches = [Batch(questions(rng, stored, queries)) for _ in range(REPEATED + 1)]
    for shards in SHARDS:
        root = folder / f"{shards}.shards"
        build_s = _built(root, stored, shards)
        with ThreadPoolExecutor(CORES) as pool:
            held = Shards(root, run=pool.map)
            threads = max(1, CORES // shards)
            taken, found = [], 0
            for batch in batches:
                began = time.perf_counter()
                found = len(held.query(batch, h=H, threads=threads))
                taken.append(time.perf_counter() - began)
        expected_s, asked = predicted(constants, shards, rows, queries)
        yield Compared(
            shards, (expected_s, build_s),
            (asked.batch_s[0], statistics.median(taken[1:])), (asked.matches, found),
        )


def _built(root: Path, rows: U64, shards: int) -> float:
    """Seconds of the tasks that build all shards. Each has its rows before it begins."""
    plan = plan_shards(len(rows), shards)
    parts = [[plan.part(number, Batch(rows))] for number in range(shards)]
    with ProcessPoolExecutor(CORES, mp_context=get_context("forkserver")) as pool:
        list(pool.map(import_engine, range(CORES)))
        began = time.perf_counter()
        made = tuple(pool.map(partial(build_shard, plan, root=root), range(shards), parts))
        seconds = time.perf_counter() - began
    write_map(of_shards(root, made, h=H))
    return seconds


def import_engine(number: int) -> int:
    """In a process that is to be ready; this module has imported it."""
    time.sleep(0.2)  # so that the other process gets the other task
    return number


def _seconds(call: Callable[[], Any]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began
