"""What a page about an index tells, as plain values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from simindex.values import dataclass

SIZE_GROUPS = ((1, 1), (2, 2), (3, 3), (4, 5), (6, 10), (11, 30), (31, 100), (101, 1000),
               (1001, None))
"""Smallest and largest number of documents of clusters that are counted together."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A file of rows, or the rows that wait for one."""

    name: str
    rows: int
    size_bytes: int | None


@dataclass(frozen=True, slots=True)
class Pairing:
    """How far apart near-duplicates are."""

    by_distance: Sequence[int]
    """Pairs of different fingerprints by their distance, from 0 on; the first is always 0. By a
    similarity with sketches, of rows that differ in both, by the distance of sketches."""
    equal_rows: int
    """Rows whose fingerprint an earlier row has; its sketch, too, if sketches are compared."""
    cut: bool = False
    """Whether there are more pairs than were counted."""
    by_similarity: Sequence[tuple[str, int]] = ()
    """If a similarity was asked for: the pairs by their estimates, from high to low."""


@dataclass(frozen=True, slots=True)
class Member:
    """A document of a cluster."""

    name: str
    distance: int
    """To the representative."""
    similarity: float | None = None
    """Its estimate, if one was asked for."""


@dataclass(frozen=True, slots=True)
class Family:
    """A cluster that is shown, its representative first."""

    size: int
    members: Sequence[Member]
    """At most as many as were asked for."""


@dataclass(frozen=True, slots=True)
class Clustering:
    """All clusters."""

    mode: str
    """`star` or `components`."""
    documents: int
    alone: int
    """Documents without a near-duplicate."""
    clusters: int
    """Of two documents or more."""
    largest: int
    sizes: Sequence[tuple[str, int, int]]
    """Of each group of SIZE_GROUPS: its label, clusters, and documents in them."""
    families: Sequence[Family] = ()
    """The largest ones."""


@dataclass(frozen=True, slots=True)
class Chance:
    """What becomes of pairs of a similarity."""

    similarity: float
    within: float
    """The share that is within the radius."""
    kept: float | None
    """The share that a search by similarity finds and keeps; None without sketches."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What a way to search is predicted to take."""

    method: str
    recall: float
    bytes_a_row: float
    memory_bytes: int
    queries_s: float
    batch_s: float
    """Seconds of a batch of a million queries."""
    here: bool
    """Whether the index has it."""


@dataclass(frozen=True, slots=True)
class Template:
    """Rows that share their fingerprint, or the first bits of it."""

    value: str
    rows: int
    names: Sequence[str] = ()
    """Some of the documents."""


@dataclass(frozen=True, slots=True)
class Near:
    """A similarity that was asked for, in place of a radius."""

    similarity: float
    measure: str
    """`cosine` or `jaccard`."""
    most: int
    """In how many bits near-duplicates differ at most, ..."""
    bits: int
    """... of so many."""

    def __str__(self) -> str:
        what = "resemblance" if self.measure == "jaccard" else "similarity"
        return f"{what} of {self.similarity:g}"


@dataclass(frozen=True, slots=True)
class IndexReport:
    """All that the page tells; what was not asked for, or cannot be, is None or empty."""

    path: str
    version: str
    made: str
    """When, as text."""
    facts: Sequence[tuple[str, str]]
    """Names and values of the overview."""
    rows: int
    dead_rows: int
    size_bytes: int
    bytes_a_row: float
    bits: int
    sketch_bits: int
    h: int
    """The radius, of candidates if a similarity was asked for."""
    segments: Sequence[Segment] = ()
    structures: Sequence[tuple[str, int]] = ()
    """Names, and bytes beside the rows."""
    pairing: Pairing | None = None
    clustering: Clustering | None = None
    near: Near | None = None
    """The similarity that was asked for, if one was."""
    gate_similarity: float = 0.0
    """That of the column `kept`, unless one was asked for."""
    chances: Sequence[Chance] = ()
    strangers: float = 0.0
    """Rows within the radius of a document that is unrelated to all, if bits were fair coins."""
    audit: str | None = None
    costs: Sequence[Cost] = ()
    measured: bool = False
    """Whether the constants of the machine were measured on it."""
    equal: Sequence[Template] = ()
    crowded: Sequence[Template] = ()
    header_bits: int = 0
    rows_per_header: float = 0.0
    texts_given: bool = False
    notes: Sequence[str] = ()
    """What was left out, and why."""
    texts: dict[str, str] = field(default_factory=dict)
    """Texts of members by their names, as far as they were read again."""


def sizes_of(counts: Sequence[tuple[int, int]]) -> list[tuple[str, int, int]]:
    """Label, clusters and documents of each of SIZE_GROUPS up to the largest, of (size, clusters).
    """
    found = []
    for least, most in SIZE_GROUPS:
        some = [(size, number) for size, number in counts
                if size >= least and (most is None or size <= most)]
        label = f"{least:,}+" if most is None else (
            f"{least:,}" if least == most else f"{least:,}–{most:,}"
        )
        clusters = sum(number for _, number in some)
        found.append((label, clusters, sum(size * number for size, number in some)))
    while found and not found[-1][1]:
        found.pop()
    return found
