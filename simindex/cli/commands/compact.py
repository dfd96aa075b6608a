"""`simindex compact`: segments merged into fewer, with other structures where asked."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from simindex.cli.app import program, uninterrupted
from simindex.cli.console import count, duration, emit, megabytes, say
from simindex.cli.lock_wait import LockWait, wait_option
from simindex.cli.progress import Progress
from simindex.cli.shared_options import index_argument, output_options, structured

if TYPE_CHECKING:
    from simindex.records.reports import IndexStats


@program.command()
@index_argument
@click.option("--full", is_flag=True, help="Merge all files into one, and drop all deleted rows.")
@structured("leave them as they are")
@wait_option
@output_options
def compact(
    index_path: str, full: bool, structures: tuple[str, ...] | None, wait: LockWait, as_json: bool,
    quiet: bool,
) -> None:
    """Merge the files of INDEX, which makes queries faster.

    Drops the deleted rows of the files that it merges. Most commands that write an index end with
    this. --full merges all files, which needs as much free space as INDEX takes. --structures also
    builds or removes permuted tables and slice lists.
    """
    started = time.perf_counter()
    with wait.open(index_path) as index:
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
        say(f"{outcome(before, after, index_path)}, in {duration(seconds)}")


def outcome(before: IndexStats, after: IndexStats, path: str) -> str:
    """What a compaction has changed, in the words of the shell."""
    removed = before.dead_rows - after.dead_rows
    waited = before.pending_rows - after.pending_rows
    size = f"{count(after.segments, 'file')} of {megabytes(after.bytes_segments)}"
    freed = f"; {count(removed, 'deleted row')} removed" if removed else ""
    if waited or (before.segments, before.bytes_segments) != (after.segments, after.bytes_segments):
        sources = []
        if before.segments:
            old = count(before.segments, "file")
            sources.append(f"{old} of {megabytes(before.bytes_segments)}")
        if waited:
            sources.append("the rows of the last commits")
        done = f"merged {' and '.join(sources)} into {size}{freed}"
    else:
        done = f"nothing to merge{freed}"
    holds = f"{path} holds {count(after.rows, 'row')}"
    if after.dead_rows:
        holds += (
            f", and {count(after.dead_rows, 'deleted row')} whose space `simindex compact {path} "
            "--full` frees"
        )
    return f"{done}; {holds}"
