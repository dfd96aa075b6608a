"""idf before indexing: learned from a sample in a pass of its own, or from the first documents.

    sample   inputs -> chosen by key -> fit     then they are indexed: from memory, or where they
                                                are too much for it, read once more
    first    stream -> the first N, held -> fit     then those are indexed, and the rest after them

Which documents a sample chooses depends on their keys alone: it is the same in every run, and a
smaller sample is part of a larger one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import closing
from itertools import chain
from math import inf
from time import monotonic
from typing import Any

from simindex.cli.chunks import Chunk, chunk_bytes, chunks, texts_of
from simindex.cli.console import count, megabytes, say
from simindex.cli.progress import Extent, Progress
from simindex.cli.slots import Slot, read_ahead
from simindex.cli.workers import AT_ONCE, at_once
from simindex.errors import InvalidOption
from simindex.inputs.document import Document
from simindex.inputs.document_columns import Documents, one_by_one
from simindex.values import dataclass

FIRST_DOCUMENTS = 10_000
"""Documents of a stream that idf is learned from, unless told otherwise."""

MOST_HELD_BYTES = 256_000_000
"""Text held in memory at most to learn from a stream, except for the last document; and to read
inputs once that can be read twice."""

FORETOLD_SHARE, FORETOLD_TIMES = 8, 2
"""Once an eighth of that is held, and the size of the files says that it would become twice as much
as may be held, it is given up."""

HOLDING_S = 5.0
"""After so long a stream that is held is told of: whoever waits for output learns why."""

LEARNED = "word weights learned from"
"""idf, in the words that the bar has, too."""

_SAMPLE_SEED = 1  # another than that of ids, which are hashes of keys too


@dataclass(frozen=True, slots=True)
class Lesson:
    """What idf was learned from."""

    documents: int
    source: str
    """The inputs, or the stream."""
    sample: float | None = None
    """Share of the documents; None if it was learned from the first ones."""
    ended: bool = False
    """Whether the first documents were all."""
    held_bytes: int | None = None
    """Text of the first documents, where that ended the learning."""
    least: int = 1
    """Documents that are needed: of fewer nothing was learned."""

    @property
    def learned(self) -> bool:
        """Whether there were enough documents."""
        return self.documents >= self.least

    def __str__(self) -> str:
        if not self.learned:
            return (
                f"{count(self.documents, 'document')} {'is' if self.documents == 1 else 'are'} too "
                f"few to learn word weights from ({self.least} are needed): rare and common "
                "words count alike, and so do pairs of words"
            )
        if self.sample == 1 or self.ended:
            return f"{LEARNED} {count(self.documents, 'document')}, all of {self.source}"
        if self.sample is not None:
            return (
                f"{LEARNED} {count(self.documents, 'document')}, a sample of {self.sample:g} of "
                f"{self.source}"
            )
        first = f"{LEARNED} the first {count(self.documents, 'document')} of {self.source}"
        if self.held_bytes is None:
            return first
        return f"{first}: their {megabytes(self.held_bytes)} of text are the most that is held"

    def record(self) -> dict[str, Any]:
        """The same, for --json."""
        if not self.learned:
            return {"documents": self.documents, "learned": False}
        how = {"first": self.documents} if self.sample is None else {"sample": self.sample}
        return {"documents": self.documents, **how}


class Limit:
    """How much of the documents of some inputs is held."""

    def __init__(self, extent: Extent | None) -> None:
        self._intake = None if extent is None else extent.intake
        self._total_bytes = None if extent is None else extent.file_bytes()

    def is_beyond(self, held_bytes: int) -> bool:
        """Whether documents that take so much now take too much, or will once all are read."""
        if held_bytes > MOST_HELD_BYTES:
            return True
        if self._intake is None or self._total_bytes is None:
            return False
        # What is read is ahead of what is held, so less is foretold than there will be.
        return (
            held_bytes * FORETOLD_SHARE > MOST_HELD_BYTES
            and held_bytes * self._total_bytes
            > FORETOLD_TIMES * MOST_HELD_BYTES * self._intake.read_bytes
        )


def in_sample(name: str, fraction: float) -> bool:
    """Whether the document of this name is in a sample of such a share."""
    import mmh3

    drawn: int = mmh3.hash64(name.encode(), _SAMPLE_SEED, signed=False)[0]
    return drawn < fraction * 2.0**64


def learned_from_sample(
    recipe: Any, documents: Iterator[Document | Documents], fraction: float, least: int, *,
    quiet: bool, printed: bool, extent: Extent | None = None,
) -> tuple[Any | None, Lesson, Iterator[Document | Documents] | None]:
    """The recipe fitted on a share of the documents, all of which are read, and they again.

    No recipe if the share holds fewer documents than `least`; InvalidOption if it holds none and
    one is enough. Documents whose texts take more than MOST_HELD_BYTES, or will, are not held: None
    in their place says that they are to be read once more. Otherwise as of `learned_from_first`.
    """
    from simindex.simhash.feature_columns import FeatureKeeper

    held_bytes = 0
    held: deque[Chunk] | None = deque()
    keeper, slot = FeatureKeeper(recipe, calls=AT_ONCE), Slot[Chunk](chunk_bytes)
    # Who prints documents reads all of their files. Of columns a part may be read.
    limit = Limit(extent if printed else None)

    def count_chunk(chunk: Chunk, threads: int) -> None:
        keeper.count(texts_of(chunk) if fraction == 1 else [
            document.text for document in chunk if in_sample(
                document.place if document.numbered else document.key, fraction
            )
        ], threads)

    with (
        Progress("learning word weights", quiet=quiet, extent=extent) as progress,
        closing(read_ahead(chunks(documents), slot)) as read,
        closing(at_once(read, count_chunk, lambda: slot.waits)) as counted_chunks,
    ):
        for chunk, _ in counted_chunks:
            if held is not None:
                slim, taken = slimmed(chunk, printed)
                held.append(slim)
                held_bytes += taken
                if limit.is_beyond(held_bytes):
                    held = None
            progress.advance(len(chunk))
    counted = keeper.counted()
    chosen = counted.documents
    lesson = Lesson(chosen, "the inputs", sample=fraction, least=least)
    if not chosen and least == 1:
        raise nothing_learned(recipe, progress.documents, fraction)
    again = None if held is None else all_of(held)
    return recipe.fit(counted) if lesson.learned else None, lesson, again


def learned_from_first(
    recipe: Any, documents: Iterator[Document | Documents], most: int, source: str, least: int, *,
    quiet: bool, printed: bool,
) -> tuple[Any | None, Lesson, Iterator[Document | Documents]]:
    """The recipe fitted on the first `most` documents, and all documents, these first.

    No recipe if all documents are fewer than `least`; InvalidOption if there are none and one is
    enough. Fewer than `most` are learned from where the documents end before, or where their texts
    take MOST_HELD_BYTES. Of a document that was held, only what indexing needs comes again: key,
    text and place; and what it was read from, if documents are to be `printed`.
    """
    held: deque[Document | Documents] = deque()
    learned = held_bytes = 0
    ended, told_at = True, inf if quiet else monotonic() + HOLDING_S
    with Progress("learning word weights", quiet=quiet) as progress:
        for some in documents:
            if monotonic() > told_at:
                told_at = inf
                say(
                    f"holding the first {count(most, 'document')} to learn word weights from "
                    "them; with --weighting sublinear nothing is learned, and nothing is held"
                )
            if isinstance(some, Documents):
                if learned + len(some) > most:
                    documents = chain([some[most - learned :]], documents)
                    some = some[: most - learned]
                held.append(some if printed else some.without_raw())
                learned += len(some)
                progress.advance(len(some))
            else:
                held.append(_slim(some, printed))
                learned += 1
                progress.advance(1)
            held_bytes += held[-1].held_bytes
            if learned >= most or held_bytes >= MOST_HELD_BYTES:
                ended = False
                break
        if not held and least == 1:
            raise nothing_learned(recipe, 0, 1)
        full = not ended and learned < most
        lesson = Lesson(
            learned, source, ended=ended, held_bytes=held_bytes if full else None,
            least=least if ended else 1,
        )
        fitted = recipe.fit(one.text for one in one_by_one(held)) if lesson.learned else None
    return fitted, lesson, _continued(held, documents)


def slimmed(chunk: Chunk, printed: bool) -> tuple[Chunk, int]:
    """A chunk to be held, and what it takes."""
    if isinstance(chunk, Documents):
        chunk = chunk if printed else chunk.without_raw()
        return chunk, chunk.held_bytes
    slim = [_slim(document, printed) for document in chunk]
    return slim, sum(document.held_bytes for document in slim)


def _slim(document: Document, printed: bool) -> Document:
    """A document without what is not needed of its record."""
    if printed or document.raw is None is document.row:
        return document
    return Document(document.key, document.text, document.path, document.line, document.numbered)


def all_of(chunks: deque[Chunk]) -> Iterator[Document | Documents]:
    """What is in some chunks, which are given up one after the other."""
    while chunks:
        chunk = chunks.popleft()
        if isinstance(chunk, Documents):
            yield chunk
        else:
            yield from chunk


def _continued(
    held: deque[Document | Documents], rest: Iterator[Document | Documents]
) -> Iterator[Document | Documents]:
    while held:
        yield held.popleft()
    yield from rest


def nothing_learned(recipe: Any, documents: int, fraction: float) -> InvalidOption:
    """Why idf was learned from no document, of so many."""
    option = f"--weighting {recipe.weighting} learns from documents"
    if documents:
        return InvalidOption(
            f"{option}, and a sample of {fraction:g} holds none of {count(documents, 'document')}",
            remedy="give a larger --idf-sample", option="idf_sample", found=fraction,
        )
    return InvalidOption(
        f"{option}, and the inputs hold none", remedy="choose another weighting", option="weighting"
    )
