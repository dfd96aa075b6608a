"""Notices that one id stands for documents that differ, among those that follow each other.

    ids        hash, hash, ...    int64, of a document each; about REMEMBERED are compared at once
    texts      ends, ends, ...    int64, `ends_of` each text
    compared   1, 0, ...          0 of a copy or revision that lost to its id, as it should be
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from operator import itemgetter
from typing import TYPE_CHECKING

import numpy as np

from simindex.cli.repeated_ids import ends_of, ends_of_each

if TYPE_CHECKING:
    from simindex.cli.dedup.marks import Loss
    from simindex.inputs.document import Document
    from simindex.inputs.document_columns import Documents

REMEMBERED = 1 << 16
"""Documents in memory at most, so that it does not grow with the input."""


class SharedIds:
    """What `dedup` says of ids: who deletes by such an id deletes several documents."""

    def __init__(self) -> None:
        self._told: str | None = None
        """The first document that was found to have the id of another one, and another text."""
        self._ids, self._texts = array("q"), array("q")
        self._compared = bytearray()
        self._keys: list[str] = []
        self._read: list[tuple[int, Callable[[int], str]]] = []
        """Of documents that came together, the first one, and what tells the place of each."""

    def see(self, document: Document, loss: Loss | None) -> None:
        """Notes a document and what it lost to."""
        if self._told is None:
            place = document.place
            self._note([document.key], [ends_of(document.text)], lambda _: place)
            if loss is not None and loss.key == document.key:
                self._compared[-1] = 0
            self._compare_many()

    def see_all(self, documents: Documents, lost: Mapping[int, Loss]) -> None:
        """The same of columns; `lost` has what some lost to, by their places in these."""
        if self._told is None:
            first = len(self._compared)
            path, line = documents.path, documents.first  # and not the texts, which would be held
            self._note(
                documents.keys, ends_of_each(documents.texts).tolist(),
                lambda at: f"{path}:{line + at}",
            )
            for place, loss in lost.items():
                if loss.key == documents.keys[place]:
                    self._compared[first + place] = 0
            self._compare_many()

    def _note(self, keys: list[str], texts: list[int], place: Callable[[int], str]) -> None:
        self._read.append((len(self._keys), place))
        self._ids.extend(map(hash, keys))
        self._texts.extend(texts)
        self._keys += keys
        self._compared += b"\1" * len(keys)

    def _compare_many(self) -> None:
        if len(self._keys) >= REMEMBERED:
            self._compare()
            self._ids, self._texts, self._compared = array("q"), array("q"), bytearray()
            self._keys, self._read = [], []

    def _compare(self) -> None:
        ids, texts = np.array(self._ids, np.int64), np.array(self._texts, np.int64)
        rows = np.flatnonzero(np.array(self._compared, np.bool_))
        rows = rows[np.argsort(ids[rows], kind="stable")]
        before, after = rows[:-1], rows[1:]
        shared = (ids[before] == ids[after]) & (texts[before] != texts[after])
        found = [
            row for other, row in zip(before[shared].tolist(), after[shared].tolist(), strict=True)
            if self._keys[other] == self._keys[row]
        ]
        if found:
            row = min(found)
            first, place = self._read[bisect_right(self._read, row, key=itemgetter(0)) - 1]
            self._told = (
                f"the id {self._keys[row]!r:.80} stands for documents that differ, as in "
                f"{place(row - first)}: `simindex delete` removes all documents of an id; give "
                "each its own, or name another field with --id-field"
            )

    def told(self) -> Iterator[str]:
        """A sentence, where there is one."""
        if self._told is None:
            self._compare()
        if self._told is not None:
            yield self._told
