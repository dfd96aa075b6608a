"""What is left of an index, and what is wrong with it: what a survey fills in, a repair goes by."""

from __future__ import annotations

from dataclasses import field
from functools import partial
from pathlib import Path

from simindex.options import IndexOptions
from simindex.records.reports import Finding
from simindex.repair.catalog_contents import Waiting
from simindex.repair.segment_remains import SegmentRemains
from simindex.storage.catalog.records import Head
from simindex.storage.tables.tombstones import Tombstones
from simindex.values import dataclass


@dataclass
class Inventory:
    """See `survey`. `findings` is what is wrong, `losses` what no repair can recover."""

    path: Path
    uuid: bytes = b""
    format_sound: bool = True
    catalog: Path | None = None
    """The directory of the catalog that was read."""
    obstacle: Path | None = None
    """What is in the place of LMDB's lock file and is not a regular file."""
    head: Head | None = None
    certain: bool = False
    options: IndexOptions | None = None
    values: dict[str, bytes] = field(default_factory=dict)
    """Values of `meta` that are left."""
    segments: list[SegmentRemains] = field(default_factory=list)
    """Files that are the index, oldest first."""
    unreadable: dict[str, str] = field(default_factory=dict)
    """Segment files of which nothing can be had, with what is wrong."""
    foreign: dict[str, str] = field(default_factory=dict)
    """Segment files that were never of this index."""
    missing: dict[str, tuple[int, int | None] | None] = field(default_factory=dict)
    """Segments that are gone: their rows and horizons, as far as these are known."""
    runs: list[Waiting] = field(default_factory=list)
    """Rows waiting for a segment, without those that are deleted."""
    deletion_files: dict[str, int] = field(default_factory=dict)
    """Files of tombstones that are this index's, with their generations."""
    tombstones: Tombstones = field(default_factory=partial(Tombstones.merged, [], keyed=False))
    generation: int = 0
    """Above all that was seen."""
    appended: int = 0
    next_run: int = 0
    latest: int = 0
    """The last time of a row, as the head has it, or the rows."""
    findings: list[Finding] = field(default_factory=list)
    losses: list[str] = field(default_factory=list)
    lost_rows: int = 0
    files: dict[str, SegmentRemains] = field(default_factory=dict)

    @property
    def expired(self) -> int:
        """Rows of earlier times have expired, by the head."""
        return 0 if self.head is None else self.head.expired

    def error(self, path: Path | str, what: str) -> None:
        """Notes damage."""
        self.findings.append(Finding("error", str(path), what))

    def lose(self, what: str, rows: int = 0) -> None:
        """Notes a loss, and of how many rows for certain."""
        self.losses.append(what)
        self.lost_rows += rows
