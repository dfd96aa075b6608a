"""`simindex repair`: what a damaged index still contains, and an index made from it."""

from __future__ import annotations

from dataclasses import asdict

import click

import simindex
from simindex.cli.app import DAMAGED, program
from simindex.cli.console import cell, count, emit, say
from simindex.cli.progress import Progress
from simindex.cli.shared_options import index_argument, output_options
from simindex.cli.wording import with_files


@program.command()
@index_argument
@click.option(
    "--apply", is_flag=True,
    help="Do the repair. Default: only print what it would do.",
)
@output_options
def repair(index_path: str, apply: bool, as_json: bool, quiet: bool) -> None:
    """Rebuild a damaged INDEX from its intact parts.

    Prints what is wrong, what is done about it, and what is lost. Without --apply it changes
    nothing, and exits with 3 if there is damage. With --apply it keeps the files that it replaces
    in a folder damaged-1 inside INDEX, reads the index again at the end, and exits with 3 if
    something is still wrong.
    """
    with Progress("reading", "byte", quiet=quiet or as_json) as share:
        report = simindex.repair(index_path, apply=apply, progress=share.tell)
    if as_json:
        emit({**asdict(report), "needed": report.needed})
    else:
        for finding in report.findings:
            click.echo("\t".join(map(cell, ("damage", finding.path, with_files(finding.what)))))
        for step in report.steps:
            done = "done" if apply else "to do"
            click.echo("\t".join(map(cell, (done, index_path, with_files(step)))))
        for loss in report.losses:
            click.echo("\t".join(map(cell, ("lost", index_path, with_files(loss)))))
        for finding in report.remaining:
            click.echo("\t".join(map(cell, ("left", finding.path, with_files(finding.what)))))
    if not quiet:
        say(_verdict(report, index_path))
    if report.remaining or (report.needed and not apply):
        click.get_current_context().exit(DAMAGED)


def _verdict(report: simindex.RepairReport, path: str) -> str:
    rows = count(report.rows, "row")
    if not report.needed:
        return f"nothing to repair: {path} holds {rows}"
    lost = f"{count(report.lost_rows, 'row')} lost, as far as is known" if report.losses else (
        "nothing is lost"
    )
    if not report.applied:
        return (
            f"{rows} can be recovered, {lost}; nothing was changed: "
            f"`simindex repair {path} --apply` does it"
        )
    kept = f"; what was replaced is in {report.kept}" if report.kept else ""
    if any(finding.severity == "note" for finding in report.remaining):
        return (
            f"{path} holds {rows} again, {lost}{kept}; it may still be damaged: "
            f"`simindex check {path}` tells"
        )
    if report.remaining:
        return (
            f"{path} is still damaged in {count(len(report.remaining), 'place')}, {lost}{kept}: "
            "restore it from a copy, or build it again"
        )
    return f"{path} holds {rows} again, {lost}{kept}"
