"""Documents in groups that are fingerprinted together, and what is kept of them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import simindex
from simindex.cli.console import count, say
from simindex.inputs.document_columns import Documents
from simindex.resources.threads import thread_count

if TYPE_CHECKING:
    from simindex.inputs.document import Document

T = TypeVar("T")

Chunk = Sequence["Document"]
"""A list, or `Documents`, which are columns."""

CHUNK_DOCUMENTS = 4096
CHUNK_BYTES = 32 << 20
"""At most so many documents, or about so much memory, are in a chunk. Three are held while
documents are read ahead: one being read, one waiting, one worked on."""

SHOWN_SKIPPED = 5

EMPTY = "empty"
"""The reason of `Skipped` for a text without a feature."""


def chunks(
    documents: Iterable[Document | Documents], most: int = CHUNK_DOCUMENTS
) -> Iterator[Chunk]:
    """The documents in their order, in groups bounded by number and by size."""
    return (chunk for chunk, _ in portions(documents, most, CHUNK_BYTES, most))


def portions(
    documents: Iterable[Document | Documents], most: int, most_bytes: int,
    chunk: int = CHUNK_DOCUMENTS,
) -> Iterator[tuple[Chunk, bool]]:
    """Chunks of larger groups, and whether each is the last of its group.

    A group ends at `most` documents, or with the one that reaches so many bytes. Where the
    documents end, its last chunk is not told to be. Documents that come in columns are chunks of
    their own.
    """
    made: list[Document] = []
    group = length = chunk_length = 0
    for document in documents:
        if isinstance(document, Documents):
            if made:
                yield made, False
                group, length, made, chunk_length = group + len(made), length + chunk_length, [], 0
            start = 0
            while start < len(document):
                part = document[start : start + min(chunk, most - group)]
                start += len(part)
                group, length = group + len(part), length + part.held_bytes
                ends = group >= most or length >= most_bytes
                yield part, ends
                if ends:
                    group = length = 0
            continue
        made.append(document)
        chunk_length += document.held_bytes
        if len(made) < chunk and group + len(made) < most and chunk_length < CHUNK_BYTES and (
            length + chunk_length < most_bytes
        ):
            continue
        group, length = group + len(made), length + chunk_length
        ends = group >= most or length >= most_bytes
        yield made, ends
        if ends:
            group = length = 0
        made, chunk_length = [], 0
    if made:
        yield made, False


def batch_of(
    recipe: Any, chunk: Chunk, count_features: int = 0, threads: int | None = None
) -> simindex.Batch:
    """The batch of a chunk, with the documents' keys."""
    keys = (
        chunk.keys if isinstance(chunk, Documents) else [document.key for document in chunk]
    )
    batch: simindex.Batch = recipe.batch(
        texts_of(chunk), keys=keys, count_features=count_features, threads=threads
    )
    return batch


def texts_of(chunk: Chunk) -> Any:
    """Its texts, for a recipe: a list, or a column."""
    if isinstance(chunk, Documents):
        return chunk.texts
    return [document.text for document in chunk]


def joined(batches: list[simindex.Batch]) -> simindex.Batch:
    """The rows of some batches of one recipe, in their order."""
    import numpy as np

    first = batches[0]
    if len(batches) == 1:
        return first
    keys: Any = [key for batch in batches for key in batch.keys or ()]
    weights = [batch.weights for batch in batches if batch.weights is not None]
    sketches = [batch.sketches for batch in batches if batch.sketches is not None]
    return simindex.Batch(
        np.concatenate([batch.rows for batch in batches]),
        keys=None if first.keys is None else keys,
        weights=np.concatenate(weights) if weights else None,
        recipe=first.recipe,
        sketch=np.concatenate(sketches) if sketches else None,
    )


def characters_of(chunk: Chunk) -> int:
    """How many characters of text it has."""
    if isinstance(chunk, Documents):
        return chunk.characters
    return sum(len(document.text) for document in chunk)


def chunk_bytes(chunk: Chunk) -> int:
    """What it takes in memory; of columns without the keys."""
    if isinstance(chunk, Documents):
        return chunk.texts.nbytes + (0 if chunk.raw is None else chunk.raw.nbytes)
    return sum([document.held_bytes for document in chunk])


def rows_bytes(batch: simindex.Batch) -> int:
    """What the rows of a batch take in memory, without the keys."""
    columns = (batch.rows, batch.weights, batch.sketches)
    return sum(column.nbytes for column in columns if column is not None)


