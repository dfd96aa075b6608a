"""What crosses the package's boundary: a batch going in, matches coming out.

Columns travel, not objects. Shape, dtype and contiguity are checked here, once, where data enters;
inside the package arrays are trusted.

    Batch    fingerprints (n,) or (n, W)   ids or keys (n,)   weights (n, b)   skipped
    Matches  query (r,)   id (r,)   distance (r,)             sorted by (query, distance, id)
    Top...   ids (n, k)   distances (n, k)                    each row sorted by (distance, id)
    Pairs    a (p,)       b (p,)    distance (p,)             sorted by (a, b), a < b
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from simindex.errors import InvalidBatch

U64 = NDArray[np.uint64]
F32 = NDArray[np.float32]

MAX_KEY_BYTES = 65_535


@dataclass(frozen=True, slots=True)
class Skipped:
    """A text that got no fingerprint, and why."""

    position: int
    """Place among the texts given, from 0."""
    key: Any
    """Its id or key, or None."""
    reason: str
    """`"empty"` or `"too few features: 2 < 4"`."""


def as_fingerprints(values: Any, *, bits: int | None = None) -> U64:
    """Fingerprints as uint64 (n, W), C-contiguous, without a copy where that is possible.

    `bits` is the width asked for, or None to take it from the array: (n,) is 64 bits, (n, W) is
    64 W. Raises InvalidBatch on another dtype, shape or width.
    """
    if not isinstance(values, np.ndarray):
        if not isinstance(values, (list, tuple)) or not all(
            isinstance(v, (int, np.integer)) and not isinstance(v, bool) for v in values
        ):
            raise InvalidBatch(
                f"fingerprints must be a uint64 array, not {type(values).__name__}",
                found=type(values).__name__, expected="uint64 (n,) or (n, W)",
            )
        try:
            values = np.array([int(value) for value in values], dtype=np.uint64)
        except (OverflowError, ValueError) as error:
            raise InvalidBatch("a fingerprint is not within 0 .. 2**64 - 1") from error
    if values.dtype != np.uint64:
        raise InvalidBatch(
            f"fingerprints are {values.dtype}, not uint64: convert them with .astype(numpy.uint64)"
            " if no bits are lost",
            found=str(values.dtype), expected="uint64",
        )
    if values.ndim == 1:
        values = values[:, None]
    if values.ndim != 2 or values.shape[1] == 0:
        raise InvalidBatch(
            f"fingerprints have shape {values.shape}, not (n,) or (n, W)",
            found=values.shape, expected="(n,) or (n, W)",
        )
    if bits is not None and values.shape[1] * 64 != bits:
        raise InvalidBatch(
            f"fingerprints are {values.shape[1] * 64} bits wide, this needs {bits}",
            found=values.shape[1] * 64, expected=bits,
        )
    return _contiguous(values)


class Batch:
    """Fingerprints of some documents, with their ids or keys and their bit weights.

    Parameters
    ----------
    fingerprints : uint64 (n,) or (n, W)
        Bit 63 of word 0 comes first.
    ids : integers (n,), optional
        Any numbers from 0 to 2**64 - 1; they need not be unique.
    keys : sequence of str, or of bytes, optional
        Names instead of ids, at most 65,535 bytes each, of one type; str is stored as UTF-8, which
        cannot hold a lone surrogate.
    weights : float32 (n, b), optional
        The sums W whose signs are the bits, in any unit; bit 63 of word 0 is column 0. A weight of
        0 or above stands for a bit of 1.
    recipe, skipped
        Set by `Recipe.batch`: the Recipe itself, and the texts it gave no fingerprint.

    Raises
    ------
    InvalidBatch
        On a wrong dtype, shape, length or value; carries the first such row.
    """

    __slots__ = ("_rows", "ids", "keys", "recipe", "skipped", "weights")

    def __init__(
        self,
        fingerprints: Any,
        *,
        ids: Any = None,
        keys: Sequence[str] | Sequence[bytes] | None = None,
        weights: Any = None,
        recipe: Any = None,
        skipped: Sequence[Skipped] = (),
    ) -> None:
        self._rows = as_fingerprints(fingerprints)
        n = len(self._rows)
        if ids is not None and keys is not None:
            raise InvalidBatch("give ids or keys, not both: a key makes its own id")
        self.ids: U64 | None = None if ids is None else as_ids(ids, n)
        self.keys: list[str] | list[bytes] | None = None if keys is None else as_keys(keys, n)
        self.weights: F32 | None = None if weights is None else _as_weights(weights, self._rows)
        self.recipe = recipe
        self.skipped: tuple[Skipped, ...] = tuple(skipped)

    @property
    def fingerprints(self) -> U64:
        """uint64 (n,) for 64 bits, else (n, W)."""
        return self._rows[:, 0] if self._rows.shape[1] == 1 else self._rows

    @property
    def rows(self) -> U64:
        """The fingerprints as uint64 (n, W), whatever W."""
        return self._rows

    @property
    def bits(self) -> int:
        """Width b of a fingerprint."""
        return int(self._rows.shape[1]) * 64

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        named = "keys" if self.keys is not None else "ids" if self.ids is not None else "no ids"
        weighted = "with" if self.weights is not None else "without"
        return f"<Batch of {len(self)} x {self.bits} bits, {named}, {weighted} weights>"

    def take(self, rows: NDArray[np.intp]) -> Batch:
        """The batch of the given rows, in the given order."""
        keys: Any = None if self.keys is None else [self.keys[i] for i in rows.tolist()]
        return Batch(
            self._rows[rows],
            ids=None if self.ids is None else self.ids[rows],
            keys=keys,
            weights=None if self.weights is None else self.weights[rows],
            recipe=self.recipe,
        )


def as_ids(ids: Any, n: int | None) -> U64:
    """The ids as uint64 (n,); InvalidBatch names what is none."""
    array = as_array(ids, "ids")
    if array.dtype.kind in "fO" and isinstance(ids, (list, tuple)) and all(
        isinstance(value, (int, np.integer)) for value in ids
    ):  # numpy makes floats or objects of a list that spans more than int64 and uint64
        array = np.array([_as_id(row, int(value)) for row, value in enumerate(ids)], np.uint64)
    if array.dtype.kind not in "iu" and not (array.size == 0 and array.ndim == 1):
        raise InvalidBatch(
            f"ids must be whole numbers from 0 to 2**64 - 1, not {array.dtype}: "
            "give names as keys=",
            found=str(array.dtype), expected="uint64",
        )
    if array.ndim != 1 or (n is not None and len(array) != n):
        raise InvalidBatch(
            f"ids have shape {array.shape}" + (f", for {n} fingerprints" if n is not None else ""),
            found=array.shape, expected=(n,),
        )
    if array.dtype.kind == "i" and len(array) and int(array.min()) < 0:
        row = int(np.argmax(array < 0))
        raise InvalidBatch(f"the id of row {row} is negative: {int(array[row])}", row=row)
    return _contiguous(array, np.uint64)


def as_array(values: Any, name: str) -> NDArray[Any]:
    """What a caller gave as an array; InvalidBatch names it if it is none."""
    try:
        return np.asarray(values)
    except ValueError as error:
        raise InvalidBatch(f"{name} are no array: {error}") from error


def _contiguous(array: NDArray[Any], dtype: Any = None) -> NDArray[Any]:
    """As kernels take it, C-contiguous and aligned: parts of a file or a buffer may be neither."""
    array = np.ascontiguousarray(array, dtype)
    return array if array.flags.aligned else array.copy()  # `np.require` takes six times as long


def _as_id(row: int, value: int) -> int:
    if not 0 <= value < 1 << 64:
        raise InvalidBatch(f"the id of row {row} is not within 0 .. 2**64 - 1: {value}", row=row)
    return value


def as_keys(keys: Any, n: int | None) -> list[str] | list[bytes]:
    """The keys as a list of one type, each within its length; InvalidBatch names the first not."""
    try:
        if isinstance(keys, (str, bytes)) or not hasattr(keys, "__len__"):
            raise TypeError
        listed = list(keys)
    except TypeError as error:
        raise InvalidBatch(
            f"keys must be a sequence of str or bytes, not {type(keys).__name__}",
            found=type(keys).__name__,
        ) from error
    if n is not None and len(listed) != n:
        raise InvalidBatch(
            f"{n} fingerprints but {len(listed)} keys", found=len(listed), expected=n
        )
    kind = bytes if listed and isinstance(listed[0], bytes) else str
    for row, key in enumerate(listed):
        if not isinstance(key, kind):
            raise InvalidBatch(
                f"the key of row {row} is {type(key).__name__}, not {kind.__name__}: "
                "keys are str or bytes, of one type",
                row=row, found=type(key).__name__, expected=kind.__name__,
            )
        size = len(key) if isinstance(key, bytes) or key.isascii() else _utf8_bytes(key, row)
        if size > MAX_KEY_BYTES:
            raise InvalidBatch(
                f"the key of row {row} is longer than {MAX_KEY_BYTES} bytes", row=row
            )
    return listed


def _utf8_bytes(key: str, row: int) -> int:
    """Length of a key as it is stored."""
    try:
        return len(key.encode())
    except UnicodeEncodeError as error:
        lost = f"U+{ord(key[error.start]):04X}"
        raise InvalidBatch(
            f"the key of row {row} has half of a surrogate pair, {lost}, at character "
            f"{error.start}, which UTF-8 cannot hold: mend the text, or give keys of bytes to an "
            'index made with keys="bytes"',
            row=row, found=lost, offset=error.start,
        ) from error


def _as_weights(weights: Any, rows: U64) -> F32:
    array = as_array(weights, "weights")
    expected = (len(rows), rows.shape[1] * 64)
    if array.dtype.kind not in "fiu":
        raise InvalidBatch(
            f"weights are {array.dtype}, not float32", found=str(array.dtype), expected="float32"
        )
    if array.shape != expected:
        raise InvalidBatch(
            f"weights have shape {array.shape}, the fingerprints need {expected}",
            found=array.shape, expected=expected,
        )
    with np.errstate(over="ignore"):  # what is too large becomes infinite, and is refused
        array = _contiguous(array, np.float32)
    if not _all_finite(array):
        row = int(np.argmax(~np.isfinite(array).all(axis=1)))
        raise InvalidBatch(f"the weights of row {row} are not finite", row=row)
    return array


def _all_finite(array: F32) -> bool:
    # In slices: the temporary of one isfinite over a million rows would be 64 MB.
    return all(
        bool(np.isfinite(array[start : start + 65_536]).all())
        for start in range(0, len(array), 65_536)
    )


@dataclass(frozen=True, slots=True)
class Match:
    """One stored row within h of a query."""

    query: int
    id: int
    key: str | bytes | None
    distance: int


class QueryStats(NamedTuple):
    """How a query was answered."""

    method: str
    """`"psm"`, `"scan"` or a block design, with `" over queries"` where its tables were built over
    the queries; or several joined by `+` when segments differ."""
    guarantee: str
    """`"exact"`, or `"expected recall >= 0.95"` with what that expectation rests on."""
    exact: bool
    """Whether every stored row within h was found for certain."""
    flips: int
    """Bit-flip sets tried per query beside the query itself, the most over all segments."""
    probes: int
    """Header buckets looked into."""
    rows_compared: int
    """Rows whose distance was computed."""
    segments: int
    """Segments and pending runs searched."""
    seconds: float


class KeySource:
    """Where keys are fetched from when they are asked for; in a pickle, the keys themselves."""

    __slots__ = ("_fetch",)

    def __init__(self, fetch: Callable[[], Any]) -> None:
        self._fetch = fetch

    def __call__(self) -> Any:
        return self._fetch()

    def __reduce__(self) -> tuple[Any, ...]:
        return (_holding, (self._fetch(),))


def _holding(keys: Any) -> KeySource:
    return KeySource(lambda: keys)


class Matches:
    """Stored rows within h of some queries, unique, ordered by (query, distance, id).

    Columns `query` int64, `id` uint64, `distance` uint16, all (r,). Iteration gives `Match`.
    """

    __slots__ = ("_fetch_keys", "distance", "id", "query", "stats")

    def __init__(
        self,
        query: NDArray[np.int64],
        id: U64,
        distance: NDArray[np.uint16],
        stats: QueryStats,
        fetch_keys: Callable[[], list[str] | list[bytes]] | None = None,
    ) -> None:
        self.query, self.id, self.distance, self.stats = query, id, distance, stats
        self._fetch_keys = fetch_keys and KeySource(fetch_keys)

    def __repr__(self) -> str:
        return f"<{len(self)} Matches by {self.stats.method}, {self.stats.guarantee}>"

    def __len__(self) -> int:
        return len(self.query)

    def keys(self) -> list[str] | list[bytes] | None:
        """Keys of the matches in their order, or None when the index has no keys."""
        return None if self._fetch_keys is None else self._fetch_keys()

    def __iter__(self) -> Iterator[Match]:
        keys = self.keys() or [None] * len(self)
        for query, row_id, key, distance in zip(
            self.query.tolist(), self.id.tolist(), keys, self.distance.tolist(), strict=True
        ):
            yield Match(query, row_id, key, distance)


NO_NEIGHBOUR = (1 << 64) - 1
"""Id of a place that no document fills; its distance is one more than there are bits."""


class TopStats(NamedTuple):
    """How the nearest documents were found, and what is promised of them."""

    method: str
    """`"scan"` or `"issl"`; or both joined by `+` when segments differ."""
    guarantee: str
    """`"exact"`, or in words what is looked at, and the recall with what that rests on."""
    exact: bool
    """Whether these are the nearest documents for certain."""
    recall: float | None
    """Share of the nearest documents that was found when it was measured, for `max_error="auto"`;
    1.0 if exact, None if it was not measured."""
    max_error: int | None
    """Bits in which a slice may differ from the query's; None if no slice lists were used."""
    rerank: int | None
    """Rows of a segment whose distance was computed for a query, at most; None as above."""
    lists: int
    """Slice lists looked into."""
    rows_compared: int
    """Rows whose distance was computed."""
    segments: int
    """Segments and pending runs searched."""
    seconds: float


