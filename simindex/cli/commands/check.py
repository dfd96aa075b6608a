"""`simindex check`: every byte of an index is verified."""

from __future__ import annotations

import time

import click

from simindex.cli.app import DAMAGED, program
from simindex.cli.console import cell, count, duration, emit, say
from simindex.cli.opening import open_index
from simindex.cli.progress import Progress
from simindex.cli.shared_options import index_argument, output_options
from simindex.cli.wording import with_files


@program.command()
@index_argument
@output_options
def check(index_path: str, as_json: bool, quiet: bool) -> None:
    """Check INDEX for damage: read and verify every byte.

    Prints a line for each problem, and exits with 3 if there is damage. With --json the last line
    counts the problems.
    """
    started = time.perf_counter()
    with open_index(index_path, "r") as index:
        with Progress("verifying", "row", quiet=quiet) as progress:
            findings = index.check(progress=progress.tell)
        rows = len(index)
    for finding in findings:
        if as_json:
            emit({"severity": finding.severity, "path": finding.path, "what": finding.what})
        else:
            what = with_files(finding.what)
            click.echo("\t".join(map(cell, (finding.severity, finding.path, what))))
    damaged = sum(finding.severity == "error" for finding in findings)
    if as_json:
        emit({
            "errors": damaged, "notes": len(findings) - damaged, "rows": rows,
            "seconds": round(time.perf_counter() - started, 3),
        })
    elif not quiet:
        verdict = f"{count(damaged, 'error')}" if damaged else "no damage"
        remedy = f"; `simindex repair {index_path}` shows what can be recovered" if damaged else ""
        seconds = duration(time.perf_counter() - started)
        say(f"{verdict} in {count(rows, 'row')}, in {seconds}{remedy}")
    if damaged:
        click.get_current_context().exit(DAMAGED)