def all_but_one() -> int:
    """Threads of a kernel that leave a processor to another thread, on which all wait."""
    return max(1, thread_count(None, CHUNK_DOCUMENTS, worth=1) - 1)


def places_of_rows(texts: int, skipped: Iterable[Any]) -> list[int]:
    """For each row of a batch, the place of its text among the texts it was made from."""
    without = {skip.position for skip in skipped}
    return [place for place in range(texts) if place not in without]


class Gathered:
    """The documents of several chunks as one sequence; those of columns stay there."""

    def __init__(self) -> None:
        self.chunks: list[Chunk] = []
        self._starts: list[int] = []
        self._size = 0

    def add(self, chunk: Chunk) -> None:
        """Takes a chunk, which is no longer that of others: a list of documents may change."""
        self.chunks.append(chunk)
        self._starts.append(self._size)
        self._size += len(chunk)

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Document]:
        for chunk in self.chunks:
            yield from chunk

    def __getitem__(self, place: int) -> Document:
        chunk, at = self._found(place)
        return chunk[at]

    def __setitem__(self, place: int, document: Document) -> None:
        chunk, at = self._found(place)
        assert isinstance(chunk, list), "documents of columns have ids, and no other names"
        chunk[at] = document

    def key(self, place: int) -> str:
        """The key of a document, which is not made for it."""
        chunk, at = self._found(place)
        return chunk.keys[at] if isinstance(chunk, Documents) else chunk[at].key

    def text(self, place: int) -> str | bytes:
        """Its text, likewise; UTF-8 where it is one of a column."""
        chunk, at = self._found(place)
        return chunk.column.text(at) if isinstance(chunk, Documents) else chunk[at].text

    def where(self, place: int) -> str:
        """Where a document was read, likewise."""
        chunk, at = self._found(place)
        return chunk.place(at) if isinstance(chunk, Documents) else chunk[at].place

    def _found(self, place: int) -> tuple[Chunk, int]:
        number = bisect_right(self._starts, place) - 1
        return self.chunks[number], place - self._starts[number]

    def parted(self, by_place: Mapping[int, T]) -> Iterator[tuple[Chunk, dict[int, T]]]:
        """The chunks, each with what belongs to its documents, by their places in it."""
        parts: list[dict[int, T]] = [{} for _ in self.chunks]
        for place, what in by_place.items():
            number = bisect_right(self._starts, place) - 1
            parts[number][place - self._starts[number]] = what
        return zip(self.chunks, parts, strict=True)

    def numbered(self) -> list[bool]:
        """Of each document whether its name is made, since its record has no id."""
        return [
            numbered for chunk in self.chunks for numbered in (
                [False] * len(chunk) if isinstance(chunk, Documents)
                else [document.numbered for document in chunk]
            )
        ]


class Buffer:
    """Documents of several chunks, with the one batch of those that have a fingerprint."""

    def __init__(self) -> None:
        self.documents: Gathered = Gathered()
        self.places: list[int] = []
        """For each row of the batch, the place of its document."""
        self._batches: list[simindex.Batch] = []

    def add(self, chunk: Chunk, batch: simindex.Batch) -> None:
        """Takes a chunk and the batch that was made of it."""
        first = len(self.documents)
        self.places += [first + place for place in places_of_rows(len(chunk), batch.skipped)]
        self.documents.add(chunk)
        self._batches.append(batch)

    def batch(self) -> simindex.Batch:
        """The rows of all chunks, in their order: joined by the thread that asks first."""
        if len(self._batches) > 1:
            self._batches = [joined(self._batches)]
        return self._batches[0]


def why_none(text: str, reason: str) -> str:
    """Why a text has no fingerprint: nothing at all is in it, or nothing that is a feature."""
    if reason == EMPTY and text.strip():
        return "it has no words that count"
    return reason


class SkippedReport:
    """Tells of documents without a fingerprint: the first few one by one, then their number."""

    def __init__(self) -> None:
        self.number: int = 0

    def add(self, chunk: Chunk, skipped: Iterable[Any]) -> None:
        """Note what a batch left out of its chunk."""
        for skip in skipped:
            self.number += 1
            if self.number <= SHOWN_SKIPPED:
                document = chunk[skip.position]
                where = document.path
                if document.line is not None:
                    where += f":{document.line}"
                say(f"{where}: no fingerprint: {why_none(document.text, skip.reason)}")

    def close(self) -> None:
        """Say how many more there were."""
        if self.number > SHOWN_SKIPPED:
            say(f"{count(self.number - SHOWN_SKIPPED, 'more document')} without a fingerprint")
