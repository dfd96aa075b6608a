"""Documents in groups that are fingerprinted together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

import simindex
from simindex.cli.console import count, say
from simindex.inputs import Document

CHUNK_DOCUMENTS = 4096
CHUNK_BYTES = 32 << 20
"""At most so many documents, or about so much memory, are in a chunk. Three are held while
documents are read ahead: one being read, one waiting, one worked on."""

SHOWN_SKIPPED = 5


def chunks(
    documents: Iterable[Document], most: int = CHUNK_DOCUMENTS
) -> Iterator[list[Document]]:
    """The documents in their order, in groups bounded by number and by size."""
    return (chunk for chunk, _ in portions(documents, most, CHUNK_BYTES, most))


def portions(
    documents: Iterable[Document], most: int, most_bytes: int, chunk: int = CHUNK_DOCUMENTS
) -> Iterator[tuple[list[Document], bool]]:
    """Chunks of larger groups, and whether each is the last of its group.

    A group ends at `most` documents, or with the one that reaches so many bytes. Where the
    documents end, its last chunk is not told to be.
    """
    made: list[Document] = []
    group = length = chunk_length = 0
    for document in documents:
        made.append(document)
        held = document.held_bytes
        length += held
        chunk_length += held
        ends = group + len(made) >= most or length >= most_bytes
        if ends or len(made) >= chunk or chunk_length >= CHUNK_BYTES:
            yield made, ends
            group = 0 if ends else group + len(made)
            length = 0 if ends else length
            made, chunk_length = [], 0
    if made:
        yield made, False


def places_of_rows(texts: int, skipped: Iterable[Any]) -> list[int]:
    """For each row of a batch, the place of its text among the texts it was made from."""
    without = {skip.position for skip in skipped}
    return [place for place in range(texts) if place not in without]


class Buffer:
    """Documents of several chunks, with the one batch of those that have a fingerprint."""

    def __init__(self) -> None:
        self.documents: list[Document] = []
        self.places: list[int] = []
        """For each row of the batch, the place of its document."""
        self._batches: list[simindex.Batch] = []

    def add(self, chunk: list[Document], batch: simindex.Batch) -> None:
        """Takes a chunk and the batch that was made of it."""
        first = len(self.documents)
        self.places += [first + place for place in places_of_rows(len(chunk), batch.skipped)]
        self.documents += chunk
        self._batches.append(batch)

    def batch(self) -> simindex.Batch:
        """The rows of all chunks, in their order."""
        if len(self._batches) == 1:
            return self._batches[0]
        keys: Any = [key for batch in self._batches for key in batch.keys or ()]
        return simindex.Batch(
            np.concatenate([batch.rows for batch in self._batches]),
            keys=keys,
            weights=np.concatenate([batch.weights for batch in self._batches]),
            recipe=self._batches[0].recipe,
        )


class SkippedReport:
    """Tells of documents without a fingerprint: the first few one by one, then their number."""

    def __init__(self) -> None:
        self.number = 0

    def add(self, chunk: list[Document], skipped: Iterable[Any]) -> None:
        """Note what a batch left out of its chunk."""
        for skip in skipped:
            self.number += 1
            if self.number <= SHOWN_SKIPPED:
                document = chunk[skip.position]
                where = document.path
                if document.line is not None:
                    where += f":{document.line}"
                say(f"{where}: no fingerprint: {skip.reason}")

    def close(self) -> None:
        """Say how many more there were."""
        if self.number > SHOWN_SKIPPED:
            say(f"{count(self.number - SHOWN_SKIPPED, 'more document')} without a fingerprint")
