"""Features of texts that were counted, kept to be fingerprinted without the texts.

    column of texts -> [kernel: features, counted and kept] -> FeatureColumn   while idf is learned
    FeatureColumn   -> [kernel: weights, sums]              -> fingerprints    once it is

    vocabulary   h0 | h1 | h2 | ...              features of one table, then those of the next
    entries      2 3x | 0 1x | 7 1x | 2 1x ...   feature of a table, and how often a text has it
    offsets           |             |            of each text
    tables       0                  1            whose numbers a text has

An entry takes 4 bytes. A text of 300 words has 137 of them, a quarter of what it takes itself.

Invariants
    1. A vocabulary gets its hashes when the tables that it numbers are taken, and never changes.
    2. The fingerprint of kept features is that of the text, in every bit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

import numpy as np

from simindex._kernels import _native
from simindex.arrays import I64, U32, U64
from simindex.resources.threads import thread_count
from simindex.simhash.document_frequencies import MAX_FEATURES, DocumentFrequencies
from simindex.simhash.features import THREADED_TEXTS, Column, refuse_invalid

SHOWN_BYTES = 64
"""Of a text without features, so much is kept."""


class Vocabulary:
    """The features that some columns number."""

    def __init__(self) -> None:
        self._hashes: U64 = np.empty(0, np.uint64)
        self._starts: I64 = np.zeros(1, np.int64)
        self._steps: tuple[_native.TextRecipe, U32] | None = None

    def set(self, hashes: U64, starts: I64) -> None:
        """What was counted; once."""
        self._hashes, self._starts = hashes, starts

    def weighed(self, kernel: _native.TextRecipe) -> tuple[U64, U32, I64]:
        """Hashes, their idf by a recipe, and where the features of each table begin."""
        if self._steps is None or self._steps[0] is not kernel:
            self._steps = kernel, kernel.steps(self._hashes)
        return self._hashes, self._steps[1], self._starts

    @property
    def nbytes(self) -> int:
        """What it takes once it is weighed."""
        return self._hashes.nbytes * 3 // 2


class FeatureColumn:
    """The features of some texts, in their place.

    Parameters
    ----------
    entries, offsets, tables
        As `keep_of_column` of the kernel gives them.
    characters : int64 (n,)
        Of each text.
    ends : uint64 (n,)
        As `Column.ends`.
    bare : mapping of int to bytes
        By their places, the beginnings of texts without features; empty of those of white space.
    first : int
        The place of the first one there.
    """

    __slots__ = (
        "_bare", "_characters", "_entries", "_first", "_offsets", "_tables", "_vocabulary", "ends"
    )

    def __init__(
        self, vocabulary: Vocabulary, entries: U32, offsets: I64, tables: U32, characters: I64,
        ends: U64, bare: dict[int, bytes], first: int = 0,
    ) -> None:
        self._vocabulary = vocabulary
        self._entries, self._offsets, self._tables = entries, offsets, tables
        self._characters, self._bare, self._first = characters, bare, first
        self.ends: U64 = ends

    def __len__(self) -> int:
        return len(self._tables)

    def part(self, start: int, stop: int) -> FeatureColumn:
        """Texts start to stop."""
        return FeatureColumn(
            self._vocabulary, self._entries, self._offsets[start : stop + 1],
            self._tables[start:stop], self._characters[start:stop], self.ends[start:stop],
            self._bare, self._first + start,
        )

    def simhashes(
        self, recipe: _native.TextRecipe, counting: _native.TextRecipe, threads: int | None
    ) -> Any:
        """Bits, sums and distinct features, as `TextRecipe.column` gives them for the texts.

        The kernel of a recipe weighs all columns of a vocabulary; another may count more features.
        """
        n = thread_count(threads, len(self), worth=THREADED_TEXTS)
        return counting.kept(
            *self._vocabulary.weighed(recipe), self._entries, self._offsets, self._tables, n
        )[:3]

    @property
    def nbytes(self) -> int:
        """What they take in memory, without the vocabulary."""
        entries = int(self._offsets[-1] - self._offsets[0]) * self._entries.itemsize
        columns = (self._offsets, self._tables, self._characters, self.ends)
        arrays = sum(column.nbytes for column in columns)
        return entries + arrays + SHOWN_BYTES * len(self._bare)

    @property
    def characters(self) -> int:
        """Of all texts together."""
        return int(self._characters.sum())

    def text(self, at: int) -> bytes:
        """The beginning of a text without features. KeyError of others: they were not kept."""
        return self._bare[self._first + at]


def keeps_features(recipe: Any) -> bool:
    """Whether the kernels find the features of a recipe by themselves, so that they can be kept."""
    return bool(recipe._kernels.plain)


class _Share:
    """What calls count into, one at a time."""

    __slots__ = ("tables", "texts", "vocabulary")

    def __init__(self) -> None:
        self.tables = _native.DocumentTables()
        self.vocabulary = Vocabulary()
        self.texts = 0
        """In the tables."""


class FeatureKeeper:
    """Counts features as `Recipe.document_frequencies` does, and keeps those of columns.

    Any thread may call `count` and `keep`, `calls` of them at once without more memory in tables.
    """

    def __init__(self, recipe: Any, max_features: int = MAX_FEATURES, *, calls: int = 1) -> None:
        self._kernels = recipe._kernels
        self._counted = DocumentFrequencies(recipe._features_source, max_features=max_features)
        self._counting = Lock()
        self._calls = calls
        self._idle: list[_Share] = []
        """Shares that no call counts into."""
        self.vocabulary_bytes: int = 0
        """What the vocabularies take."""

    def count(self, texts: Iterable[Any], threads: int | None = None) -> None:
        """Counts texts, and keeps nothing of them."""
        with self._share() as share:
            for number in self._kernels.count_into(share.tables, texts, threads):
                self._note(share, number)

    def keep(self, column: Column, threads: int | None = None) -> FeatureColumn | None:
        """Counts a column. None where there were too many features to number.

        Raises InvalidBatch if a text is not UTF-8.
        """
        n = thread_count(threads, len(column), worth=THREADED_TEXTS)
        kept = self._kernels.kernel.keep_of_column
        with self._share() as share:
            entries, offsets, tables, characters, ends, whole, invalid = kept(
                share.tables, column.data, column.offsets, n
            )
            refuse_invalid(invalid, 0)
            vocabulary = share.vocabulary
            self._note(share, len(column))
        if not whole:
            return None
        bare = {
            at: _beginning(column.text(at))
            for at in np.flatnonzero(offsets[1:] == offsets[:-1]).tolist()
        }
        return FeatureColumn(vocabulary, entries, offsets, tables, characters, ends, bare)

    def counted(self) -> DocumentFrequencies:
        """The counts of all, once no call counts."""
        for share in self._idle:
            if share.texts:
                self._take(share)
        return self._counted

    @contextmanager
    def _share(self) -> Iterator[_Share]:
        try:
            share = self._idle.pop()
        except IndexError:
            share = _Share()
        try:
            yield share
        finally:
            self._idle.append(share)

    def _note(self, share: _Share, texts: int) -> None:
        share.texts += texts
        if self._kernels.is_full(share.tables, share.texts, self._calls):
            self._take(share)

    def _take(self, share: _Share) -> None:
        share.vocabulary.set(*share.tables.listed())
        hashes, counts = share.tables.take()
        with self._counting:
            self.vocabulary_bytes += share.vocabulary.nbytes
            self._counted.add(hashes, counts, share.texts)
        share.texts, share.vocabulary = 0, Vocabulary()


def _beginning(text: bytes) -> bytes:
    """Some characters of a text that is UTF-8; none where it is white space."""
    return text.decode().strip()[: SHOWN_BYTES // 4].encode()