NearestKeys = Callable[[], list[list[str]] | list[list[bytes]]]
"""Fetches the keys of each query's nearest documents."""


class TopMatches:
    """The k nearest documents of each query, nearest first, of equally near ones the smallest id.

    `ids` uint64 (n, k) and `distances` uint16 (n, k). A document is all rows of one id, and stands
    at the distance of its nearest row. Places that none fills have id 2**64 - 1 and a distance of
    one more than there are bits. Iteration gives a `Match` for each place that is filled.
    """

    __slots__ = ("_fetch_keys", "bits", "distances", "ids", "stats")

    def __init__(
        self,
        ids: U64,
        distances: NDArray[np.uint16],
        stats: TopStats,
        bits: int,
        fetch_keys: NearestKeys | None = None,
    ) -> None:
        self.ids, self.distances, self.stats, self.bits = ids, distances, stats, bits
        self._fetch_keys = fetch_keys and KeySource(fetch_keys)

    def __repr__(self) -> str:
        queries, k = self.ids.shape
        return f"<TopMatches {queries} x {k} by {self.stats.method}, {self.stats.guarantee}>"

    @property
    def found(self) -> NDArray[np.int64]:
        """How many places of each query are filled, int64 (n,)."""
        counts: NDArray[np.int64] = (self.distances <= self.bits).sum(axis=1, dtype=np.int64)
        return counts

    def __len__(self) -> int:
        return int(self.found.sum())

    def keys(self) -> list[list[str]] | list[list[bytes]] | None:
        """Keys of each query's documents in their order, or None when the index has no keys."""
        return None if self._fetch_keys is None else self._fetch_keys()

    def __iter__(self) -> Iterator[Match]:
        keys = self.keys()
        for query, count in enumerate(self.found.tolist()):
            places = zip(
                self.ids[query, :count].tolist(), self.distances[query, :count].tolist(),
                [None] * count if keys is None else keys[query], strict=True,
            )
            for row_id, distance, key in places:
                yield Match(query, row_id, key, distance)


