"""What an index says of itself: findings, repairs, audits, figures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Progress = Callable[[int, int], None]
"""Called with what is done and what there is in all."""


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
    """Whether nothing unlisted can have more rows. With several segments it is false where fewer
    than ten are listed, or the tenth has fewer rows than there are segments: one with a row in each
    is then not seen. `compact(full=True)` makes it certain."""


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
    h: int
    """The radius of calls without an h, as `Index.h`."""
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
    """What the number of flips is judged by, for each h that this handle was asked: near-duplicates
    of the index, or weights while there are too few of them. Empty before a query below recall 1.
    """
