"""What a search returns: matches, or the nearest rows.

    Matches     query (r,)   id (r,)   distance (r,)      sorted by (query, distance, id)
                similarity (r,)   similarity_error (r,)   where a similarity was asked for
    TopMatches  id (n, k)    distance (n, k)              each row sorted by (distance, id)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import index
from typing import Any, NamedTuple, overload

import numpy as np

from simindex.arrays import F32, I64, U16, U64, keys_of_lists, picked
from simindex.records import arrow
from simindex.records.estimate import estimated, standard_error
from simindex.values import dataclass


@dataclass(frozen=True, slots=True)
class Match:
    """One stored row within h of a query."""

    query: int
    id: int
    key: str | bytes | None
    distance: int
    similarity: float | None = None
    """The estimated cosine, if a similarity was asked for."""
    similarity_error: float | None = None
    """Standard error of the similarity."""


class QueryStats(NamedTuple):
    """How a query was answered."""

    method: str
    """`"psm"`, `"scan"`, `"issl"` or a block design, with `" over queries"` if its tables were
    built over the queries. Several methods are joined by `+` if segments differ."""
    guarantee: str
    """`"exact"`; or `"expected recall >= 0.95"`, with the near-duplicates of the index on which it
    was counted; or `"assumed: recall >= 0.95"`, with the assumption, while there are too few."""
    exact: bool
    """Whether it is certain that every stored row within h was found."""
    flips: int
    """How many sets of flipped bits were looked up for each query, in addition to the query itself:
    the largest number of all segments."""
    probes: int
    """How many header buckets were looked up."""
    rows_compared: int
    """How many rows were compared with a query."""
    segments: int
    """How many segments and pending runs were searched."""
    seconds: float
    similarity_bits: int = 0
    """If a similarity was asked for: how many bits were compared for `distance`, those of the
    sketches, or of the fingerprints if there are no sketches. Else 0."""
    measure: str = "cosine"
    """What `similarity` is: ``"cosine"`` or ``"jaccard"``."""


class KeySource:
    """A function that fetches keys when they are needed. A pickle contains the keys themselves."""

    __slots__ = ("_fetch",)

    def __init__(self, fetch: Callable[[], Any]) -> None:
        self._fetch = fetch

    def __call__(self) -> Any:
        return self._fetch()

    def __reduce__(self) -> tuple[Any, ...]:
        return (_holding, (self._fetch(),))


def _holding(keys: Any) -> KeySource:
    return KeySource(lambda: keys)


FetchKeys = Callable[[I64 | None], list[str] | list[bytes]]
"""Gives the keys of the matches at some places, or of all."""


class MatchKeys:
    """Fetches the keys of some matches when they are needed. A pickle contains the keys."""

    __slots__ = ("_fetch", "_places")

    def __init__(self, fetch: FetchKeys, places: I64 | None = None) -> None:
        self._fetch, self._places = fetch, places

    def __call__(self) -> list[str] | list[bytes]:
        return self._fetch(self._places)

    def of(self, places: I64) -> MatchKeys:
        """The keys at some of these places."""
        return MatchKeys(self._fetch, places if self._places is None else self._places[places])

    def __reduce__(self) -> tuple[Any, ...]:
        return (_of_keys, (self(),))


def _of_keys(keys: list[str] | list[bytes]) -> MatchKeys:
    def fetch(places: I64 | None) -> Any:
        return keys if places is None else picked(keys, places.tolist())

    return MatchKeys(fetch)


class Matches:
    """Stored rows within h of some queries, each once, ordered by (query, distance, id).

    The columns `query` int64, `id` uint64 and `distance` uint16 all have shape (r,). Iteration
    gives `Match` objects. `matches[0]` is a `Match`, and `matches[10:20]` is a `Matches`.

    If a similarity was asked for, `distance` counts in how many of `stats.similarity_bits` bits the
    sketches differ. In recipes without idf this count is corrected for texts that have few
    features, and by the measure "jaccard" for different numbers of them. `similarity` is the
    similarity that it stands for.
    """

    __slots__ = ("distance", "fetch_keys", "id", "query", "stats")

    def __init__(
        self,
        query: I64,
        id: U64,
        distance: U16,
        stats: QueryStats,
        fetch_keys: FetchKeys | MatchKeys | None = None,
    ) -> None:
        self.query: I64 = query
        self.id: U64 = id
        self.distance: U16 = distance
        self.stats: QueryStats = stats
        if fetch_keys is not None and not isinstance(fetch_keys, MatchKeys):
            fetch_keys = MatchKeys(fetch_keys)
        self.fetch_keys: MatchKeys | None = fetch_keys
        """Returns the keys when it is called. None if the index has no keys."""

    def __repr__(self) -> str:
        return f"<{len(self)} Matches by {self.stats.method}, {self.stats.guarantee}>"

    def __len__(self) -> int:
        return len(self.query)

    @overload
    def __getitem__(self, place: int) -> Match: ...

    @overload
    def __getitem__(self, place: slice) -> Matches: ...

    def __getitem__(self, place: int | slice) -> Match | Matches:
        """The match at a place, or the matches of a slice. Raises IndexError beyond the end."""
        if isinstance(place, slice):
            return self.take(np.arange(*place.indices(len(self)), dtype=np.int64))
        number = index(place)
        if not -len(self) <= number < len(self):
            raise IndexError(f"no match {number}: the number of matches is {len(self)}")
        (match,) = self.take(np.array([number % len(self)], np.int64))
        return match

    def take(self, places: I64) -> Matches:
        """The matches at some places, int64 (s,) from 0 on, in the given order."""
        keys = None if self.fetch_keys is None else self.fetch_keys.of(places)
        return Matches(
            self.query[places], self.id[places], self.distance[places], self.stats, keys
        )

    @property
    def similarity(self) -> F32 | None:
        """The estimated cosine of each match, float32 (r,). None unless it was asked for."""
        bits = self.stats.similarity_bits
        return estimated(self.distance, bits, self.stats.measure) if bits else None

    @property
    def similarity_error(self) -> F32 | None:
        """The standard error of `similarity`, float32 (r,). None unless it was asked for.

        It is too small where few features have most of the weight of a text: often in texts of
        fewer than 50 features if the recipe has idf or the index no sketch, and in a text of any
        length if one word outweighs all others. It holds for all with ``projection="gaussian"``.
        docs/explanation/methods.md has the figures.
        """
        bits = self.stats.similarity_bits
        return standard_error(self.distance, bits, self.stats.measure) if bits else None

    def keys(self) -> list[str] | list[bytes] | None:
        """The keys of the matches, in their order. None if the index has no keys."""
        return None if self.fetch_keys is None else self.fetch_keys()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The columns `query`, `id`, `key` if there are keys, and `distance`; then `similarity` and
        `similarity_error`, if a similarity was asked for."""
        columns: dict[str, arrow.Column] = {"query": self.query, "id": self.id}
        keys = self.keys()
        if keys is not None:
            columns["key"] = keys
        columns["distance"] = self.distance
        similarity, error = self.similarity, self.similarity_error
        if similarity is not None and error is not None:
            columns |= {"similarity": similarity, "similarity_error": error}
        return arrow.stream(columns)

    def __iter__(self) -> Iterator[Match]:
        keys = self.keys() or [None] * len(self)
        found = self.query.tolist(), self.id.tolist(), keys, self.distance.tolist()
        similarity, error = self.similarity, self.similarity_error
        if similarity is None or error is None:
            yield from map(Match, *found)
        else:
            yield from map(Match, *found, similarity.tolist(), error.tolist())