PairKeys = Callable[[], tuple[list[str], list[str]] | tuple[list[bytes], list[bytes]]]
"""Fetches the keys of both columns of pairs."""


class Pair(NamedTuple):
    """Two rows within h of each other."""

    a: int
    b: int
    distance: int


class Pairs:
    """Rows within h of each other, unique, a < b, ordered by (a, b).

    Columns `a` and `b`, int64 row numbers of the fingerprints given, or uint64 ids from an index,
    and `distance` uint16, all (p,). Iteration gives `Pair`.
    """

    __slots__ = ("_fetch_keys", "a", "b", "distance")

    def __init__(
        self,
        a: NDArray[np.int64] | U64,
        b: NDArray[np.int64] | U64,
        distance: NDArray[np.uint16],
        fetch_keys: PairKeys | None = None,
    ) -> None:
        self.a, self.b, self.distance = a, b, distance
        self._fetch_keys = fetch_keys and KeySource(fetch_keys)

    def keys(self) -> tuple[list[str], list[str]] | tuple[list[bytes], list[bytes]] | None:
        """Keys of a and of b, or None when they have none; fetched from the index when asked."""
        return None if self._fetch_keys is None else self._fetch_keys()

    def __repr__(self) -> str:
        return f"<{len(self)} Pairs>"

    def __len__(self) -> int:
        return len(self.a)

    def __iter__(self) -> Iterator[Pair]:
        columns = (self.a.tolist(), self.b.tolist(), self.distance.tolist())
        return map(Pair, *columns)


