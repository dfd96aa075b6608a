"""Parquet and Arrow files: a column of texts, one document a row, some rows in memory at a time.

    .parquet               by row groups; pages with checksums are checked
    .arrow .feather .ipc   Arrow files, and streams of Arrow, told by their first bytes
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import date, time
from typing import Any, BinaryIO

from simindex.inputs.document import ID_FIELDS, Document, Ids, Source, Unusable, text_of
from simindex.inputs.extras import needed
from simindex.inputs.fields import field_of
from simindex.inputs.streams import Unreadable

PARQUET_MAGIC, ARROW_MAGIC, STREAM_MAGIC = b"PAR1", b"ARROW1", b"\xff\xff\xff\xff"

ROWS = 1024
"""Rows that are taken from a file at once, unless it has fewer in a group."""

NAMED = 8
"""Columns that a message names."""


def read_parquet(stream: BinaryIO, source: Source) -> Iterator[Document]:
    """Documents of the text column, in the order of rows.

    The key is the id column's, else ``name:row``, from 1. Nested fields are named with dots. Bad
    records: a text that is null or not a string, an id that is empty or neither a string nor a
    whole number. The file is one bad record if it has no such column, is damaged, or is compressed
    as a whole: its table of contents is at the end.
    """
    with _needed():
        from pyarrow import parquet

    def batches() -> Iterator[Any]:
        file = parquet.ParquetFile(_seekable(stream), page_checksum_verification=True)
        columns = _wanted(file.schema_arrow, source)
        return iter(file.iter_batches(batch_size=ROWS, columns=columns))

    yield from _documents(batches, source)


def read_arrow(stream: BinaryIO, source: Source) -> Iterator[Document]:
    """The same of an Arrow file or stream (Feather, IPC)."""
    with _needed():
        from pyarrow import ipc

    def batches() -> Iterator[Any]:
        opened: Any = _seekable(stream)
        head = opened.read(len(ARROW_MAGIC))
        opened.seek(0)
        if head == ARROW_MAGIC:
            file = ipc.open_file(opened)
            parts = (file.get_batch(number) for number in range(file.num_record_batches))
        else:
            file = ipc.open_stream(opened)
            parts = iter(file)
        names = file.schema.names
        wanted = dict.fromkeys(_top(name, names) for name in _wanted(file.schema, source))
        return _parts(parts, list(wanted))

    yield from _documents(batches, source)


def _parts(batches: Iterator[Any], columns: Sequence[str]) -> Iterator[Any]:
    for batch in batches:
        some = batch.select(columns)
        for start in range(0, some.num_rows, ROWS):
            yield some.slice(start, ROWS)


def _documents(opened: Callable[[], Iterator[Any]], source: Source) -> Iterator[Document]:
    ids, field, row = Ids(source, "column"), source.text_field, 0
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
                batch.validate(full=True)
                records: list[dict[str, Any]] = batch.to_pylist()
        except Unreadable as reason:
            raise Unreadable(str(reason), row + 1) from reason
        for record in records:
            row += 1
            try:
                text = text_of(field_of(record, field), field)
                if len(text) > source.limit:
                    raise Unusable(f"text longer than {source.limit} characters")
                document = Document(
                    key=ids.key_of(record, row), text=text, path=source.path, line=row,
                    numbered=ids.numbered, row=_plain(record) if source.all_fields else None,
                )
            except Unusable as reason:
                source.intake.bad(source.path, row, str(reason), reason.remedy)
                continue
            ids.count()
            yield document


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
        found += [name for name in ID_FIELDS if name in names and name != field]
    elif _has(schema, source.id_field):
        found.append(source.id_field)
    return found


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
            "its table of contents is at its end: unpack it, or save it to a file, and name that"
        )
    return stream


def _needed() -> AbstractContextManager[None]:
    return needed("reading Parquet and Arrow files", extra="arrow")


@contextmanager
def _as_unreadable() -> Iterator[None]:
    """Has errors of pyarrow raised as Unreadable: also of sizes that are none, or too large."""
    from pyarrow import ArrowException

    try:
        yield
    except (
        ArrowException, OSError, UnicodeDecodeError, OverflowError, MemoryError, ValueError,
        SystemError, KeyError,
    ) as error:
        lines = str(error).splitlines() or [type(error).__name__]
        raise Unreadable(f"damaged: {lines[0]}") from error
