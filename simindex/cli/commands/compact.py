"""`simindex compact`: segments merged into fewer, with other structures where asked."""

from __future__ import annotations

import time

import click

import simindex
from simindex.cli.app import program, uninterrupted
from simindex.cli.choices import index_argument, output_options, structures_option
from simindex.cli.console import count, duration, emit, megabytes, say
from simindex.cli.progress import Progress


@program.command()
@index_argument
@click.option("--full", is_flag=True, help="Merge all files into one.")
@structures_option
@output_options
def compact(
    index_path: str, full: bool, structures: tuple[str, ...] | None, as_json: bool, quiet: bool
) -> None:
    """Merge the files of INDEX and remove deleted rows.

    With --structures, also build or remove permuted tables and slice lists.
    """
    started = time.perf_counter()
    with simindex.open(index_path, "w") as index:
        before = index.stats()
        with Progress("merging", "row", quiet=quiet) as progress:
            index.compact(full=full, structures=structures, progress=progress.tell)
        with uninterrupted():
            index.commit()
        after = index.stats()
    seconds = time.perf_counter() - started
    if as_json:
        emit(
            {
                "segments": after.segments, "segments_before": before.segments,
                "rows": after.rows, "dead_rows": after.dead_rows,
                "bytes_segments": after.bytes_segments,
                "bytes_segments_before": before.bytes_segments,
                "structures": after.structures,
                "seconds": round(seconds, 3),
            }
        )
    elif not quiet:
        say(
            f"{count(before.segments, 'segment')} became {after.segments:,}, "
            f"{megabytes(before.bytes_segments)} became {megabytes(after.bytes_segments)}, in "
            f"{duration(seconds)}"
        )
