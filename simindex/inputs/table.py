"""Comma-separated tables: a header row that names the columns, then one document a row."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import PurePath
from typing import BinaryIO

from simindex.inputs.document import Document, Ids, Source, Unusable, text_of
from simindex.inputs.streams import lines, unmarked

MAX_COLUMNS = 1 << 16

MAX_SEPARATORS = 1 << 22
"""Most separators of a row, those in quotes included: each may be a cell, of 8 bytes in memory."""


class _Feed:
    """Decoded lines for `csv.reader`, with the number of the last one, row by row bounded."""

    def __init__(self, stream: BinaryIO, limit: int, delimiter: str) -> None:
        self._lines = lines(stream, limit)
        self._limit = limit
        self._separator = delimiter.encode()
        self._row_bytes = 0
        self._separators = 0
        self.number = 0

    def start_row(self) -> None:
        self._row_bytes = self._separators = 0

    def __iter__(self) -> _Feed:
        return self

    def __next__(self) -> str:
        self.number, line = next(self._lines)
        self._row_bytes += self._limit + 1 if line is None else len(line)
        if line is None or self._row_bytes > self._limit:
            raise Unusable(f"row longer than {self._limit} bytes (an open quote?)")
        self._separators += line.count(self._separator)
        if self._separators > MAX_SEPARATORS:
            raise Unusable(f"row of more than {MAX_SEPARATORS:,} separators")
        if self.number == 1:
            line = unmarked(line)
        # Bytes that are no UTF-8 become lone surrogates, which no valid UTF-8 decodes to: the row
        # that holds them is refused and the rows after it are not lost.
        return line.decode("utf-8", "surrogateescape")


def read_table(stream: BinaryIO, source: Source) -> Iterator[Document]:
    """Documents of a table with a header row, in its order; of a .tsv one with tabs between cells.

    Without an id column, rows are named ``name:line``. Bad records: a row over the limit,
    MAX_COLUMNS columns or MAX_SEPARATORS separators, of another number of columns than the header,
    with an empty id, with broken quotes, or with bytes that are no UTF-8. A header without the
    text column makes the file one bad record.
    """
    path, limit, intake = source.path, source.limit, source.intake
    delimiter = "\t" if ".tsv" in PurePath(path).suffixes else ","
    if csv.field_size_limit() < limit:
        csv.field_size_limit(limit)
    feed, ids = _Feed(stream, limit, delimiter), Ids(source, "column")
    rows = csv.reader(feed, delimiter=delimiter, strict=True)
    header: list[str] | None = None
    while True:
        feed.start_row()
        line = feed.number + 1
        try:
            row = next(rows)
            if not row:
                continue
            if len(row) > MAX_COLUMNS:
                raise Unusable(f"has {len(row):,} columns, more than {MAX_COLUMNS:,}")
            _require_utf8(row)
            if header is None:
                if source.text_field not in row:
                    found = ", ".join(repr(column[:40]) for column in row[:8])
                    intake.bad(
                        path, line,
                        f"lacks the column {source.text_field!r} (it has {found}): name it with "
                        "--text-field",
                    )
                    return
                header = row
                continue
            document = _document(row, header, line, source, ids)
            ids.count()
            yield document
        except StopIteration:
            return
        except csv.Error as error:
            intake.bad(path, line, f"not CSV: {error}")
        except Unusable as reason:
            intake.bad(path, line, str(reason))


def _document(
    cells: list[str], header: list[str], line: int, source: Source, ids: Ids
) -> Document:
    if len(cells) != len(header):
        raise Unusable(f"has {len(cells)} columns, the header has {len(header)}")
    row = dict(zip(header, cells, strict=True))
    return Document(
        key=ids.key_of(row, line),
        text=text_of(row[source.text_field], source.text_field),
        path=source.path,
        line=line,
        numbered=ids.numbered,
        row=row,
    )


def _require_utf8(row: list[str]) -> None:
    for column, cell in enumerate(row, 1):
        if not cell.isascii():
            try:
                cell.encode()
            except UnicodeEncodeError as error:
                byte = ord(cell[error.start]) - 0xDC00
                raise Unusable(f"not UTF-8: byte 0x{byte:02x} in column {column}") from None
