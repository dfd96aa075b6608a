"""Parquet and Arrow files: a column of texts, one document a row, some rows in memory at a time.

    .parquet               by row groups; pages with checksums are checked
    .arrow .feather .ipc   Arrow files, and streams of Arrow, told by their first bytes
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import date, time
from typing import TYPE_CHECKING, Any, BinaryIO

from simindex.inputs.document import ID_FIELDS, Document, Ids, Source, Unusable, text_of
from simindex.inputs.document_columns import Documents, column_of
from simindex.inputs.extras import needed
from simindex.inputs.fields import MISSING, field_of
from simindex.inputs.magics import ARROW_MAGIC, STREAM_MAGIC
from simindex.inputs.parquet_groups import HOW, batches_of
from simindex.inputs.streams import Unreadable
from simindex.options import MAX_KEY_BYTES

if TYPE_CHECKING:
    from simindex.inputs.cells import Sizes

FILE_HEAD_BYTES = 8
"""Of an Arrow file, before the stream that it holds."""

STREAM_END = STREAM_MAGIC + b"\0\0\0\0"

ROWS, COLUMN_ROWS = 1024, 4096
"""Most rows that are decoded at once, and that are given as a column."""

SPAN_BYTES = 1 << 24
"""What these take at most, unless it is one row."""

ROW_BYTES = 1 << 20
"""What a row takes beside its text and id, at most: more makes it a bad record."""

NAMED = 8
"""Columns that a message names."""


def read_parquet(stream: BinaryIO, source: Source) -> Iterator[Document | Documents]:
    """Documents of the text column, in the order of rows.

    The key is the id column's, else ``name:row``, from 1. Nested fields are named with dots. Bad
    records: a text that is null, not a string, not UTF-8 or too long, an id that is empty or
    neither a string nor a whole number. The file is one bad record if it has no such column, or
    several of that name, is damaged, or is compressed as a whole: its table of contents is at the
    end.
    """
    with _needed():
        from pyarrow import parquet

    def batches() -> Iterator[Any]:
        opened = _seekable(stream)
        file = parquet.ParquetFile(opened, **HOW)
        return batches_of(opened, file, _wanted(file.schema_arrow, source))

    yield from _documents(batches, source)


def read_arrow(stream: BinaryIO, source: Source) -> Iterator[Document | Documents]:
    """The same of an Arrow file or stream (Feather, IPC).

    A file is read as the stream that is in it, so that a damaged table of contents loses no rows in
    silence. A stream that does not end with its mark was cut.
    """
    with _needed():
        from pyarrow import ipc

    def batches() -> Iterator[Any]:
        opened: Any = _seekable(stream)
        head = opened.read(len(ARROW_MAGIC))
        opened.seek(0)
        if head != ARROW_MAGIC:
            return _of_streams(opened, source)
        file = ipc.open_file(opened)
        columns = _indices(file.schema, source)
        opened.seek(FILE_HEAD_BYTES)
        return _of_file(opened, ipc.open_stream(opened), file.num_record_batches, columns)

    yield from _documents(batches, source)


def _of_file(opened: Any, parts: Any, listed: int, columns: Sequence[int]) -> Iterator[Any]:
    """Batches of an Arrow file; Unreadable where its table of contents lists others."""
    found = 0
    for batch in parts:
        found += 1
        yield batch.select(columns)
    if found != listed:
        raise Unreadable(
            f"damaged: it holds {found:,} batches, and its table of contents lists {listed:,}"
        )


def _of_streams(opened: Any, source: Source) -> Iterator[Any]:
    """Batches of Arrow streams, one after the other; Unreadable where one was cut."""
    from pyarrow import ipc

    def batches() -> Iterator[Any]:
        parts, columns = first
        while True:
            end = opened.tell()
            for batch in parts:
                end = opened.tell()
                yield batch.select(columns)
            opened.seek(end)
            mark = opened.read(len(STREAM_END))
            if mark[:4] == STREAM_END[4:]:
                opened.seek(end + 4)
            elif mark != STREAM_END:
                raise Unreadable("truncated: its stream has no end")
            at = opened.tell()
            head = opened.read(len(STREAM_MAGIC))
            if not head.strip(b"\0"):
                return
            if head != STREAM_MAGIC:
                raise Unreadable("damaged: other bytes follow its stream")
            opened.seek(at)
            parts = ipc.open_stream(opened)
            columns = _indices(parts.schema, source)

    parts = ipc.open_stream(opened)
    first = parts, _indices(parts.schema, source)
    return batches()


def _indices(schema: Any, source: Source) -> list[int]:
    """The columns to read, by their places."""
    names = list(schema.names)
    tops = {_top(name, names) for name in _wanted(schema, source)}
    return [at for at, name in enumerate(names) if name in tops]


def _documents(
    opened: Callable[[], Iterator[Any]], source: Source
) -> Iterator[Document | Documents]:
    ids, row = Ids(source, "column"), 0
    try:
        with _as_unreadable():
            batches = opened()
    except Unusable as reason:
        source.intake.bad(source.path, None, str(reason), reason.remedy)
        return
    while True:
        try:
            with _as_unreadable():
                batch = next(batches, None)
                if batch is None:
                    return
                spans = _spans(batch, source)
        except Unusable as reason:
            source.intake.bad(source.path, row + 1, str(reason), reason.remedy)
            return
        except Unreadable as reason:
            what = f"{reason}, so the rest was not read"
            raise Unreadable(what, row + 1, reason.remedy) from reason
        for span in spans:
            some = column_of(span, row + 1, ids, source) if _may_be_column(span, source) else None
            if some is not None:
                row += len(some)
                yield some
                continue
            for record in span if isinstance(span, list) else _records(span):
                row += 1
                document = _plain_document(record, row, ids, source)
                if document is None:
                    document = _document(record, row, ids, source)
                if document is not None:
                    yield document


def _may_be_column(span: Any, source: Source) -> bool:
    return source.in_columns and not source.all_fields and not isinstance(span, list)


def _plain_document(
    record: dict[str, Any] | Unusable, row: int, ids: Ids, source: Source
) -> Document | None:
    """The document of nearly all rows: the names of both columns are known, both cells strings."""
    field = ids.field
    if field is None or source.all_fields or isinstance(record, Unusable):
        return None
    text, key = record.get(source.text_field), record.get(field)
    if not (
        type(text) is str and len(text) <= source.limit and type(key) is str and key.isascii()
        and 0 < len(key) <= MAX_KEY_BYTES and source.made.give(key)
    ):
        return None
    source.intake.id_fields[field] += 1
    return Document(key, text, source.path, row)


def _document(
    record: dict[str, Any] | Unusable, row: int, ids: Ids, source: Source
) -> Document | None:
    field = source.text_field
    try:
        if isinstance(record, Unusable):
            raise record
        text = field_of(record, field)
        text = text_of(None if text is MISSING else text, field)
        if len(text) > source.limit:
            raise Unusable(f"text longer than {source.limit} characters")
        document = Document(
            key=ids.key_of(record, row), text=text, path=source.path, line=row,
            numbered=ids.numbered, row=_plain(record) if source.all_fields else None,
        )
    except Unusable as reason:
        source.intake.bad(source.path, row, str(reason), reason.remedy)
        return None
    ids.count()
    return document


def _spans(batch: Any, source: Source) -> Iterator[Any]:
    """The rows of a batch, so many at once as take little memory once they are decoded.

    They are a part of the batch that is sound, or a list of records and of what is wrong with them.
    """
    from simindex.inputs.cells import sizes_of, slices

    batch.validate()
    sizes = sum((sizes_of(column) for column in batch.columns), start=_no_sizes(len(batch)))
    most = 4 * source.limit + ROW_BYTES
    try:
        batch.validate(full=True)
        whole = True
    except Exception as error:
        _require_arrow(error)
        whole = False

    def spans() -> Iterator[Any]:
        rows = COLUMN_ROWS if source.in_columns else ROWS
        for start, end in slices(sizes.clip(0, most + 1), SPAN_BYTES, rows):
            if end == start + 1 and sizes[start] > most:
                yield [Unusable(f"text longer than {source.limit} characters, or a row as long")]
            elif whole:
                yield batch.slice(start, end - start)
            else:
                yield [_record(batch, at) for at in range(start, end)]

    return spans()


def _records(batch: Any) -> list[Any]:
    from simindex.inputs.cells import values_of

    columns = [values_of(column) for column in batch.columns]
    names = batch.schema.names
    return [dict(zip(names, cells, strict=True)) for cells in zip(*columns, strict=True)]


def _record(batch: Any, at: int) -> dict[str, Any] | Unusable:
    """A row of a batch in which some are damaged."""
    from simindex.inputs.cells import cell_of, values_of

    found: dict[str, Any] = {}
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        try:
            cell = cell_of(column, at)
            cell.validate(full=True)
            (found[name],) = values_of(cell)
        except Exception as error:
            _require_arrow(error)
            reason = str(error).partition("\n")[0][:200]
            utf8 = "utf8" in reason.lower() or isinstance(error, UnicodeDecodeError)
            return Unusable(f"column {name[:40]!r} is " + ("not UTF-8" if utf8 else "damaged"))
    return found


def _plain(value: Any) -> Any:
    """A value in the kinds that JSON has: bytes in hexadecimal, times as ISO 8601."""
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    if isinstance(value, dict):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    if isinstance(value, bytes):
        return value.hex()
    return value.isoformat() if isinstance(value, (date, time)) else str(value)


def _wanted(schema: Any, source: Source) -> list[str]:
    """The columns to read; Unusable if there is no such column."""
    names, field = list(schema.names), source.text_field
    for one in (field, source.id_field):
        if one is not None:
            _require_one(names, one)
    if not _has(schema, field):
        listed = ", ".join(repr(name[:40]) for name in names[:NAMED])
        raise Unusable(
            f"has no column {field!r} (it has {listed})",
            "name the column of the text with --text-field",
        )
    if source.all_fields:
        return names
    found = [field]
    if source.id_field is None:
        found += [name for name in ID_FIELDS if names.count(name) == 1 and name != field]
    elif _has(schema, source.id_field):
        found.append(source.id_field)
    return found


def _require_one(names: Sequence[str], field: str) -> None:
    """Unusable if several columns have the name of a field."""
    count = list(names).count(_top(field, names))
    if count > 1:
        raise Unusable(f"has {count} columns {field!r}", "give them different names")


def _has(schema: Any, field: str) -> bool:
    name = _top(field, schema.names)
    if name not in schema.names:
        return False
    kind = schema.field(name).type
    for part in field[len(name) + 1 :].split(".") if field != name else ():
        index = kind.get_field_index(part) if hasattr(kind, "get_field_index") else -1
        if index < 0:
            return False
        kind = kind.field(index).type
    return True


def _top(field: str, names: Sequence[str]) -> str:
    """The column that a field is, or is within."""
    return field if field in names else field.partition(".")[0]


def _seekable(stream: BinaryIO) -> BinaryIO:
    """The file itself; Unreadable for what can be read from its start only."""
    if type(stream).__name__ == "GzipFile" or not stream.seekable():
        raise Unreadable(
            "its table of contents is at its end",
            remedy="unpack it, or save it to a file, and name that",
        )
    return stream


def _needed() -> AbstractContextManager[None]:
    return needed("reading Parquet and Arrow files", extra="arrow")


def _no_sizes(count: int) -> Sizes:
    import numpy as np

    return np.zeros(count, np.int64)


def _require_arrow(error: Exception) -> None:
    """Raises an error again that is none of pyarrow's."""
    from pyarrow import ArrowException

    if not isinstance(error, (ArrowException, *_DAMAGE)):
        raise error

_DAMAGE = (
    OSError, UnicodeDecodeError, OverflowError, MemoryError, ValueError, SystemError, KeyError,
    IndexError,
)
"""What pyarrow raises for damage beside its own errors: also of sizes that are none, or too large.
"""


@contextmanager
def _as_unreadable() -> Iterator[None]:
    """Has errors of pyarrow raised as Unreadable."""
    from pyarrow import ArrowException

    try:
        yield
    except (ArrowException, *_DAMAGE) as error:
        lines = str(error).splitlines() or [type(error).__name__]
        raise Unreadable(f"damaged: {lines[0][:300]}") from error
