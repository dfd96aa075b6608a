"""`simindex backup`: a second copy of an index, made while it is read and written."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from simindex.cli.app import program
from simindex.cli.console import count, duration, emit, megabytes, say
from simindex.cli.opening import open_index
from simindex.cli.progress import Progress
from simindex.cli.shared_options import NamedPath, index_argument, output_options

if TYPE_CHECKING:
    from simindex.records.reports import BackupReport


@program.command()
@index_argument
@click.argument("backup_path", metavar="DEST", type=NamedPath())
@click.option(
    "--verify", is_flag=True,
    help="Read every byte and compare it with its checksum, also in files that are not copied.",
)
@output_options
def backup(
    index_path: str, backup_path: str, verify: bool, as_json: bool, quiet: bool
) -> None:
    """Make the folder DEST a backup of INDEX, or update it.

    DEST is a new name, an empty folder, or an older backup of INDEX. Other processes may read and
    write INDEX meanwhile. On the file system of INDEX, files become hard links if it has them, so
    DEST takes almost no space. On another one, files that DEST does not have yet are copied. DEST
    is an index, so every command can open it.
    """
    with (
        open_index(index_path, "r") as index,
        Progress("copying", "byte", quiet=quiet) as progress,
    ):
        report = index.backup(backup_path, verify=verify, progress=progress.tell)
    if as_json:
        emit({**asdict(report), "path": backup_path, "seconds": round(report.seconds, 3)})
    elif not quiet:
        say(_outcome(report, index_path, backup_path))


def _outcome(report: BackupReport, index_path: str, backup_path: str) -> str:
    """What a backup has done, in the words of the shell."""
    files = report.linked + report.kept + report.copied
    new = report.linked + report.copied
    parts = [f"the catalog and {count(files, 'other file')}"]
    if report.kept:
        parts.append(f"{new:,} of them new")
    if report.copied:
        parts.append(f"{report.copied:,} copied")
    verified = ", every byte verified" if report.verified else ""
    return (
        f"backed up commit {report.generation} of {index_path} in {backup_path}: "
        f"{', '.join(parts)}; {megabytes(report.bytes_copied)} written{verified}, "
        f"in {duration(report.seconds)}"
    )
