"""Some documents of one file at once, as columns: nobody has made Python strings of their texts.

    keys     list of str (n,)
    texts    Arrow strings (n,)     the kernels read them where they are
    lines    first, first + 1, ...

Only documents that need no closer look come so: `column_of` says which. A reader gives them where
`Source.in_columns` asks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, overload

from simindex.inputs.document import Document, Ids, Source
from simindex.options import MAX_KEY_BYTES

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
    texts : pyarrow.StringArray or pyarrow.LargeStringArray
        Valid UTF-8, without nulls.
    """

    __slots__ = ("first", "keys", "path", "texts")

    def __init__(self, path: str, first: int, keys: list[str], texts: Any) -> None:
        self.path: str = path
        self.first: int = first
        self.keys: list[str] = keys
        self.texts: Any = texts

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
            texts = self.texts.slice(start, max(0, stop - start))
            return Documents(self.path, self.first + start, self.keys[start:stop], texts)
        text: str = self.texts[at].as_py()
        return Document(self.keys[at], text, self.path, self.first + range(len(self))[at])

    def __iter__(self) -> Iterator[Document]:
        lines = range(self.first, self.first + len(self))
        for line, key, text in zip(lines, self.keys, self.texts.to_pylist(), strict=True):
            yield Document(key, text, self.path, line)

    def __reduce__(self) -> Any:
        # A part of a column pickles with all of it, unless its texts are copied.
        texts = self.texts.take(list(range(len(self))))
        return Documents, (self.path, self.first, self.keys, texts)

    @property
    def characters(self) -> int:
        """Of all texts."""
        from pyarrow import compute

        return int(compute.sum(compute.utf8_length(self.texts)).as_py() or 0)

    @property
    def held_bytes(self) -> int:
        """What they take in memory."""
        return int(self.texts.nbytes) + sum(map(len, self.keys)) + STR_BYTES * len(self.keys)


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
    if not all(map(source.made.give, named)):
        return None
    source.intake.id_fields[field] += len(named)
    return Documents(source.path, first, named, texts)


def one_by_one(some: Iterable[Document | Documents]) -> Iterator[Document]:
    """The documents, those of columns decoded."""
    for item in some:
        if isinstance(item, Documents):
            yield from item
        else:
            yield item
