"""Which rows of a buffer lose against a near-duplicate, and against which.

    buffer of rows -> against what is stored      the nearest stored row wins: `stored_winners`
                   -> against each other          greedy, in an order of rank; or each against all

1. A row that loses is near the one it lost to: within h, and of a similarity with sketches, if
   these are near, too. There are no chains.
2. Of two rows near each other that both could be kept, the earlier in rank is kept.
3. Rows in rank order may be cut into buffers anywhere, if what was kept of the earlier ones is
   stored in between: who loses, and at which distance, is the same.

Memory is bounded whatever the rows are: a row that is in the buffer, or in the index, a million
times is compared once for all of them.
"""

from __future__ import annotations

import numpy as np

from simindex._kernels import _native
from simindex.arrays import I64, U8, U16, U64, Bools
from simindex.bits.distinct_rows import distinct, distinct_values
from simindex.bits.splitmix import mixed
from simindex.methods.base import firsts
from simindex.pairs.find_all import find_all
from simindex.planning.similarity import Similar
from simindex.query.sketch_filter import kept_pairs
from simindex.records.batch import Batch
from simindex.records.pairs import Pairs
from simindex.records.sketches import sizes_of, words_of
from simindex.values import dataclass

BLOCK_ROWS = 1024
"""Rows that are compared with each other at once: half a million pairs if all are near."""

SCANNED_PAIRS = 1 << 21
"""Of a row that was kept and another one, compared at once where sketches decide: all may be near.
"""

TELLING_BITS = 12
"""Of h + 1 blocks of fewer bits, many rows share one, and a scan is as fast as `find_all`."""

NOWHERE = np.iinfo(np.uint16).max
"""Distance of a row that lost to none; widths end at 4,096 bits."""


@dataclass(frozen=True, slots=True)
class Nearness:
    """What makes two rows near-duplicates."""

    h: int
    recall: float = 1.0
    """Of a search among stored rows: a share of the rows within h, or of those of a similarity."""
    similar: Similar | None = None
    """The similarity that chose h, if one was asked for."""
    bits: int = 64
    """Of a fingerprint."""

    @property
    def sketched(self) -> bool:
        """Whether sketches decide: distances are then those of sketches."""
        return self.similar is not None and self.similar.sketch_bits > 0

    @property
    def exact(self) -> bool:
        """Whether every stored row within h is found, and its distance decides."""
        recall = self.recall if self.similar is None else self.similar.recall
        return recall == 1 and not self.sketched

    @property
    def compared_bits(self) -> int:
        """Of how many bits distances are."""
        return self.bits if self.similar is None else self.similar.compared_bits

    def sketches(self, batch: Batch) -> U8 | None:
        """The sketches of a batch, if they decide."""
        return batch.sketches if self.sketched else None


def whole(rows: U64, sketches: U8 | None) -> U64:
    """Fingerprints, with a digest of their sketches if these decide: equal for equal documents, and
    hardly ever for others."""
    if sketches is None:
        return rows
    digest, words = np.zeros(len(rows), np.uint64), words_of(sketches)
    for word in range(words.shape[1]):
        digest = mixed(digest ^ words[:, word])
    digest = mixed(digest ^ sizes_of(sketches))  # distances go by sizes, too
    return np.concatenate([rows, digest[:, None]], axis=1)


@dataclass(frozen=True, slots=True, eq=False)
class Losses:
    """What each row of a buffer lost to.

    `winner` int64 (n,) is a row of the buffer, -1 where there is none; `distance` uint16 (n,) is
    NOWHERE there.
    """

    winner: I64
    distance: U16

    @classmethod
    def none(cls, rows: int) -> Losses:
        """No row has lost."""
        return cls(np.full(rows, -1, np.int64), np.full(rows, NOWHERE, np.uint16))


