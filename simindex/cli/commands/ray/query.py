"""`simindex ray query` and `ray top`: near-duplicates in all shards, or the nearest documents."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import click

import simindex
from simindex.cli.account import met
from simindex.cli.answers import (
    end_without_question,
    matched_queries,
    print_listed,
    print_matches,
    say_nearest,
    schema_of_matches,
    told_of,
    told_of_listing,
)
from simindex.cli.commands.ray.group import (
    connection_options,
    distance_option,
    ray,
    task_limit_option,
)
from simindex.cli.console import duration, say
from simindex.cli.input_options import Reading, input_options, inputs_argument, piped_input
from simindex.cli.numbers import Count, Share
from simindex.cli.progress import Progress
from simindex.cli.query_options import (
    METHODS,
    USUAL_MAX_ERROR,
    fingerprint_option,
    others_option,
    search_options,
    shown_options,
    slice_options,
    text_option,
)
from simindex.cli.questions import Asking
from simindex.cli.results import Results, result_options
from simindex.cli.shared_options import output_options, threads_option
from simindex.cli.similarity import measure_option, require_one, similarity_option, within
from simindex.cli.suggestions import suggested
from simindex.inputs.reading import require_inputs

if TYPE_CHECKING:
    from simindex.distributed.ray import Connection
    from simindex.records.matches import Matches, TopMatches

    Ask = Callable[[Connection, Iterator[simindex.Batch]], Iterator[Matches | TopMatches]]

QUERIES_AT_ONCE = 1 << 16


@ray.command()
@connection_options
@inputs_argument
@text_option
@fingerprint_option
@others_option
@shown_options
@search_options
@task_limit_option
@distance_option
@similarity_option
@measure_option
@threads_option
@input_options
@result_options
@output_options
def query(
    root: str, connection: dict[str, Any], first: bool, limit: int | None, listed: str | None,
    memory: int | None, method: str, recall: float, memory_limit: int | None, h: int | None,
    similarity: float | None, measure: str, threads: int | None, **asked: Any,
) -> None:
    """Print the near-duplicates that documents have in the shards.

    Prints what `simindex query` prints.
    """
    require_one(h, similarity)
    if listed and limit is not None:
        raise click.UsageError("--list prints no matches: leave out --limit")

    def ask(shards: Connection, batches: Iterator[simindex.Batch]) -> Iterator[Matches]:
        return shards.query_stream(
            batches, h=h, similarity=similarity, measure=measure,
            first=first or listed is not None, limit=limit, recall=recall, method=method,
            memory=memory, memory_limit=memory_limit, threads=threads,
        )

    _look_up(root, connection, ask, h=h, similarity=similarity, k=None, listed=listed, **asked)


@ray.command()
@connection_options
@inputs_argument
@text_option
@fingerprint_option
@others_option
@click.option(
    "-k", "--top", "k", type=Count(1), default=10, show_default=True, metavar="K",
    help="How many documents to print for each query.",
)
@click.option(
    "--method", default="scan", show_default=True, metavar="NAME",
    shell_complete=suggested(lambda: METHODS),
    help="How to search: scan compares all rows, issl uses slice lists.",
)
@click.option(
    "--recall", type=Share(),
    help="With slice lists: share of the nearest documents to find in each shard. Default: not "
    "measured.",
)
@slice_options
@threads_option
@input_options
@result_options
@output_options
def top(
    root: str, connection: dict[str, Any], k: int, method: str, recall: float | None,
    max_error: Any, rerank: int | None, threads: int | None, **asked: Any,
) -> None:
    """Print the nearest documents of all shards.

    Prints what `simindex query --top K` prints.
    """
    if max_error is None:
        max_error = USUAL_MAX_ERROR if recall is None else "auto"

    def ask(shards: Connection, batches: Iterator[simindex.Batch]) -> Iterator[TopMatches]:
        return (
            shards.top(
                batch, k, method=method, max_error=max_error, rerank=rerank, recall=recall,
                threads=threads,
            )
            for batch in batches
        )

    _look_up(root, connection, ask, h=None, similarity=None, k=k, listed=None, **asked)


def _look_up(
    root: str, connection: dict[str, Any], ask: Ask, *, h: int | None,
    similarity: float | None, k: int | None, listed: str | None, inputs: tuple[str, ...],
    texts: tuple[str, ...], fingerprints: list[list[int]], others: tuple[str, ...],
    reading: Reading, results: Results, as_json: bool, quiet: bool,
) -> None:
    import numpy as np

    from simindex.cli.batches import gathered
    from simindex.cli.near_misses import FEW, Unmatched
    from simindex.distributed import ray as on_ray
    from simindex.distributed.shard import opened

    if not (inputs or texts or fingerprints or others):
        inputs = piped_input("nothing to look up: give an INPUT, --text, --fingerprint or --index")
    require_inputs(inputs, "check the name; a text is looked up with --text TEXT")
    results.require_apart(inputs, root, *others)
    intake = reading.intake()
    extent = reading.extent(inputs, intake) if inputs and not others else None
    asked = matched = found = 0
    started = time.perf_counter()
    waiting: deque[tuple[list[str], simindex.Batch]] = deque()
    without = Unmatched(FEW if k is None and not (quiet or listed) else 0)
    with on_ray.connect(root, **connection) as shards, opened(shards.check().shards[0]) as index:
        h = index.h if h is None else h
        asking = Asking(
            index, root, reading, intake, inputs, texts, fingerprints, others,
            command="simindex ray query", recipe_of=str(index.path),
        )
        asking.check()

        def batches() -> Iterator[simindex.Batch]:
            for some, batch in gathered(asking.batches(), QUERIES_AT_ONCE):
                waiting.append((some, batch))
                yield batch

        silent = quiet or not (inputs or others) or results.on_terminal
        with (
            results.opened(schema_of_matches(index.options.keys, listed, similarity)) as write,
            Progress("looking up", quiet=silent, extent=extent) as progress,
        ):
            for matches in ask(shards, batches()):
                names, batch = waiting.popleft()
                # Queries of a stream are numbered through from its beginning.
                start = -asked if k is None else 0
                has = np.zeros(len(names), np.bool_)
                has[start + matched_queries(matches)] = True
                if listed:
                    print_listed(names, has, listed, write)
                else:
                    print_matches(names, start, matches, write)
                without.add(names, batch, has)
                asked += len(names)
                found += len(matches)
                matched += int(np.count_nonzero(has))
                progress.advance(len(names), 0)
            if not asked:  # before -o FILE is there
                end_without_question(asking, quiet)
        say_nearest(without, shards, as_json, call="`simindex ray top`")
    asking.without.close()
    if quiet:
        return
    for line in met(intake):
        say(line)
    result = (
        told_of_listing(asked, matched, listed, within(h, similarity)) if listed
        else told_of(asked, matched, found, within(h, similarity), k)
    )
    say(f"{result}, in {duration(time.perf_counter() - started)}")
