"""Documents in groups that are fingerprinted together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from simindex.cli.console import count, say
from simindex.inputs import Document

CHUNK_DOCUMENTS = 4096
CHUNK_CHARACTERS = 16 << 20
"""At most so many documents, or about so much text, are held at once."""

SHOWN_SKIPPED = 5


def chunks(
    documents: Iterable[Document], most: int = CHUNK_DOCUMENTS
) -> Iterator[list[Document]]:
    """The documents in their order, in groups bounded by number and by size."""
    chunk: list[Document] = []
    characters = 0
    for document in documents:
        chunk.append(document)
        characters += len(document.text)
        if len(chunk) >= most or characters >= CHUNK_CHARACTERS:
            yield chunk
            chunk, characters = [], 0
    if chunk:
        yield chunk


def places_of_rows(texts: int, skipped: Iterable[Any]) -> list[int]:
    """For each row of a batch, the place of its text among the texts it was made from."""
    without = {skip.position for skip in skipped}
    return [place for place in range(texts) if place not in without]


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
                if document.fields is not None:
                    where += f":{document.line}"
                say(f"{where}: no fingerprint: {skip.reason}")

    def close(self) -> None:
        """Say how many more there were."""
        if self.number > SHOWN_SKIPPED:
            say(f"{count(self.number - SHOWN_SKIPPED, 'more document')} without a fingerprint")
