"""`simindex report`: a page about an index, in one file."""

from __future__ import annotations

import io
import sys
import time
from dataclasses import replace
from pathlib import Path

import click

from simindex.cli.account import met
from simindex.cli.app import program
from simindex.cli.console import count, duration, emit, say
from simindex.cli.input_options import Reading, input_options
from simindex.cli.numbers import Count
from simindex.cli.opening import open_index
from simindex.cli.progress import Progress
from simindex.cli.results import out_typed
from simindex.cli.shared_options import (
    NamedPath,
    distance_option,
    index_argument,
    memory_limit_option,
    output_options,
    threads_option,
)
from simindex.cli.similarity import (
    measure_option,
    require_one,
    share_option,
    similarity_option,
)
from simindex.cli.targets import require_apart
from simindex.errors import InvalidOption
from simindex.inputs.paths import expanded
from simindex.inputs.reading import require_inputs
from simindex.outputs.whole_file import whole_file

FAMILIES, MEMBERS = 50, 10
STDOUT = "-"


@program.command()
@index_argument
@click.option(
    "-o", "--out", required=True, type=NamedPath(allow_dash=True), metavar="FILE",
    help="Write the page to FILE, which appears once the page is complete. - is standard output.",
)
@click.option(
    "--texts", "texts", multiple=True, type=NamedPath(allow_dash=True), metavar="INPUT",
    help="A file or folder that INDEX was built from. The page then shows which words differ "
    "within a cluster. May be repeated.",
)
@click.option(
    "--clusters", "families", type=Count(), default=FAMILIES, show_default=True, metavar="N",
    help="Show the N largest clusters.",
)
@click.option(
    "--members", type=Count(1), default=MEMBERS, show_default=True, metavar="N",
    help="Show at most N documents of a cluster.",
)
@click.option(
    "--no-clusters", "nearness", flag_value=False, default=True,
    help="Leave out pairs and clusters. To find them takes as much time and memory as `simindex "
    "clusters`.",
)
@distance_option
@similarity_option
@measure_option
@share_option
@memory_limit_option
@threads_option
@input_options
@output_options
def report(
    index_path: str, out: str, texts: tuple[str, ...], families: int, members: int, nearness: bool,
    h: int | None, similarity: float | None, measure: str, recall: float, memory_limit: int | None,
    threads: int | None, reading: Reading, as_json: bool, quiet: bool,
) -> None:
    """Write a page about INDEX for a browser.

    The page shows what INDEX contains, its clusters, and what a search finds and costs. It is one
    HTML file, which loads nothing and can be read without JavaScript.
    """
    from simindex.planning.similarity import require_measure, similar

    require_one(h, similarity)
    require_measure(measure, similarity, None)
    inputs = expanded(texts)
    require_inputs(inputs, "check the name")
    path = None if out == STDOUT else out
    require_apart(out_typed(), path, inputs, index_path)
    started = time.perf_counter()
    intake = reading.intake()
    with open_index(index_path, "r", refresh=False) as index:
        if inputs and not index.options.keys:
            raise InvalidOption(
                "--texts finds documents by their keys, and the index has none",
                remedy="leave out --texts", option="texts",
            )
        found = None
        if similarity is not None:
            own, recipe = index.options, index.recipe
            found = similar(
                similarity, measure=measure, recall=recall, h=None, bits=own.bits,
                sketch_bits=own.sketch_bits,
                recipe=recipe,
            )
            radius = found.h
        else:
            radius = index.h if h is None else h
        from simindex.cli.index_report import Reporter, texts_of  # with all pairs, once it is open

        with Progress("surveying", "row", quiet=quiet) as progress:
            reporter = Reporter(
                index, index_path, radius, families, members, memory_limit, threads, progress,
                found, recall,
            )
            told = reporter.report(nearness=nearness)
            if inputs:
                progress.then("reading", "document")
                read = texts_of(told, index, reading, inputs, intake)
                told = replace(told, texts=read, texts_given=True)
    from simindex.reporting.index_page import write_index_page

    if path is None:
        write_index_page(sys.stdout, told)
    else:
        with whole_file(Path(path), out_typed()) as file:
            stream = io.TextIOWrapper(file, encoding="utf-8", newline="")
            try:
                write_index_page(stream, told)
            finally:
                stream.detach()
    seconds = time.perf_counter() - started
    if as_json and path is not None:
        emit({"report": path, "bytes": Path(path).stat().st_size, "rows": told.rows,
              "clusters": told.clustering and told.clustering.clusters, "seconds": seconds})
    if not quiet:
        for line in met(intake):
            say(line)
        if path is not None:
            say(f"{count(told.rows, 'row')} in {path}, in {duration(seconds)}")
