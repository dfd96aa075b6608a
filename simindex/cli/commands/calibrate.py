"""`simindex calibrate`: what a threshold misses and takes in, measured on one's own documents.

    INPUT -> a sample -> pairs that stand in it, edited copies -> rates -> a recommendation, stored
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

import simindex
from simindex.advising.goals import LEAST_PAIRS, PRECISION, RECALL, SAMPLE, SIMILARITY
from simindex.cli.account import met
from simindex.cli.app import nothing_to_do, program, uninterrupted
from simindex.cli.console import count, duration, say
from simindex.cli.input_options import Reading, input_options, inputs_argument
from simindex.cli.lock_wait import LockWait, wait_option
from simindex.cli.numbers import Count, Share
from simindex.cli.opening import open_index
from simindex.cli.progress import Progress
from simindex.cli.recommendation import advised, percent, threshold_of
from simindex.cli.shared_options import (
    index_argument,
    output_options,
    threads_option,
    verbose_option,
)
from simindex.errors import InvalidOption
from simindex.inputs.reading import require_inputs
from simindex.outputs.columns import as_json_line, key_text

if TYPE_CHECKING:
    from simindex.records.advice import CalibrationReport, Rate

NEAR = 3
"""Radii that are printed without --verbose: those within so many of the recommended one."""


@program.command()
@index_argument
@inputs_argument
@click.option(
    "--similarity", type=Share(), default=SIMILARITY, show_default=True, metavar="COSINE",
    help="The least exact cosine of two near-duplicates, from 0.7 to 1.",
)
@click.option(
    "--recall", type=Share(), default=RECALL, show_default=True,
    help="Share of the near-duplicates that should be found.",
)
@click.option(
    "--precision", type=Share(), default=PRECISION, show_default=True,
    help="Share of the matches that should be near-duplicates.",
)
@click.option(
    "--sample", type=Count(2), default=SAMPLE, show_default=True, metavar="N",
    help="Number of documents to draw, up to 100,000. Each one is compared with all others.",
)
@click.option(
    "--seed", type=Count(most=(1 << 32) - 1), default=0, show_default=True,
    help="Another number draws another sample and other edits.",
)
@click.option("--dry-run", is_flag=True, help="Print the recommendation, and do not store it.")
@click.option(
    "--output", type=click.Choice(["jsonl"]),
    help="Format of the result. jsonl is what --json prints: one object with all tables.",
)
@wait_option
@threads_option
@verbose_option
@input_options
@output_options
def calibrate(
    index_path: str, inputs: tuple[str, ...], similarity: float, recall: float, precision: float,
    sample: int, seed: int, dry_run: bool, output: str | None, wait: LockWait, threads: int | None,
    verbose: bool, reading: Reading, as_json: bool, quiet: bool,
) -> None:
    """Recommend a threshold for INDEX from a sample of documents.

    Draws a sample of the INPUTs, which should be documents like those of INDEX. Without an INPUT it
    reads the files that the keys of INDEX name. Computes the exact cosine of each pair in the
    sample, and makes edited copies of the documents. Measures which pairs and copies each radius
    misses, with and without a sketch. Stores the recommendation in INDEX: `simindex stats` shows
    it, and --calibrated of `query`, `pairs`, `clusters` and `dedup` uses it.
    """
    require_inputs(inputs, "check the name")
    intake = reading.intake()
    with open_index(index_path, "r") if dry_run else wait.open(index_path) as index:
        sources = list(inputs) or _files_of(index, index_path, sample)
        with Progress("comparing", "document", quiet=quiet) as progress:
            found = index.calibrate(
                (document.text for document in reading.documents(sources, intake)),
                similarity=similarity, recall=recall, precision=precision, sample=sample,
                seed=seed, threads=threads, progress=progress.tell,
            )
        if not dry_run:
            with uninterrupted():
                index.commit()
    if not quiet:
        for line in met(intake):
            say(line)
    if as_json or output is not None:
        click.echo(as_json_line(found.to_dict()))
    else:
        for line in lines_of(found, verbose=verbose):
            click.echo(line)
    if found.own is None:
        nothing_to_do(_why_nothing(found), quiet=quiet)
    if not quiet:
        stored = "" if dry_run else f", and stored in {index_path}"
        say(
            f"measured on {count(found.documents, 'document')} in {duration(found.seconds)}{stored}"
        )


def _why_nothing(found: CalibrationReport) -> str:
    similar = f"a cosine of {found.similarity:g} or more"
    documents = count(found.documents, "document")
    pairs = found.pairs[0].misses.count if found.pairs else 0
    if not pairs:
        return f"nothing is recommended: of {documents} no two that differ have {similar}"
    has = "pair that differs has" if pairs == 1 else "pairs that differ have"
    return (
        f"nothing is recommended: of {documents} only {pairs} {has} {similar}, and "
        f"{LEAST_PAIRS} are needed: give more documents, or a larger --sample"
    )


def _files_of(index: simindex.Index, path: str, sample: int) -> list[str]:
    """The files that keys of an index name, where they are still there."""
    from simindex.index.origin import origin_of

    origin = origin_of(index)
    found = [] if origin is None else list(_existing(index, origin))
    if len(found) < 2:
        raise InvalidOption(
            f"the documents of {path} cannot be read again: its keys name no files",
            remedy=f"give such documents, as in `simindex calibrate {path} INPUT`", path=path,
        )
    step = max(1, len(found) // sample)
    return found[::step]


def _existing(index: simindex.Index, origin: str) -> Iterator[str]:
    for batch in index.rows():
        keys: Sequence[Any] = batch.keys or ()
        for key in keys:
            file = os.path.join(origin, key_text(key) or "")  # noqa: PTH118
            if os.path.isfile(file):  # noqa: PTH113
                yield file


def lines_of(found: CalibrationReport, *, verbose: bool = False) -> Iterator[str]:
    """The tables for people; all recipes and lengths with `verbose`."""
    own_advice, best = found.own, found.advice
    if own_advice is not None and best is not None:
        yield f"{'recommended':<12} {advised(own_advice)}"
        if best != own_advice:
            # Of several that reach both, that of the narrowest sketch is the best.
            name = "enough" if own_advice.reached else "better"
            width = f"with a sketch of {best.sketch_bits} bits"
            yield f"{name:<12} {width if best.sketch_bits else 'without a sketch'}: {advised(best)}"
    own = found.pairs[0].features if found.pairs else ""
    yield ""
    yield f"pairs in the sample; near-duplicates have a cosine of {found.similarity:g} or more"
    yield f"{'features':<34} {'sketch':>6} {'h':>3} {'missed':>24} {'strangers':>24}     F1"
    for row in found.pairs:
        near = found.own is not None and abs(row.h - found.own.h) <= NEAR
        if verbose or (row.features == own and near):
            f1 = "     -" if row.f1 is None else f"{row.f1:6.3f}"
            yield (
                f"{row.features:<34} {row.sketch_bits or '-':>6} {row.h:3} {_rate(row.misses):>24} "
                f"{_rate(row.strangers):>24} {f1}"
            )
    yield ""
    if found.own is not None:
        yield f"found by the threshold: {threshold_of(found.own)}"
    yield f"{'cosine':<16} {'found':>24} {'pairs':>8}"
    for one in found.by_similarity:
        if verbose or one.features == own:
            name = f"{one.low:.2f} to {one.high:.2f}"
            yield f"{name:<16} {_rate(one.found):>24} {one.found.count:8,}"
    yield ""
    yield f"{'edited copies':<22} {'share':>6} {'words':>12} {'cosine':>7} {'missed':>24}"
    for edit in found.edits:
        if verbose or edit.features == own:
            to = f"to {edit.words_high - 1:,}" if edit.words_high is not None else "up"
            cosine = "-" if edit.cosine is None else f"{edit.cosine:.3f}"
            yield (
                f"{edit.edit:<22} {percent(edit.strength):>6} {f'{edit.words_low:,} {to}':>12} "
                f"{cosine:>7} {_rate(edit.misses):>24}"
            )


def _rate(rate: Rate) -> str:
    if rate.value is None:
        return "-"
    return f"{percent(rate.value)} ({100 * rate.low:.1f} to {100 * rate.high:.1f})"
