"""`simindex ray pairs`, `ray clusters` and `ray dedup`: near-duplicates within all shards."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from simindex.cli.commands.clusters import (
    mode_options,
    print_clusters,
    print_verdicts,
    schema_of_clusters,
    schema_of_verdicts,
    told_of_verdicts,
)
from simindex.cli.commands.clusters import told_of as told_of_clusters
from simindex.cli.commands.pairs import print_pairs, schema_of_pairs
from simindex.cli.commands.ray.group import (
    connection_options,
    distance_option,
    ray,
    task_limit_option,
)
from simindex.cli.console import count, duration, say
from simindex.cli.dedup.certificates import (
    certificate_format,
    certificates,
    estimating_bits,
    schema_of_certificates,
    write_certificates,
)
from simindex.cli.dedup.cluster_ranks import REPRESENTATIVE, representatives
from simindex.cli.losers import keys_of, print_losers, schema_of_losers, schema_of_proof
from simindex.cli.progress import Progress
from simindex.cli.results import Results, result_options
from simindex.cli.shared_options import (
    NamedPath,
    Option,
    collected,
    output_options,
    threads_option,
)
from simindex.cli.similarity import (
    measure_option,
    require_one,
    share_option,
    similarity_option,
    within,
)
from simindex.cli.targets import require_apart

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
    certify: Write | None
    """Takes certificates, if somebody asked for them."""
    bits: int
    """Of fingerprints, where their distance tells a similarity; else 0."""


@contextmanager
def _opened(
    root: str, connection: dict[str, Any], near: dict[str, Any], results: Results,
    schema: Callable[[Any, float | None], Schema], *, silent: bool, certified: str | None = None,
    proof: Callable[[Any, bool], Schema] = schema_of_certificates,
) -> Iterator[_Opened]:
    """The shards, what near is, where columns of a schema are written to, and certificates."""
    from simindex.distributed import ray as on_ray

    h, similarity = near["h"], near["similarity"]
    require_one(h, similarity)
    results.require_apart((), root)
    require_apart("--certificates", certified, (), root)
    row = certificate_format(certified)
    with (
        Progress("pairing", "task", quiet=silent) as progress,
        on_ray.connect(root, **connection, progress=progress.tell) as shards,
    ):
        now = shards.shard_map
        kind = False if now.facts.names == "ids" else now.facts.names
        if similarity is None and h is None:
            h = now.h
        bits = estimating_bits(now.facts.recipe, now.facts.bits)
        proofs: AbstractContextManager[Write | None] = certificates(
            certified, row, proof(kind, bits > 0 or similarity is not None)
        )
        with results.opened(schema(kind, similarity)) as write, proofs as certify:
            yield _Opened(
                shards, {**near, "h": h}, within(h, similarity), write, certify, bits
            )


_near_options: Option = collected(
    "given", dict, distance_option, similarity_option, measure_option, share_option
)
"""What near is; the command gets the arguments of `Shards.pairs` that say so as `given`."""


def _certificates_option(begin: str) -> Option:
    return click.option(
        "--certificates", "certified", type=NamedPath(), metavar="FILE",
        help=f"{begin} a line to FILE for each document to drop: the kept one, the distance, and "
        "the similarity that it tells, with its standard error. FILE has JSON lines, or a table if "
        "its name ends with .csv or .parquet.",
    )


@ray.command()
@connection_options
@_near_options
@click.option(
    "--collapse-equal", is_flag=True,
    help="Of documents of a shard with equal fingerprints, pair only one with other documents, and "
    "list the rest with it.",
)
@task_limit_option
@threads_option
@result_options
@output_options
def pairs(
    root: str, connection: dict[str, Any], given: dict[str, Any], collapse_equal: bool,
    memory_limit: int | None, threads: int | None, results: Results, as_json: bool, quiet: bool,
) -> None:
    """Print all pairs of near-duplicates within the shards.

    Prints what `simindex pairs` prints.
    """
    started = time.perf_counter()
    found = 0
    silent = quiet or results.on_terminal
    with _opened(root, connection, given, results, schema_of_pairs, silent=silent) as (
        shards, near, told, write, *_
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
@_near_options
@mode_options
@click.option(
    "--singletons/--no-singletons", default=True, show_default=True,
    help="Print or omit documents without a near-duplicate.",
)
@click.option(
    "--keep", type=click.Choice([REPRESENTATIVE]),
    help="Keep the representative of each cluster. Each line then has keep or drop, the document, "
    "its cluster, and the document that is kept. Default: print the clusters only.",
)
@click.option(
    "--list", "listed", type=click.Choice(["keep", "drop"]),
    help="With --keep, print only the names of the documents to keep, or to drop.",
)
@_certificates_option("With --keep, write")
@task_limit_option
@threads_option
@result_options
@output_options
def clusters(
    root: str, connection: dict[str, Any], given: dict[str, Any], mode: str, singletons: bool,
    keep: str | None, listed: str | None, certified: str | None, memory_limit: int | None,
    threads: int | None, results: Results, as_json: bool, quiet: bool,
) -> None:
    """Print the clusters of near-duplicates within the shards.

    Prints what `simindex clusters` prints.
    """
    if keep is None:
        for value, name in ((listed, "--list"), (certified, "--certificates")):
            if value is not None:
                raise click.UsageError(f"{name} needs --keep")
    if certified is not None and mode != "star":
        raise click.UsageError(f"--certificates needs --mode star: of {mode}, documents may be "
                               "far from the one that is kept")
    started = time.perf_counter()

    def schema(keys: Any, similarity: float | None) -> Schema:
        return schema_of_verdicts(keys) if keep else schema_of_clusters(keys, similarity)

    with _opened(root, connection, given, results, schema, silent=quiet, certified=certified) as (
        shards, near, told, write, certify, bits
    ):
        found = shards.clusters(
            **near, mode=mode, singletons=singletons, memory_limit=memory_limit, threads=threads
        )
        if keep is None:
            print_clusters(found, write)
        else:
            kept = representatives(found)
            print_verdicts(found, kept, listed, write)
        if certify is not None:
            write_certificates(found, certify, bits)
    if keep is not None and not quiet:
        say(told_of_verdicts(found, kept))
    if not quiet:
        say(f"{told_of_clusters(found, told)}, in {duration(time.perf_counter() - started)}")


@ray.command()
@connection_options
@_near_options
@_certificates_option("Write")
@task_limit_option
@threads_option
@result_options
@output_options
def dedup(
    root: str, connection: dict[str, Any], given: dict[str, Any], certified: str | None,
    memory_limit: int | None, threads: int | None, results: Results, as_json: bool, quiet: bool,
) -> None:
    """Print which documents to drop to leave no near-duplicates.

    Prints one line for each document to drop: its key (or id), the document that is kept instead,
    and their distance, separated by tabs. Of near-duplicates the one with the smallest id is kept.
    """
    from simindex.distributed import losers

    started = time.perf_counter()
    with _opened(
        root, connection, given, results, schema_of_losers, silent=quiet, certified=certified,
        proof=schema_of_proof,
    ) as (shards, near, _, write, certify, estimating):
        parts = list(shards.pairs(
            **near, collapse_equal=True, memory_limit=memory_limit, threads=threads
        ))
        lost = losers(parts)
        bits = max((part.similarity_bits for part in parts), default=0)
        print_losers(
            lost, keys_of(parts), write, bits, given["measure"], certify, estimating
        )
        rows = len(shards)
    if not quiet:
        say(
            f"keep {rows - len(lost.id):,} of {count(rows, 'row')}, drop {len(lost.id):,}, in "
            f"{duration(time.perf_counter() - started)}"
        )
