"""Batches to shards on a cluster of Ray on this machine: an actor and a thread for each shard."""

from __future__ import annotations

from argparse import Namespace
from contextlib import ExitStack, chdir
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks import machine
from benchmarks.report import Measurement
from benchmarks.stopwatch import Stopwatch, say
from simindex import Batch
from simindex.arrays import U64
from simindex.distributed.shard_plan import By
from simindex.storage.files.published import MAP

H = 3

LAYOUTS: tuple[By, ...] = ("rows", "ones")
"""By rows each shard gets all queries; by ones those whose number of ones is near enough."""

LEAST_STORE_BYTES = 1 << 30
"""Of the object store: a batch of a million, and its answers, many times."""

STORED_ROW_BYTES = 40
"""Of the object store while shards are built: a fingerprint and an id, and again as blocks."""


def shards(options: Namespace, directory: Path, watch: Stopwatch) -> list[Measurement]:
    """--queries uniform fingerprints, half of them within 3 bits of a row, to 1 and 2 shards of
    --rows rows, by rows and by ones, on all cores: `query` of a connection, on one thread of each
    actor."""
    import ray

    rng = np.random.default_rng(options.seed)
    rows = rng.integers(0, 1 << 64, options.rows, np.uint64, endpoint=False)
    queries = _queries(rng, rows, options.queries)
    found: list[Measurement] = []
    directory = directory.absolute()
    with machine.on_every_core(), chdir(directory):  # workers import what is in this folder first
        ray.init(
            address="local",
            num_cpus=len(machine.CORES), include_dashboard=False, log_to_driver=False,
            object_store_memory=max(LEAST_STORE_BYTES, STORED_ROW_BYTES * options.rows),
            logging_level="ERROR",
        )
        try:
            for by in LAYOUTS:
                found += _measured(rows, queries, by, directory, watch)
        finally:
            ray.shutdown()
    return found


def _measured(
    rows: U64, queries: U64, by: By, directory: Path, watch: Stopwatch
) -> list[Measurement]:
    from simindex.distributed import ray as on_ray

    with ExitStack() as open_ones:
        held = {}
        for count in (1, 2):
            root = directory / f"{count}-{by}.shards"
            if not (root / MAP).exists():
                say(f"building {count} of {len(rows):,} rows by {by}")
                on_ray.build(root, Batch(rows), count, by=by)
            held[count] = open_ones.enter_context(on_ray.connect(root))
        answers = {count: one.query(queries, h=H, threads=1) for count, one in held.items()}
        for name in ("query", "id", "distance"):
            one, two = (getattr(answer, name) for answer in answers.values())
            if not np.array_equal(one, two):
                raise SystemExit(f"the answers of 1 and 2 shards differ in {name}")
        times = watch.in_turn({
            str(count): partial(one.query, queries, h=H, threads=1) for count, one in held.items()
        })
        found = [
            Measurement(
                f"shards by {by}", f"{count} on {count} cores", len(rows),
                tuple(len(queries) / seconds for seconds in times[str(count)]), "queries/s",
                notes=f"{len(answer):,} matches; {answer.stats.method}; in actors "
                f"{answer.stats.seconds:.2f} s; shards of "
                f"{', '.join(f'{shard.rows:,}' for shard in held[count].shard_map.shards)} rows",
            )
            for count, answer in answers.items()
        ]
    say(f"by {by} 2 shards give {found[1].median / found[0].median:.2f} times one")
    return found


def _queries(rng: np.random.Generator, rows: U64, count: int) -> U64:
    queries = rng.integers(0, 1 << 64, count, np.uint64, endpoint=False)
    near = rows[rng.integers(0, len(rows), count // 2)].copy()
    for _ in range(H):
        flips = rng.integers(0, 65, len(near)).astype(np.uint64)
        near ^= np.where(flips < 64, np.uint64(1) << np.minimum(flips, 63), np.uint64(0))
    queries[: len(near)] = near
    return rng.permutation(queries)
