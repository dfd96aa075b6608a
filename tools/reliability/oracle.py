"""What an index must hold and answer after each operation, by numpy alone.

    operation k   appends OPERATION_ROWS documents, some of them with a second row;
                  deletes and replaces documents of earlier operations
    World         rows of operations as arrays: fingerprint, id, cluster, born, dies
    State         those that live after operation k, sorted by cluster; it answers queries

A row is a centre with at most ERROR_BITS of its bits inverted. No two centres are nearer than
APART_BITS, so what is within some bits of a query that is near its centre lies in that centre's
cluster, by the triangle inequality: only a cluster is compared with a query. `State.brute` compares
all rows, and is asked about a sample.

Everything follows from the seed and the number of the operation, so that any process can tell.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]
F32 = NDArray[np.float32]
Bool = NDArray[np.bool_]

APART_BITS = 16
ERROR_BITS = 3
QUERY_BITS = 3
"""A query is a row with so many bits inverted at most, so it is within 6 bits of its centre."""

MOST_H = APART_BITS - 2 * ERROR_BITS - QUERY_BITS - 1
"""Within it the rows of other clusters are never: they are 16 - 6 - 3 = 7 bits away or more."""

CENTRES = 2048
HOT_SHARE = 0.01
"""Of the rows, in the first cluster: half of them equal."""

KEPT_STATES = 4


def mixed(numbers: U64) -> U64:
    """A permutation of the 64-bit numbers, that of splitmix64: ids lie all over their range."""
    z = numbers + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def centres(seed: int) -> U64:
    """Fingerprints of which no two are nearer than APART_BITS, uint64 (CENTRES,)."""
    rng = np.random.default_rng([seed, 1])
    kept = np.empty(0, np.uint64)
    while len(kept) < CENTRES:
        drawn = rng.integers(0, 1 << 64, dtype=np.uint64)
        if not len(kept) or np.bitwise_count(kept ^ drawn).min() >= APART_BITS:
            kept = np.append(kept, drawn)
    return kept


def inverted(rng: np.random.Generator, values: U64, most: int) -> U64:
    """The values with 0 to `most` of their bits inverted."""
    result = values.copy()
    for flip in range(most):
        bits = np.uint64(1) << rng.integers(0, 64, len(values)).astype(np.uint64)
        result ^= np.where(rng.integers(0, most + 1, len(values)) > flip, bits, np.uint64(0))
    return result


def weights_for(rng: np.random.Generator, values: U64) -> F32:
    """Weights whose signs are the values' bits, float32 (n, 64)."""
    bits = np.unpackbits(values.astype(">u8").view(np.uint8).reshape(-1, 8), axis=1)
    size = rng.gamma(1.5, 1.0, bits.shape).astype(np.float32) + np.float32(0.01)
    return np.where(bits == 1, size, -size).astype(np.float32)


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Columns of one length: what one operation brings."""

    fingerprints: U64
    ids: U64
    clusters: I64
    born: I64
    dies: I64

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, chosen: Bool | I64 | slice) -> Rows:
        return Rows(
            self.fingerprints[chosen], self.ids[chosen], self.clusters[chosen], self.born[chosen],
            self.dies[chosen],
        )

    @staticmethod
    def joined(parts: list[Rows]) -> Rows:
        """The rows of all parts, one after the other."""
        return Rows(*(
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("fingerprints", "ids", "clusters", "born", "dies")
        ))


@dataclass(frozen=True, slots=True)
class Operation:
    """What a writer does in one commit."""

    number: int
    ingested: bool
    """By `ingest`, whose matches are judged, too; such an operation deletes nothing."""
    deleted: U64
    """Ids."""
    replacing: Rows
    """Rows that take the place of all of their ids."""
    appended: Rows
    weights: F32 | None


@dataclass
class World:
    """All operations of a seed.

    Parameters
    ----------
    documents : int
        That one operation appends.
    window : int
        Operations after which a document is gone, so the index stays as large as it is:
        half of the documents go at half of it, and a quarter is replaced at a quarter.
    """

    seed: int
    documents: int = 1500
    window: int = 48
    _known: dict[int, Rows] = field(default_factory=dict)
    _states: dict[int, State] = field(default_factory=dict)

    @cached_property
    def centres(self) -> U64:
        """Of the clusters."""
        return centres(self.seed)

    @staticmethod
    def ingests(number: int) -> bool:
        """Whether an operation is an ingest."""
        return number % 5 == 4

    def _when(self, number: int) -> int:
        """The first operation from `number` on that may delete."""
        return number + self.ingests(number)

    def rows(self, number: int) -> Rows:
        """All rows of the documents that an operation appends, also those replacing them later."""
        if number not in self._known:
            for old in [known for known in self._known if known < number - 2 * self.window]:
                del self._known[old]
            self._known[number] = self._made(number)
        return self._known[number]

    def _made(self, number: int) -> Rows:
        rng = np.random.default_rng([self.seed, 2, number])
        count = self.documents
        document = np.arange(count)
        ids = mixed(np.uint64(number * count) + document.astype(np.uint64))
        clusters = rng.integers(1, CENTRES, count)
        clusters[rng.random(count) < HOT_SHARE] = 0
        clusters[0] = 1 + number % (CENTRES - 1)
        values = inverted(rng, self.centres[clusters], ERROR_BITS)
        values[(clusters == 0) & (document % 2 == 0)] = self.centres[0]
        end = np.full(count, self._when(number + self.window))
        end[document % 4 == 0] = self._when(number + max(3, self.window // 2))
        end[0] = self._when(number + self.window)
        changes = document % 4 == 1
        change = self._when(number + max(2, self.window // 4))
        born = np.full(count, number)
        first = Rows(values, ids, clusters, born, np.where(changes, change, end))
        second = document % 8 == 7
        beside = Rows(
            inverted(rng, self.centres[clusters[second]], ERROR_BITS), ids[second],
            clusters[second], born[second], first.dies[second],
        )
        moved = rng.integers(1, CENTRES, int(changes.sum()))
        later = Rows(
            inverted(rng, self.centres[moved], ERROR_BITS), ids[changes], moved,
            np.full(len(moved), change), end[changes],
        )
        return Rows.joined([first, beside, later])

    def operation(self, number: int) -> Operation:
        """What operation `number` does; the first is 1."""
        rng = np.random.default_rng([self.seed, 3, number])
        own = self.rows(number)
        appended = own[own.born == number]
        deleted, replacing = [np.empty(0, np.uint64)], [appended[:0]]
        for earlier in range(max(1, number - self.window - 2), number):
            rows = self.rows(earlier)
            gone, come = rows[rows.dies == number], rows[rows.born == number]
            deleted.append(np.setdiff1d(gone.ids, come.ids))
            replacing.append(come)
        weighted = number % 3 == 0
        return Operation(
            number, self.ingests(number), np.concatenate(deleted), Rows.joined(replacing), appended,
            weights_for(rng, appended.fingerprints) if weighted else None,
        )

    def marker(self, number: int) -> tuple[int, int]:
        """Fingerprint and id of a row of an operation that lives as long as the window."""
        rows = self.rows(number)
        return int(rows.fingerprints[0]), int(rows.ids[0])

    def state(self, number: int) -> State:
        """What an index holds after operation `number`; the last few are kept."""
        if number not in self._states:
            while len(self._states) >= KEPT_STATES:
                del self._states[next(iter(self._states))]
            self._states[number] = self._state(number)
        return self._states[number]

    def _state(self, number: int) -> State:
        first = max(1, number - self.window - 2)
        parts = [self.rows(1)[:0]]
        parts += [self.rows(k) for k in range(first, number + 1)]
        rows = Rows.joined(parts)
        return State(number, rows[(rows.born <= number) & (rows.dies > number)])

    def questions(
        self, rng: np.random.Generator, number: int, count: int, most: int = QUERY_BITS
    ) -> tuple[U64, I64]:
        """Queries and their clusters: rows with some bits inverted.

        Of operations that are done, of some not done yet, and of rows that died or are not born.
        """
        first, last = max(1, number - self.window - 2), number + 2
        chosen = rng.integers(first, last + 1, 8)
        parts = [self.rows(int(k)) for k in chosen]
        pool = Rows.joined(parts)
        picked = pool[rng.integers(0, len(pool), count)]
        hot = (picked.clusters == 0) & (rng.random(count) < 0.9)  # a few are enough
        picked = picked[~hot]
        return inverted(rng, picked.fingerprints, most), picked.clusters


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """Unique (query, distance, id), in that order; columns of one length."""

    query: I64
    distance: I64
    id: U64

    @staticmethod
    def of(query: I64, distance: I64, ids: U64) -> Answer:
        """In order, each once."""
        order = np.lexsort((ids, distance, query))
        query, distance, ids = query[order], distance[order], ids[order]
        fresh = np.ones(len(query), bool)
        fresh[1:] = (np.diff(query) != 0) | (np.diff(distance) != 0) | (ids[1:] != ids[:-1])
        return Answer(query[fresh], distance[fresh], ids[fresh])

    def same(self, query: I64, distance: NDArray[np.uint16], ids: U64) -> bool:
        """Whether columns are exactly these."""
        return (
            np.array_equal(self.query, query) and np.array_equal(self.distance, distance)
            and np.array_equal(self.id, ids)
        )

    def holds(self, query: I64, distance: NDArray[np.uint16], ids: U64) -> bool:
        """Whether each of the columns' rows is one of these."""
        mine = set(zip(self.query.tolist(), self.distance.tolist(), self.id.tolist(), strict=True))
        given = zip(query.tolist(), distance.tolist(), ids.tolist(), strict=True)
        return all(row in mine for row in given)


