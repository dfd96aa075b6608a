"""Documents added one at a time that no commit has taken yet, and what is near them.

    fingerprints  (capacity, W)   r0 r1 r2 ... r(n-1) | free        in order of arrival
    weights       (capacity, b)   the same, where any row has them
    sketches      (capacity, R)   the same, records of R bytes, in an index with sketches
    ids, keys     lists of the same length

A kernel puts the row of a text into the first free place (`places`), and `put` then counts it.

Queries compare all of them, at any h and however skewed: 3 us for 8,192 rows of 64 bits, 11 for
65,536, the most there are (AVX-512; without wide instructions 30 and 220). Sorted runs would have
to be rebuilt as rows come, and save nothing at that size.

Invariants
1. Rows count once everything about them is stored, so an interrupt leaves a row whole or out.
2. `without` leaves out only what a writer has taken.
"""

from __future__ import annotations

import time
from copy import copy
from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np

from simindex._kernels import _native
from simindex.arrays import F32, I64, U8, U64, Bools
from simindex.checks import is_seconds, require_seconds
from simindex.errors import InvalidOption
from simindex.options import IndexOptions
from simindex.records.batch import Batch
from simindex.records.estimate import estimated, standard_error
from simindex.records.matches import Match
from simindex.records.sketches import record_bytes
from simindex.simhash.recipe import Recipe
from simindex.storage.snapshot import Snapshot
from simindex.storage.tables.keys import key_hash
from simindex.storage.tables.row_names import Names

if TYPE_CHECKING:
    from simindex.planning.question import Question
    from simindex.query.answerer import Answerer

MOST_WORDS = 1 << 16
"""Of all rows together: half a megabyte."""

MOST_KEY_BYTES = 1 << 26
"""Of the keys of all rows together: with more, a commit is due, however few the rows are. A key of
type str counts its characters."""

LEAST_ROWS = 256
"""For which there is room at first."""


def nearest(
    answerer: Answerer, snapshot: Snapshot, document: Batch, near: Question
) -> Match | None:
    """A row nearest to one document, of those stored that are near enough.

    Where sketches decide, one search compares those of all candidates. Else nearer ones are asked
    for, exactly, until there is none: at most h + 1 searches, which stop at their first match. So a
    million rows like it cost no more than one, where all matches would be put in order.
    """
    if not near.stops_early:
        found = answerer.search(
            snapshot, document.rows, document.weights, near, sketches=document.sketches
        )
        return next(iter(found), None)
    best, question = None, near
    while True:
        found = answerer.search(snapshot, document.rows, document.weights, question)
        if not len(found):
            break
        best = found
        distance = int(found.distance[0])
        if not distance:
            break
        question = replace(near, h=distance - 1, recall=1.0)
    return None if best is None else next(iter(best))  # of which alone the key is fetched


def nearer(one: Match | None, other: Match | None) -> Match | None:
    """The nearer of two matches, of equally near ones that of the smaller id."""
    return min(
        (match for match in (one, other) if match is not None),
        key=lambda match: (match.distance, match.id), default=None,
    )


def checked_commit_s(commit_s: object) -> float | None:
    """The time as Python's number, or None as given; InvalidOption refuses what is no time."""
    if commit_s is None:
        return None
    if is_seconds(commit_s):
        return require_seconds(commit_s, "commit_s")
    raise InvalidOption(
        f"commit_s={commit_s!r} is not a time in seconds",
        remedy="give a number of seconds from 0 on, or None", option="commit_s", found=commit_s,
    )


