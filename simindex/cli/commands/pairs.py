"""`simindex pairs`: all near-duplicates within an index."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from typing import Any

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
from simindex.cli.console import as_json_line, cell, count, duration, key_text, say
from simindex.cli.progress import Progress


@program.command()
@index_argument
@distance_option
@click.option(
    "--collapse-equal", is_flag=True,
    help="Pair only one of the documents with equal fingerprints with others: the one with the "
    "smallest id. List the rest with it, at distance 0. So n equal documents give n - 1 lines "
    "instead of n^2 / 2.",
)
@memory_limit_option
@threads_option
@output_options
def pairs(
    index_path: str, h: int | None, collapse_equal: bool, memory_limit: int | None,
    threads: int | None, as_json: bool, quiet: bool,
) -> None:
    """Print all near-duplicates within INDEX.

    Prints one line for each pair: two keys (or ids) and their distance, separated by tabs.
    """
    started = time.perf_counter()
    found = 0
    with (
        simindex.open(index_path, "r") as index,
        # Not on a terminal that pairs are printed to.
        Progress("pairing", "row", quiet=quiet or sys.stdout.isatty()) as progress,
    ):
        h = index.h if h is None else h
        for some in index.pairs(
            h=h, collapse_equal=collapse_equal, memory_limit=memory_limit, threads=threads,
            progress=progress.tell,
        ):
            for lines in _lines(some, as_json):
                click.echo(lines)
            found += len(some)
            if isinstance(some, simindex.CollapsedPairs):
                found += len(some.groups)
        rows = len(index)
    if not quiet:
        say(
            f"{count(found, 'pair')} within {h} bits among {count(rows, 'row')}, in "
            f"{duration(time.perf_counter() - started)}"
        )


LINES_AT_ONCE = 1 << 10


def _lines(some: Any, as_json: bool) -> Iterator[str]:
    """What is printed of a chunk, some lines at a time."""
    columns = [(some.a, some.b, some.distance.tolist(), some.keys())]
    if isinstance(some, simindex.CollapsedPairs):
        groups = some.groups
        columns.append((groups.first, groups.row, [0] * len(groups), groups.keys()))
    for a, b, distance, keys in columns:
        named_a, named_b = (a.tolist(), b.tolist()) if keys is None else keys
        lines = []
        for place, bits in enumerate(distance):
            if as_json:
                record: dict[str, Any] = {"a": int(a[place]), "b": int(b[place])}
                if keys is not None:
                    record |= {
                        "a_key": key_text(named_a[place]), "b_key": key_text(named_b[place]),
                    }
                lines.append(as_json_line({**record, "distance": bits}))
            else:
                first, second = shown(named_a[place]), shown(named_b[place])
                lines.append(f"{first}\t{second}\t{bits}")
            if len(lines) == LINES_AT_ONCE:
                yield "\n".join(lines)
                lines = []
        if lines:
            yield "\n".join(lines)


def shown(name: Any) -> str:
    """An id or a key in a column."""
    return str(name) if isinstance(name, int) else cell(key_text(name))
