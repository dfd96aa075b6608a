"""Building shards on a cluster: one task for each, which gets its rows from the object store."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import ray

from simindex.arrays import U64
from simindex.checks import require
from simindex.distributed.building import build_shard
from simindex.distributed.plan import By, ShardPlan, plan_shards
from simindex.distributed.ray.blocks import batch_of, is_dataset, require_a_processor
from simindex.distributed.ray.cluster import (
    WAIT_S,
    Sent,
    Told,
    are_there,
    failures,
    in_order,
    join,
    require_room,
    too_little,
)
from simindex.distributed.shard import Shard
from simindex.distributed.shardmap import ShardMap, read_map
from simindex.distributed.shards import Shards, require_new, write_first_map
from simindex.options import IndexOptions
from simindex.records.batch import Batch

SAMPLE_ROWS = 4096
"""Of each block, to find prefixes by."""


class Block(NamedTuple):
    """What is known of a block of a Dataset."""

    rows: int
    bits: int
    keys: Any
    """As `IndexOptions` takes it."""
    sample: U64


def build(
    root: str | os.PathLike[str],
    batches: Batch | Sequence[Batch] | Any,
    shards: int,
    *,
    by: By = "rows",
    options: IndexOptions | None = None,
    work: str | os.PathLike[str] | None = None,
    address: str | None = None,
    cpus: float = 0.5,
    wait_s: float = WAIT_S,
    progress: Told | None = None,
) -> ShardMap:
    """Builds all shards, each by a task of its own, verifies them, and writes the map.

    Parameters
    ----------
    batches : Batch, list of Batch, or a Dataset of Ray
        All rows, as of `Shards.build`. Blocks of a Dataset have a column ``fingerprint`` and maybe
        ``id`` or ``key``. They go from the object store to the tasks, never to this process.
    shards, by, options, work
        As of `Shards.build`. Tasks that build in a folder `work` do so on their own machine.
    address, wait_s, progress
        As of `connect`.
    cpus : float
        The part of a processor that each task takes from what Ray shares out.

    Raises
    ------
    ClusterFailed
        If there is no cluster, or it has too few free processors. Also if a task was killed again
        and again. Published shards stay, and the same call uses them.
    IndexExists, InvalidOption, InvalidBatch
        As of `Shards.build`.
    """
    require(
        isinstance(cpus, int | float) and 0 <= cpus <= 64, "cpus", cpus, "processors, from 0 to 64"
    )
    root = require_new(root)
    join(address)
    tasks = _Tasks(cpus, wait_s, progress)
    folder = None if work is None else Path(work)
    if not is_dataset(batches):
        Shards.build(root, batches, shards, by=by, options=options, work=folder, run=tasks.run)
        return read_map(root)
    made = tuple(_made_of_blocks(root, batches, shards, by, options, folder, tasks))
    write_first_map(root, made, tasks.run)
    return read_map(root)


def _made_of_blocks(
    root: Path, dataset: Any, shards: int, by: By, options: IndexOptions | None,
    work: Path | None, tasks: _Tasks,
) -> Iterator[Shard]:
    require_a_processor(dataset)
    blocks = dataset.to_arrow_refs()
    known: list[Block] = list(tasks.run(describe, blocks))
    firsts = np.cumsum([0, *(block.rows for block in known)]).tolist()
    rows: int | U64 = firsts[-1]
    if by == "prefix" and rows:
        rows = np.concatenate([block.sample for block in known if block.rows])
    plan = plan_shards(rows, shards, by=by, options=_options_of(known, options))
    held = [_needed(plan, number, firsts) for number in range(len(plan))]
    return tasks.each(partial(build_of_blocks, plan, root, work), [
        (number, [firsts[place] for place in places], *(blocks[place] for place in places))
        for number, places in enumerate(held)
    ])


def describe(table: Any) -> Block:
    """What is known of a block."""
    if not len(table):
        return Block(0, 64, None, np.empty((0, 1), np.uint64))
    batch = batch_of(table)
    keys: Any = False
    if batch.keys is not None:
        keys = "bytes" if isinstance(batch.keys[0], bytes) else "str"
    chosen = batch.rows[:: max(1, len(batch) // SAMPLE_ROWS)]
    return Block(len(batch), batch.bits, keys, np.ascontiguousarray(chosen))


def build_of_blocks(
    plan: ShardPlan, root: Path, work: Path | None, number: int, firsts: list[int], *tables: Any
) -> Shard:
    """One shard, of the blocks that can have rows of it."""
    parts = [
        plan.part(number, batch_of(table), first)
        for first, table in zip(firsts, tables, strict=True)
    ]
    return build_shard(plan, number, [part for part in parts if len(part)], root, work=work)


def _needed(plan: ShardPlan, number: int, firsts: list[int]) -> list[int]:
    """The places of the blocks that can have rows of a shard."""
    blocks = [one for one in range(len(firsts) - 1) if firsts[one] < firsts[one + 1]]
    if plan.starts is None:
        return blocks
    begin = plan.starts[number]
    end = plan.starts[number + 1] if number + 1 < len(plan) else firsts[-1]
    return [one for one in blocks if firsts[one] < end and begin < firsts[one + 1]]


def _options_of(known: list[Block], options: IndexOptions | None) -> IndexOptions:
    filled = [block for block in known if block.rows]
    if not filled:
        return IndexOptions() if options is None else options
    if options is None:
        return IndexOptions(bits=filled[0].bits, keys=filled[0].keys)
    return options if options.keys is not None else replace(options, keys=filled[0].keys)


def _call(function: Callable[..., Any], *task: Any) -> Any:
    return function(*task)


class _Tasks:
    """Runs tasks anywhere on the cluster, each with a part of a processor."""

    def __init__(self, cpus: float, wait_s: float, told: Told | None) -> None:
        require_room(1, cpus, "tasks")
        self._told = told
        remote: Any = ray.remote(_call)
        self._call = remote.options(num_cpus=cpus)
        with failures("a first task"):
            if not are_there([self._call.remote(len, ())], wait_s):
                raise too_little(1, cpus, "tasks")
        # More than run at once, so that none of them waits for its input.
        self._most = 2 * max(1, int(ray.cluster_resources()["CPU"] / max(cpus, 0.1)))

    def run(self, function: Callable[..., Any], *columns: Iterable[Any]) -> Iterator[Any]:
        """As `map`."""
        return self.each(function, list(zip(*columns, strict=True)))

    def each(
        self, function: Callable[..., Any], tasks: list[tuple[Any, ...]]
    ) -> Iterator[Any]:
        """The results of tasks, whose references Ray resolves."""
        with failures("a plan"):
            put = ray.put(function)

        def send(*task: Any) -> Sent:
            return Sent(self._call.remote(put, *task), f"task {task[0]}", lambda: None)

        return in_order(send, tasks, self._most, self._told)