class Recent:
    """Rows and when the first of them came; the caller keeps threads apart."""

    def __init__(self, options: IndexOptions) -> None:
        self._secret = options.key_secret
        self._keeps_weights = options.reservoir_rows > 0
        self.most_rows: int = min(options.seal_rows, max(1, MOST_WORDS // options.words))
        """With which a commit is due: enough for a segment, or for a comparison."""
        self.count: int = 0
        """Rows."""
        self._key_bytes = 0
        self._since = 0.0
        self.due_at: float = inf
        """Time of `monotonic` at which the first of them is to be committed."""
        self._places: _native.Places | None = None
        self._rows: U64 = np.empty((0, options.words), np.uint64)
        self._sketches: U8 = np.empty((0, record_bytes(options.sketch_words)), np.uint8)
        self._weights: F32 | None = None
        self._weighted: list[bool] = []
        self._ids: list[int] = []
        self._keys: list[Any] = []
        self._last: dict[int, int] = {}
        """The last row that came with an id."""

    def due(self, commit_s: float | None) -> bool:
        """Whether they are as many as a commit should take, or have waited for `commit_s`."""
        if not self.count:
            return False
        if self.count >= self.most_rows or self._key_bytes > MOST_KEY_BYTES:
            return True
        return commit_s is not None and time.monotonic() - self._since >= commit_s

    def nearest(self, document: Batch, near: Question) -> Match | None:
        """A row nearest to one document, of those that are near enough."""
        if not self.count:
            return None
        _, place, distance, _ = _native.scan(
            self._rows[: self.count], document.rows, near.h, False
        )
        similar = near.similar
        if similar is not None and similar.sketch_bits and document.sketches is not None:
            from simindex.query.sketch_filter import distances

            distance = distances(
                self._sketches, place.astype(np.int64, copy=False), document.sketches,
                np.zeros(len(place), np.int64), similar,
            )
            kept = distance <= similar.most
            place, distance = place[kept], distance[kept]
        if not len(place):
            return None
        best = int(np.argmin(distance))
        at = int(place[best])
        match = self.match(at, int(distance[best]))
        if similar is None:
            return match
        told = distance[best : best + 1], similar.compared_bits, similar.measure
        return replace(
            match, similarity=float(estimated(*told)[0]),
            similarity_error=float(standard_error(*told)[0]),
        )

    def match(self, place: int, distance: int) -> Match:
        """The row of a place, at a distance from a document."""
        return Match(0, self._ids[place], self._keys[place], distance)

    def named(self, names: Names) -> tuple[U64, U64, list[Any], U8, I64]:
        """Rows of some names: fingerprints (n, W), ids and keys (None without) (n,), sketches
        (n, R), and places of the names."""
        places, rows = [], []
        for place, (id_, second) in enumerate(zip(names.id.tolist(), names.second.tolist(),
                                                  strict=True)):
            if id_ in self._last:
                for at in range(self.count):
                    if self._ids[at] == id_ and self._second(at) == second:
                        places.append(place)
                        rows.append(at)
        return (
            self._rows[rows], np.array([self._ids[at] for at in rows], np.uint64),
            [self._keys[at] for at in rows], self._sketches[rows], np.array(places, np.int64),
        )

    def _second(self, at: int) -> int:
        return 0 if self._secret is None else key_hash(self._keys[at], self._secret)[1]

    def add(self, document: Batch, ordinal: int, commit_s: float | None) -> None:
        """Takes a batch of one; `ordinal` is its id where it has no name."""
        count = self.count
        if count == len(self._rows):
            self._grow(max(LEAST_ROWS, 2 * count))
        self._rows[count] = document.rows[0]
        if document.sketches is not None:
            self._sketches[count] = document.sketches[0]
        weighted = document.weights is not None and self._keeps_weights
        if document.weights is not None and weighted:
            self._room_for_weights()[count] = document.weights[0]
        if document.keys is None:
            self.put(ordinal if document.ids is None else int(document.ids[0]), None, commit_s,
                     weighted=weighted)
        else:
            self.put(self.hashed(document.keys[0]), document.keys[0], commit_s, weighted=weighted)

    def hashed(self, key: str | bytes) -> int:
        """The id of a key, in an index with keys."""
        assert self._secret is not None
        return key_hash(key, self._secret)[0]

    @property
    def places(self) -> _native.Places:
        """Where the row of the next text goes, with its weights: into place `count`."""
        if self.count == len(self._rows):
            self._grow(max(LEAST_ROWS, 2 * self.count))
        if self._places is None:
            weights = self._room_for_weights() if self._keeps_weights else None
            self._places = _native.Places(self._rows, self._sketches, weights)
        return self._places

    def place_apart(self) -> _native.Places:
        """A place of its own for one row, with the same columns."""
        words = self._rows.shape[1]
        return _native.Places(
            np.empty((1, words), np.uint64), np.empty((1, self._sketches.shape[1]), np.uint8),
            np.empty((1, 64 * words), np.float32) if self._keeps_weights else None,
        )

    def rejected(self, recipe: Recipe, key: str | bytes | None) -> Batch:
        """What is in the next place as a batch of its own, with copies of its columns."""
        free = slice(self.count, self.count + 1)
        keys: Any = None if key is None else [key]
        return Batch.checked(
            self._rows[free].copy(), ids=None, keys=keys,
            weights=None if self._weights is None else self._weights[free].copy(), recipe=recipe,
            sketches=self._sketches[free].copy() if self._sketches.shape[1] else None,
        )

    def _room_for_weights(self) -> F32:
        if self._weights is None:
            self._weights = np.empty((len(self._rows), 64 * self._rows.shape[1]), np.float32)
            self._places = None
        return self._weights

    def put(
        self, id_: int, key: str | bytes | None, commit_s: float | None, *, weighted: bool = True
    ) -> None:
        """Counts the row that is in the next place; `weighted` says whether its weights are, too,
        where the index keeps them."""
        count = self.count
        if len(self._ids) != count or len(self._keys) != count or len(self._weighted) != count:
            for column in (self._weighted, self._ids, self._keys):
                del column[count:]  # of a row that an interrupt left half there
        self._weighted.append(weighted and self._keeps_weights)
        self._keys.append(key)
        self._ids.append(id_)
        self._last[id_] = count
        self._key_bytes += 0 if key is None else len(key)
        now = time.monotonic()
        if not count:
            self._since, self.due_at = now, inf
        if commit_s is not None:
            self.due_at = min(self.due_at, now + commit_s)
        self.count = count + 1

    def _grow(self, capacity: int) -> None:
        count, self._places = self.count, None
        if self._weights is not None:
            weights = np.empty((capacity, self._weights.shape[1]), np.float32)
            weights[:count] = self._weights[:count]
            self._weights = weights
        sketches = np.empty((capacity, self._sketches.shape[1]), np.uint8)
        sketches[:count] = self._sketches[:count]
        self._sketches = sketches
        rows = np.empty((capacity, self._rows.shape[1]), np.uint64)
        rows[:count] = self._rows[:count]
        self._rows = rows  # last: its length says for how many there is room

    def portion(self) -> tuple[Batch, Bools]:
        """Rows that make one batch, and which they are: those with weights, then those without."""
        taken = np.array(self._weighted[: self.count], np.bool_)
        if not taken.any():
            taken = ~taken
        weights = None if self._weights is None else self._weights[: self.count][taken]
        if not self._weighted[int(np.argmax(taken))]:
            weights = None
        places = np.flatnonzero(taken).tolist()
        if self._secret is None:
            named: dict[str, Any] = {"ids": np.array([self._ids[at] for at in places], np.uint64)}
        else:
            named = {"keys": [self._keys[at] for at in places]}
        if self._sketches.shape[1]:
            named["sketch"] = self._sketches[: self.count][taken]
        return Batch(self._rows[: self.count][taken], weights=weights, **named), taken

    def without(self, taken: Bools) -> Recent:
        """The others, once a writer has these."""
        left = np.flatnonzero(~taken)
        places = left.tolist()
        others = copy(self)
        others.count, others._places = len(left), None
        others._rows, others._sketches = self._rows[left], self._sketches[left]
        others._weights = None if self._weights is None else self._weights[left]
        others._weighted = [self._weighted[at] for at in places]
        others._ids = [self._ids[at] for at in places]
        others._keys = [self._keys[at] for at in places]
        others._key_bytes = sum(len(key) for key in others._keys if key is not None)
        others._last = {id_: at for at, id_ in enumerate(others._ids)}
        return others
