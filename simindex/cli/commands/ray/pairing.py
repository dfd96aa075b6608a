"""`simindex ray pairs`, `ray clusters` and `ray dedup`: near-duplicates within all shards."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from simindex.cli.choices import distance_option, output_options, threads_option
from simindex.cli.commands.clusters import mode_options, print_clusters, schema_of_clusters
from simindex.cli.commands.clusters import told_of as told_of_clusters
from simindex.cli.commands.pairs import print_pairs, schema_of_pairs
from simindex.cli.commands.ray.group import connection_options, ray, task_limit_option
from simindex.cli.console import count, duration, say
from simindex.cli.losers import keys_of, print_losers, schema_of_losers
from simindex.cli.progress import Progress
from simindex.cli.results import Results, result_options
from simindex.cli.similarity import (
    measure_option,
    require_one,
    share_option,
    similarity_option,
    within,
)

if TYPE_CHECKING:
    from simindex.distributed.ray import Connection
    from simindex.outputs.columns import Schema, Write


class _Opened(NamedTuple):
    """What a command works with."""

    shards: Connection
    near: dict[str, Any]
    """What its calls take."""
    told: str
    """How near what is found is."""
    write: Write | None


@contextmanager
def _opened(
    root: str, connection: dict[str, Any], near: dict[str, Any], results: Results,
    schema: Callable[[Any, float | None], Schema], *, silent: bool,
) -> Iterator[_Opened]:
    """The shards, what near is, and where columns of a schema are written to."""
    from simindex.distributed import ray as on_ray

    h, similarity = near["h"], near["similarity"]
    require_one(h, similarity)
    results.require_apart((), root)
    with (
        Progress("pairing", "task", quiet=silent) as progress,
        on_ray.connect(root, **connection, progress=progress.tell) as shards,
    ):
        now = shards.shard_map
        kind = False if now.facts.names == "ids" else now.facts.names
        if similarity is None and h is None:
            h = now.h
        with results.opened(schema(kind, similarity)) as write:
            yield _Opened(shards, {**near, "h": h}, within(h, similarity), write)


def _near(h: int | None, similarity: float | None, measure: str, recall: float) -> dict[str, Any]:
    return {"h": h, "similarity": similarity, "measure": measure, "recall": recall}


@ray.command()
@connection_options
@distance_option
@similarity_option
@measure_option
@share_option
@click.option(
    "--collapse-equal", is_flag=True,
    help="Pair only one of the documents of a shard with equal fingerprints with others, and list "
    "the rest with it.",
)
@task_limit_option
@threads_option
@result_options
@output_options
def pairs(
    root: str, connection: dict[str, Any], h: int | None, similarity: float | None,
    measure: str, recall: float, collapse_equal: bool, memory_limit: int | None,
    threads: int | None, results: Results, as_json: bool, quiet: bool,
) -> None:
    """Print all near-duplicates within the shards, as `simindex pairs` does."""
    started = time.perf_counter()
    found = 0
    silent = quiet or results.on_terminal
    given = _near(h, similarity, measure, recall)
    with _opened(root, connection, given, results, schema_of_pairs, silent=silent) as (
        shards, near, told, write
    ):
        for some in shards.pairs(
            **near, collapse_equal=collapse_equal, memory_limit=memory_limit, threads=threads
        ):
            found += print_pairs(some, write)
        rows = len(shards)
    if not quiet:
        say(
            f"{count(found, 'pair')} {told} among {count(rows, 'row')}, in "
            f"{duration(time.perf_counter() - started)}"
        )


@ray.command()
@connection_options
@distance_option
@similarity_option
@measure_option
@share_option
@mode_options
@click.option(
    "--singletons/--no-singletons", default=True, show_default=True,
    help="List or omit documents without a near-duplicate.",
)
@task_limit_option
@threads_option
@result_options
@output_options
def clusters(
    root: str, connection: dict[str, Any], h: int | None, similarity: float | None,
    measure: str, recall: float, mode: str, singletons: bool, memory_limit: int | None,
    threads: int | None, results: Results, as_json: bool, quiet: bool,
) -> None:
    """Print the clusters of near-duplicates within the shards, as `simindex clusters` does."""
    started = time.perf_counter()
    given = _near(h, similarity, measure, recall)
    with _opened(root, connection, given, results, schema_of_clusters, silent=quiet) as (
        shards, near, told, write
    ):
        found = shards.clusters(
            **near, mode=mode, singletons=singletons, memory_limit=memory_limit, threads=threads
        )
        print_clusters(found, write)
    if not quiet:
        say(f"{told_of_clusters(found, told)}, in {duration(time.perf_counter() - started)}")


@ray.command()
@connection_options
@distance_option
@similarity_option
@measure_option
@share_option
@task_limit_option
@threads_option
@result_options
@output_options
def dedup(
    root: str, connection: dict[str, Any], h: int | None, similarity: float | None,
    measure: str, recall: float, memory_limit: int | None, threads: int | None, results: Results,
    as_json: bool, quiet: bool,
) -> None:
    """Print which documents to drop so that no near-duplicates are left.

    Prints one line for each document to drop: its key (or id), the document that is kept instead,
    and their distance, separated by tabs. Of near-duplicates the one with the smallest id is kept.
    """
    from simindex.distributed import losers

    started = time.perf_counter()
    given = _near(h, similarity, measure, recall)
    with _opened(root, connection, given, results, schema_of_losers, silent=quiet) as (
        shards, near, _, write
    ):
        parts = list(shards.pairs(
            **near, collapse_equal=True, memory_limit=memory_limit, threads=threads
        ))
        lost = losers(parts)
        bits = max((part.similarity_bits for part in parts), default=0)
        print_losers(lost, keys_of(parts), write, bits, measure)
        rows = len(shards)
    if not quiet:
        say(
            f"keep {rows - len(lost.id):,} of {count(rows, 'row')}, drop {len(lost.id):,}, in "
            f"{duration(time.perf_counter() - started)}"
        )