class State:
    """Live rows, and what they answer."""

    def __init__(self, number: int, rows: Rows) -> None:
        order = np.argsort(rows.clusters, kind="stable")
        self.number, self.rows = number, rows[order]
        self.starts = np.searchsorted(self.rows.clusters, np.arange(CENTRES + 1))

    def __len__(self) -> int:
        return len(self.rows)

    def _pairs(self, queries: U64, clusters: I64) -> tuple[I64, I64, I64]:
        """Each query with each row of its cluster: query, row and distance."""
        first, last = self.starts[clusters], self.starts[clusters + 1]
        counts = last - first
        query = np.repeat(np.arange(len(queries)), counts)
        ends = np.cumsum(counts)
        row = np.arange(int(counts.sum())) - np.repeat(ends - counts - first, counts)
        apart = np.bitwise_count(queries[query] ^ self.rows.fingerprints[row]).astype(np.int64)
        return query, row, apart

    def matches(self, queries: U64, clusters: I64, h: int) -> Answer:
        """All rows within h <= MOST_H of each query."""
        assert h <= MOST_H
        query, row, apart = self._pairs(queries, clusters)
        near = apart <= h
        return Answer.of(query[near], apart[near], self.rows.ids[row[near]])

    def brute(self, queries: U64, h: int) -> Answer:
        """The same, by comparing every row."""
        apart = np.bitwise_count(queries[:, None] ^ self.rows.fingerprints[None, :])
        query, row = np.nonzero(apart <= h)
        return Answer.of(query, apart[query, row].astype(np.int64), self.rows.ids[row])

    def nearest(self, queries: U64, clusters: I64) -> Answer:
        """The documents of each query's cluster by their nearest rows."""
        query, row, apart = self._pairs(queries, clusters)
        return _documents(Answer.of(query, apart, self.rows.ids[row]))

    def brute_nearest(self, queries: U64, k: int) -> Answer:
        """The k nearest documents of each query, by comparing every row."""
        apart = np.bitwise_count(queries[:, None] ^ self.rows.fingerprints[None, :])
        # A document has two rows at most, so the 2 k nearest rows are of k documents at least.
        least = min(2 * k, len(self.rows)) - 1
        query, row = np.nonzero(apart <= np.partition(apart, least, axis=1)[:, least, None])
        every = _documents(
            Answer.of(query, apart[query, row].astype(np.int64), self.rows.ids[row])
        )
        place = np.arange(len(every.query)) - np.searchsorted(every.query, every.query)
        first = place < k
        return Answer(every.query[first], every.distance[first], every.id[first])

    def contents(self) -> tuple[U64, U64]:
        """Fingerprints and ids of all rows, sorted by id, then fingerprint."""
        order = np.lexsort((self.rows.fingerprints, self.rows.ids))
        return self.rows.fingerprints[order], self.rows.ids[order]


def _documents(rows: Answer) -> Answer:
    """Of several rows of one id and query the first."""
    order = np.lexsort((rows.distance, rows.id, rows.query))
    query, ids = rows.query[order], rows.id[order]
    again = np.zeros(len(order), bool)
    again[1:] = (query[1:] == query[:-1]) & (ids[1:] == ids[:-1])
    kept = np.sort(order[~again])
    return Answer(rows.query[kept], rows.distance[kept], rows.id[kept])
