"""`simindex explain`: how a query is answered."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

import simindex
from simindex.cli.app import program
from simindex.cli.choices import index_argument, memory_option, output_options
from simindex.cli.commands.query import as_row, fingerprint_option, text_option, top_options
from simindex.cli.console import duration, emit, say
from simindex.cli.recipes import required_recipe
from simindex.errors import InvalidOption


@program.command()
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
    recipe = required_recipe(
        index, index.path, "a text cannot be looked up in it: give --fingerprint"
    )
    batch = recipe.batch(list(texts))
    for skip in batch.skipped:
        raise InvalidOption(f"--text has no fingerprint: {skip.reason}", option="text")
    return batch


def _span(widths: tuple[int, ...]) -> str:
    if not widths:
        return "-"
    low, high = min(widths), max(widths)
    tables = f" x {len(widths)}" if len(widths) > 1 else ""
    return (f"{low}" if low == high else f"{low}-{high}") + tables
