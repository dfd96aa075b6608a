"""`simindex tune`: what the steps of a search take on this machine, and how much queries find.

By default in the words of the shell; --verbose has all that was measured, in those of the engine.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from simindex.cli.app import program, uninterrupted
from simindex.cli.console import MEASURING, audited, count, duration, emit, megabytes, say
from simindex.cli.lock_wait import LockWait, wait_option
from simindex.cli.numbers import Count, Share
from simindex.cli.shared_options import (
    distance_option,
    index_argument,
    output_options,
    verbose_option,
)
from simindex.options import AUDITED_RECALL, AUDITED_ROWS
from simindex.planning.machine import CURVES, Machine

if TYPE_CHECKING:
    from simindex.planning.machine import Curve


@program.command()
@index_argument
@distance_option
@click.option(
    "--audit", "audits", is_flag=True,
    help="Also measure the recall of queries: look up some rows of INDEX twice, exactly and with "
    "--recall, and compare the answers.",
)
@click.option(
    "--recall", type=Share(), metavar="SHARE",
    help=f"With --audit: the recall of the queries. Default: {AUDITED_RECALL:g}.",
)
@click.option(
    "--sample", type=Count(1), metavar="ROWS",
    help=f"With --audit: the number of rows to look up. Default: {AUDITED_ROWS:,}.",
)
@wait_option
@verbose_option
@output_options
def tune(
    index_path: str, h: int | None, audits: bool, recall: float | None, sample: int | None,
    wait: LockWait, verbose: bool, as_json: bool, quiet: bool,
) -> None:
    """Measure this machine to plan the queries of INDEX better.

    Measures how long the steps of a search take here, and stores that in INDEX. Takes about ten
    seconds, or twice as long on a busy machine, and then says that it was busy. --audit also
    measures which share of the near-duplicates the queries find. `simindex stats` shows it.
    """
    from simindex.planning.question import check_options
    from simindex.query.audit import check_sample

    if not audits and (recall is not None or sample is not None):
        raise click.UsageError("--recall and --sample say what is audited: give --audit, too")
    recall = AUDITED_RECALL if recall is None else recall
    sample = AUDITED_ROWS if sample is None else sample
    started = time.perf_counter()
    audit = None
    with wait.open(index_path) as index:
        h = index.h if h is None else h
        check_options(h=h, recall=recall, method="auto", bits=index.options.bits)
        check_sample(sample)
        if not quiet:
            say(MEASURING)
        learned = index.tune(h=h)
        machine = index.machine
        if audits:
            if not quiet:
                say(
                    f"looking up at most {count(sample, 'document')} within {h} bits, once at "
                    f"recall {recall:g} and once exactly"
                )
            audit = index.audit(h=h, recall=recall, sample=sample)
        with uninterrupted():
            index.commit()
    if as_json:
        told = {} if audit is None else {"audit": {**asdict(audit), "kept": audit.kept}}
        emit({**machine.to_dict(), "h": h, "flips_from": learned.source, **told})
        return
    if not verbose:
        for name, value in _for_users(machine):
            click.echo(f"{name:<17} {value}")
        if audit is not None:
            click.echo(f"{'recall':<17} {audited(audit)}")
        if not quiet:
            say(f"measured and stored in {duration(time.perf_counter() - started)}")
        return
    for size, curve in machine.levels:
        click.echo(f"{'look-up':<17} {_points(curve, 'rows')}, in {size:,} bytes")
    for name in CURVES:
        click.echo(f"{name:<17} {_points(getattr(machine, name), CURVES[name])}")
    for name, value in machine.to_dict().items():
        if isinstance(value, float):
            click.echo(f"{name:<17} {value:.4g}")
    if audit is not None:
        click.echo(f"{'audit':<17} {audited(audit, verbose=True)}")
    if not quiet:
        say(
            f"measured and stored in {duration(time.perf_counter() - started)}; the number of "
            f"flips is chosen by {learned.source}, within {h} bits"
        )


def _for_users(machine: Machine) -> Iterator[tuple[str, str]]:
    size, curve = machine.levels[-1]
    yield "disk", f"{megabytes(machine.disk_bytes_s)} read a second"
    yield "one look-up", f"{curve[0][1]:.0f} ns, in a table of {megabytes(size)}"
    yield "comparing", (
        f"{1e9 / machine.scanned_alone_ns:,.0f} fingerprints of 64 bits a second for one query, "
        f"{1e9 / machine.scanned_ns:,.0f} for each of many"
    )


def _points(curve: Curve, unit: str) -> str:
    return ", ".join(f"{x:.3g} {unit}: {y:.3g} ns" for x, y in curve)
