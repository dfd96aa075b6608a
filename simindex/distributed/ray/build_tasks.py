"""Building shards on a cluster: rows are blocks in the object store, and each shard is a task.

    a Dataset          its blocks, in Arrow
    items, a function  a task makes a block of each item: documents become fingerprints

    blocks -> what is known of each -> plan -> a task for each shard, which takes a block at a time

This process holds a few items, and of each block its size and a sample. Ray writes blocks to the
disk where they do not fit into the object store.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import ray

from simindex.arrays import F16, I64, U64
from simindex.checks import require_seconds
from simindex.distributed.collection import Shards
from simindex.distributed.creation import listed, require_new, write_first_map
from simindex.distributed.publication import build_shard
from simindex.distributed.ray.blocks import batch_of, is_dataset, require_a_processor
from simindex.distributed.ray.cluster import (
    WAIT_S,
    Sent,
    Told,
    are_there,
    failures,
    in_order,
    join,
    require_cpus,
    require_room,
    too_little,
)
from simindex.distributed.shard import Shard
from simindex.distributed.shard_plan import By, ShardPlan, plan_shards
from simindex.distributed.shardmap import ShardMap, read_map
from simindex.options import IndexOptions
from simindex.records.batch import Batch
from simindex.storage.tables.reservoir import in_root_mean_squares

SAMPLE_ROWS = 64
"""Of a block, at least, to find regions by, or one row of so many: an eighth of a byte a row."""

WEIGHTED_ROWS = 512
"""Of a block that is made, whose weights go along, or one row of eight: of 64 bits 16 bytes a row,
where all weights take 256. A shard draws its sample of weights from them, 16,384 by default."""

Noted = Callable[[Any, Any], None]
"""Is given each item, and what its task says of it."""


class Block(NamedTuple):
    """What is known of a block of a Dataset."""

    rows: int
    bits: int
    keys: Any
    """As `IndexOptions` takes it."""
    sample: U64
    sketch_bits: int = 0


class Made(NamedTuple):
    """A batch that a task has made, with the weights of some of its rows."""

    batch: Batch
    places: I64
    weights: F16
    """Of the rows at these places, in units of their root mean square, as files have them."""

    def __len__(self) -> int:
        return len(self.batch)


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
    batches : Batch or fingerprints, a list of them, or a Dataset of Ray
        All rows, as of `Shards.build`. Blocks of a Dataset have a column ``fingerprint`` and maybe
        ``id`` or ``key``, and ``sketch`` and ``size`` as a Batch has them for Arrow. They go from
        the object store to the tasks, never to this process.
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
    require_cpus(cpus, 64, "processors")
    wait_s = require_seconds(wait_s, "wait_s")
    root = require_new(root)
    if not is_dataset(batches):
        batches = listed(batches)  # what is wrong with it is said before anything starts
    join(address)
    tasks = _Tasks(cpus, wait_s, progress)
    folder = None if work is None else Path(work)
    if not is_dataset(batches):
        Shards.build(root, batches, shards, by=by, options=options, work=folder, run=tasks.run)
        return read_map(root)
    require_a_processor(batches)
    dataset: Any = batches
    blocks = dataset.to_arrow_refs()
    known = list(tasks.run(describe, blocks))
    return _built(
        root, known, blocks, shards, by, _options_of(known, options), folder, tasks
    )


def build_made(
    root: str | os.PathLike[str],
    items: Iterable[Any],
    make: Callable[[Any], tuple[Batch, Any]],
    shards: int,
    *,
    options: Callable[[], IndexOptions],
    noted: Noted,
    read: Callable[[], None],
    by: By = "rows",
    work: str | os.PathLike[str] | None = None,
    address: str | None = None,
    cpus: float = 0.5,
    wait_s: float = WAIT_S,
    progress: Told | None = None,
) -> ShardMap | None:
    """Builds shards of batches that tasks make of items; None, and no folder, if they have no row.

    Parameters
    ----------
    items : iterable
        What batches are made of, such as documents. A few are taken ahead of what is made.
    make : function
        The batch of an item, and something small that is told of it. It runs in a task.
    options : function
        The options of all shards. It is called when all items have been taken.
    noted : function
        Is called with each item, in their order, and with what was told of it.
    read : function
        Is called when all items are made.

    Other parameters and errors are those of `build`.
    """
    require_cpus(cpus, 64, "processors")
    wait_s = require_seconds(wait_s, "wait_s")
    root = require_new(root)
    join(address)
    tasks = _Tasks(cpus, wait_s, progress)
    known: list[Block] = []
    blocks: list[Any] = []
    for block, reference in tasks.made(make, items, noted):
        if block.rows:
            known.append(block)
            blocks.append(reference)
    read()
    if not known:
        return None
    folder = None if work is None else Path(work)
    return _built(root, known, blocks, shards, by, options(), folder, tasks)


def made_block(make: Callable[[Any], tuple[Batch, Any]], item: Any) -> tuple[Any, Made]:
    """What is known of the batch of an item and told of it; and the batch.

    It has the weights of some rows, and not the recipe, which can be larger than the block.
    """
    batch, told = make(item)
    plain = Batch(batch.rows, ids=batch.ids, keys=batch.keys, sketch=batch.sketches)
    places = np.empty(0, np.int64)
    weights = np.empty((0, batch.bits), np.float16)
    if batch.weights is not None:
        places = np.arange(0, len(batch), max(1, min(8, len(batch) // WEIGHTED_ROWS)))
        weights = in_root_mean_squares(batch.weights[places])
    return (describe(plain), told), Made(plain, places, weights)


def _built(
    root: Path, known: list[Block], blocks: list[Any], shards: int, by: By,
    options: IndexOptions, work: Path | None, tasks: _Tasks,
) -> ShardMap:
    firsts = np.cumsum([0, *(block.rows for block in known)]).tolist()
    rows: int | U64 = firsts[-1]
    if by != "rows" and rows:
        rows = np.concatenate([block.sample for block in known if block.rows])
    plan = plan_shards(rows, shards, by=by, options=options)
    made = tuple(tasks.each(partial(build_of_blocks, plan, root, work), [
        (number, [(firsts[place], blocks[place]) for place in _needed(plan, number, firsts)])
        for number in range(len(plan))
    ]))
    write_first_map(root, made, tasks.run)
    return read_map(root)


def describe(table: Any) -> Block:
    """What is known of a block."""
    if not len(table):
        return Block(0, 64, None, np.empty((0, 1), np.uint64))
    batch = _as_batch(table)
    keys: Any = False
    if batch.keys is not None:
        keys = "bytes" if isinstance(batch.keys[0], bytes) else "str"
    number = max(SAMPLE_ROWS, len(batch) // SAMPLE_ROWS)
    chosen = batch.rows[:: max(1, len(batch) // number)]
    sample = np.ascontiguousarray(chosen)
    return Block(len(batch), batch.bits, keys, sample, batch.sketch_bits)


def build_of_blocks(
    plan: ShardPlan, root: Path, work: Path | None, number: int, blocks: list[tuple[int, Any]]
) -> Shard:
    """One shard, of the blocks that can have rows of it, each with the number of its first row."""
    return build_shard(plan, number, _Parts(plan, number, blocks), root, work=work)


class _Parts:
    """The rows of a shard, a block at a time, as often as they are asked for."""

    def __init__(self, plan: ShardPlan, number: int, blocks: list[tuple[int, Any]]) -> None:
        self._plan, self._number, self._blocks = plan, number, blocks

    def __iter__(self) -> Iterator[Batch]:
        for first, reference in self._blocks:
            block = ray.get(reference)
            for batch in self._weighted(block, first) if isinstance(block, Made) else (
                self._plan.part(self._number, _as_batch(block), first),
            ):
                if len(batch):
                    yield batch

    def _weighted(self, block: Made, first: int) -> Iterator[Batch]:
        """The rows without weights, and those with them: a batch has those of all rows, or none."""
        named = self._plan.named(block.batch, first)
        mine = self._plan.shards_of(named, first) == self._number
        plain = mine.copy()
        plain[block.places] = False
        yield named.take(np.flatnonzero(plain))
        known = mine[block.places]
        part = named.take(block.places[known])
        yield Batch.checked(
            part.rows, ids=part.ids, keys=part.keys, recipe=None, sketches=part.sketches,
            weights=block.weights[known].astype(np.float32),
        )


def _as_batch(block: Any) -> Batch:
    return block if isinstance(block, Batch) else batch_of(block)


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
    first = filled[0]
    if options is None:
        return IndexOptions(bits=first.bits, keys=first.keys, sketch_bits=first.sketch_bits)
    if options.recipe is None and not options.sketch_bits:
        options = replace(options, sketch_bits=first.sketch_bits)
    return options if options.keys is not None else replace(options, keys=first.keys)


def _call(function: Callable[..., Any], *task: Any) -> Any:
    return function(*task)


class _Tasks:
    """Runs tasks anywhere on the cluster, each with a part of a processor."""

    def __init__(self, cpus: float, wait_s: float, told: Told | None) -> None:
        require_room(1, cpus, "tasks")
        self._told = told
        remote: Any = ray.remote(_call)
        self._call = remote.options(num_cpus=cpus)
        self._call_two = remote.options(num_cpus=cpus, num_returns=2)
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

    def made(
        self, make: Callable[[Any], tuple[Batch, Any]], items: Iterable[Any], noted: Noted
    ) -> Iterator[tuple[Block, Any]]:
        """What is known of the batch of each item, and a reference to it."""
        with failures("a recipe"):
            put = ray.put(partial(made_block, make))
        waiting: deque[tuple[Any, Any]] = deque()

        def send(item: Any) -> Sent:
            # An item by reference: what is sent by value is kept until its block is gone.
            known, batch = self._call_two.remote(put, ray.put(item))
            waiting.append((item, batch))
            return Sent(known, "a task of an input", lambda: None)

        for block, told in in_order(send, ((item,) for item in items), self._most):
            item, batch = waiting.popleft()
            noted(item, told)
            yield block, batch
