"""What an index reports about itself: findings, repairs, backups, audits, statistics."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Any

from simindex.records.advice import Advice
from simindex.values import dataclass

Progress = Callable[[int, int], None]
"""A function that is called with the amount done and the total."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that `check` noticed."""

    severity: str
    """`"error"` is damage. `"note"` is harmless, such as a stray file."""
    path: str
    """The file."""
    what: str
    """What is wrong, in words."""


@dataclass(frozen=True, slots=True)
class RepairReport:
    """What `repair` found, and what it did or would do."""

    path: str
    """The index."""
    findings: tuple[Finding, ...]
    """What is wrong. Empty if the index is not damaged."""
    steps: tuple[str, ...]
    """What was done, or would be done, in words."""
    losses: tuple[str, ...]
    """What cannot be recovered, in words."""
    rows: int
    """Rows of the index after the repair, without deleted ones, as `len` counts them."""
    lost_rows: int
    """Lost rows, without those known to have been deleted before. If their number is not known,
    `losses` says so."""
    applied: bool
    """Whether the repair was done."""
    kept: str | None = None
    """The folder with the replaced files, if there are any."""
    remaining: tuple[Finding, ...] = ()
    """What is still wrong after the repair. The repair has succeeded if this is empty. After an
    error, restore the index from a backup or build it again. A note says that the system refused to
    read it again."""

    @property
    def needed(self) -> bool:
        """Whether there is, or was, damage to repair."""
        return bool(self.findings)


@dataclass(frozen=True, slots=True)
class BackupReport:
    """What `Index.backup` did."""

    path: str
    """The folder of the backup."""
    generation: int
    """Number of the commit that it holds."""
    linked: int
    """Files that are hard links to those of the index, and take no space of their own."""
    kept: int
    """Files that the older backup at the path had already."""
    copied: int
    """Files that were copied, because the file systems differ or have no hard links."""
    bytes_copied: int
    """Bytes of the copied files and of the catalog, which is always copied."""
    verified: bool
    """Whether every byte was read and compared with its checksum."""
    seconds: float
    """How long it took."""


@dataclass(frozen=True, slots=True)
class Hot:
    """A header or a fingerprint, and how many stored rows have it."""

    value: str
    """A header in binary, or a fingerprint in hexadecimal, the first bit first."""
    rows: int
    """How many stored rows have it."""


@dataclass(frozen=True, slots=True)
class Skew:
    """Headers and fingerprints that many rows share. Deleted rows count until a compaction."""

    header_bits: int
    """Width of the headers, which is that of the largest table's directory."""
    rows_per_header: float
    """How many rows each header would have if fingerprints were uniform."""
    headers: list[Hot]
    """The headers that most rows share, at most ten."""
    fingerprints: list[Hot]
    """The fingerprints that most rows share, at most ten, each of two rows or more."""
    certain: bool
    """Whether it is certain that nothing else has more rows. With several segments it is false if
    fewer than ten are listed, or if the tenth has fewer rows than there are segments: a fingerprint
    with one row in each segment is then not noticed. After `compact(full=True)` it is true."""


@dataclass(frozen=True, slots=True)
class Compaction:
    """What `compact(full=True)` would gain, predicted from the sizes of the segments and of their
    slice lists."""

    segments: int
    """How many segments, and pending runs, every query searches now."""
    segments_after: int
    """How many it would search."""
    query_time_ratio: float
    """How many times as long one exact query takes now as it would then."""
    batch_rate_ratio: float
    """The rate of exact calls of 100,000 queries now, as a share of what it would be."""


