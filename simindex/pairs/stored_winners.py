"""The stored rows that rows of a buffer lose to: the nearest, whatever else is in the buffer.

    rows -> nearest_stored                    of several at one distance any
         -> nearest_ahead -> nearer_among     before the last rows are stored, and then beside them

Equal rows are asked once. A row that is stored a million times is found once.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from simindex.arrays import I64, U16, Bools
from simindex.bits.distinct_rows import distinct
from simindex.methods.base import firsts
from simindex.pairs.buffer_losses import BLOCK_ROWS, NOWHERE, Nearness, near_rows, whole
from simindex.records.batch import Batch
from simindex.records.matches import Matches
from simindex.values import dataclass

EXACT_ROWS = 1 << 18
"""Of an index that is small enough to compare all rows: up to 15 µs a query."""


class Searchable(Protocol):
    """What an index is asked for here."""

    def __len__(self) -> int:
        """Rows."""

    def query(
        self, batch: Batch, *, h: int | None = None, similarity: Any = None,
        measure: str = "cosine", first: bool = False, limit: int | None = None, recall: float = 1.0,
    ) -> Matches:
        """See `Index.query`. A similarity may be a `Similar`."""


@dataclass(frozen=True, slots=True, eq=False)
class Stored:
    """The nearest stored row of each row of a buffer.

    `distance` uint16 (n,) is NOWHERE where none is within h; `place` int64 (n,) is that row's place
    in `keys`.
    """

    distance: U16
    place: I64
    keys: list[Any]

    def key(self, row: int) -> Any:
        """Key, or id in an index without keys, of the stored row that is nearest to a row."""
        return self.keys[int(self.place[row])]

    def with_others(self, rows: I64, others: Stored) -> Stored:
        """The same with what `others` has instead for some rows."""
        distance, place = self.distance.copy(), self.place.copy()
        distance[rows], place[rows] = others.distance, len(self.keys) + others.place
        return Stored(distance, place, [*self.keys, *others.keys])


def exactly_if_few(index: Searchable, batch: Batch) -> Batch:
    """A batch to ask an index by: without weights, and so exactly, unless it has many rows.

    Nothing but a scan finds all rows within the radius of a similarity, such as 14 of 64 bits.
    """
    return batch.without_weights() if len(index) <= EXACT_ROWS else batch


def nearest_stored(
    index: Searchable, batch: Batch, near: Nearness, *, apart: bool = False
) -> Stored:
    """The nearest near stored row of each row; of several at one distance, any.

    `apart` says that stored rows are further than h from each other: all were kept by `greedy`,
    with the same nearness, which is exact.

    Notes
    -----
    Equal rows are asked once. One match a query is fetched, then one at a smaller distance for
    those that can have it, until there is none: with a million stored copies of a template, all
    matches of all its copies would fill the machine. At most h + 1 calls, each for fewer rows.
    Where sketches decide, one call finds the nearest.

    Of rows apart, one at distance d from a query has all others further than h - d from it. So a
    match with 2 d <= h + 1 is the nearest, and no call is made for a nearer one.
    """
    first, member_of, asked = _different(batch, near)
    distance = np.full(len(first), NOWHERE, np.uint16)
    place = np.full(len(first), -1, np.int64)
    keys: list[Any] = []
    if near.sketched and near.similar is not None and len(first):
        found = index.query(asked, similarity=near.similar, limit=1)
        distance[found.query] = found.distance
        place[found.query] = np.arange(len(found))
        keys.extend(_names(found))
        return Stored(distance[member_of], place[member_of], keys)
    h, recall = near.h, near.recall if near.similar is None else near.similar.recall

    def ask(some: I64, radius: int) -> None:
        found = index.query(
            asked.take(some) if len(some) < len(first) else asked,
            h=radius, first=True, recall=recall,
        )
        rows = some[found.query]
        distance[rows] = found.distance
        place[rows] = len(keys) + np.arange(len(found))
        keys.extend(_names(found))

    if len(first):
        ask(np.arange(len(first), dtype=np.int64), h)
    least = (h + 1) // 2 if apart else 0
    for radius in range(min(h, batch.bits) - 1, least - 1, -1):
        # A row at distance d is asked again within d - 1 only, so every answer is nearer.
        nearer = np.flatnonzero(distance == radius + 1).astype(np.int64)
        if len(nearer):
            ask(nearer, radius)
    return Stored(distance[member_of], place[member_of], keys)


def nearest_ahead(index: Searchable, batch: Batch, near: Nearness) -> tuple[Stored, Bools]:
    """The nearest stored rows, of rows that are apart, and which rows have several at one distance.

    Of those `nearest_stored` would give one, which depends on how the index is cut into tables.
    Two rows apart can only be at one distance d from a query where 2 d > h.
    """
    first, member_of, asked = _different(batch, near)
    distance = np.full(len(first), NOWHERE, np.uint16)
    place, tied = np.full(len(first), -1, np.int64), np.zeros(len(first), np.bool_)
    keys: list[Any] = []

    def take(found: Matches, rows: I64, some: I64) -> None:
        distance[rows], place[rows] = found.distance[some], len(keys) + some
        keys.extend(_names(found))

    if len(first):
        found = index.query(asked, h=near.h, first=True)
        take(found, found.query, np.arange(len(found), dtype=np.int64))
    again = np.flatnonzero((distance != NOWHERE) & (2 * distance.astype(np.int64) > near.h))
    if len(again):
        found = index.query(asked.take(again), h=near.h, limit=2)
        second = np.flatnonzero(found.query[1:] == found.query[:-1]) + 1
        best = np.setdiff1d(np.arange(len(found), dtype=np.int64), second)
        take(found, again[found.query[best]], best)
        second = second[found.distance[second] == found.distance[second - 1]]
        tied[again[found.query[second]]] = True
    return Stored(distance[member_of], place[member_of], keys), tied[member_of]


def _different(batch: Batch, near: Nearness) -> tuple[I64, I64, Batch]:
    """The first of each equal rows, which of these every row equals, and a batch of them to ask by.
    """
    first, member_of = distinct(whole(batch.rows, near.sketches(batch)))
    # Keys name no query, and an exact search has no use for weights: these are 256 bytes a row.
    asked = Batch.checked(
        batch.rows[first], ids=None, keys=None,
        weights=None if near.exact or batch.weights is None else batch.weights[first],
        recipe=batch.recipe,
        sketches=None if batch.sketches is None else np.take(batch.sketches, first, axis=0),
    )
    return first, member_of, asked


def _names(found: Matches) -> list[Any]:
    """Keys of the found rows, or ids in an index without keys."""
    keys = found.keys()
    return found.id.tolist() if keys is None else keys


def nearer_among(
    stored: Stored, tied: Bools, batch: Batch, kept: Batch, near: Nearness
) -> tuple[Stored, Bools]:
    """What `nearest_ahead` would give if the rows of `kept`, which has keys, were stored, too.

    They were kept by `greedy`, with the same nearness, which is exact: none is near another.
    """
    if not len(kept):
        return stored, tied
    distance, place, tied = stored.distance.copy(), stored.place.copy(), tied.copy()
    for start in range(0, len(batch), BLOCK_ROWS):
        block = batch.rows[start : start + BLOCK_ROWS]
        (row, other, apart), _ = near_rows(kept.rows, block, near.h)
        row += start
        nearest = firsts(row, other, apart)
        of, least = row[nearest], apart[nearest]
        before = distance[of]
        nearer = least < before
        distance[of[nearer]], tied[of[nearer]] = least[nearer], False
        place[of[nearer]] = len(stored.keys) + other[nearest][nearer]
        tied[of[least == before]] = True
        others = np.ones(len(row), np.bool_)
        others[nearest] = False
        tied[row[others & (apart == distance[row])]] = True
    return Stored(distance, place, [*stored.keys, *(kept.keys or ())]), tied
