"""Some documents of one file at once, as columns: nobody has made Python strings of their texts.

    keys     list of str (n,)
    texts    column of UTF-8 (n,)    the kernels read them where they are
    raw      column of lines (n,)    of JSON lines whose other fields are asked for
    lines    first, first + 1, ...

Only documents that need no closer look come so: `column_of` says which. A reader gives them where
`Source.in_columns` asks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import repeat
from typing import TYPE_CHECKING, Any, NamedTuple, overload

from simindex.inputs.document import Document, Ids, Source
from simindex.options import MAX_KEY_BYTES

if TYPE_CHECKING:
    from simindex.simhash.feature_columns import FeatureColumn
    from simindex.simhash.features import Column

STR_BYTES = 49
"""What a str takes beside its characters, if these are ASCII."""


class Documents(Sequence[Document]):
    """The documents of consecutive lines or rows, all with ids; each is made when it is asked for.

    Parameters
    ----------
    path : str
        The file, as `Document.path`.
    first : int
        Line or row of the first one.
    keys : list of str
    texts : Column or FeatureColumn
        Valid UTF-8; or features in place of texts that nobody needs any more.
    raw : Column, optional
        The lines as read, see `Document.raw`. No record of them is given otherwise.
    """

    __slots__ = ("first", "keys", "path", "raw", "texts")

    def __init__(
        self, path: str, first: int, keys: list[str], texts: Column | FeatureColumn,
        raw: Column | None = None,
    ) -> None:
        self.path: str = path
        self.first: int = first
        self.keys: list[str] = keys
        self.texts: Column | FeatureColumn = texts
        self.raw: Column | None = raw

    def __len__(self) -> int:
        return len(self.keys)

    @overload
    def __getitem__(self, at: int) -> Document: ...
    @overload
    def __getitem__(self, at: slice) -> Documents: ...

    def __getitem__(self, at: int | slice) -> Document | Documents:
        if isinstance(at, slice):
            start, stop, step = at.indices(len(self))
            if step != 1:
                raise ValueError("documents are taken in their order")
            stop = max(start, stop)
            return Documents(
                self.path, self.first + start, self.keys[start:stop], self.texts.part(start, stop),
                None if self.raw is None else self.raw.part(start, stop),
            )
        at = range(len(self))[at]
        return Document(
            self.keys[at], self.texts.text(at).decode(), self.path, self.first + at,
            raw=None if self.raw is None else self.raw.text(at),
        )

    def __iter__(self) -> Iterator[Document]:
        lines = range(self.first, self.first + len(self))
        raws: Iterable[bytes | None] = repeat(None) if self.raw is None else self.raw.listed()
        for line, key, text, raw in zip(lines, self.keys, self.column.listed(), raws, strict=False):
            yield Document(key, text.decode(), self.path, line, raw=raw)

    def __reduce__(self) -> Any:
        raw = None if self.raw is None else self.raw.copied()
        return Documents, (self.path, self.first, self.keys, self.column.copied(), raw)

    def place(self, at: int) -> str:
        """`Document.place` of one of them."""
        return f"{self.path}:{self.first + at}"

    def without_raw(self) -> Documents:
        """The same without their lines."""
        return Documents(self.path, self.first, self.keys, self.texts)

    @property
    def column(self) -> Column:
        """The texts. TypeError where features are in their place."""
        from simindex.simhash.features import Column

        if not isinstance(self.texts, Column):
            raise TypeError("features are in place of the texts")
        return self.texts

    def with_features(self, features: FeatureColumn) -> Documents:
        """The same with the features of their texts, and without texts and lines."""
        return Documents(self.path, self.first, self.keys, features)

    @property
    def characters(self) -> int:
        """Of all texts."""
        return self.texts.characters

    @property
    def held_bytes(self) -> int:
        """What they take in memory."""
        lines = 0 if self.raw is None else self.raw.nbytes
        return self.texts.nbytes + lines + sum(map(len, self.keys)) + STR_BYTES * len(self.keys)


class Later(NamedTuple):
    """What a reader has found and cannot give yet, as the text of a page is still being taken."""

    document: Callable[[], Document | Documents | None]
    """Waits for it; None if it has become a bad record, which is noted by then."""
    held_bytes: int
    """What is held meanwhile, from 1 on."""


def column_of(batch: Any, first: int, ids: Ids, source: Source) -> Documents | None:
    """The rows of a validated Arrow batch, of which the first has a number.

    None unless the id field is decided, and in each row id and text are strings that are ids and
    texts of documents. So nearly all rows of nearly all files come in columns.
    """
    from pyarrow import compute, types

    from simindex.simhash.features import columns_of

    names, field = batch.schema.names, ids.field
    if field is None or not len(batch) or names.count(field) != 1 or (
        names.count(source.text_field) != 1
    ):
        return None
    keys, texts = batch.column(field), batch.column(source.text_field)
    for column, most in ((keys, MAX_KEY_BYTES), (texts, source.limit)):
        if column.null_count or not (
            types.is_string(column.type) or types.is_large_string(column.type)
        ):
            return None
        if compute.max(compute.binary_length(column)).as_py() > most:
            return None
    lengths = compute.binary_length(keys)
    if not compute.min(lengths).as_py() or not compute.all(compute.string_is_ascii(keys)).as_py():
        return None
    named: list[str] = keys.to_pylist()
    if not source.made.give_all(named):
        return None
    source.intake.id_fields[field] += len(named)
    found = columns_of(texts)
    assert found is not None, "an Arrow column of text"
    (column,) = found
    return Documents(source.path, first, named, column)


def one_by_one(some: Iterable[Document | Documents]) -> Iterator[Document]:
    """The documents, those of columns decoded."""
    for item in some:
        if isinstance(item, Documents):
            yield from item
        else:
            yield item
