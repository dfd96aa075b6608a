"""Tables of text: a header row that names the columns, then one document a row."""

from __future__ import annotations

import csv
from collections import deque
from collections.abc import Iterator
from itertools import count, islice, takewhile
from typing import BinaryIO

from simindex.inputs.csv_dialect import AHEAD_BYTES, RETURN, dialect_of, without_returns
from simindex.inputs.document import Document, Ids, Source, Unusable, text_of
from simindex.inputs.foreign_formats import HEAD_BYTES
from simindex.inputs.streams import first_bytes, lines, unmarked

MAX_COLUMNS = 1 << 16

MAX_SEPARATORS = 1 << 22
"""Most separators of a row, those in quotes included: each may be a cell, of 8 bytes in memory."""

MOST_LINES = 1 << 15
"""Most lines that are looked at to find the row behind a broken one, each time they are."""


class _TooLong(Unusable):
    """A row takes too much before its end is found."""


class _Feed:
    """Decoded lines for `csv.reader`, with the number of the last one, row by row bounded."""

    def __init__(self, stream: BinaryIO, source: Source, needed: str) -> None:
        self._limit = source.limit
        self._lines = lines(stream, source.limit)
        self._row_bytes = 0
        self._separators = 0
        self._row: list[tuple[int, bytes | None]] = []
        """Lines of the row, of the first AHEAD_BYTES."""
        self._ahead: deque[tuple[int, bytes | None]] = deque()
        """Lines that were looked at, and come next."""
        self.number = 0
        self._searched = 0
        """No rows begin with lines up to this one, by `_first_row`."""
        self.has_returns = False
        """Whether RETURN is in lines of the row."""
        if stream.seekable() or source.is_file:
            first = [line for _, line in self._looked() if line is not None]
            cut = sum(map(len, first)) >= AHEAD_BYTES
        else:
            # What a pipe has not given yet is not waited for.
            first, cut = first_bytes(stream, HEAD_BYTES).splitlines(keepends=True), True
            if len(first) > 1 and not first[-1].endswith(b"\n"):
                first.pop()
        short = list(takewhile(lambda line: len(line) < AHEAD_BYTES, first))
        if len(short) < len(first):
            first, cut = short or [first[0][:AHEAD_BYTES]], True
        first[:1] = map(unmarked, first[:1])
        decoded = [line.decode("utf-8", "replace") for line in first]
        decoded[1:] = map(without_returns, decoded[1:])
        self.dialect = dialect_of(decoded, source.path, needed, cut=cut)
        self._separator = self.dialect.separator.encode()

    def start_row(self) -> None:
        self._row_bytes = self._separators = 0
        self.has_returns = False
        self._row.clear()

    def __iter__(self) -> _Feed:
        return self

    def __next__(self) -> str:
        number, line = self._ahead.popleft() if self._ahead else next(self._lines)
        self.number = number
        if self._row_bytes <= AHEAD_BYTES:
            self._row.append((number, line))
        self._row_bytes += self._limit + 1 if line is None else len(line)
        if line is None or self._row_bytes > self._limit:
            raise _TooLong(f"row longer than {self._limit} bytes (an open quote?)")
        self._separators += line.count(self._separator)
        if self._separators > MAX_SEPARATORS:
            raise _TooLong(f"row of more than {MAX_SEPARATORS:,} separators")
        if self.number == 1:
            line = unmarked(line)
        # Bytes that are not UTF-8 become lone surrogates, which no valid UTF-8 decodes to: the row
        # that holds them is refused and the rows after it are not lost.
        text = self._text(line, number)
        self.has_returns |= b"\r" in line and RETURN in text
        return text

    def _text(self, line: bytes, number: int) -> str:
        text = line.decode("utf-8", "surrogateescape")
        # A first line with carriage returns is a table whose lines end in them.
        return without_returns(text) if number > 1 and b"\r" in line else text

    def leave_broken_row(self, columns: int | None, *, at_end: bool) -> None:
        """Has the next row begin where one can, behind a row with broken quotes or without an end.

        Its first line is lost. If the next quote ends a cell, the lines up to it are within a cell
        of this row. If it begins one, or there is none, the next line is a row, unless the lines
        from there on are no rows of so many columns and those from a later one are. At the end of
        the file they must be such rows: most often the file was cut within a cell of many lines.
        """
        if self._row_bytes <= AHEAD_BYTES:
            rest = [self._text(line, number) for number, line in self._row[1:] if line is not None]
            if at_end and columns and not (
                columns > 1 and self.dialect.are_rows(rest, columns, len(rest) + 1)
            ):
                return
            self._ahead.extendleft(reversed(self._row[1:]))
            self.number = self._row[0][0]
        quote = (self.dialect.quote or "\n").encode()
        within = 0
        for taken, (_, line) in enumerate(self._looked(), 1):
            if line is None or (at := line.rstrip(b"\r\n").find(quote)) < 0:
                continue
            if at and line[at - 1 : at] != self._separator:
                within = taken
            break
        if columns and columns > 1:
            within = self._first_row(within, columns)
        for _ in range(within):
            self.number, _ = self._ahead.popleft()

    def _first_row(self, start: int, columns: int) -> int:
        """The first of the next lines, from one on, with which rows begin; that one if none is."""
        if self.number + start < self._searched:
            return start
        texts: list[str] = []
        looked = self._looked()
        left = MOST_LINES

        def following(first: int) -> Iterator[str]:
            nonlocal left
            for at in count(first):
                if at == len(texts):
                    number, line = next(looked, (0, None))
                    if not number:
                        return
                    texts.append(self._text(line or b"", number))
                left -= 1
                yield texts[at]

        for _ in islice(following(0), start):
            pass
        for first in count(start):
            if self.dialect.are_rows(following(first), columns):
                return first
            if left < 0 or first >= len(texts):
                break
        self._searched = self.number + len(texts)
        return start

    def _looked(self) -> Iterator[tuple[int, bytes | None]]:
        """The next lines, which still come next, AHEAD_BYTES of them."""
        held = 0
        for at in count():
            if at == len(self._ahead):
                one = next(self._lines, None)
                if one is None:
                    return
                self._ahead.append(one)
            held += len(self._ahead[at][1] or b"")
            yield self._ahead[at]
            if held >= AHEAD_BYTES:
                return


