"""`simindex explain`: how a query is answered.

By default in the words of the shell; --verbose has a line a segment, in those of the engine.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import click

import simindex
from simindex.cli.app import program
from simindex.cli.chunks import why_none
from simindex.cli.console import compacted, count, duration, emit, say
from simindex.cli.numbers import Share
from simindex.cli.opening import open_index
from simindex.cli.query_options import METHODS, fingerprint_option, text_option, top_options
from simindex.cli.questions import as_row
from simindex.cli.recipes import recipe_of_questions
from simindex.cli.shared_options import (
    distance_option,
    index_argument,
    memory_option,
    output_options,
    verbose_option,
)
from simindex.cli.similarity import measure_option, require_one, similarity_option
from simindex.cli.suggestions import suggested
from simindex.errors import InvalidOption


@program.command()
@index_argument
@text_option
@fingerprint_option
@distance_option
@similarity_option
@measure_option
@click.option(
    "--recall", type=Share(), default=1.0, show_default=True,
    help="Share of the near-duplicates to find, as in `query`. 1 finds all.",
)
@click.option(
    "--method", default="auto", show_default=True, metavar="NAME",
    help="How to search, as in `query`.",
    shell_complete=suggested(lambda: METHODS),
)
@top_options("Explain a search for the K nearest documents, at any distance.")
@memory_option
@verbose_option
@output_options
def explain(
    index_path: str, texts: tuple[str, ...], fingerprints: list[list[int]], h: int | None,
    similarity: float | None, measure: str, recall: float, method: str, memory: int | None,
    nearest: dict[str, Any] | None, verbose: bool, as_json: bool, quiet: bool,
) -> None:
    """Print how INDEX answers one query, and how long that takes.

    Prints how many documents are compared with the query and how long that takes, predicted and
    measured. --verbose adds a line for each file of the index: method, header bits, flips, probes,
    rows compared and time.
    """
    require_one(h, similarity)
    if len(texts) + len(fingerprints) != 1:
        raise click.UsageError("one query is explained: give one --text or one --fingerprint")
    with open_index(index_path, "r") as index:
        question = _question(index, texts, fingerprints)
        found: simindex.Explanation | simindex.TopExplanation = (
            index.explain(
                question, h=h, similarity=similarity, measure=measure, recall=recall,
                method=method, memory=memory,
            )
            if nearest is None else index.explain_top(question, **nearest)
        )
    if as_json:
        emit(asdict(found))
        return
    if not verbose:
        for name, value in _for_users(found):
            click.echo(f"{name:<11} {value}")
        if not (quiet or found.measured):
            say(f"times are predicted for a usual machine: `simindex tune {index_path}` measures "
                "this one")
        return
    lines = _lines_of_top(found) if isinstance(found, simindex.TopExplanation) else _lines(found)
    for line in lines:
        click.echo("\t".join(line))
    if not quiet:
        if isinstance(found, simindex.Explanation) and found.flips_from is not None:
            say(f"the number of flips is chosen by {found.flips_from}")
        whose = "this machine" if found.measured else "another machine: run `simindex tune`"
        if told := _compacted(found):
            say(f"segments: {told}")
        within = f"within {found.h} bits; " if isinstance(found, simindex.Explanation) else ""
        say(f"{within}{found.guarantee}; predicted -> measured; constants of {whose}")


def _for_users(found: simindex.Explanation | simindex.TopExplanation) -> Iterator[tuple[str, str]]:
    rows = sum(one.rows for one in found.segments)
    compared = sum(one.rows_compared for one in found.segments)
    expected = sum(one.expected_rows for one in found.segments)
    if isinstance(found, simindex.Explanation):
        yield "query", f"documents within {found.h} bits"
        yield "matches", f"{sum(one.matches for one in found.segments):,.0f}"
    else:
        yield "query", f"the {found.k:,} nearest documents"
    yield "answer", found.guarantee
    yield "compared", (
        f"{compared:,.0f} of {count(rows, 'row')}, {expected:,.0f} were predicted"
    )
    yield "time", (
        f"{duration(sum(one.seconds for one in found.segments))}, "
        f"{duration(sum(one.expected_s for one in found.segments))} were predicted"
    )
    if told := _compacted(found):
        yield "files", told


def _compacted(found: simindex.Explanation | simindex.TopExplanation) -> str | None:
    return compacted(found.compaction) if isinstance(found, simindex.Explanation) else None


def _lines(found: simindex.Explanation) -> Iterator[tuple[str, ...]]:
    yield "segment", "rows", "method", "t", "k", "probes", "compared", "time", "matches"
    for one in found.segments:
        yield (
            one.name, f"{one.rows:,}", one.method, _span(one.header_bits), f"{one.flips:,}",
            f"{one.expected_probes:,.0f} -> {one.probes:,.0f}",
            f"{one.expected_rows:,.0f} -> {one.rows_compared:,.0f}",
            f"{duration(one.expected_s)} -> {duration(one.seconds)}", f"{one.matches:,.0f}",
        )


def _lines_of_top(found: simindex.TopExplanation) -> Iterator[tuple[str, ...]]:
    yield "segment", "rows", "method", "lists", "compared", "time", "otherwise"
    for one in found.segments:
        yield (
            one.name, f"{one.rows:,}", one.method,
            f"{one.expected_lists:,.0f} -> {one.lists:,.0f}",
            f"{one.expected_rows:,.0f} -> {one.rows_compared:,.0f}",
            f"{duration(one.expected_s)} -> {duration(one.seconds)}",
            "-" if one.other_s is None else f"{one.other}: {duration(one.other_s)}",
        )


def _question(
    index: simindex.Index, texts: tuple[str, ...], fingerprints: list[list[int]]
) -> Any:
    if fingerprints:
        return as_row(fingerprints[0])
    recipe = recipe_of_questions(
        index, index.path, "a text cannot be looked up in it", "give --fingerprint"
    )
    batch = recipe.batch(list(texts))
    for skip in batch.skipped:
        why = why_none(texts[skip.position], skip.reason)
        raise InvalidOption(
            f"--text has no fingerprint: {why}", remedy="give a text with words", option="text"
        )
    return batch


def _span(widths: tuple[int, ...]) -> str:
    if not widths:
        return "-"
    low, high = min(widths), max(widths)
    tables = f" x {len(widths)}" if len(widths) > 1 else ""
    return (f"{low}" if low == high else f"{low}-{high}") + tables
