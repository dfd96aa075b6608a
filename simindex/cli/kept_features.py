"""idf of all documents, whose features are kept: inputs in columns are read and parsed once.

    inputs -> columns -> [counted, features kept] -> idf -> [fingerprints of the features]

Where all documents are learned from, and nobody needs their texts any more, a column is held as
features: a quarter of the memory, and no word is looked for again. Documents that come one at
a time are held with their texts.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import closing
from typing import Any

from simindex.cli import learned_idf
from simindex.cli.chunks import Chunk, chunk_bytes, chunks, texts_of
from simindex.cli.learned_idf import Lesson
from simindex.cli.progress import Extent, Progress
from simindex.cli.slots import Slot, read_ahead
from simindex.cli.workers import AT_ONCE, at_once
from simindex.inputs.document import Document
from simindex.inputs.document_columns import Documents


def learned_and_kept(
    recipe: Any, documents: Iterator[Document | Documents], least: int, *, quiet: bool,
    extent: Extent | None = None,
) -> tuple[Any | None, Lesson, Iterator[Document | Documents] | None]:
    """The recipe fitted on all documents, and these again, in columns of features.

    As `learned_idf.learned_from_sample` of all documents: no recipe of fewer than `least`, and no
    documents where they take more than `learned_idf.MOST_HELD_BYTES`.
    """
    from simindex.simhash.feature_columns import FeatureKeeper

    # The first ones as they are: where all are too few, another recipe makes other features.
    first: deque[Chunk] = deque()
    held: deque[Chunk] | None = deque()
    keeper, held_bytes = FeatureKeeper(recipe, calls=AT_ONCE), 0
    slot: Slot[Chunk] = Slot(chunk_bytes)

    def slim_of(chunk: Chunk, threads: int) -> tuple[Chunk | None, int]:
        if held is not None:
            return _slim(chunk, keeper, threads)
        keeper.count(texts_of(chunk), threads)
        return None, 0

    with (
        Progress("learning word weights", quiet=quiet, extent=extent) as progress,
        closing(read_ahead(chunks(documents), slot)) as read,
        closing(at_once(read, slim_of, lambda: slot.waits)) as counted_chunks,
    ):
        for chunk, (slim, taken) in counted_chunks:
            progress.advance(len(chunk))
            if progress.documents < least:
                first.append(chunk)
            held_bytes += taken
            if slim is None or held_bytes + keeper.vocabulary_bytes > learned_idf.MOST_HELD_BYTES:
                held = None
            elif held is not None:
                held.append(slim)
    counted = keeper.counted()
    lesson = Lesson(counted.documents, "the inputs", sample=1, least=least)
    if not counted.documents and least == 1:
        raise learned_idf.nothing_learned(recipe, 0, 1)
    if not lesson.learned:
        return None, lesson, learned_idf.all_of(first)
    return recipe.fit(counted), lesson, None if held is None else learned_idf.all_of(held)


def _slim(chunk: Chunk, keeper: Any, threads: int) -> tuple[Chunk | None, int]:
    """A chunk to be held, once it is counted, and its bytes; None where features cannot be kept."""
    if not isinstance(chunk, Documents):
        keeper.count(texts_of(chunk), threads)
        return learned_idf.slimmed(chunk, printed=False)
    features = keeper.keep(chunk.column, threads)
    if features is None:
        return None, 0
    slim = chunk.with_features(features)
    return slim, slim.held_bytes
