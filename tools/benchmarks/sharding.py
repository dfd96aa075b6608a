"""Batches to shards on a cluster of Ray on this machine: an actor and a thread for each shard."""

from __future__ import annotations

from argparse import Namespace
from contextlib import chdir
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks import machine
from benchmarks.report import Measurement
from benchmarks.stopwatch import Stopwatch, say
from simindex import Batch
from simindex.arrays import U64
from simindex.distributed.plan import By
from simindex.distributed.shardmap import MAP

H = 3

BY: By = "ones"
"""A query asks a shard only if its number of ones is near enough."""

STORE_BYTES = 1 << 30
"""Of the object store: a batch of a million, and its answers, many times."""


def shards(options: Namespace, directory: Path, watch: Stopwatch) -> list[Measurement]:
    """--queries uniform fingerprints, half of them within 3 bits of a row, to 1 and 2 shards of
    --rows rows, on all cores: `query` of a connection, on one thread of each actor."""
    import ray

    from simindex.distributed import ray as on_ray

    rng = np.random.default_rng(options.seed)
    rows = rng.integers(0, 1 << 64, options.rows, np.uint64, endpoint=False)
    queries = _queries(rng, rows, options.queries)
    found = []
    directory = directory.absolute()
    with machine.on_every_core(), chdir(directory):  # workers import what is in this folder first
        ray.init(
            num_cpus=len(machine.CORES), include_dashboard=False, log_to_driver=False,
            object_store_memory=STORE_BYTES, logging_level="ERROR",
        )
        try:
            held = {}
            for count in (1, 2):
                root = directory / f"{count}.shards"
                if not (root / MAP).exists():
                    say(f"building {count} of {options.rows:,} rows")
                    on_ray.build(root, Batch(rows), count, by=BY)
                held[count] = on_ray.connect(root)
            answers = {count: one.query(queries, h=H, threads=1) for count, one in held.items()}
            for name in ("query", "id", "distance"):
                one, two = (getattr(answer, name) for answer in answers.values())
                if not np.array_equal(one, two):
                    raise SystemExit(f"the answers of 1 and 2 shards differ in {name}")
            local = {count: one.shard_map for count, one in held.items()}
            times = watch.in_turn({
                str(count): partial(one.query, queries, h=H, threads=1)
                for count, one in held.items()
            })
            for count, answer in answers.items():
                found.append(Measurement(
                    "shards", f"{count} on {count} cores", options.rows,
                    tuple(options.queries / seconds for seconds in times[str(count)]), "queries/s",
                    notes=f"{len(answer):,} matches; {answer.stats.method}; in actors "
                    f"{answer.stats.seconds:.2f} s; shards of "
                    f"{', '.join(f'{shard.rows:,}' for shard in local[count].shards)} rows",
                ))
        finally:
            ray.shutdown()
    say(f"2 shards give {found[1].median / found[0].median:.2f} times one")
    return found


def _queries(rng: np.random.Generator, rows: U64, count: int) -> U64:
    queries = rng.integers(0, 1 << 64, count, np.uint64, endpoint=False)
    near = rows[rng.integers(0, len(rows), count // 2)].copy()
    for _ in range(H):
        flips = rng.integers(0, 65, len(near)).astype(np.uint64)
        near ^= np.where(flips < 64, np.uint64(1) << np.minimum(flips, 63), np.uint64(0))
    queries[: len(near)] = near
    return rng.permutation(queries)
