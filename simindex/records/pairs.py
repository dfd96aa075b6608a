"""Pairs of rows within a distance, and, with `collapse_equal`, groups of equal rows.

    Pairs   a (p,)   b (p,)   distance (p,)     sorted by (a, b), a < b
            similarity (p,)   similarity_error (p,)   where a similarity was asked for

`CollapsedPairs` has only pairs of different fingerprints, and `groups` of equal ones:

    row            0  1  2  3  4  5  6         groups   first  0  0  2
    fingerprint    x  y  z  x  y' x  z                  row    3  5  6
                                               pairs    (1, 4), distance 1

Invariants
1. A row is in `groups.row` if and only if an earlier row has its fingerprint. `groups.first` is the
   earliest such row.
2. No row of `pairs` is in `groups.row`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from simindex.arrays import F32, I64, U16, U64
from simindex.records import arrow
from simindex.records.clusters import Clusters
from simindex.records.estimate import estimated, standard_error
from simindex.records.matches import KeySource
from simindex.records.stars import stars

PairKeys = Callable[[], tuple[list[str], list[str]] | tuple[list[bytes], list[bytes]]]
"""Fetches the keys of both columns of pairs."""


class Pair(NamedTuple):
    """Two rows within h of each other."""

    a: int
    b: int
    distance: int


class SimilarPair(NamedTuple):
    """Two rows of at least the similarity that was asked for."""

    a: int
    b: int
    distance: int
    similarity: float
    similarity_error: float


class Pairs:
    """Pairs of rows within h of each other, each once, with a < b, ordered by (a, b).

    The columns `a`, `b` and `distance` (uint16) all have shape (p,). `a` and `b` are int64 row
    numbers of the given fingerprints, or uint64 ids of an index. Iteration gives `Pair` objects.

    If a similarity was asked for, `distance` counts in how many of `similarity_bits` bits the
    sketches differ. In recipes without idf this count is corrected for texts that have few
    features, and by the measure "jaccard" for different numbers of them. `similarity` is the
    similarity that it stands for, and iteration gives `SimilarPair` objects.
    """

    __slots__ = ("_fetch_keys", "a", "b", "distance", "guarantee", "measure", "similarity_bits")

    def __init__(
        self,
        a: I64 | U64,
        b: I64 | U64,
        distance: U16,
        fetch_keys: PairKeys | None = None,
        *,
        similarity_bits: int = 0,
        measure: str = "cosine",
        guarantee: str = "exact",
    ) -> None:
        self.a: I64 | U64 = a
        self.b: I64 | U64 = b
        self.distance: U16 = distance
        self._fetch_keys = fetch_keys and KeySource(fetch_keys)
        self.similarity_bits: int = similarity_bits
        """If a similarity was asked for: how many bits were compared for `distance`, those of the
        sketches, or of the fingerprints if there are no sketches. Else 0."""
        self.measure: str = measure
        """What `similarity` is: ``"cosine"`` or ``"jaccard"``."""
        self.guarantee: str = guarantee
        """``"exact"``, or which share of the pairs is expected, in words."""

    @property
    def similarity(self) -> F32 | None:
        """The estimated cosine of each pair, float32 (p,). None unless it was asked for."""
        bits = self.similarity_bits
        return estimated(self.distance, bits, self.measure) if bits else None

    @property
    def similarity_error(self) -> F32 | None:
        """The standard error of `similarity`, float32 (p,). None unless it was asked for.

        It is too small where few features have most of the weight of a text: often in texts of
        fewer than 50 features if the recipe has idf or the index no sketch, and in a text of any
        length if one word outweighs all others. It holds for all with ``projection="gaussian"``.
        docs/explanation/methods.md has the figures.
        """
        bits = self.similarity_bits
        return standard_error(self.distance, bits, self.measure) if bits else None

    def clusters(self, *, prefer: Any = None) -> Clusters:
        """Star clusters of these pairs: documents that have a pair, each near its representative.

        Needs all pairs in one object; `Index.clusters` takes them a part at a time, and lists
        documents without a pair, too. The result does not depend on the order of pairs.

        Parameters
        ----------
        prefer : ids (p,), optional
            Which documents become representatives before others, best first; others come after
            these, by id. Default: those with most pairs.

        Raises
        ------
        InvalidBatch
            If `prefer` is not a list of ids.

        Notes
        -----
        Takes about 60 bytes a pair.
        """
        return stars(
            self.a, self.b, self.distance, None, prefer, similarity_bits=self.similarity_bits,
            measure=self.measure,
            named=None if self._fetch_keys is None else self._named,
        )

    def _named(self) -> list[tuple[I64 | U64, Sequence[Any]]]:
        a, b = self.keys() or ([], [])
        return [(self.a, a), (self.b, b)]

    def keys(self) -> tuple[list[str], list[str]] | tuple[list[bytes], list[bytes]] | None:
        """The keys of a and of b, fetched from the index. None if there are no keys."""
        return None if self._fetch_keys is None else self._fetch_keys()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The columns `a`, `b`, `a_key` and `b_key` if there are keys, and `distance`; then
        `similarity` and `similarity_error`, if a similarity was asked for."""
        columns: dict[str, arrow.Column] = {"a": self.a, "b": self.b}
        keys = self.keys()
        if keys is not None:
            columns["a_key"], columns["b_key"] = keys
        columns["distance"] = self.distance
        similarity, error = self.similarity, self.similarity_error
        if similarity is not None and error is not None:
            columns |= {"similarity": similarity, "similarity_error": error}
        return arrow.stream(columns)

    def __repr__(self) -> str:
        return f"<{len(self)} Pairs>"

    def __len__(self) -> int:
        return len(self.a)

    def __iter__(self) -> Iterator[Pair | SimilarPair]:
        columns = (self.a.tolist(), self.b.tolist(), self.distance.tolist())
        similarity, error = self.similarity, self.similarity_error
        if similarity is None or error is None:
            return map(Pair, *columns)
        return map(SimilarPair, *columns, similarity.tolist(), error.tolist())


