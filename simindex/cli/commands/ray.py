"""`simindex ray COMMAND`: shards on a cluster of Ray, with the options of the local commands."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

import simindex
from simindex.cli.account import met
from simindex.cli.app import nothing_to_do, program
from simindex.cli.choices import (
    NamedPath,
    Option,
    Reading,
    collected,
    distance,
    distance_option,
    input_options,
    inputs_argument,
    key_secret_option,
    output_options,
    piped_input,
    structures_option,
    threads_option,
    together,
)
from simindex.cli.commands.clusters import print_clusters, schema_of_clusters
from simindex.cli.commands.clusters import told_of as told_of_clusters
from simindex.cli.commands.pairs import print_pairs, schema_of_pairs
from simindex.cli.commands.query import (
    end_without_question,
    fingerprint_option,
    matched_queries,
    print_matches,
    schema_of_matches,
    text_option,
    told_of,
)
from simindex.cli.console import count, duration, emit, say
from simindex.cli.losers import keys_of, print_losers, schema_of_losers
from simindex.cli.numbers import Count
from simindex.cli.progress import Progress
from simindex.cli.questions import Asking
from simindex.cli.recipes import Learning, idf_options, prepare, recipe_options
from simindex.cli.results import Results, result_options
from simindex.cli.similarity import within
from simindex.inputs import require_inputs

if TYPE_CHECKING:
    from simindex.cli.contents import Contents
    from simindex.distributed.ray import Connection
    from simindex.records.matches import Matches, TopMatches

    Ask = Callable[[Connection, Iterator[simindex.Batch]], Iterator[Matches | TopMatches]]

QUERIES_AT_ONCE = 1 << 16

_cpus_option: Option = click.option(
    "--cpus", type=click.FloatRange(0, 1), metavar="SHARE",
    help="The part of a processor that each actor takes from what Ray shares out, or each task of "
    "a build. Default: 0.25, and 0.5 for a build.",
)

_address_option: Option = click.option(
    "--address", default="auto", show_default=True, metavar="ADDRESS",
    help="The cluster: auto for the one that runs on this machine, local to start one for this "
    "command, or HOST:PORT.",
)

_root_argument: Option = click.argument("root", type=NamedPath())


def _connection(address: str, replicas: int, cpus: float | None) -> dict[str, Any]:
    given: dict[str, Any] = {"address": address, "replicas": replicas}
    return given if cpus is None else {**given, "cpus": cpus}


connection_options: Option = together(
    _root_argument,
    collected(
        "connection", _connection, _address_option,
        click.option(
            "--replicas", type=Count(1), default=1, show_default=True,
            help="Number of actors for each shard.",
        ),
        _cpus_option,
    ),
)
"""ROOT, and the cluster; the command gets what `connect` takes as `connection`."""


@program.group()
def ray() -> None:
    """Build and ask shards on a cluster of Ray: `simindex ray COMMAND -h`.

    ROOT is the folder of a collection of shards, which all machines of the cluster have.
    """


@ray.command()
@_root_argument
@inputs_argument
@click.option(
    "--shards", type=Count(1, example="16"), required=True, metavar="N", help="Number of shards."
)
@click.option(
    "--by", type=click.Choice(["rows", "prefix"]), default="rows", show_default=True,
    help="Divide documents by their order, or by leading bits, so that queries within a few bits "
    "ask fewer shards.",
)
@click.option(
    "--work", type=NamedPath(), metavar="DIR",
    help="Build in this folder on a local disk of each machine, and copy the finished shards.",
)
@_address_option
@_cpus_option
@structures_option
@distance("the recipe", "The radius that the shards store")
@key_secret_option
@recipe_options
@idf_options
@input_options
@output_options
def build(
    root: str, inputs: tuple[str, ...], shards: int, by: Literal["rows", "prefix"],
    work: str | None, address: str, cpus: float | None, structures: tuple[str, ...] | None,
    h: int | None, key_secret: bytes | None, recipe_given: dict[str, Any], learning: Learning,
    reading: Reading, as_json: bool, quiet: bool,
) -> None:
    """Create a collection of shards in ROOT from documents or fingerprints.

    INPUTs are those of `simindex build`. This machine makes the fingerprints, and the cluster
    builds the shards.
    """
    from simindex.distributed import ray as on_ray
    from simindex.distributed.shards import require_new

    started = time.perf_counter()
    if not inputs:
        inputs = piped_input("nothing to build from: give an INPUT after ROOT")
    require_new(root)
    require_inputs(inputs)
    if h is not None:
        recipe_given = {**recipe_given, "h": h}
    contents = _contents(root, inputs, recipe_given, learning, reading.lasting(), quiet or as_json)
    given: dict[str, Any] = {}
    if structures is not None:
        given["structures"] = structures
    if key_secret is not None:
        given["key_secret"] = key_secret
    silent = quiet or as_json
    with Progress("reading", quiet=silent, extent=contents.extent) as progress:
        batches, options = _read(contents, progress)
        if not batches:
            contents.without.close()
            contents.say()
            nothing_to_do(
                f"the inputs hold no {contents.noun}: {root} was not created", quiet=quiet
            )
        progress.then("building", "task")
        made = on_ray.build(
            root, batches, shards, by=by, options=simindex.IndexOptions(**options, **given),
            work=work, address=address, progress=progress.tell,
            **({} if cpus is None else {"cpus": cpus}),
        )
    contents.without.close()
    spent_s = time.perf_counter() - started
    if as_json:
        emit({"shards": len(made), "rows": made.rows, "h": made.h, "seconds": spent_s})
    elif not quiet:
        contents.say()
        say(
            f"built {count(len(made), 'shard')} of {count(made.rows, 'row')} in {root}, in "
            f"{duration(spent_s)}"
        )


def _contents(
    root: str, inputs: tuple[str, ...], recipe_given: dict[str, Any], learning: Learning,
    reading: Reading, quiet: bool,
) -> Contents[Any]:
    from simindex.cli.contents import Rows, Texts, require_no_recipe

    without = Path(os.path.realpath(root))
    if reading.holds_fingerprints(inputs):
        bits = recipe_given.pop("bits", None)
        require_no_recipe([*recipe_given, *learning.given])
        return Rows.of(inputs, reading, without, bits=bits, append=False)
    return Texts(prepare(recipe_given, learning, inputs, reading, without, quiet=quiet))


def _read(
    contents: Contents[Any], progress: Progress
) -> tuple[list[simindex.Batch], dict[str, Any]]:
    """All rows, without their weights, and the options of an index for them."""
    batches: list[simindex.Batch] = []
    options: dict[str, Any] = {}
    for group in contents.groups(contents.most):
        batch = contents.batch(group)
        progress.advance(*contents.size(group))
        if len(batch):
            options = options or contents.options(group)
            batches.append(simindex.Batch(
                batch.rows, ids=batch.ids, keys=batch.keys, recipe=batch.recipe,
                sketch=batch.sketch,
            ))
    return batches, options


@ray.command()
@connection_options
@inputs_argument
@text_option
@fingerprint_option
@click.option(
    "--limit", type=Count(), metavar="N",
    help="Print at most N matches for each query, the nearest ones.",
)
@distance_option
@threads_option
@input_options
@result_options
@output_options
def query(
    root: str, connection: dict[str, Any], limit: int | None, h: int | None, threads: int | None,
    **asked: Any,
) -> None:
    """Print the near-duplicates of documents in all shards, as `simindex query` does."""
    def ask(shards: Connection, batches: Iterator[simindex.Batch]) -> Iterator[Matches]:
        return shards.query_stream(batches, h=h, limit=limit, threads=threads)

    _look_up(root, connection, ask, h=h, k=None, **asked)


@ray.command()
@connection_options
@inputs_argument
@text_option
@fingerprint_option
@click.option(
    "-k", "--top", "k", type=Count(1), default=10, show_default=True, metavar="K",
    help="How many documents to print for each query.",
)
@threads_option
@input_options
@result_options
@output_options
def top(
    root: str, connection: dict[str, Any], k: int, threads: int | None, **asked: Any
) -> None:
    """Print the nearest documents of all shards, as `simindex query --top` does."""
    def ask(shards: Connection, batches: Iterator[simindex.Batch]) -> Iterator[TopMatches]:
        return (shards.top(batch, k, threads=threads) for batch in batches)

    _look_up(root, connection, ask, h=None, k=k, **asked)


def _look_up(
    root: str, connection: dict[str, Any], ask: Ask, *, h: int | None, k: int | None,
    inputs: tuple[str, ...], texts: tuple[str, ...], fingerprints: list[list[int]],
    reading: Reading, results: Results, as_json: bool, quiet: bool,
) -> None:
    import numpy as np

    from simindex.cli.batches import gathered
    from simindex.distributed import ray as on_ray

    if not (inputs or texts or fingerprints):
        inputs = piped_input("nothing to look up: give an INPUT, --text or --fingerprint")
    require_inputs(inputs, "check the name; a text is looked up with --text TEXT")
    results.require_apart(inputs, root)
    intake = reading.intake()
    extent = reading.extent(inputs, intake) if inputs else None
    asked = matched = found = 0
    started = time.perf_counter()
    names: deque[list[str]] = deque()
    with (
        on_ray.connect(root, **connection) as shards,
        simindex.open(shards.shard_map.shards[0].path, "r") as index,
    ):
        h = shards.shard_map.h if h is None else h
        asking = Asking(index, root, reading, intake, inputs, texts, fingerprints)
        asking.check()

        def batches() -> Iterator[simindex.Batch]:
            for some, batch in gathered(asking.batches(), QUERIES_AT_ONCE):
                names.append(some)
                yield batch

        silent = quiet or not inputs or results.on_terminal
        with (
            results.opened(schema_of_matches(index.options.keys)) as write,
            Progress("looking up", quiet=silent, extent=extent) as progress,
        ):
            for matches in ask(shards, batches()):
                some = names.popleft()
                # Queries of a stream are numbered through from its beginning.
                start = -asked if k is None else 0
                print_matches(some, start, matches, write)
                asked += len(some)
                found += len(matches)
                matched += len(np.unique(matched_queries(matches)))
                progress.advance(len(some), 0)
            if not asked:  # before -o FILE is there
                end_without_question(asking, quiet)
    asking.without.close()
    if not quiet:
        for line in met(intake):
            say(line)
        spent = duration(time.perf_counter() - started)
        say(f"{told_of(asked, matched, found, within(h, None), k)}, in {spent}")


@ray.command()
@connection_options
@distance_option
@click.option(
    "--collapse-equal", is_flag=True,
    help="Pair only one of the documents of a shard with equal fingerprints with others, and list "
    "the rest with it.",
)
@threads_option
@result_options
@output_options
def pairs(
    root: str, connection: dict[str, Any], h: int | None, collapse_equal: bool,
    threads: int | None, results: Results, as_json: bool, quiet: bool,
) -> None:
    """Print all near-duplicates within the shards, as `simindex pairs` does."""
    from simindex.distributed import ray as on_ray

    results.require_apart((), root)
    started = time.perf_counter()
    found = 0
    with (
        Progress("pairing", "task", quiet=quiet or results.on_terminal) as progress,
        on_ray.connect(root, **connection, progress=progress.tell) as shards,
        results.opened(schema_of_pairs(_kind(shards))) as write,
    ):
        h = shards.shard_map.h if h is None else h
        for some in shards.pairs(h=h, collapse_equal=collapse_equal, threads=threads):
            found += print_pairs(some, write)
        rows = len(shards)
    if not quiet:
        say(
            f"{count(found, 'pair')} within {h} bits among {count(rows, 'row')}, in "
            f"{duration(time.perf_counter() - started)}"
        )


@ray.command()
@connection_options
@distance_option
@click.option(
    "--singletons/--no-singletons", default=True, show_default=True,
    help="List or omit documents without a near-duplicate.",
)
@threads_option
@result_options
@output_options
def clusters(
    root: str, connection: dict[str, Any], h: int | None, singletons: bool, threads: int | None,
    results: Results, as_json: bool, quiet: bool,
) -> None:
    """Print the clusters of near-duplicates within the shards, as `simindex clusters` does."""
    from simindex.distributed import ray as on_ray

    results.require_apart((), root)
    started = time.perf_counter()
    with (
        Progress("pairing", "task", quiet=quiet) as progress,
        on_ray.connect(root, **connection, progress=progress.tell) as shards,
        results.opened(schema_of_clusters(_kind(shards))) as write,
    ):
        h = shards.shard_map.h if h is None else h
        found = shards.clusters(h=h, singletons=singletons, threads=threads)
        print_clusters(found, write)
    if not quiet:
        say(f"{told_of_clusters(found, h)}, in {duration(time.perf_counter() - started)}")


@ray.command()
@connection_options
@distance_option
@threads_option
@result_options
@output_options
def dedup(
    root: str, connection: dict[str, Any], h: int | None, threads: int | None, results: Results,
    as_json: bool, quiet: bool,
) -> None:
    """Print which documents to drop so that no near-duplicates are left.

    Prints one line for each document to drop: its key (or id), the document that is kept instead,
    and their distance, separated by tabs. Of near-duplicates the one with the smallest id is kept.
    """
    from simindex.distributed import losers
    from simindex.distributed import ray as on_ray

    results.require_apart((), root)
    started = time.perf_counter()
    with (
        Progress("pairing", "task", quiet=quiet) as progress,
        on_ray.connect(root, **connection, progress=progress.tell) as shards,
        results.opened(schema_of_losers(_kind(shards))) as write,
    ):
        h = shards.shard_map.h if h is None else h
        parts = list(shards.pairs(h=h, collapse_equal=True, threads=threads))
        lost = losers(parts)
        print_losers(lost, keys_of(parts), write)
        rows = len(shards)
    if not quiet:
        say(
            f"keep {rows - len(lost.id):,} of {count(rows, 'row')}, drop {len(lost.id):,}, in "
            f"{duration(time.perf_counter() - started)}"
        )


def _kind(shards: Connection) -> Any:
    """The kind of keys, as `IndexOptions` has it."""
    names = shards.shard_map.facts.names
    return False if names == "ids" else names
