"""`simindex gate`: whether documents are near-duplicates of those of an index, for scripts and CI.

    INPUT -> documents with their places -> query of the index -> reports, and an exit code

Documents are read, asked about and reported a portion at a time, as `query` does.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

import simindex
from simindex.cli.account import met
from simindex.cli.app import nothing_to_do, program
from simindex.cli.console import cell, count, duration, say
from simindex.cli.gate_documents import GateDocuments, GateTally
from simindex.cli.input_options import Reading, input_options, inputs_argument, piped_input
from simindex.cli.numbers import Count, Share
from simindex.cli.opening import open_index
from simindex.cli.progress import Progress
from simindex.cli.shared_options import (
    NamedPath,
    distance_option,
    memory_option,
    output_options,
    process_limit_option,
    threads_option,
)
from simindex.cli.similarity import measure_option, require_one
from simindex.cli.slots import read_ahead
from simindex.cli.targets import require_apart
from simindex.inputs.reading import require_inputs
from simindex.reporting.gate_findings import Flagged, Opening, Verdict, name_of
from simindex.reporting.gate_formats import GATE_FORMATS, GateFormat, GateWriter, gate_format_of

if TYPE_CHECKING:
    from simindex.records.gate import GateLimits

JSONL = "jsonl"


@program.command()
@click.option(
    "--against", "index_path", required=True, metavar="INDEX", type=NamedPath(),
    help="The index of the documents that the inputs must not contain.",
)
@inputs_argument
@click.option(
    "--similarity", type=Share(), metavar="COSINE",
    help="The least cosine of a match, from 0.5 to 1, in place of --distance. Default: 0.85 if the "
    "index has sketches.",
)
@measure_option
@distance_option
@click.option(
    "--recall", type=Share(),
    help="Share of the near-duplicates to find. Default: 1, which finds all; with a similarity "
    "0.95 of those at exactly that similarity.",
)
@click.option(
    "--max-matches", type=Count(1), metavar="N",
    help="Exit with 1 if N documents or more have a match. Default: 1, unless --max-share is "
    "given.",
)
@click.option(
    "--max-share", type=Share(), metavar="SHARE",
    help="Exit with 1 if this share of the documents or more has a match, such as 0.01. Default: "
    "no such limit.",
)
@click.option(
    "--limit", type=Count(1), metavar="N",
    help="Report at most N matches for each document, the nearest ones. Default: 10.",
)
@click.option(
    "--report", "reports", multiple=True, type=NamedPath(), metavar="FILE",
    help="Write a report to FILE: JSON lines, SARIF or HTML, by its suffix (.jsonl, .sarif, "
    ".html). May be repeated.",
)
@click.option(
    "--report-format", type=click.Choice(list(GATE_FORMATS)),
    help="Format of the report, if the suffix of FILE does not say it. Without --report the report "
    "goes to standard output.",
)
@process_limit_option
@input_options
@output_options
@threads_option
@memory_option
def gate(
    index_path: str, inputs: tuple[str, ...], similarity: float | None, measure: str,
    h: int | None, recall: float | None, max_matches: int | None, max_share: float | None,
    limit: int | None, reports: tuple[str, ...], report_format: str | None, memory: int | None,
    memory_limit: int | None, threads: int | None, reading: Reading, as_json: bool, quiet: bool,
) -> None:
    """Check that documents have no near-duplicates in an index.

    Exits with 1 if a document has a match, unless --max-matches or --max-share allow some. Use it
    to keep a test set out of a training set, or to find copies of known texts. Prints one line for
    each document of the INPUTs with a match: its file and line, its key, the nearest match, and
    the similarity or distance of both. --report writes all matches as JSON lines, as SARIF for
    code hosts and editors, or as a page.
    """
    from simindex.cli.batches import answers_of, near_in_parts
    from simindex.index.gate_nearness import USUAL_LIMIT
    from simindex.records.gate import GateLimits

    require_one(h, similarity)
    files = _files(reports, report_format, as_json)
    limits = GateLimits.of(max_matches, max_share)
    limit = USUAL_LIMIT if limit is None else limit
    if not inputs:
        inputs = piped_input("nothing to check: give an INPUT")
    require_inputs(inputs, "check the name")
    for path, _ in files:
        require_apart("--report", path, inputs, index_path)
    started = time.perf_counter()
    intake = reading.intake()
    with open_index(index_path, "r", refresh=False) as index:  # one commit for all batches
        asked = GateDocuments(
            index, index_path, reading, intake, inputs,
            excerpts=any(kind.name == "html" for _, kind in files),
        )
        near, opening = _opening(asked, limits, h, similarity, measure, recall)
        tally = GateTally(limits, limit)
        ask = partial(near_in_parts, partial(
            index.query_stream, **near, limit=limit + 1, memory=memory, threads=threads
        ))
        # Not on a terminal that the lines are printed to.
        silent = quiet or (sys.stdout.isatty() and (not files or (None in dict(files))))
        shown = Progress("checking", quiet=silent, extent=reading.extent(inputs, intake))
        with ExitStack() as opened:
            writers: list[GateWriter] = [
                kind.make(sys.stdout, opening) if path is None
                else opened.enter_context(kind.to_file(Path(path), "--report", opening))
                for path, kind in files
            ] or [_Lines()]
            # The next documents are read and become fingerprints while some are looked up.
            batches = opened.enter_context(closing(read_ahead(asked.batches())))
            answered = answers_of(batches, ask, index.options.bits, memory_limit)
            with closing(answered), shown as progress:
                for questions, _, answers in answered:
                    for flagged in tally.flagged(questions, answers):
                        for writer in writers:
                            writer.add(flagged)
                    progress.advance(sum(map(len, questions)), 0)
            if asked.documents == asked.without.number:
                asked.without.close()
                _end_unchecked(asked, quiet)  # before a report is there
            empty = not len(index)
            verdict = tally.verdict(asked, time.perf_counter() - started)
            for writer in writers:
                writer.end(verdict)
    asked.without.close()
    if not quiet:
        for line in met(intake):
            say(line)
        if empty:
            say(f"warning: {index_path} holds no document, so nothing can match")
        say(_summary(verdict, opening))
    click.get_current_context().exit(verdict.exit_code)


def _opening(
    asked: GateDocuments, limits: GateLimits, h: int | None, similarity: float | None,
    measure: str, recall: float | None,
) -> tuple[dict[str, Any], Opening]:
    """The arguments of a query that say what a match is, and what reports tell of them."""
    from simindex.index.gate_nearness import gate_nearness
    from simindex.planning.similarity import require_measure, similar

    own = asked.index.options
    sketched = own.sketch_bits > 0 and not asked.of_rows
    near = gate_nearness(h, similarity, recall, measure, sketched=sketched)
    if near["similarity"] is None:
        require_measure(measure, None, None)
        near["h"] = asked.index.h if h is None else h
        bits, radius = own.bits, near["h"]
    else:
        chosen = similar(
            **near, bits=own.bits, sketch_bits=own.sketch_bits, recipe=asked.index.recipe,
            weighted=not asked.of_rows,
        )
        bits, radius = chosen.compared_bits, chosen.h
    return near, Opening(
        asked.name, bits, radius, near["similarity"], limits, asked.inputs, simindex.__version__,
        measure,
    )


class _Lines:
    """Prints a line for each document with a match: place, key, nearest match, how near."""

    def add(self, flagged: Flagged) -> None:
        """The line of a document."""
        nearest = flagged.matches[0]
        near = nearest.distance if nearest.similarity is None else f"{nearest.similarity:.3f}"
        place = flagged.place
        click.echo(f"{cell(place.where)}\t{cell(place.key)}\t{cell(name_of(nearest))}\t{near}")

    def end(self, verdict: Verdict) -> None:
        """The summary is on standard error."""


def _end_unchecked(asked: GateDocuments, quiet: bool) -> NoReturn:
    if not quiet:
        for line in met(asked.intake):
            say(line)
    why = "no document has a fingerprint" if asked.documents else "the inputs hold no document"
    nothing_to_do(f"nothing was checked: {why}", quiet=quiet)


def _summary(verdict: Verdict, opening: Opening) -> str:
    have = "has" if 1 in (verdict.matched, verdict.documents) else "have"
    limit = f"{opening.limits} or more are too many"
    return (
        f"{'passed' if verdict.passed else 'did not pass'}: {verdict.matched:,} of "
        f"{count(verdict.documents, 'document')} {have} a match in {opening.index} "
        f"({opening.asked}; {limit}), in {duration(verdict.seconds)} "
        f"({'; '.join(verdict.guarantees)})"
    )


def _files(
    reports: Sequence[str], named: str | None, as_json: bool
) -> list[tuple[str | None, GateFormat]]:
    """Where reports go, None for standard output, and their formats."""
    files: list[tuple[str | None, GateFormat]] = []
    for path in reports:
        kind = gate_format_of(path) or (None if named is None else GATE_FORMATS[named])
        if kind is None:
            suffixes = " ".join(row.suffixes[0] for row in GATE_FORMATS.values())
            raise click.UsageError(
                f"--report {path} does not say the format: end it with one of {suffixes}, or give "
                f"--report-format {'|'.join(GATE_FORMATS)}"
            )
        if any(path == other for other, _ in files):
            raise click.UsageError(f"--report {path} is given twice: name another file")
        files.append((path, kind))
    if named is not None and (not reports or as_json):
        if as_json and named != JSONL:
            raise click.UsageError("--json prints JSON lines: leave out --json or --report-format")
        if not reports:
            files.append((None, GATE_FORMATS[named]))
    if as_json and all(path is not None for path, _ in files):
        files.append((None, GATE_FORMATS[JSONL]))
    return files