def greedy(
    rows: U64, order: I64, excluded: Bools, near: Nearness, sketches: U8 | None = None
) -> Losses:
    """What each row loses to when the rows are kept in an order of rank.

    A row is kept if none that was kept before it is near. One that is not loses to the nearest
    of these; of several, to the first in rank.

    Parameters
    ----------
    rows : uint64 (n, W)
    order : int64 (n,)
        The rows by rank, best first.
    excluded : bool (n,)
        Rows that are not kept in any case, the same for equal rows; they lose all the same.
    sketches : uint8 (n, 8 S + 1), optional
        Records of the rows, if they decide.

    Notes
    -----
    Blocks of BLOCK_ROWS in rank order are compared with what was kept, and with themselves: for
    tens of thousands of rows. Kept rows are further than h apart, so each row has few of them near.
    """
    losses = Losses.none(len(rows))
    kept = np.empty(0, np.int64)
    for start in range(0, len(order), BLOCK_ROWS):
        block = order[start : start + BLOCK_ROWS]
        new = _settle(rows, sketches, block, kept, excluded[block], near, losses)
        kept = np.concatenate([kept, new])
    return losses


def _settle(
    rows: U64, sketches: U8 | None, block: I64, kept: I64, excluded: Bools, near: Nearness,
    losses: Losses,
) -> I64:
    """Decides a block of rows; returns those that are kept, in rank order."""
    first, group_of = distinct(whole(rows[block], None if sketches is None else sketches[block]))
    by_rank = np.argsort(first)
    first, group_of = first[by_rank], np.argsort(by_rank)[group_of]
    (later, earlier, before), among = near_block(rows, sketches, kept, block[first], near)
    gone = excluded[first]
    gone[later] = True
    _choose(gone, among.a.astype(np.int64, copy=False), among.b.astype(np.int64, copy=False))
    # Who may win against whom: what was kept before, and what is kept of this block, which wins
    # against its own copies, too.
    own = np.flatnonzero(~gone)
    forward, backward = ~gone[among.a], ~gone[among.b]
    winning = first[np.r_[among.a[forward], among.b[backward], own]]
    winner = np.r_[kept[earlier], block[winning]]
    place = np.r_[np.full(len(earlier), -1), winning]
    loser = np.r_[later, among.b[forward], among.a[backward], own]
    apart = np.r_[
        before, among.distance[forward], among.distance[backward], np.zeros(len(own), np.uint16)
    ]
    _assign(block, group_of, len(first), winner, place, loser, apart, losses)
    return block[first[own]]


def near_block(
    rows: U64, sketches: U8 | None, kept: I64, block: I64, near: Nearness
) -> tuple[tuple[I64, I64, U16], Pairs]:
    """(place in the block, place in `kept`, distance) of rows of a block that are near kept ones,
    and pairs of places in the block; kept rows are not compared with each other."""
    if sketches is None:
        return near_rows(rows[kept], rows[block], near.h)
    return _near_sketches(rows, sketches, kept, block, near)


def near_rows(kept: U64, block: U64, h: int) -> tuple[tuple[I64, I64, U16], Pairs]:
    """(row of the block, kept row, distance) within h, and pairs of the block; no kept pair is."""
    bits = 64 * block.shape[1]
    h = min(h, bits)
    if bits < TELLING_BITS * (h + 1):
        later, earlier, distance, _ = _native.scan(kept, block, h, False)
        return (later, earlier.astype(np.int64), distance), find_all(block, h=h)
    found = find_all(np.concatenate([kept, block]), h=h)
    a, b = found.a.astype(np.int64, copy=False), found.b.astype(np.int64, copy=False)
    across, distance = a < len(kept), found.distance
    among = Pairs(a[~across] - len(kept), b[~across] - len(kept), distance[~across])
    return (b[across] - len(kept), a[across], distance[across]), among


def _near_sketches(
    rows: U64, sketches: U8, kept: I64, block: I64, near: Nearness
) -> tuple[tuple[I64, I64, U16], Pairs]:
    """As `near_rows`, of rows whose sketches are near, too, with the distance of these."""
    # Kept rows may be within h of each other here, so that they are not compared as pairs.
    later, earlier, before = _near_by_parts(rows, sketches, block, kept, near)
    found = find_all(rows[block], h=min(near.h, 64 * rows.shape[1]))
    a, b = found.a.astype(np.int64, copy=False), found.b.astype(np.int64, copy=False)
    assert near.similar is not None  # as sketches decide
    places, distance = kept_pairs(sketches, block[a], block[b], near.similar)
    return (later, earlier, before), Pairs(a[places], b[places], distance)


