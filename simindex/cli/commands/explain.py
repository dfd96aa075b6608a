"""`simindex explain` and `tune`: how a query is answered, and what a machine takes for it."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import Any

import click

import simindex
from simindex.cli.choices import index_argument, memory_option, output_options
from simindex.cli.commands.query import as_row, fingerprint_option, text_option
from simindex.cli.console import count, duration, emit, say
from simindex.cli.interrupt import uninterrupted
from simindex.cli.nearest import top_options
from simindex.cli.recall import audited
from simindex.errors import InvalidOption
from simindex.planning.machine import CURVES, Curve
from simindex.planning.question import check_options
from simindex.query.audit import SAMPLE_ROWS, USUAL_RECALL, check_sample


@click.command()
@index_argument
@text_option
@fingerprint_option
@click.option("--h", "-h", "h", type=int, default=3, show_default=True, help="Hamming distance.")
@click.option("--recall", type=float, default=1.0, show_default=True, help="1 is exact.")
@click.option("--method", default="auto", show_default=True, help="How to look.")
@top_options
@memory_option
@output_options
def explain(
    index_path: str, texts: tuple[str, ...], fingerprints: list[list[int]], h: int, recall: float,
    method: str, memory: int | None, nearest: dict[str, Any] | None, as_json: bool, quiet: bool,
) -> None:
    """Print how INDEX answers one query.

    One line a segment: how it is searched, probes, rows compared and time, as predicted and as
    they are.
    """
    if len(texts) + len(fingerprints) != 1:
        raise click.UsageError("one query is explained: give one --text or one --fingerprint")
    if nearest is not None:
        _explain_top(index_path, texts, fingerprints, nearest, as_json, quiet)
        return
    with simindex.open(index_path, "r") as index:
        found = index.explain(
            _question(index, texts, fingerprints), h=h, recall=recall, method=method,
            memory=memory,
        )
    if as_json:
        emit(asdict(found))
        return
    click.echo("\t".join(
        ("segment", "rows", "method", "t", "k", "probes", "compared", "time", "matches")
    ))
    for one in found.segments:
        click.echo("\t".join((
            one.name, f"{one.rows:,}", one.method, _span(one.header_bits), f"{one.flips:,}",
            f"{one.expected_probes:,.0f} -> {one.probes:,.0f}",
            f"{one.expected_rows:,.0f} -> {one.rows_compared:,.0f}",
            f"{duration(one.expected_s)} -> {duration(one.seconds)}", f"{one.matches:,.0f}",
        )))
    if not quiet:
        if found.flips_from is not None:
            say(f"which bits flip is learned from {found.flips_from}")
        say(f"{found.guarantee}; {_constants(found.measured)}")


def _explain_top(
    index_path: str, texts: tuple[str, ...], fingerprints: list[list[int]],
    nearest: dict[str, Any], as_json: bool, quiet: bool,
) -> None:
    with simindex.open(index_path, "r") as index:
        found = index.explain_top(_question(index, texts, fingerprints), **nearest)
    if as_json:
        emit(asdict(found))
        return
    click.echo("\t".join(
        ("segment", "rows", "method", "lists", "compared", "time", "otherwise")
    ))
    for one in found.segments:
        otherwise = "-" if one.other_s is None else f"{one.other}: {duration(one.other_s)}"
        click.echo("\t".join((
            one.name, f"{one.rows:,}", one.method,
            f"{one.expected_lists:,.0f} -> {one.lists:,.0f}",
            f"{one.expected_rows:,.0f} -> {one.rows_compared:,.0f}",
            f"{duration(one.expected_s)} -> {duration(one.seconds)}", otherwise,
        )))
    if not quiet:
        say(f"{found.guarantee}; {_constants(found.measured)}")


def _constants(measured: bool) -> str:
    whose = "measured here" if measured else "usual ones: run `simindex tune`"
    return f"predicted -> actual; constants of the machine: {whose}"


def _question(
    index: simindex.Index, texts: tuple[str, ...], fingerprints: list[list[int]]
) -> Any:
    if fingerprints:
        return as_row(fingerprints[0])
    if index.recipe is None:
        raise InvalidOption(
            f"{index.path} stores no recipe, so a text cannot be looked up in it: give "
            "--fingerprint",
            path=str(index.path),
        )
    batch = index.recipe.batch(list(texts))
    for skip in batch.skipped:
        raise InvalidOption(f"--text has no fingerprint: {skip.reason}", option="text")
    return batch


def _span(widths: tuple[int, ...]) -> str:
    if not widths:
        return "-"
    low, high = min(widths), max(widths)
    tables = f" x {len(widths)}" if len(widths) > 1 else ""
    return (f"{low}" if low == high else f"{low}-{high}") + tables


@click.command()
@index_argument
@click.option("--h", "-h", "h", type=int, default=3, show_default=True, help="Hamming distance.")
@click.option(
    "--audit", "audits", is_flag=True,
    help="Also measure the recall of queries, on rows of INDEX that are asked twice.",
)
@click.option(
    "--recall", type=float, metavar="SHARE",
    help=f"The recall to ask for with --audit; {USUAL_RECALL:g} by default.",
)
@click.option(
    "--sample", type=int, metavar="ROWS",
    help=f"The rows to ask with --audit; {SAMPLE_ROWS:,} by default.",
)
@output_options
def tune(
    index_path: str, h: int, audits: bool, recall: float | None, sample: int | None, as_json: bool,
    quiet: bool,
) -> None:
    """Measure this machine for INDEX.

    Stores what the steps of a search take here; queries are planned by it. Takes a few seconds.
    With --audit, also stores what share of the near-duplicates they find, for `stats`.
    """
    if not audits and (recall is not None or sample is not None):
        raise click.UsageError("--recall and --sample say what is audited: give --audit, too")
    recall = USUAL_RECALL if recall is None else recall
    sample = SAMPLE_ROWS if sample is None else sample
    started = time.perf_counter()
    audit = None
    with simindex.open(index_path, "w") as index:
        check_options(h=h, recall=recall, method="auto", bits=index.options.bits)
        check_sample(sample)
        learned = index.tune(h=h)
        machine = index.machine
        if audits:
            if not quiet:
                say(f"asks up to {count(sample, 'row')} at recall {recall:g}, h={h}, and exactly")
            audit = index.audit(h=h, recall=recall, sample=sample)
        with uninterrupted():
            index.commit()
    if as_json:
        told = {} if audit is None else {"audit": {**asdict(audit), "kept": audit.kept}}
        emit({**machine.to_dict(), "flips_from": learned.source, **told})
        return
    for size, curve in machine.levels:
        click.echo(f"{'look-up':<17} {_points(curve, 'rows')}, in {size:,} bytes")
    for name in CURVES:
        click.echo(f"{name:<17} {_points(getattr(machine, name), CURVES[name])}")
    for name, value in machine.to_dict().items():
        if isinstance(value, float):
            click.echo(f"{name:<17} {value:.4g}")
    if audit is not None:
        click.echo(f"{'audit':<17} {audited(audit)}")
    if not quiet:
        say(
            f"measured and stored in {duration(time.perf_counter() - started)}; flips are learned "
            f"from {learned.source}"
        )


def _points(curve: Curve, unit: str) -> str:
    return ", ".join(f"{x:.3g} {unit}: {y:.3g} ns" for x, y in curve)
