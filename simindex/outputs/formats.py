"""The formats of results: a name, the suffixes of its files, and the writer. A new one is one row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from simindex.outputs.columns import Schema, Write
from simindex.outputs.csv_table import write_csv
from simindex.outputs.json_lines import write_json_lines
from simindex.outputs.parquet import load, write_parquet
from simindex.outputs.whole_file import whole_file, whole_text_file
from simindex.values import dataclass

JSONL = "jsonl"


@dataclass(frozen=True, slots=True)
class Format:
    """How results are written.

    Parameters
    ----------
    write : callable
        Given a stream and a schema, a context manager whose value takes rows. It ends the output on
        a clean exit; after an exception it writes nothing more.
    suffixes : tuple of str
        In lower case: files with one of them get this format.
    binary : bool
        Whether the stream takes bytes, which a terminal cannot show; otherwise it takes text.
    load : callable, optional
        Imports what the writer needs; MissingExtra where that is not installed.
    """

    name: str
    write: Callable[[Any, Schema], AbstractContextManager[Write]]
    suffixes: tuple[str, ...] = ()
    binary: bool = False
    load: Callable[[], object] | None = None

    @contextmanager
    def to_file(self, path: Path, option: str, schema: Schema) -> Iterator[Write]:
        """What takes rows of a file, which an option names; see `whole_file`."""
        opened: AbstractContextManager[Any] = (
            whole_file(path, option) if self.binary else whole_text_file(path, option)
        )
        with opened as stream, self.write(stream, schema) as write:
            yield write


FORMATS = {
    row.name: row
    for row in (
        Format(JSONL, write_json_lines, suffixes=(".jsonl", ".ndjson")),
        Format("csv", write_csv, suffixes=(".csv",)),
        Format("parquet", write_parquet, suffixes=(".parquet",), binary=True, load=load),
    )
}
"""By name, in the order of the help."""


def by_suffix(path: str) -> Format | None:
    """The format that the name of a file tells."""
    name = path.lower()
    return next((row for row in FORMATS.values() if name.endswith(row.suffixes)), None)
