"""CSV: a header row, then a row for each result; commas between values, ``\\n`` at the end.

    text with a comma, a quote or a line end    in quotes, inner quotes twice
    an empty text                               ""
    null                                        nothing
    true, false                                 as JSON has them
    some numbers                                JSON

The csv module of Python 3.11 does not quote a ``\\r`` in such rows, and writes null as it writes an
empty text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TextIO

from simindex.outputs.columns import Columns, Kind, Schema, Write, encodable, plain

_QUOTED = re.compile('[,"\r\n]|^$')


@contextmanager
def write_csv(stream: TextIO, schema: Schema) -> Iterator[Write]:
    """Writes the header, and then rows."""
    stream.write(",".join(map(_text, schema)) + "\n")

    def write(columns: Columns) -> None:
        cells = [_cells(plain(columns[name]), kind) for name, kind in schema.items()]
        stream.write("".join([",".join(row) + "\n" for row in zip(*cells, strict=True)]))

    yield write


def _cells(column: Sequence[Any], kind: Kind) -> list[str]:
    of: Callable[[Any], str] = _OF_KINDS.get(kind, str)
    return ["" if value is None else of(value) for value in column]


def _text(text: str) -> str:
    if _QUOTED.search(text):
        return '"' + encodable(text).replace('"', '""') + '"'
    return encodable(text)


def _numbers(numbers: Sequence[float]) -> str:
    return _text(json.dumps(numbers))


_OF_KINDS: Mapping[Kind, Callable[[Any], str]] = {
    "text": _text, "bytes": _text, "bool": json.dumps, "float32s": _numbers,
}
"""How the values of columns are written, if not as they are."""