def _near_by_parts(
    rows: U64, sketches: U8, queries: I64, others: I64, near: Nearness
) -> tuple[I64, I64, U16]:
    """(query, other, distance of sketches) of rows that are near, by places of both."""
    assert near.similar is not None  # as sketches decide
    none = np.empty(0, np.int64)
    query, row, apart = [none], [none], [np.empty(0, np.uint16)]
    step = max(1, SCANNED_PAIRS // max(1, len(others)))
    table = rows[others]
    for start in range(0, len(queries) if len(others) else 0, step):
        some = queries[start : start + step]
        of, other, _, _ = _native.scan(table, rows[some], min(near.h, 64 * rows.shape[1]), False)
        places, distance = kept_pairs(sketches, some[of], others[other], near.similar)
        query.append(of[places] + start)
        row.append(other[places].astype(np.int64))
        apart.append(distance)
    return np.concatenate(query), np.concatenate(row), np.concatenate(apart)


def _choose(gone: Bools, a: I64, b: I64) -> None:
    """Marks in `gone` what is near one that stays, in order; pairs have a < b, sorted by (a, b)."""
    starts = np.searchsorted(a, np.arange(len(gone) + 1))
    for row in distinct_values(a).tolist():
        if not gone[row]:
            gone[b[starts[row] : starts[row + 1]]] = True


def _assign(
    block: I64, group_of: I64, groups: int, winner: I64, place: I64, loser: I64, apart: U16,
    losses: Losses,
) -> None:
    """Gives every row of the losing groups the nearest winner before it."""
    members = np.argsort(group_of, kind="stable")
    size = np.bincount(group_of, minlength=groups)
    begin = np.cumsum(size) - size
    candidate = np.repeat(np.arange(len(loser)), size[loser])
    within = np.arange(len(candidate)) - np.repeat(
        np.cumsum(size[loser]) - size[loser], size[loser]
    )
    row = members[begin[loser][candidate] + within]
    before = place[candidate] < row
    candidate, row = candidate[before], row[before]
    nearest = firsts(row, place[candidate], apart[candidate])
    candidate, row = candidate[nearest], block[row[nearest]]
    losses.winner[row], losses.distance[row] = winner[candidate], apart[candidate]


def any_neighbour(rows: U64, near: Nearness, sketches: U8 | None = None) -> Losses:
    """Another row near each row, if there is one; not always the nearest.

    Notes
    -----
    Rows that `greedy` would drop have one, and so have those they lose to; the others are compared
    with what was dropped, up to the first that is near. All pairs would fill the memory where
    thousands of different rows are near each other.
    """
    order = np.arange(len(rows), dtype=np.int64)
    losses = greedy(rows, order, np.zeros(len(rows), np.bool_), near, sketches)
    winner, distance = losses.winner.copy(), losses.distance.copy()
    losers = np.flatnonzero(losses.winner >= 0)
    # Of those that lost to it, a row has the nearest, the first of several.
    nearest = losers[firsts(losses.winner[losers], losers, losses.distance[losers])]
    winner[losses.winner[nearest]] = nearest
    distance[losses.winner[nearest]] = losses.distance[nearest]
    lonely = np.flatnonzero(winner < 0)
    dropped = losers[distinct(whole(rows, sketches)[losers])[0]]
    if sketches is None:
        query, found, apart, _ = _native.scan(rows[dropped], rows[lonely], near.h, True)
        row = found.astype(np.int64)
    else:
        query, row, apart = _near_by_parts(rows, sketches, lonely, dropped, near)
        once = firsts(query, row, apart)
        query, row, apart = query[once], row[once], apart[once]
    winner[lonely[query]], distance[lonely[query]] = dropped[row], apart
    return Losses(winner, distance)
