"""`simindex plan`: what an index would take and reach, before there is one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, TypeVar

import click

from simindex.cli.app import program
from simindex.cli.console import MEASURING, count, duration, emit, say
from simindex.cli.fleet import COLUMNS as FLEET_COLUMNS
from simindex.cli.fleet import FleetOptions, fleet_options, line, summary
from simindex.cli.numbers import Count, Share
from simindex.cli.recipes import default_recipe
from simindex.cli.shared_options import distance, memory_option, output_options, verbose_option
from simindex.planning.machine import Machine

if TYPE_CHECKING:
    from simindex.planning.fleet import FleetForecast
    from simindex.planning.forecast import Forecast, SliceForecast

COLUMNS = ("method", "recall", "T", "t", "k", "bytes/row", "memory", "fits", "queries/s")

USERS_COLUMNS = ("searched", "recall", "on disk", "memory", "fits", "queries/s", "1M from disk")
"""Of them what a user of the shell knows; the last is how long a million queries take."""

MILLION = 1_000_000


@program.command()
@click.option(
    "--rows", required=True, type=Count(), help="Number of documents, such as 60M or 8e9."
)
@distance("that of the recipe of `simindex build`")
@memory_option
@click.option(
    "--recall", type=Share(), default=1.0, show_default=True,
    help="Share of the near-duplicates to find. 1 finds all.",
)
@click.option(
    "--bits", type=Count(1), default=64, show_default=True,
    help="Width of a fingerprint: a multiple of 64.",
)
@click.option(
    "--measure", "measured", is_flag=True,
    help="First measure this machine, which takes about ten seconds. Default: predict for another "
    "machine, which was measured before.",
)
@fleet_options
@verbose_option
@output_options
def plan(
    rows: int, h: int | None, memory: int | None, recall: float, bits: int, measured: bool,
    machines: FleetOptions, verbose: bool, as_json: bool, quiet: bool,
) -> None:
    """Predict the size and speed of an index before you build it.

    Prints a line for each way to search: the sorted rows, permuted tables, or every row. A line has
    the size on disk and in memory, the queries a second on one thread, and how long a batch of a
    million queries takes if the index is only on the disk. For a recall below 1 it assumes that the
    index has learned from revisions of pages which bits flip.

    --verbose names each structure as --structures takes it. It adds tables (T), header bits (t),
    flips (k), and queries a second in batches of m queries, from memory (m=) and from the disk
    (cold=). From 128 bits on it also adds the size of slice lists, the structure issl, and how long
    the search for the nearest takes with and without them.
    """
    from simindex.planning.forecast import BATCHES, forecast, slice_forecast

    fleet = machines.fleet(memory)
    h = default_recipe({"bits": bits}).h if h is None else h
    machine = _measured(quiet=quiet) if measured else Machine()
    if fleet is not None:
        from simindex.planning.fleet import fleet_forecast

        divided = fleet_forecast(
            rows, fleet, h=h, recall=recall, bits=bits, batch=machines.batch or MILLION,
            text_bytes=machines.text or 0, machine=machine,
        )
        if as_json:
            for each in divided:
                emit({**asdict(each), "h": h})
            return
        shown = divided if verbose else _fastest_of_each(divided, lambda one: one.queries_s)
        _print_table(
            [FLEET_COLUMNS, *(
                line(one, one.method if verbose else _way(one), _short, _bytes) for one in shown
            )],
            [one.chosen for one in shown],
        )
        if not quiet:
            say(summary(divided, fleet, _short, _bytes))
            _say_basis(h, bits, machine, verbose, "is the fastest batch; rates are of all machines")
        return
    found = forecast(
        rows, h=h, recall=recall, bits=bits, memory_bytes=memory, machine=machine
    )
    lists = slice_forecast(rows, bits=bits, machine=machine)
    if as_json:
        for one in found:
            named = {
                name: {str(m): value for m, value in getattr(one, name).items()}
                for name in ("batch_queries_s", "cold_queries_s", "batch_methods")
            }
            emit({**asdict(one), "h": h, **named})
        if lists is not None:
            emit(asdict(lists))
        return
    if verbose:
        sizes = [f"{kind}={_short(m)}" for kind in ("m", "cold") for m in BATCHES]
        table = [(*COLUMNS, *sizes), *map(_line, found)]
    else:
        found = _fastest_of_each(found, lambda one: one.queries_s)
        table = [USERS_COLUMNS, *map(_users_line, found)]
    _print_table(table, [one.chosen for one in found])
    if lists is not None and verbose:
        click.echo(_lists(lists))
    if not quiet:
        _say_basis(h, bits, machine, verbose, "is the fastest that fits; on one thread")


def _print_table(table: list[tuple[str, ...]], chosen: list[bool]) -> None:
    """Columns below their headings, with a mark before the line that is chosen."""
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for number, row in enumerate(table):
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        mark = "*" if number and chosen[number - 1] else " "
        click.echo(f"{mark} {'  '.join(cells)}".rstrip())


def _say_basis(h: int, bits: int, machine: Machine, verbose: bool, star: str) -> None:
    whose = "of this machine" if machine.measured else (
        "of another machine (--measure measures this one)"
    )
    say(
        f"within {h} of {bits} bits; * {star}, by the times "
        f"{whose}{'' if verbose else '; --verbose shows the names for --structures'}"
    )


WAYS = {"psm": "sorted rows", "scan": "every row"}
"""What is searched, in the words of the shell; other methods search permuted tables."""


Line = TypeVar("Line", "Forecast", "FleetForecast")


def _measured(*, quiet: bool) -> Machine:
    from simindex.planning.measurement import measure

    if not quiet:
        say(MEASURING)
    return measure()


def _way(one: Forecast | FleetForecast) -> str:
    return WAYS.get(one.method) or count(one.tables, "permuted table")


def _fastest_of_each(found: list[Line], rate: Callable[[Line], float]) -> list[Line]:
    """One forecast for each way and recall: designs of as many tables have the same size."""
    best: dict[tuple[str, float], Line] = {}
    for one in sorted(found, key=lambda one: (one.chosen, rate(one))):
        best[_way(one), one.recall] = one
    return [one for one in found if best[_way(one), one.recall] is one]


def _users_line(one: Forecast) -> tuple[str, ...]:
    return (
        _way(one), f"{one.recall:g}", _bytes(one.disk_bytes), _bytes(one.memory_bytes),
        "yes" if one.fits else "no", _short(one.queries_s),
        duration(MILLION / one.cold_queries_s[MILLION]),
    )


def _line(one: Forecast) -> tuple[str, ...]:
    low, high = one.header_bits
    return (
        one.method,
        f"{one.recall:g}",
        str(one.tables),
        str(low) if low == high else f"{low}-{high}",
        f"{one.flips:,}",
        f"{one.disk_bytes_per_row:.1f}",
        _bytes(one.memory_bytes),
        "yes" if one.fits else "no",
        _short(one.queries_s),
        *map(_short, one.batch_queries_s.values()),
        *map(_short, one.cold_queries_s.values()),
    )


def _lists(one: SliceForecast) -> str:
    """[ISSL] section 3."""
    from simindex.planning.forecast import TOP_K, TOP_MAX_ERROR

    return (
        f"  {one.structure}: {one.slices} slices of {one.slice_bits} bits, "
        f"4 (n s + 2^w s + s) = {one.disk_bytes:,} bytes in {one.segments} "
        f"segment{'s' if one.segments > 1 else ''}: {one.disk_bytes_per_row:.1f} bytes/row more\n"
        f"  the {TOP_K} nearest: by lists with max_error {TOP_MAX_ERROR} "
        f"{_short(one.top_queries_s)} queries/s; by comparing all rows "
        f"{_short(one.top_scan_queries_s)} one at a time, {_short(one.top_scan_batch_queries_s)} "
        "in batches"
    )


def _short(number: float) -> str:
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.3g}{letter}"
    return f"{number:.3g}"


def _bytes(number: float) -> str:
    for power, letter in ((4, "T"), (3, "G"), (2, "M"), (1, "K")):
        if number >= 1024**power:
            return f"{number / 1024**power:.3g}{letter}"
    return f"{number:.0f}"
