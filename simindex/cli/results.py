"""`--output FORMAT` and `-o FILE`: in which format results are written, and where.

                    standard output          -o FILE
    no option       lines for people         by the suffix of FILE
    --json          JSON lines               by the suffix of FILE, else JSON lines
    --output F      F                        F
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, TextIO

import click

from simindex.cli.app import AS_JSON, uninterrupted
from simindex.cli.shared_options import NamedPath, Option, as_typed, collected
from simindex.cli.targets import require_apart
from simindex.outputs.columns import Columns, Schema, Write
from simindex.outputs.formats import FORMATS, JSONL, Format, by_suffix
from simindex.outputs.whole_file import whole_text_file
from simindex.values import dataclass

STDOUT = "-"


@dataclass(frozen=True, slots=True)
class Results:
    """How the results of a command are written."""

    format: Format | None
    """None for lines for people."""
    path: str | None
    """None for standard output."""

    @property
    def on_terminal(self) -> bool:
        """Whether a terminal shows the results."""
        return self.path is None and sys.stdout.isatty()

    def require_apart(self, inputs: tuple[str, ...], *indexes: str) -> None:
        """InvalidOption where FILE would be written over, or into, an input or an index."""
        require_apart(out_typed(), self.path, inputs, *indexes)

    def opened(self, schema: Schema) -> AbstractContextManager[Write | None]:
        """What takes the results; None for lines for people, which go to standard output."""
        return nullcontext() if self.format is None else self.table(schema)

    def table(self, schema: Schema) -> AbstractContextManager[Write]:
        """What takes the results, as JSON lines where nothing else is asked for.

        FILE gets its name on a clean exit.
        """
        row = self.format or FORMATS[JSONL]
        if self.path is None:
            return _to_stdout(row, schema)
        return row.to_file(Path(self.path), out_typed(), schema)

    @contextmanager
    def lines(self) -> Iterator[TextIO]:
        """What takes lines, where these are no rows of a table."""
        if self.path is None:
            yield sys.stdout
            sys.stdout.flush()
            return
        with whole_text_file(Path(self.path), out_typed()) as stream:
            yield stream


@contextmanager
def _to_stdout(row: Format, schema: Schema) -> Iterator[Write]:
    stream: Any = sys.stdout.buffer if row.binary else sys.stdout
    with row.write(stream, schema) as write:

        def handed_over(columns: Columns) -> None:
            write(columns)
            stream.flush()

        yield handed_over


def _results(output: str | None, out: str | None) -> Results:
    if out == "":
        raise click.UsageError(
            f"the name of the file is empty: give {out_typed()} a name such as pairs.csv"
        )
    path = None if out == STDOUT else out
    as_json = click.get_current_context().meta.get(AS_JSON, False)
    row = None if output is None else FORMATS[output]
    if row is None and path is not None:
        row = by_suffix(path)
    if row is None and as_json:
        row = FORMATS[JSONL]
    if row is None and path is not None:
        raise click.UsageError(
            f"{out_typed()} {path} does not say the format: end it with one of "
            f"{' '.join(_suffixes())}, or give --output {'|'.join(FORMATS)}"
        )
    if row is not None and row.binary and path is None and sys.stdout.isatty():
        raise click.UsageError(
            f"a terminal cannot show {row.name}: name a file with -o FILE, or redirect the output"
        )
    if row is not None:
        load(row)
    return Results(row, path)


def out_typed() -> str:
    """The option that names the file of results, as it was typed."""
    return as_typed("-o", "--out")


def load(row: Format) -> None:
    """Imports what a format needs. An interrupt is held back: imports sometimes swallow one."""
    if row.load is not None:
        with uninterrupted():
            row.load()


def _suffixes() -> list[str]:
    return [row.suffixes[0] for row in FORMATS.values() if row.suffixes]


result_options: Option = collected(
    "results", _results,
    click.option(
        "--output", type=click.Choice(list(FORMATS)),
        help="Format of the results. jsonl is what --json prints. Default: the format of the "
        "suffix of FILE; without -o plain lines for people, and in `export` JSON lines.",
    ),
    click.option(
        "-o", "--out", type=NamedPath(), metavar="FILE",
        help="Write the results to FILE instead of standard output. FILE appears once they are "
        "complete.",
    ),
)
"""How results are written; the command gets `Results` as `results`."""
