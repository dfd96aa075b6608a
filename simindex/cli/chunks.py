"""Documents in groups that are fingerprinted together, and read ahead.

    thread of its own   documents -> chunk | chunk | chunk        one made, one or some waiting
    the main thread                          chunk -> fingerprints, index, output

Fingerprinting and searching let go of the interpreter, so both sides run at once. Errors arrive as
they would without: Ctrl-C is raised in the main thread, and what reading raises once all that was
read before is done.
"""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import simindex
from simindex.cli.app import uninterrupted
from simindex.cli.console import count, say
from simindex.inputs.documents import Documents
from simindex.resources.threads import thread_count
from simindex.values import dataclass

if TYPE_CHECKING:
    from simindex.inputs.document import Document

T = TypeVar("T")

Chunk = Sequence["Document"]
"""A list, or `Documents`, which are columns."""

CHUNK_DOCUMENTS = 4096
CHUNK_BYTES = 32 << 20
"""At most so many documents, or about so much memory, are in a chunk. Three are held while
documents are read ahead: one being read, one waiting, one worked on."""

AHEAD_ITEMS, AHEAD_BYTES = 4, 24 << 20
"""Where several items may wait, at most so many, of about so much memory; or one. So a thread that
is faster now and slower then works on meanwhile."""

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


def read_ahead(
    source: Iterable[T], slot: Slot[T] | None = None
) -> Generator[T, None, None]:
    """The items of `source`, in order; the next are made by another thread meanwhile.

    One item waits and one is being made at most, unless the caller's `slot` has room for more; it
    tells whether one waits. What `source` raises is raised here, after the items before it. The
    thread is not waited for when this iterator is closed: a pipe that nobody writes to may hold it.
    """
    slot = Slot() if slot is None else slot
    try:
        # A signal that is raised within `start` may end in an error of its lock.
        with uninterrupted():
            Thread(
                target=_fill, args=(slot, source), name="simindex-reading", daemon=True
            ).start()
        yield from slot
    finally:
        slot.abandon()


def _fill(slot: Slot[T], source: Iterable[T]) -> None:
    # The interpreter closes standard input as it exits, and aborts if a thread is reading it then;
    # not if that thread, which is never resumed, still refers to it.
    standard_input = sys.stdin  # noqa: F841
    error: BaseException | None = None
    try:
        for item in source:
            if not slot.put(item):
                break
        close = getattr(source, "close", None)
        if close is not None:
            close()
    except BaseException as raised:  # the other thread raises it
        error = raised
    slot.end(error)


WAKE_S = 0.5
"""A signal that comes just before the main thread waits is seen when it wakes."""


@dataclass(frozen=True, slots=True)
class _End:
    error: BaseException | None


class Slot(Generic[T]):
    """Hands items from one thread to another.

    By queues, for a signal that is raised while a Condition is waited for leaves its lock as none
    of its users expects.

    Parameters
    ----------
    size_of : callable, optional
        What an item takes in memory. With it `AHEAD_ITEMS` may wait, of `AHEAD_BYTES` at most, or
        one that is larger. Without it one waits.
    """

    def __init__(self, size_of: Callable[[T], int] | None = None) -> None:
        self._size_of = size_of
        self._items: SimpleQueue[tuple[T, int] | _End] = SimpleQueue()
        self._room: SimpleQueue[None] = SimpleQueue()
        """An entry for each share of the room that is free, and one for the end of taking."""
        for _ in range(1 if size_of is None else AHEAD_ITEMS):
            self._room.put(None)
        self._abandoned = self._was_full = False

    def _shares(self, item: T) -> int:
        """How many shares of the room it takes; a large item takes all."""
        if self._size_of is None:
            return 1
        shares = -(-self._size_of(item) * AHEAD_ITEMS // AHEAD_BYTES)
        return min(AHEAD_ITEMS, max(1, shares))

    @property
    def waits(self) -> bool:
        """Whether an item can be taken at once, or the end be seen."""
        return not self._items.empty()

    def was_full(self) -> bool:
        """Whether the other thread has had to wait for room since this was asked last."""
        full, self._was_full = self._was_full, False
        return full

    def put(self, item: T) -> bool:
        """Waits until there is room; False if nobody will take this one."""
        shares = self._shares(item)
        for _ in range(shares):
            if self._room.empty():
                self._was_full = True
            self._room.get()
            if self._abandoned:
                return False
        self._items.put((item, shares))
        return True

    def end(self, error: BaseException | None) -> None:
        """No item follows, because of an error or because these were all."""
        self._items.put(_End(error))

    def abandon(self) -> None:
        """Nobody takes any more."""
        self._abandoned = True
        self._room.put(None)

    def __iter__(self) -> Iterator[T]:
        while True:
            try:
                item = self._items.get(timeout=WAKE_S)
            except Empty:
                continue
            if isinstance(item, _End):
                if item.error is not None:
                    raise item.error
                return
            taken, shares = item
            for _ in range(shares):
                self._room.put(None)
            del item
            yield taken
