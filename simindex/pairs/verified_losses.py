"""Which rows of a buffer lose, where doubtful pairs are decided by texts: as `buffer_losses.py`.

    by rank, each row    near a kept one for certain            -> loses to the nearest of these
                         doubtful, and near one by their texts  -> loses to the first that is
                         else                                   -> is kept

Kept ones are those of the buffer that come before in rank, and stored ones. A row is compared with
the texts of at most `MOST_COMPARED` of them, the nearest by the estimate first. Of equally near
ones stored ones come first, in any order, then the first in rank.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from math import nan
from typing import Any

import numpy as np

from simindex.arrays import F32, I64, U8, U16, U64, Bools
from simindex.bits.distinct_rows import distinct
from simindex.pairs.buffer_losses import BLOCK_ROWS, NOWHERE, Losses, Nearness, near_block, whole
from simindex.pairs.doubtful_pairs import MOST_COMPARED, Texts, Verifier
from simindex.pairs.stored_winners import Searchable, Stored, exactly_if_few
from simindex.planning.doubt import Doubt
from simindex.records.batch import Batch
from simindex.values import dataclass

COMPARED_CHARACTERS = 1 << 18
"""Of texts that are compared at once."""


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """Stored rows that may be near rows of a buffer.

    `row` int64 (m,), ascending, and `distance` uint16 (m,), ascending for each row; `place` int64
    (m,) is the place of the stored row in `keys`.
    """

    row: I64
    distance: U16
    place: I64
    keys: list[Any]

    def nearest(self, rows: int) -> Stored:
        """The nearest stored row of each of so many rows, whatever their texts say."""
        distance = np.full(rows, NOWHERE, np.uint16)
        place = np.full(rows, -1, np.int64)
        own, first = np.unique(self.row, return_index=True)
        distance[own], place[own] = self.distance[first], self.place[first]
        return Stored(distance, place, self.keys)

    def and_before(self, others: Candidates) -> Candidates:
        """These and others; of equally near ones the others come first."""
        row = np.r_[others.row, self.row]
        distance = np.r_[others.distance, self.distance]
        place = np.r_[others.place, self.place + len(others.keys)]
        order = np.lexsort((distance, row))
        return Candidates(row[order], distance[order], place[order], [*others.keys, *self.keys])


@dataclass(frozen=True, slots=True, eq=False)
class VerifiedLosses:
    """What each row lost to: a row of the buffer, a stored one, or none; and their exact
    similarity, float32 (n,), NaN where that is not known."""

    losses: Losses
    stored: Stored
    exact: F32


def stored_candidates(
    index: Searchable, batch: Batch, near: Nearness, doubt: Doubt
) -> Candidates:
    """The nearest `MOST_COMPARED` stored rows that may be near each row; equal rows ask once.

    They ask exactly while there are few stored rows, and by their weights from then on.
    """
    first, member_of = distinct(whole(batch.rows, near.sketches(batch)))
    if not len(first):
        return Candidates(
            np.empty(0, np.int64), np.empty(0, np.uint16), np.empty(0, np.int64), []
        )
    asked = exactly_if_few(index, batch.take(first))
    found = index.query(asked, similarity=doubt.wide, limit=MOST_COMPARED)
    order = np.lexsort((found.distance, found.query))
    starts = np.searchsorted(found.query[order], np.arange(len(first) + 1))
    length = np.diff(starts)[member_of]
    row = np.repeat(np.arange(len(member_of)), length)
    within = np.arange(len(row)) - np.repeat(np.cumsum(length) - length, length)
    place = order[starts[member_of[row]] + within]
    named = found.keys()
    return Candidates(
        row, found.distance[place], place, found.id.tolist() if named is None else list(named)
    )


def verified_losses(
    rows: U64, sketches: U8 | None, order: I64, near: Nearness, candidates: Candidates,
    verifier: Verifier, own: Callable[[int], Texts], stored: Callable[[Any], Texts],
) -> VerifiedLosses:
    """What each row loses to when the rows are kept in an order of rank.

    Parameters
    ----------
    near : Nearness
        That of `verifier.doubt.wide`.
    order : int64 (n,)
        The rows by rank, best first.
    own, stored : function
        The texts of a row by its number, and of a stored one by its key or id.
    """
    deciding = _Deciding(rows, sketches, near, candidates, verifier, own, stored)
    for start in range(0, len(order), BLOCK_ROWS):
        deciding.decide(order[start : start + BLOCK_ROWS])
    return deciding.found


class _Deciding:
    """Blocks of rows, one after the other."""

    def __init__(
        self, rows: U64, sketches: U8 | None, near: Nearness, candidates: Candidates,
        verifier: Verifier, own: Callable[[int], Texts], stored: Callable[[Any], Texts],
    ) -> None:
        self._rows, self._sketches, self._near = rows, sketches, near
        self._candidates, self._verifier = candidates, verifier
        self._own, self._stored = own, stored
        self._starts = np.searchsorted(candidates.row, np.arange(len(rows) + 1))
        self._nearest = candidates.nearest(len(rows)).distance
        self._kept = np.empty(0, np.int64)
        none = np.full(len(rows), -1, np.int64)
        self.found: VerifiedLosses = VerifiedLosses(
            Losses.none(len(rows)),
            Stored(np.full(len(rows), NOWHERE, np.uint16), none, candidates.keys),
            np.full(len(rows), nan, np.float32),
        )

    def decide(self, block: I64) -> None:
        """Decides some rows that come after all before in rank."""
        copies = self._nearest[block] == 0  # nothing is nearer
        for row in block[copies].tolist():
            self._lose(row, -1 - int(self._candidates.place[self._starts[row]]), 0, nan)
        block = block[~copies]
        if not len(block):
            return
        listed = self._listed(block)
        compared = self._compared(block, listed)
        alive = np.ones(len(block), np.bool_)
        for at, near in listed.items():
            row = int(block[at])
            usable = [(d, other) for d, other, inside in near if inside < 0 or alive[inside]]
            loss = self._loss(row, usable, compared.get(row))
            if loss is not None:
                alive[at] = False
                self._lose(row, loss[1], loss[0], loss[2])
        self._kept = np.concatenate([self._kept, block[alive]])

    def _listed(self, block: I64) -> dict[int, list[tuple[int, int, int]]]:
        """By place in the block what may be near: (distance, row or -1 less the place of a stored
        one, place in the block or -1), the nearest first."""
        (later, earlier, before), among = near_block(
            self._rows, self._sketches, self._kept, block, self._near
        )
        length = self._starts[block + 1] - self._starts[block]
        at = np.repeat(np.arange(len(block)), length)
        of_stored = np.arange(len(at)) - np.repeat(np.cumsum(length) - length, length)
        of_stored += self._starts[block[at]]
        a, b = among.a.astype(np.int64), among.b.astype(np.int64)
        place = np.r_[at, later, b]
        distance = np.r_[self._candidates.distance[of_stored], before, among.distance]
        other = np.r_[-1 - self._candidates.place[of_stored], self._kept[earlier], block[a]]
        inside = np.r_[np.full(len(at) + len(later), -1), a]
        # Stored ones come first, as they are found; then those kept before, by rank; then the rest.
        rank = np.r_[np.arange(len(at)) - len(at), earlier, len(self._kept) + a]
        order = np.lexsort((rank, distance, place))
        order = order[_useful(place[order], inside[order] < 0)]
        listed: dict[int, list[tuple[int, int, int]]] = {}
        for row, *values in zip(
            *(column[order].tolist() for column in (place, distance, other, inside)), strict=True
        ):
            listed.setdefault(row, []).append((values[0], values[1], values[2]))
        return listed

    def _compared(
        self, block: I64, listed: dict[int, list[tuple[int, int, int]]]
    ) -> dict[int, dict[int, float | None]]:
        """The exact similarities of rows and the nearest that each may lose to, some at once: most
        documents that are compared lose to that one, or are compared with no other."""
        found: dict[int, dict[int, float | None]] = {}
        certain = self._verifier.doubt.certain
        doubtful = (
            (int(block[at]), near[0][1]) for at, near in listed.items() if near[0][0] > certain
        )
        for some in self._portions(doubtful):
            exact = self._verifier.exact([texts for _, texts in some])
            for ((row, other), _), similarity in zip(some, exact, strict=True):
                found[row] = {other: similarity}
        return found

    def _portions(
        self, pairs: Iterable[tuple[int, int]]
    ) -> Iterator[list[tuple[tuple[int, int], tuple[Texts, Texts]]]]:
        """Pairs with their texts, of COMPARED_CHARACTERS, the last pair not counted."""
        some: list[tuple[tuple[int, int], tuple[Texts, Texts]]] = []
        characters = 0
        for row, other in pairs:
            texts = self._own(row), self._texts(other)
            some.append(((row, other), texts))
            characters += sum(len(text) for side in texts for text in side)
            if characters >= COMPARED_CHARACTERS:
                yield some
                some, characters = [], 0
        if some:
            yield some

    def _loss(
        self, row: int, near: list[tuple[int, int]], compared: dict[int, float | None] | None
    ) -> tuple[int, int, float] | None:
        """(distance, what it loses to, exact similarity), if it loses."""
        if near and near[0][0] <= self._verifier.doubt.certain:
            return *near[0], nan
        return self._verifier.nearest(lambda: self._own(row), near, self._texts, compared)

    def _texts(self, other: int) -> Texts:
        return self._own(other) if other >= 0 else self._stored(self._candidates.keys[-1 - other])

    def _lose(self, row: int, other: int, distance: int, exact: float) -> None:
        found = self.found
        found.exact[row] = exact
        if other >= 0:
            found.losses.winner[row], found.losses.distance[row] = other, distance
        else:
            found.stored.place[row], found.stored.distance[row] = -1 - other, distance


def _useful(row: I64, kept: Bools) -> I64:
    """Which candidates, by row and nearest first, can decide: of those that are kept whatever
    happens in the block, the first few of each row."""
    before: I64 = np.cumsum(kept) - kept
    starts = np.flatnonzero(np.diff(row, prepend=-1))
    number: I64 = before - np.repeat(before[starts], np.diff(starts, append=len(row)))
    return np.flatnonzero(~kept | (number < MOST_COMPARED))