NO_NEIGHBOUR = (1 << 64) - 1
"""Id of an empty place. Its distance is one more than the number of bits."""


class TopStats(NamedTuple):
    """How the nearest documents were found, and what the result promises."""

    method: str
    """`"scan"` or `"issl"`, or both joined by `+` if segments differ."""
    guarantee: str
    """`"exact"`, or what was searched, in words, and the recall with its basis."""
    exact: bool
    """Whether it is certain that these are the nearest documents."""
    recall: float | None
    """With `max_error="auto"`, the measured share of the nearest documents that is found. 1.0 if
    exact, None if it was not measured."""
    max_error: int | None
    """In how many bits a slice may differ from the query's. None if no slice lists were used."""
    rerank: int | None
    """How many rows of a segment are compared with a query, at most. None as above."""
    lists: int
    """How many slice lists were read."""
    rows_compared: int
    """How many rows were compared with a query."""
    segments: int
    """How many segments and pending runs were searched."""
    seconds: float


NearestKeys = Callable[[], list[list[str]] | list[list[bytes]]]
"""Fetches the keys of each query's nearest documents, of bytes in `ByteKeys` of `ByteKeys`."""


class TopMatches:
    """The k nearest documents of each query, ordered by distance, then by id.

    The columns `query` int64, `id` uint64 and `distance` uint16 all have shape (n, k). A document
    is all rows of one id, and its distance is that of its nearest row. An empty place has the id
    2**64 - 1, and its distance is one more than the number of bits. Iteration gives a `Match` for
    each place that is not empty. `nearest[0]` is the first of them, and `nearest[10:20]` are the
    `Matches` of some, whose columns have shape (r,).
    """

    __slots__ = ("_fetch_keys", "bits", "distance", "id", "stats")

    def __init__(
        self,
        id: U64,
        distance: U16,
        stats: TopStats,
        bits: int,
        fetch_keys: NearestKeys | None = None,
    ) -> None:
        self.id: U64 = id
        self.distance: U16 = distance
        self.stats: TopStats = stats
        self.bits: int = bits
        self._fetch_keys = fetch_keys and KeySource(fetch_keys)

    def __repr__(self) -> str:
        queries, k = self.id.shape
        return f"<TopMatches {queries} x {k} by {self.stats.method}, {self.stats.guarantee}>"

    @property
    def query(self) -> I64:
        """The number of the query of each place, int64 (n, k), read-only."""
        numbers: I64 = np.arange(len(self.id), dtype=np.int64)[:, None]
        return np.broadcast_to(numbers, self.id.shape)

    @property
    def found(self) -> I64:
        """How many documents each query has, int64 (n,)."""
        counts: I64 = (self.distance <= self.bits).sum(axis=1, dtype=np.int64)
        return counts

    def __len__(self) -> int:
        return int(self.found.sum())

    @overload
    def __getitem__(self, place: int) -> Match: ...

    @overload
    def __getitem__(self, place: slice) -> Matches: ...

    def __getitem__(self, place: int | slice) -> Match | Matches:
        """The match at a place in the order of iteration, or the matches of a slice.

        Raises IndexError beyond the end.
        """
        return self._matches()[place]

    @property
    def has_keys(self) -> bool:
        """Whether the index has keys."""
        return self._fetch_keys is not None

    def keys(self) -> list[list[str]] | list[list[bytes]] | None:
        """The keys of each query's documents, in their order. None if the index has no keys."""
        return None if self._fetch_keys is None else self._fetch_keys()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """As `Matches` has them: a row for each place that is not empty."""
        return self._matches().__arrow_c_stream__(requested_schema)

    def __iter__(self) -> Iterator[Match]:
        return iter(self._matches())

    def _matches(self) -> Matches:
        """All places that are not empty, as one."""
        at, told = self.distance <= self.bits, self.stats
        stats = QueryStats(
            told.method, told.guarantee, told.exact, 0, 0, told.rows_compared, told.segments,
            told.seconds,
        )
        return Matches(
            self.query[at], self.id[at], self.distance[at], stats,
            self._flat_keys if self.has_keys else None,
        )

    def _flat_keys(self, places: I64 | None) -> Any:
        """Keys of the matches at some places, or of all."""
        lists: Any = self.keys()
        keys = keys_of_lists((key for some in lists for key in some), [lists, *lists[:1]])
        return keys if places is None else picked(keys, places.tolist())