class TableRows:
    """Rows of a table with a header row, each with the line it starts on, as cells by column.

    Bad records: a row over the limit, MAX_COLUMNS columns or MAX_SEPARATORS separators, of another
    number of columns than the header, with broken quotes, or with bytes that are not UTF-8. A
    header without the column `needed` makes the file one bad record. The first rows tell how it is
    written, see `csv_dialect`.
    """

    def __init__(self, stream: BinaryIO, source: Source, needed: str) -> None:
        if csv.field_size_limit() < source.limit:
            csv.field_size_limit(source.limit)
        self._source, self._needed = source, needed
        self._feed = _Feed(stream, source, needed)
        self._rows = self._feed.dialect.rows(self._feed)

    def __iter__(self) -> Iterator[tuple[int, dict[str, str]]]:
        path, intake = self._source.path, self._source.intake
        header: list[str] | None = None
        named = (self._needed, self._source.id_field)
        while True:
            self._feed.start_row()
            line = self._feed.number + 1
            try:
                row = next(self._rows)
                if not row:
                    continue
                if self._feed.has_returns:
                    row = [cell.replace(RETURN, "\r") for cell in row]
                if len(row) > MAX_COLUMNS:
                    raise Unusable(f"has {len(row):,} columns, more than {MAX_COLUMNS:,}")
                _require_utf8(row)
                if header is None:
                    if self._needed not in row:
                        found = ", ".join(repr(column[:40]) for column in row[:8])
                        remedy = "name the column of the text with --text-field"
                        intake.bad(
                            path, line, f"has no column {self._needed!r} (it has {found})",
                            remedy if self._needed == self._source.text_field else None,
                        )
                        return
                    twice = next((one for one in row if one in named and row.count(one) > 1), None)
                    if twice is not None:
                        intake.bad(
                            path, line, f"has {row.count(twice)} columns {twice!r}",
                            "give them different names",
                        )
                        return
                    header = row
                    continue
                if len(row) != len(header):
                    columns = f"{len(row)} column" + "s" * (len(row) != 1)
                    raise Unusable(f"has {columns}, the header has {len(header)}")
                cells = dict(zip(header, row, strict=True))
            except StopIteration:
                return
            except (csv.Error, _TooLong) as error:
                self._feed.leave_broken_row(
                    None if header is None else len(header), at_end="end of data" in str(error)
                )
                last = self._feed.number
                left = f"; lines {line} to {last} are left out" if last > line else ""
                reason = str(error) if isinstance(error, _TooLong) else f"not CSV: {_told(error)}"
                intake.bad(path, line, reason + left)
                continue
            except Unusable as unusable:
                intake.bad(path, line, str(unusable), unusable.remedy)
                continue
            yield line, cells


def read_table(stream: BinaryIO, source: Source) -> Iterator[Document]:
    """Documents of a table, in its order; without an id column, rows are named ``name:line``.

    Bad records: those of `TableRows`, and a row with an empty id.
    """
    ids, keeps = Ids(source, "column"), source.keeps_rows
    for line, row in TableRows(stream, source, source.text_field):
        try:
            document = Document(
                key=ids.key_of(row, line),
                text=text_of(row[source.text_field], source.text_field),
                path=source.path,
                line=line,
                numbered=ids.numbered,
                row=row if keeps else None,
            )
        except Unusable as reason:
            source.intake.bad(source.path, line, str(reason), reason.remedy)
            continue
        ids.count()
        yield document


def _told(error: csv.Error) -> str:
    """What Python says of a row, without its advice to programmers."""
    said = str(error)
    if said.startswith("new-line character seen in unquoted field"):
        return "a carriage return without a line feed, outside of quotes"
    return said


def _require_utf8(row: list[str]) -> None:
    for column, cell in enumerate(row, 1):
        if not cell.isascii():
            try:
                cell.encode()
            except UnicodeEncodeError as error:
                byte = ord(cell[error.start]) - 0xDC00
                raise Unusable(f"not UTF-8: byte 0x{byte:02x} in column {column}") from None
