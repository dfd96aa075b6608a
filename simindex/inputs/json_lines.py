"""JSON lines: one object a line, with a text field and perhaps a key field."""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Iterator
from functools import cache
from typing import Any, BinaryIO

from simindex.inputs.document import Document, Ids, Source, Unusable, text_of
from simindex.inputs.document_columns import Documents
from simindex.inputs.fields import MISSING, field_names, field_of
from simindex.inputs.line_columns import LineColumns
from simindex.inputs.streams import (
    BUFFER_BYTES,
    STDIN,
    ByteBlocks,
    Unreadable,
    decoded,
    line_blocks,
    lines_within,
    unmarked,
)
from simindex.options import MAX_KEY_BYTES


@cache
def orjson() -> Any:
    """The package, or None where it is not installed. Its import takes 20 ms, at the first line."""
    try:
        import orjson as package
    except ImportError:
        return None
    return package


MAX_VALUES = 1 << 20
"""Most commas and brackets of a record outside of its strings. Each belongs to a value, and a value
of two bytes takes 64 in memory: a line of 64 MiB might else take gigabytes."""

MAX_NESTING = 500
"""Deepest lists and objects of a record. The interpreter's own bound, of a thousand, counts calls,
too: it might be met when a record is looked at again."""

_QUOTED = rb'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)'
_STRING = re.compile(_QUOTED, re.DOTALL)
"""A string, or what an unclosed one leaves of the line: so it matches at every quote, and a line is
read once."""

_PLAIN = frozenset((str, int, float, bool, type(None)))
"""Types of values that hold no others."""

_NESTED = re.compile(_QUOTED + rb"|[][{}]", re.DOTALL)


OTHER_FORMAT = (
    "standard input is read as JSON lines; --format text takes it for one text, and --format csv "
    "for a table"
)


BLOCK_BYTES = 1 << 22
"""Of lines that are read at once as columns, at most. The first blocks are smaller: the id field is
decided in them."""


def read_jsonl(stream: BinaryIO, source: Source) -> Iterator[Document | Documents]:
    """Documents of a stream of JSON lines, in its order; of a file, nearly all in columns.

    A record without the id field, or with null in it, is named ``name:line``. Lines of nothing but
    white space are passed over. Bad records: a line over the limit, of more than MAX_VALUES
    values or nested more than MAX_NESTING deep, bytes that are not UTF-8, not JSON, not an object,
    no text field, a text that is not a string, an id that is empty or neither a string nor a whole
    number, half of a surrogate pair in either.
    """
    records = Records(source)
    if not (source.in_columns and source.is_file):
        for first, lines in line_blocks(stream, source.limit):
            yield from records.documents(lines, first)
        return
    blocks = ByteBlocks(stream, source.limit, BUFFER_BYTES, most=BLOCK_BYTES)
    for block in blocks:
        count = 1
        if block is None:
            yield from records.documents([None], blocks.number)
        else:
            count = yield from records.columns(block, blocks.number)
        blocks.number += count