@dataclass(frozen=True, slots=True)
class Audit:
    """A recall that `Index.audit` measured on rows of the index itself."""

    generation: int
    """The commit at which it was measured."""
    h: int
    """The distance of the queries."""
    asked: float
    """The requested recall."""
    method: str
    """The method of the queries."""
    guarantee: str
    """The guarantee of the last calls, as in `QueryStats`."""
    recall: float | None
    """The mean share of its matches that a row finds, over all rows with a match. Rows equal to it
    do not count. None if no row has a match."""
    recall_low: float
    """Lower end of the 95% interval of the recall."""
    recall_high: float
    """Upper end of this interval."""
    rows: int
    """How many sampled rows were used as queries."""
    rows_with_match: int
    """How many of them have a match."""
    matches: int
    """How many matches all these rows have, by the exact calls."""
    found: int
    """How many of these matches were found."""
    index_rows: int = 0
    """How many rows were stored then, with deleted ones."""

    @property
    def kept(self) -> bool:
        """Whether the requested recall is not above the interval."""
        return self.recall_high >= self.asked


@dataclass(frozen=True, slots=True)
class SpotCheck:
    """The recall of a handle's own queries, measured on those that it repeated exactly."""

    h: int
    """The distance of the queries."""
    asked: float
    """The requested recall."""
    first: bool
    """Whether the queries asked for one match each. The share of a query is then 1 if it got a
    match, which may be an equal row, and otherwise 0."""
    recall: float | None
    """The mean share of its matches that a query finds, over all repeated queries with a match.
    Rows equal to it do not count. None if no query has a match."""
    recall_low: float
    """Lower end of the 95% interval of the recall."""
    recall_high: float
    """Upper end of this interval."""
    queries: int
    """How many queries were not answered exactly."""
    repeated: int
    """How many of them were repeated exactly."""
    with_match: int
    """How many repeated queries have a match."""
    matches: int
    """How many matches the repeated queries have, by the exact calls."""
    found: int
    """How many of these matches were found."""

    @property
    def kept(self) -> bool:
        """Whether the requested recall is not above the interval."""
        return self.recall_high >= self.asked


@dataclass(frozen=True, slots=True)
class IndexStats:
    """What an index contains at one commit."""

    path: str
    generation: int
    """Number of the commit."""
    rows: int
    """Live rows."""
    dead_rows: int
    """Deleted rows that no compaction has dropped yet."""
    segments: int
    """Number of segments."""
    pending_rows: int
    """Rows that wait in the catalog until they become a segment."""
    tombstones: int
    """Deletions that no merge has applied to all segments yet."""
    bits: int
    """Width of a fingerprint."""
    h: int
    """The radius of calls without an h, as `Index.h`."""
    keys: bool | str
    """False, or the type of the keys."""
    bytes_segments: int
    """Size of all files next to the catalog: rows, permuted tables, slice lists, tombstones."""
    bytes_catalog: int
    """Size of the catalog."""
    bytes_per_row: float
    """Size of the index divided by its rows."""
    recipe: dict[str, Any] | None
    """The recipe as plain values."""
    sample_rows: int
    """How many rows of weights are kept, to learn how bits flip."""
    segment_list: list[dict[str, Any]]
    """One entry for each segment."""
    oldest: int | None = None
    """When the oldest row came, in seconds since 1970. None if the index does not store it, or has
    no rows."""
    structures: dict[str, int] = field(default_factory=dict)
    """How many bytes each structure takes in addition to the rows. "psm" takes only its headers."""
    skew: Skew | None = None
    """Headers and fingerprints that most rows share, with `Index.stats(skew=True)`."""
    compaction: Compaction | None = None
    """What `compact(full=True)` would bring queries within `h`. None if it would leave as many
    segments."""
    audit: Audit | None = None
    """The last recall that this handle measured, or that a writer committed."""
    advice: Advice | None = None
    """What `Index.calibrate` recommended last, and a writer committed."""
    spot_checks: list[SpotCheck] = field(default_factory=list)
    """The recall of this handle's own queries, for each h, recall and `first` of theirs."""
    flips_from: dict[int, str] = field(default_factory=dict)
    """For each h of this handle's queries, the basis of the number of flips: near-duplicates of the
    index, or weights while there are too few of them. Empty before a query below recall 1."""
    sketch_bits: int = 0
    """Width of the sketch of each row. 0 if rows have none."""