class RotationStats(NamedTuple):
    """How pairs were found by rotation, and how many were not."""

    method: str
    guarantee: str
    """`"exact"`, or the recall in words with what it rests on."""
    exact: bool
    """Whether no pair is missed: all were compared, or all that an exact search found are there."""
    rotations: int
    window: int
    rows_compared: int
    """Pairs of rows whose distance was computed, over all rotations."""
    recall: float | None
    """Share of all pairs within h that was found; None if that was not measured."""
    recall_low: float
    """Lower end of its 95% interval; `recall` itself where all rows were compared for it."""
    recall_high: float
    recall_rows: int
    """Rows that were compared with all others to measure it."""
    seconds: float

    @property
    def false_negatives(self) -> float | None:
        """Share of all pairs within h that was missed."""
        return None if self.recall is None else 1 - self.recall


class RotationPairs(Pairs):
    """Pairs that rotation found; `stats` says what share of all that is."""

    __slots__ = ("stats",)

    def __init__(self, pairs: Pairs, stats: RotationStats) -> None:
        super().__init__(pairs.a, pairs.b, pairs.distance)
        self.stats = stats

    def __repr__(self) -> str:
        return f"<{len(self)} Pairs by rotation, {self.stats.guarantee}>"


@dataclass(frozen=True, slots=True)
class Finding:
    """Something `check` noticed."""

    severity: str
    """`"error"`: damage; `"note"`: harmless, such as a stray file."""
    path: str
    what: str


