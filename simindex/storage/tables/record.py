"""What the catalog says of a segment and its structures, and the folder that they are in."""

from __future__ import annotations

import re
from pathlib import Path

from simindex.storage.files.checksums import Verify
from simindex.values import dataclass

NAME = re.compile(r"[0-9a-f]{16}-[0-9a-f]{8}\.rows")

MAX_ROWS = (1 << 32) - 1
"""A row number is an uint32."""


@dataclass(frozen=True, slots=True)
class StructureRecord:
    """What the catalog says of a structure of a segment; see `permuted` and `slice_lists`."""

    structure: str
    name: str
    file_bytes: int
    footer_checksum: int
    first_table: int
    """Number of its first directory among those of the segment: table 0 is the rows' own."""
    header_bits: tuple[int, ...]
    """Widths of its directories; slice lists have none."""

    @property
    def directories(self) -> tuple[tuple[int, int], ...]:
        """(number, width) of its directories."""
        return tuple(enumerate(self.header_bits, self.first_table))


@dataclass(frozen=True, slots=True)
class SegmentRecord:
    """What the catalog says of a segment."""

    name: str
    rows: int
    horizon: int
    """Tombstones up to this commit were applied when the file was written."""
    file_bytes: int
    footer_checksum: int
    header_bits: int
    structures: tuple[StructureRecord, ...] = ()

    @property
    def directories(self) -> tuple[tuple[int, int], ...]:
        """(number, width) of all its directories, table 0's first."""
        return ((0, self.header_bits), *(d for s in self.structures for d in s.directories))

    @property
    def files(self) -> tuple[str, ...]:
        """Names of all files of the segment."""
        return (self.name, *(structure.name for structure in self.structures))


def generation_of(name: str) -> int:
    """The generation in a segment's name."""
    return int(name[:16], 16)


@dataclass(frozen=True, slots=True)
class SegmentFolder:
    """Where segments and their structures are, and how they are opened."""

    directory: Path
    index: bytes
    """The index's uuid."""
    bits: int
    """Of a fingerprint."""
    keyed: bool
    """Whether rows have keys."""
    verify: Verify = "lazy"
    timed: bool = False
    """Whether rows have times."""
    sketch_words: int = 0
    """Words of a row's sketch; 0 where rows have none."""
    missing_ok: bool = False
    """Whether a structure without its file is opened as a damaged one."""