class RotationStats(NamedTuple):
    """How rotation found pairs, and how many it missed."""

    method: str
    guarantee: str
    """`"exact"`, or the recall in words, with its basis."""
    exact: bool
    """Whether no pair is missing: all rows were compared, or an exact search found no others."""
    rotations: int
    window: int
    rows_compared: int
    """How many pairs of rows were compared, in all rotations."""
    recall: float | None
    """Share of all pairs within h that was found. None if it was not measured."""
    recall_low: float
    """Lower end of the 95% interval of the recall. It is `recall` if all rows were compared."""
    recall_high: float
    """Upper end of this interval."""
    recall_rows: int
    """How many rows were compared with all others to measure the recall."""
    seconds: float

    @property
    def false_negatives(self) -> float | None:
        """Share of all pairs within h that was missed."""
        return None if self.recall is None else 1 - self.recall


class RotationPairs(Pairs):
    """Pairs that rotation found. `stats` shows which share of all pairs this is."""

    __slots__ = ("stats",)

    def __init__(self, pairs: Pairs, stats: RotationStats) -> None:
        super().__init__(pairs.a, pairs.b, pairs.distance)
        self.stats: RotationStats = stats

    def __repr__(self) -> str:
        return f"<{len(self)} Pairs by rotation, {self.stats.guarantee}>"


class EqualRows:
    """Rows that equal an earlier row: columns `first` and `row`, int64 (e,), by (first, row).

    `first` is the earliest row with the same fingerprint. From an index both columns are uint64
    ids, and `first` is the smallest id. Iteration gives tuples (first, row).
    """

    __slots__ = ("_fetch_keys", "first", "row")

    def __init__(
        self, first: I64 | U64, row: I64 | U64, fetch_keys: PairKeys | None = None
    ) -> None:
        self.first: I64 | U64 = first
        self.row: I64 | U64 = row
        self._fetch_keys = fetch_keys and KeySource(fetch_keys)

    def keys(self) -> tuple[list[str], list[str]] | tuple[list[bytes], list[bytes]] | None:
        """The keys of both columns. None if there are no keys."""
        return None if self._fetch_keys is None else self._fetch_keys()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The columns `first` and `row`, and `first_key` and `row_key` if there are keys."""
        columns: dict[str, arrow.Column] = {"first": self.first, "row": self.row}
        keys = self.keys()
        if keys is not None:
            columns["first_key"], columns["row_key"] = keys
        return arrow.stream(columns)

    def __repr__(self) -> str:
        return f"<{len(self)} EqualRows>"

    def __len__(self) -> int:
        return len(self.row)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return iter(zip(self.first.tolist(), self.row.tolist(), strict=True))

    def labels(self, n: int) -> I64:
        """For each of `n` rows, the first row that equals it, which may be the row itself."""
        labels = np.arange(n, dtype=np.int64)
        labels[self.row] = self.first
        return labels


class CollapsedPairs(Pairs):
    """Pairs of the first rows of different fingerprints. `groups` has the rows equal to them.

    If sketches were compared, equal rows are those whose sketches are equal, too.

    A pair (a, b) represents every pair of a row equal to a and a row equal to b. Any two rows of a
    group are a pair, too, at distance 0. `represented` counts all these pairs.
    """

    __slots__ = ("groups",)

    def __init__(
        self,
        a: I64 | U64,
        b: I64 | U64,
        distance: U16,
        groups: EqualRows,
        fetch_keys: PairKeys | None = None,
        *,
        similarity_bits: int = 0,
        measure: str = "cosine",
        guarantee: str = "exact",
    ) -> None:
        super().__init__(
            a, b, distance, fetch_keys, similarity_bits=similarity_bits, measure=measure,
            guarantee=guarantee,
        )
        self.groups: EqualRows = groups

    def clusters(self, *, prefer: Any = None) -> Clusters:
        """As `Pairs.clusters`, of these and the equal rows that they represent."""
        groups = self.groups
        return stars(
            self.a, self.b, self.distance, (groups.first, groups.row), prefer,
            similarity_bits=self.similarity_bits, measure=self.measure,
            named=None if self._fetch_keys is None else self._named,
        )

    def _named(self) -> list[tuple[I64 | U64, Sequence[Any]]]:
        first, row = self.groups.keys() or ([], [])
        return [*super()._named(), (self.groups.first, first), (self.groups.row, row)]

    def __repr__(self) -> str:
        return f"<{len(self)} CollapsedPairs, {len(self.groups)} rows equal to an earlier one>"

    @property
    def represented(self) -> int:
        """How many pairs of rows these represent, including pairs of equal rows.

        An index returns pairs in parts, and the groups of a pair may be in another part. Then only
        the sum of all parts is meaningful.
        """
        repeats = Counter(self.groups.first.tolist())
        within = sum(more * (more + 1) // 2 for more in repeats.values())
        return within + sum(
            (repeats[a] + 1) * (repeats[b] + 1)
            for a, b in zip(self.a.tolist(), self.b.tolist(), strict=True)
        )
