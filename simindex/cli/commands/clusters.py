"""`simindex clusters`: groups of near-duplicates within an index."""

from __future__ import annotations

import time
from collections.abc import Iterator

import click

import simindex
from simindex.cli.app import program
from simindex.cli.choices import (
    distance_option,
    index_argument,
    memory_limit_option,
    output_options,
    threads_option,
)
from simindex.cli.commands.pairs import LINES_AT_ONCE, shown
from simindex.cli.console import as_json_line, count, duration, key_text, say
from simindex.cli.progress import Progress
from simindex.records.clusters import Clusters


@program.command()
@index_argument
@distance_option
@click.option(
    "--star", is_flag=True,
    help="Only documents within the distance of one representative, so that no chain is glued.",
)
@click.option(
    "--singletons/--no-singletons", default=True, show_default=True,
    help="Whether documents that are near to no other one are listed.",
)
@memory_limit_option
@threads_option
@output_options
def clusters(
    index_path: str, h: int | None, star: bool, singletons: bool, memory_limit: int | None,
    threads: int | None, as_json: bool, quiet: bool,
) -> None:
    """Print the clusters of near-duplicates within INDEX.

    One line a document: its key (or id), its cluster, its representative, the number of documents
    in the cluster, and the distance to the representative, separated by tabs; ordered by cluster.
    A cluster has the name of its document of the smallest id.
    """
    started = time.perf_counter()
    with simindex.open(index_path, "r") as index:
        h = index.h if h is None else h
        with Progress("pairing", "row", quiet=quiet) as progress:
            found = index.clusters(
                h=h, mode="star" if star else "components", singletons=singletons,
                memory_limit=memory_limit, threads=threads, progress=progress.tell,
            )
        for some in found.slices(LINES_AT_ONCE):
            click.echo("\n".join(_lines(some, as_json)))
    if not quiet:
        largest = f", the largest of {found.largest:,}" if found.clusters else ""
        say(
            f"{count(found.clusters, 'cluster')} within {h} among "
            f"{count(found.documents, 'document')}{largest}; {found.alone:,} in none, in "
            f"{duration(time.perf_counter() - started)}"
        )


def _lines(some: Clusters, as_json: bool) -> Iterator[str]:
    keys = some.keys(), some.cluster_keys(), some.representative_keys()
    for place, one in enumerate(some):
        names = [None if column is None else column[place] for column in keys]
        if as_json:
            record = one._asdict()
            if keys[0] is not None:
                record |= zip(
                    ("key", "cluster_key", "representative_key"), map(key_text, names), strict=True
                )
            yield as_json_line(record)
            continue
        if keys[0] is None:
            names = [one.id, one.cluster, one.representative]
        yield "\t".join([*map(shown, names), str(one.size), str(one.distance)])