class Records:
    """Documents of the objects of one source."""

    def __init__(self, source: Source) -> None:
        self._source, self._ids = source, Ids(source)
        self._exactly = "." in (source.id_field or "")

    def columns(
        self, block: bytes, first: int
    ) -> Generator[Document | Documents, None, int]:
        """Those of the lines of a block, of which the first has a number; some as columns.

        Returns how many lines there are.
        """
        source, field = self._source, self._ids.field
        if field is None or self._exactly:
            listed = lines_within(block, source.limit)
            yield from self.documents(listed, first)
            return len(listed)
        columns = LineColumns(block, first, source, field, min(MAX_VALUES, source.limit))
        for start, stop, plain in columns.runs():
            some = columns.documents(start, stop) if plain else None
            if some is not None:
                yield some
            else:
                lines = lines_within(columns.bytes_of(start, stop), source.limit)
                yield from self.documents(lines, first + start)
        return len(columns)

    def documents(self, block: list[bytes | None], first: int) -> Iterator[Document]:
        """Those of some lines, which are objects, of which the first has a number."""
        source, ids, package = self._source, self._ids, orjson()
        path, text_field, keep = source.path, source.text_field, source.all_fields
        for number, line in enumerate(block, first):
            field = None if self._exactly or package is None else ids.field
            if field is not None and line is not None and len(line) <= MAX_VALUES:
                # Nearly all lines: the names of both fields are known, and both are strings. orjson
                # has refused halves of surrogate pairs.
                try:
                    record = package.loads(line)
                    text, key = record[text_field], record[field]
                except (ValueError, KeyError, TypeError):
                    pass  # also where a field is within another
                else:
                    if (
                        type(text) is str and type(key) is str and key.isascii()
                        and 0 < len(key) <= MAX_KEY_BYTES
                        and (_PLAIN.issuperset(map(type, record.values())) or _is_shallow(line))
                        and source.made.give(key)
                    ):
                        source.intake.id_fields[field] += 1
                        yield Document(key, text, path, number, raw=line if keep else None)
                        continue
            document = self._line(line, number)
            if document is not None:
                yield document

    def _line(self, line: bytes | None, number: int) -> Document | None:
        """The document of any line."""
        source = self._source
        if line is None:
            source.intake.bad(source.path, number, f"line longer than {source.limit} bytes")
            return None
        if number == 1:
            line = unmarked(line)
        return None if not line or line.isspace() else self.document(line, number)

    def document(self, line: bytes, number: int, *, is_line: bool = True) -> Document | None:
        """That of an object as it is written; None, and a bad record, if it is none.

        It keeps the bytes of a line, to be written as they are, and the fields of another object.
        """
        source = self._source
        path, text_field = source.path, source.text_field
        try:
            record = record_of(line, exactly=self._exactly)
            text = field_of(record, text_field)
            if text is MISSING:
                raise Unusable(
                    f"has no field {text_field!r} (it has {field_names(record)})",
                    "name the field of the text with --text-field",
                )
            document = Document(
                key=self._ids.key_of(record, number),
                text=text_of(text, text_field),
                path=path,
                line=number,
                numbered=self._ids.numbered,
                raw=line if is_line else None,
                row=None if is_line else record,
            )
        except (Unusable, Unreadable) as reason:
            first = path == STDIN and not source.intake.documents
            remedy = OTHER_FORMAT if first and not line.startswith(b"{") else reason.remedy
            source.intake.bad(path, number, str(reason), remedy)
            return None
        self._ids.count()
        return document


def record_of(line: bytes, *, exactly: bool = False) -> dict[str, Any]:
    """The object of a line; Unusable or Unreadable says why there is none.

    orjson, where it is installed, reads what it can, and faster. It makes a float of a whole number
    above 64 bits, which may be an id: such a record is read again. `exactly` is for ids within
    inner objects, which are not looked through for floats.
    """
    if len(line) > MAX_VALUES and _values(line) > MAX_VALUES and _too_many(line):
        raise Unusable(f"holds more than {MAX_VALUES:,} values")
    if not _is_shallow(line):
        raise Unusable(f"lists and objects are nested more than {MAX_NESTING} deep")
    fast = None if exactly else orjson()
    if fast is not None:
        try:
            found = fast.loads(line)
        except fast.JSONDecodeError:
            pass  # also NaN and halves of surrogate pairs, which the other one reads
        else:
            if isinstance(found, dict) and float not in map(type, found.values()):
                return found
    text = decoded(line.rstrip(b"\r\n"))
    try:
        record = json.loads(text)
    except json.JSONDecodeError as error:
        raise Unusable(f"not JSON: {error.msg}: column {error.pos + 1}") from None
    except ValueError:
        # The interpreter refuses to convert whole numbers of thousands of digits.
        raise Unusable("not JSON this can read: a number has too many digits") from None
    except RecursionError:
        raise Unusable("not JSON this can read: nested too deeply") from None
    if not isinstance(record, dict):
        raise Unusable("not a JSON object")
    return record


def _values(line: bytes, start: int = 0, end: int | None = None) -> int:
    return sum(line.count(mark, start, end) for mark in (b",", b"[", b"{"))


def _too_many(line: bytes) -> bool:
    """Whether there are more values than MAX_VALUES, strings left out; keeps nothing in mind."""
    values = at = 0
    for string in _STRING.finditer(line):
        if string.start() > at:
            values += _values(line, at, string.start())
            if values > MAX_VALUES:
                return True
        at = string.end()
    return values + _values(line, at) > MAX_VALUES


def _is_shallow(line: bytes) -> bool:
    if len(line) <= MAX_NESTING or line.count(b"[") + line.count(b"{") <= MAX_NESTING:
        return True
    depth = 0
    for token in _NESTED.finditer(line):
        mark = line[token.start()]
        if mark in b"[{":
            depth += 1
            if depth > MAX_NESTING:
                return False
        elif mark in b"]}":
            depth -= 1
    return True