@dataclass(frozen=True, slots=True)
class RepairReport:
    """What `repair` found, and what it did about it or would do."""

    path: str
    findings: tuple[Finding, ...]
    """What is wrong; nothing if the index is whole."""
    steps: tuple[str, ...]
    """What was done, or would be."""
    losses: tuple[str, ...]
    """What could not be brought back, in words."""
    rows: int
    """Rows that are in the index afterwards, as `len` counts them: without deleted ones."""
    lost_rows: int
    """Rows that are lost, without those known to have been deleted before; where it is not known
    how many, `losses` says so."""
    applied: bool
    """Whether it was done."""
    kept: str | None = None
    """The directory with what was replaced, if anything was."""
    remaining: tuple[Finding, ...] = ()
    """What is wrong with the index after it was done. The repair has succeeded if this is empty.
    After an error restore the index from a copy, or build it anew; a note says that the system
    would not read it again."""

    @property
    def needed(self) -> bool:
        """Whether there is, or was, anything to repair."""
        return bool(self.findings)


@dataclass(frozen=True, slots=True)
class Hot:
    """A header or a fingerprint, and how many stored rows have it."""

    value: str
    """A header in binary, its first bit first; a fingerprint in hexadecimal."""
    rows: int


@dataclass(frozen=True, slots=True)
class Skew:
    """Where rows crowd, deleted ones included until a compaction drops them."""

    header_bits: int
    """Width of the headers: that of the largest table's directory."""
    rows_per_header: float
    """What each header would have if fingerprints were uniform."""
    headers: list[Hot]
    """Those that most rows share, at most ten."""
    fingerprints: list[Hot]
    """Those that most rows share, at most ten, each of two rows or more."""
    certain: bool
    """Whether nothing unlisted can have more rows: false only for many segments without a hot one,
    where the tenth hardly differs from the eleventh."""


