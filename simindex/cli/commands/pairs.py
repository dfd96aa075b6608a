"""`simindex pairs`: all near-duplicates within an index."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import click

import simindex
from simindex.cli.app import program
from simindex.cli.console import LINES_AT_ONCE, cell, count, duration, say
from simindex.cli.opening import open_index
from simindex.cli.progress import Progress
from simindex.cli.recommendation import GivenThreshold, threshold_options
from simindex.cli.results import Results, result_options
from simindex.cli.shared_options import (
    index_argument,
    memory_limit_option,
    output_options,
    threads_option,
)
from simindex.cli.similarity import (
    columns_of_similarity,
    schema_of_similarity,
    within,
)
from simindex.outputs.columns import Schema, Write, key_text, kind_of_keys


@program.command()
@index_argument
@threshold_options
@click.option(
    "--collapse-equal", is_flag=True,
    help="Of documents with equal fingerprints, pair only the one with the smallest id with other "
    "documents. List the rest with it, at distance 0. So n equal documents give n - 1 lines "
    "instead of n (n - 1) / 2.",
)
@memory_limit_option
@threads_option
@result_options
@output_options
def pairs(
    index_path: str, given: GivenThreshold, collapse_equal: bool, memory_limit: int | None,
    threads: int | None, results: Results, as_json: bool, quiet: bool,
) -> None:
    """Print all pairs of near-duplicates within INDEX.

    Prints one line for each pair: two keys (or ids) and their distance, separated by tabs. With
    --similarity, the estimated similarity follows.
    """
    results.require_apart((), index_path)
    started = time.perf_counter()
    found = 0
    promised: str | None = None
    with ExitStack() as opened:
        index = opened.enter_context(open_index(index_path, "r"))
        near = given.asked_of(index, index_path)
        schema = schema_of_pairs(index.options.keys, near.similarity)
        write = opened.enter_context(results.opened(schema))
        # Not on a terminal that pairs are printed to.
        progress = opened.enter_context(
            Progress("pairing", "row", quiet=quiet or results.on_terminal)
        )
        for some in index.pairs(
            **near.arguments, collapse_equal=collapse_equal, memory_limit=memory_limit,
            threads=threads, progress=progress.tell,
        ):
            found += print_pairs(some, write)
            promised = some.guarantee
        rows = len(index)
    if not quiet:
        reach = within(near.h, near.similarity)
        say(
            f"{count(found, 'pair')} {reach} among {count(rows, 'row')}, in "
            f"{duration(time.perf_counter() - started)}"
        )
        if near.similarity is not None and promised is not None:
            say(promised)


def schema_of_pairs(keys: Any, similarity: float | None = None) -> Schema:
    """The columns of pairs of an index with keys of a kind, or without."""
    ids: Schema = {"a": "uint64", "b": "uint64"}
    kind = kind_of_keys(keys)
    named: Schema = {"a_key": kind, "b_key": kind} if keys else {}
    return {**ids, **named, "distance": "uint16", **schema_of_similarity(similarity)}


def print_pairs(some: simindex.Pairs, write: Write | None) -> int:
    """Prints pairs as lines, or hands them to `write`; returns how many there are."""
    for columns in _columns(some):
        if write is None:
            click.echo("\n".join(_lines(columns)))
        else:
            write(columns)
    groups = len(some.groups) if isinstance(some, simindex.CollapsedPairs) else 0
    return len(some) + groups


def _columns(some: Any) -> Iterator[dict[str, Any]]:
    """What is written of a chunk, some rows at a time."""
    import numpy as np

    bits = some.similarity_bits
    parts = [(some.a, some.b, some.distance, some.keys())]
    if isinstance(some, simindex.CollapsedPairs):
        groups = some.groups
        equal = np.zeros(len(groups), np.uint16)
        parts.append((groups.first, groups.row, equal, groups.keys()))
    for a, b, distance, keys in parts:
        columns = {"a": a, "b": b, "distance": distance}
        if keys is not None:
            columns["a_key"], columns["b_key"] = keys
        if bits:
            columns |= columns_of_similarity(distance, bits, some.measure)
        for start in range(0, len(a), LINES_AT_ONCE):
            rows = slice(start, start + LINES_AT_ONCE)
            yield {name: column[rows] for name, column in columns.items()}


def _lines(columns: dict[str, Any]) -> Iterator[str]:
    names = (
        map(shown, columns[f"{side}_key"] if f"{side}_key" in columns else columns[side].tolist())
        for side in "ab"
    )
    told = [columns["distance"].tolist()]
    if "similarity" in columns:
        told.append(columns["similarity"].tolist())
    for a, b, *values in zip(*names, *told, strict=True):
        yield "\t".join([a, b, *map(str, values)])


def shown(name: Any) -> str:
    """An id or a key in a column."""
    return str(name) if isinstance(name, int) else cell(key_text(name))
