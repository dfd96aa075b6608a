"""`simindex expire`: rows that go by their age."""

from __future__ import annotations

import click

from simindex.cli.app import program, uninterrupted
from simindex.cli.console import count, emit, say
from simindex.cli.final_merge import merge_behind_a_bar
from simindex.cli.lock_wait import LockWait, wait_option
from simindex.cli.numbers import Age
from simindex.cli.progress import Progress
from simindex.cli.shared_options import index_argument, output_options


@program.command()
@index_argument
@click.option(
    "--older-than", "age", type=Age(), required=True, metavar="AGE",
    help="Delete the documents that were added longer ago than this: a number with s, m, h, d or "
    "w for seconds, minutes, hours, days or weeks, such as 30d. Without a letter it is seconds.",
)
@wait_option
@output_options
def expire(index_path: str, age: float, wait: LockWait, as_json: bool, quiet: bool) -> None:
    """Delete the documents of INDEX that are older than an age.

    Deletes them in one commit. INDEX must store when its documents came: `simindex build --times`
    makes such an index. The exit code is 0 also if no document is that old.
    """
    with wait.open(index_path) as index:
        expired = index.expire(older_than=age)
        with uninterrupted():
            index.commit()
        rows = len(index)
        if expired:
            with Progress("merging files", "row", quiet=quiet or as_json) as progress:
                merge_behind_a_bar(index, index_path, progress, quiet=quiet or as_json)
    if as_json:
        emit({"expired": expired, "rows": rows})
    elif not quiet:
        say(f"{count(expired, 'row')} expired; {index_path} holds {count(rows, 'row')}")