@dataclass(frozen=True, slots=True)
class Audit:
    """A recall that was measured on the index itself; made by `Index.audit`."""

    generation: int
    """The commit it was measured at."""
    h: int
    asked: float
    """The recall asked for."""
    method: str
    guarantee: str
    """What `QueryStats` say of the last calls."""
    recall: float | None
    """Mean over the rows with a match of the share of their matches that was found, rows equal to
    them left out; None if no row has one."""
    recall_low: float
    """Lower end of its 95% interval."""
    recall_high: float
    rows: int
    """Sampled rows that were asked."""
    rows_with_match: int
    matches: int
    """Of all these rows, by the exact calls."""
    found: int
    index_rows: int = 0
    """Rows stored then, deleted ones included."""

    @property
    def kept(self) -> bool:
        """Whether the asked recall is within or below the interval: nothing speaks against it."""
        return self.recall_high >= self.asked


@dataclass(frozen=True, slots=True)
class SpotCheck:
    """The recall of a handle's own queries, measured on those that it has repeated exactly."""

    h: int
    asked: float
    """The recall asked for."""
    first: bool
    """Whether one match of a query was asked for: its share is 1 if it got one, equal rows
    included, else 0."""
    recall: float | None
    """Mean over the repeated queries with a match of the share of their matches that was found,
    rows equal to it left out; None if no query has one."""
    recall_low: float
    """Lower end of its 95% interval."""
    recall_high: float
    queries: int
    """All that were not answered exactly."""
    repeated: int
    with_match: int
    matches: int
    """Of the repeated queries, by the exact calls."""
    found: int

    @property
    def kept(self) -> bool:
        """Whether the asked recall is within or below the interval: nothing speaks against it."""
        return self.recall_high >= self.asked


@dataclass(frozen=True, slots=True)
class IndexStats:
    """What an index holds, as of one commit."""

    path: str
    generation: int
    rows: int
    """Live rows."""
    dead_rows: int
    """Rows deleted but not yet compacted away."""
    segments: int
    pending_rows: int
    tombstones: int
    bits: int
    keys: bool | str
    bytes_segments: int
    """Of all their files: rows, permuted tables and slice lists."""
    bytes_catalog: int
    bytes_per_row: float
    recipe: dict[str, Any] | None
    sample_rows: int
    """Rows whose weights are kept, to learn from how bits flip."""
    segment_list: list[dict[str, Any]]
    structures: dict[str, int] = field(default_factory=dict)
    """Bytes that each structure takes beside the rows; "psm" takes none but its headers."""
    skew: Skew | None = None
    """The hottest headers and fingerprints, if `Index.stats` was asked for them."""
    audit: Audit | None = None
    """The last recall measured, by this handle or by a writer that committed it."""
    spot_checks: list[SpotCheck] = field(default_factory=list)
    """The recall of this handle's own queries, for each h, recall and `first` they asked for."""
    flips_from: dict[int, str] = field(default_factory=dict)
    """What this handle has learned how bits flip from, by h: near-duplicates of the index, or
    random pairs while there are too few of them. Empty before a query below recall 1."""
