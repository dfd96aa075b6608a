"""Files of columns: a column of texts, one document a row, some rows in memory at a time.

    batches     of a Parquet file (parquet_files.py), or an Arrow file (arrow_files.py)
    parts       of a batch, of PART_ROWS rows: a batch of many rows may take hardly any memory
    spans       of a part, of so many rows that little memory is taken once they are decoded
    documents   of the rows of a span
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import date, time
from typing import TYPE_CHECKING, Any, BinaryIO

from simindex.inputs.binary_data import HEAD_BYTES
from simindex.inputs.document import ID_FIELDS, Document, Ids, Source, Unusable, text_of
from simindex.inputs.document_columns import Documents, column_of
from simindex.inputs.expansion import Expansion
from simindex.inputs.extras import needed
from simindex.inputs.fields import MISSING, field_of
from simindex.inputs.foreign_formats import BINARY, looks_like
from simindex.inputs.remote_files import RemoteError
from simindex.inputs.streams import Unreadable
from simindex.options import MAX_KEY_BYTES

if TYPE_CHECKING:
    from simindex.inputs.cells import Sizes

PART_ROWS = 1 << 20
"""Rows of a batch that are looked at together."""

ROWS, COLUMN_ROWS = 1024, 4096
"""Most rows that are decoded at once, and that are given as a column."""

SPAN_BYTES = 1 << 24
"""What these take at most, unless it is one row."""

ROW_BYTES = 1 << 20
"""What a row takes beside its text and id, at most: more makes it a bad record."""

NAMED = 8
"""Columns that a message names."""


def documents_of(
    opened: Callable[[], Iterator[Any]], file_bytes: int, source: Source
) -> Iterator[Document | Documents]:
    """Documents of the text column, in the order of rows.

    The key is the id column's, else ``name:row``, from 1. Nested fields are named with dots. Bad
    records: a text that is null, not a string, not UTF-8 or too long, an id that is empty or
    neither a string nor a whole number. The file is one bad record if `opened`, which opens it and
    gives its batches, raises Unusable, or an error of pyarrow; and where its rows take far more
    than its bytes.
    """
    ids, row = Ids(source, "column"), 0
    try:
        with _as_unreadable():
            batches = opened()
    except Unusable as reason:
        source.intake.bad(source.path, None, str(reason), reason.remedy)
        return
    spans = _spans(batches, source, Expansion(file_bytes))
    while True:
        try:
            with _as_unreadable():
                span = next(spans, None)
        except Unusable as reason:
            source.intake.bad(source.path, row + 1, str(reason), reason.remedy)
            return
        except Unreadable as reason:
            what = f"{reason}, so the rest was not read"
            raise Unreadable(what, row + 1, reason.remedy) from reason
        if span is None:
            return
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


def _spans(batches: Iterator[Any], source: Source, expansion: Expansion) -> Iterator[Any]:
    """The rows of batches, so many at once as take little memory once they are decoded.

    They are a part of a batch that is sound, or a list of records and of what is wrong with them.
    """
    from simindex.inputs.cells import sizes_of, slices

    most = 4 * source.limit + ROW_BYTES
    rows = COLUMN_ROWS if source.in_columns else ROWS
    for batch in batches:
        batch.validate()
        whole = _is_whole(batch)
        for first in range(0, len(batch), PART_ROWS):
            part = batch.slice(first, PART_ROWS)
            sizes = sum((sizes_of(column) for column in part.columns), start=_no_sizes(len(part)))
            sizes = sizes.clip(0, most + 1)
            for start, end in slices(sizes, SPAN_BYTES, rows):
                expansion.add(int(sizes[start:end].sum()))
                if end == start + 1 and sizes[start] > most:
                    reason = f"text longer than {source.limit} characters, or a row as long"
                    yield [Unusable(reason)]
                elif whole:
                    yield part.slice(start, end - start)
                else:
                    yield [_record(part, at) for at in range(start, end)]


def _is_whole(batch: Any) -> bool:
    """Whether all cells of a batch are sound."""
    try:
        batch.validate(full=True)
    except Exception as error:
        _require_arrow(error)
        return False
    return True


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


def wanted(schema: Any, source: Source) -> list[str]:
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
    if str(_kind_of(field, schema)).startswith(("dense_union", "sparse_union")):
        raise Unusable(f"column {field!r} is a union, not text", "cast it to string")
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
    count = list(names).count(top_of(field, names))
    if count > 1:
        raise Unusable(f"has {count} columns {field!r}", "give them different names")


def _has(schema: Any, field: str) -> bool:
    return _kind_of(field, schema) is not None


def _kind_of(field: str, schema: Any) -> Any:
    """The type of a field, None if there is none."""
    name = top_of(field, schema.names)
    if name not in schema.names:
        return None
    kind = schema.field(name).type
    for part in field[len(name) + 1 :].split(".") if field != name else ():
        index = kind.get_field_index(part) if hasattr(kind, "get_field_index") else -1
        if index < 0:
            return None
        kind = kind.field(index).type
    return kind


def top_of(field: str, names: Sequence[str]) -> str:
    """The column that a field is, or is within."""
    return field if field in names else field.partition(".")[0]


@contextmanager
def opened_as(what: str, magics: tuple[bytes, ...], stream: BinaryIO) -> Iterator[BinaryIO]:
    """The file itself; Unreadable says what it is where it is no such file."""
    try:
        yield stream
    except Exception as error:
        _require_arrow(error)
        if not isinstance(error, RemoteError):
            _require_like(what, magics, stream)
        raise


def _require_like(what: str, magics: tuple[bytes, ...], stream: BinaryIO) -> None:
    """Unreadable for a file that does not begin as one of its kind, but as something else."""
    stream.seek(0)
    head = stream.read(HEAD_BYTES)
    if head and not head.startswith(magics) and (found := looks_like(head)) != BINARY:
        raise Unreadable(
            f"not {what}: it looks like {found}",
            remedy="name the format with --format, or leave the file out",
        )


def arrow_needed() -> AbstractContextManager[None]:
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

_NOT_IMPLEMENTED = "Not yet implemented"
"""How some errors of pyarrow begin that are of another type, and not about damage either."""


@contextmanager
def _as_unreadable() -> Iterator[None]:
    """Has errors of pyarrow raised as Unreadable."""
    from pyarrow import ArrowException, ArrowNotImplementedError

    try:
        yield
    except (ArrowException, *_DAMAGE) as error:
        lines = str(error).splitlines() or [type(error).__name__]
        reason = lines[0][:300]
        if isinstance(error, ArrowNotImplementedError) or reason.startswith(_NOT_IMPLEMENTED):
            raise Unreadable(
                f"pyarrow cannot read it: {reason}",
                remedy="write the file again with other encodings, or its texts as strings",
            ) from error
        failed = isinstance(error, RemoteError) or getattr(error, "errno", None) is not None
        raise Unreadable(f"{'cannot be read' if failed else 'damaged'}: {reason}") from error
