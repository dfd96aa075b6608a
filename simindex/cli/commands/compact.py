"""`simindex compact`: segments merged into fewer, with other structures where asked."""

from __future__ import annotations

import time

import click

import simindex
from simindex.cli.app import program, uninterrupted
from simindex.cli.choices import index_argument, output_options, structures_option
from simindex.cli.console import count, duration, emit, megabytes, say
from simindex.cli.progress import Progress
from simindex.records.reports import IndexStats


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
        say(f"{_outcome(before, after)}, in {duration(seconds)}")


def _outcome(before: IndexStats, after: IndexStats) -> str:
    waited = before.pending_rows - after.pending_rows
    size = megabytes(after.bytes_segments)
    if not waited and (before.segments, before.bytes_segments) == (
        after.segments, after.bytes_segments
    ):
        return f"nothing to merge: {count(after.segments, 'segment')}, {size}"
    parts = [f"{count(waited, 'row')} that waited"] if waited else []
    if before.segments:
        parts.append(
            f"{count(before.segments, 'segment')} of {megabytes(before.bytes_segments)}"
        )
    return f"{' and '.join(parts)} became {count(after.segments, 'segment')} of {size}"
