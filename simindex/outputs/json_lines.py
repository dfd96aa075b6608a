"""JSON lines: an object for each row, with the names of the columns."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from simindex.outputs.columns import Columns, Schema, Write, as_json_line, plain


@contextmanager
def write_json_lines(stream: TextIO, schema: Schema) -> Iterator[Write]:
    """Writes rows as objects."""

    def write(columns: Columns) -> None:
        rows = zip(*(plain(columns[name]) for name in schema), strict=True)
        lines = [as_json_line(dict(zip(schema, row, strict=True))) + "\n" for row in rows]
        stream.write("".join(lines))

    yield write
