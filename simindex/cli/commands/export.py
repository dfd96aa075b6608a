"""`simindex export`: the rows of an index as text, which `simindex build` reads back.

    index with text keys       key, fingerprint
    index with keys of bytes   key_hex, fingerprint
    index without keys         id, fingerprint

A key makes its own id, so the id of a key is not printed. Rows are ordered by fingerprint, and
equal ones by name: equal rows give equal bytes, whatever the order they were added in.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import groupby, islice
from operator import itemgetter
from typing import Any

import click

import simindex
from simindex.cli.app import program
from simindex.cli.choices import index_argument, output_options
from simindex.cli.console import as_json_line

LINES_AT_ONCE = 1 << 10

NAMES: dict[Any, str] = {"str": "key", "bytes": "key_hex", None: "id", False: "id"}
"""The column of names, by the kind of keys."""

_QUOTED = re.compile('[,"\r\n]')

Row = tuple[str, Any]
"""A fingerprint in hexadecimal, and the row's id or key."""


@program.command()
@index_argument
@click.option(
    "--format", "kind", type=click.Choice(["jsonl", "csv"]), default="jsonl", show_default=True
)
@output_options
def export(index_path: str, kind: str, as_json: bool, quiet: bool) -> None:
    """Print every row of INDEX, ordered by fingerprint.

    Prints the key, or the id in an index without keys, and the fingerprint in hexadecimal. `build`
    reads this output. It has neither the recipe nor the radius of INDEX: an index that is built of
    it takes no texts, and uses the radius of -d.
    """
    with simindex.open(index_path, "r") as index:
        name = NAMES[index.options.keys]
        as_line: Callable[[Row], str] = _csv_line
        if kind == "jsonl" or as_json:
            def as_line(row: Row) -> str:
                return as_json_line({name: row[1], "fingerprint": row[0]})
        else:
            click.echo(f"{name},fingerprint")
        rows = ordered(index)
        while some := list(islice(rows, LINES_AT_ONCE)):
            click.echo("\n".join(map(as_line, some)))


def ordered(index: simindex.Index) -> Iterator[Row]:
    """All rows of an index by fingerprint and name.

    Rows are read in order of the first word of their fingerprints. Those that share it are held
    together.
    """
    for _, equal in groupby(_rows(index), key=lambda row: row[0][:16]):
        yield from sorted(equal, key=itemgetter(0, 1))


def _rows(index: simindex.Index) -> Iterator[Row]:
    for batch in index.rows():
        digits = batch.rows.astype(">u8").tobytes().hex()
        size = batch.bits // 4
        names: Any = batch.ids.tolist() if batch.ids is not None else batch.keys
        for place, name in enumerate(names):
            shown = name.hex() if isinstance(name, bytes) else name
            yield digits[place * size : (place + 1) * size], shown


def _csv_line(row: Row) -> str:
    fingerprint, name = row
    text = str(name)
    if _QUOTED.search(text):
        text = '"' + text.replace('"', '""') + '"'
    return f"{text},{fingerprint}"
