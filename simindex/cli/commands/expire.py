"""`simindex expire`: rows that go by their age."""

from __future__ import annotations

import click

from simindex.cli.app import program, uninterrupted
from simindex.cli.choices import index_argument, output_options
from simindex.cli.console import count, emit, say
from simindex.cli.merging import merge_behind_a_bar
from simindex.cli.numbers import Age
from simindex.cli.progress import Progress
from simindex.cli.turn import Turn, wait_option


@program.command()
@index_argument
@click.option(
    "--older-than", "age", type=Age(), required=True, metavar="AGE",
    help="Delete documents that came longer ago: 30d, 12h, 2w, 90m or a number of seconds.",
)
@wait_option
@output_options
def expire(index_path: str, age: float, turn: Turn, as_json: bool, quiet: bool) -> None:
    """Delete old documents of INDEX, in one commit.

    For an index that stores when its documents came, which `simindex build --times` makes. Exits
    with 0 also if no document is that old.
    """
    with turn.open(index_path) as index:
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
