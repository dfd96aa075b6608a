"""The permuted tables of one block design over one segment: a `.bphs` file next to the `.rows`.

    sections   1 fingerprints  uint64 (T - 1, n, W): tables 1 to T - 1, one after the other
               5 description   and the file's name: see `structure`

Table 0 of a design is the segment's own rows. Header directories are in the catalog, as table 0's
is.

Invariants
1. Table j holds each row of the segment once, its columns permuted by `BlockDesign.permute`: so the
   memory is T n b / 8 in all, [PSM] (10).
2. The rows of a table are sorted by all their words, so that equal ones are neighbours.
3. Nothing here says which document a row is of: a hit is un-permuted and found again in table 0.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, partial

import numpy as np

from simindex._kernels import _native
from simindex.arrays import U32, U64, Bools
from simindex.bits.design import BlockDesign
from simindex.bits.splitmix import mixed
from simindex.errors import CorruptFile, InvalidOption
from simindex.storage.files.envelope import Envelope
from simindex.storage.files.envelope_writer import SectionSpec
from simindex.storage.tables.record import SegmentFolder, SegmentRecord, StructureRecord
from simindex.storage.tables.sorted_rows import SortedRows, header_bits, sorted_by_all_words
from simindex.storage.tables.structure import (
    FINGERPRINTS,
    Structure,
    new_structure,
    open_structure,
    stored_design,
)

NAME = re.compile(r"[0-9a-f]{16}-[0-9a-f]{8}-[0-9a-f]{8}\.bphs")

MAX_TABLE = (1 << 16) - 1
"""The highest number of a directory: two bytes of its key."""

SLICE_ROWS = 1 << 20

Loader = Callable[[int], U32 | None]
"""Fetches the directory of a numbered table, or says by None that it must be computed."""

Directories = list[tuple[int, U32]]
"""Header directories by the numbers of their tables."""


def free_tables(taken: Iterable[tuple[int, int]], count: int) -> int:
    """The lowest number from which on `count` directories have none of the `taken` numbers.

    Raises InvalidOption if there are no more numbers.
    """
    first = 1
    for number, _ in sorted(taken):
        if number < first:
            continue
        if number >= first + count:
            break
        first = number + 1
    if first + count - 1 > MAX_TABLE:
        raise InvalidOption(
            f"the structures of a segment have more than {MAX_TABLE} tables",
            remedy="name fewer", option="structures", expected=MAX_TABLE,
        )
    return first


def permuted_rows(fingerprints: U64, design: BlockDesign, table: int) -> U64:
    """Rows of a table, sorted by all their words.

    Parameters
    ----------
    fingerprints : uint64 (n, W)
        The segment's rows, in any order.

    Notes
    -----
    Memory is n b / 8 bytes for the result; where W > 1 as much again and 24 n for sorting.
    """
    rows = design.permute(fingerprints, table)
    if rows.shape[1] == 1:
        rows[:, 0].sort()
        return rows
    return sorted_by_all_words(rows)[0]


def write(
    folder: SegmentFolder,
    segment: SegmentRecord,
    fingerprints: U64,
    design: BlockDesign,
    *,
    first_table: int,
    generation: int,
    step: Callable[[], None] | None = None,
) -> tuple[StructureRecord, Directories]:
    """Makes the tables of a segment's rows durable; they are not part of the index yet.

    `step` is called after each table; what it raises ends the work, and no file stays.

    Notes
    -----
    One table at a time is held in memory, see `permuted_rows`, and then its directory.
    """
    count, words = fingerprints.shape
    widths = header_widths(count, design)
    directories: Directories = []
    with new_structure(
        folder, segment, design.structure,
        [SectionSpec(FINGERPRINTS, 8 * words, (design.tables - 1) * count)],
        kind="bphs", generation=generation,
    ) as (name, envelope):
        for table in range(1, design.tables):
            rows = permuted_rows(fingerprints, design, table)
            envelope.write(0, rows)
            sorted_rows = SortedRows(rows, header_bits=widths[table - 1])
            directories.append((first_table + table - 1, sorted_rows.compute_directory()))
            if step is not None:
                step()
        checksum = envelope.finish()
    record = StructureRecord(
        design.structure, name, envelope.file_bytes, checksum, first_table, widths
    )
    return record, directories


def header_widths(rows: int, design: BlockDesign) -> tuple[int, ...]:
    """Widths of the directories of tables 1 to T - 1 over this many rows."""
    return tuple(min(header_bits(rows), bits) for bits in design.header_bits[1:])


class PermutedTables(Structure):
    """A design's tables over one segment, on a memory map; or what is wrong with them."""

    def __init__(
        self,
        record: StructureRecord,
        design: BlockDesign,
        envelope: Envelope | None,
        load: Loader,
        damage: CorruptFile | None = None,
    ) -> None:
        super().__init__(record, envelope, damage)
        self.design: BlockDesign = design
        self._load = load
        self.checked: dict[tuple[int, ...], list[_native.CheckedPermuted]] = {}
        """By the flips of each table, what the kernel takes; kept by `methods.bphs`."""

    @cached_property
    def tables(self) -> tuple[SortedRows, ...]:
        """Tables 1 to T - 1; raises CorruptFile if the file could not be opened."""
        envelope = self.envelope
        words = envelope.identity.bits // 64
        section = envelope.section(FINGERPRINTS, f"V{8 * words}")
        rows, count = envelope.identity.rows, self.design.tables - 1
        if section is None or len(section) != count * rows:
            raise CorruptFile(
                f"{envelope.path} has sections that do not fit each other", path=envelope.path
            )
        tables = section.view("<u8").reshape(count, rows, words)
        return tuple(
            SortedRows(
                tables[table], header_bits=self.record.header_bits[table],
                # Not of this object: a cycle would keep the map open.
                load_directory=partial(self._load, self.record.first_table + table),
            )
            for table in range(count)
        )


def open_permuted(
    folder: SegmentFolder,
    segment: SegmentRecord,
    record: StructureRecord,
    load_directory: Loader,
) -> PermutedTables:
    """Maps the file a catalog record names, once file, record and segment agree.

    What is wrong with the file is kept in the result, to be raised when it is used; see
    `open_structure` of a file that is gone.
    """
    design = stored_design(record, folder.bits, BlockDesign.parse)
    envelope, damage = open_structure(folder, segment, record, directories=design.tables - 1)
    return PermutedTables(record, design, envelope, load_directory, damage)


def content_sum(fingerprints: U64) -> int:
    """A sum of hashes over rows (n, W): equal for the same rows in any order."""
    total = 0
    for start in range(0, len(fingerprints), SLICE_ROWS):
        part = fingerprints[start : start + SLICE_ROWS]
        hashes = np.zeros(len(part), np.uint64)
        for word in range(part.shape[1]):
            hashes = mixed(hashes + part[:, word])
        total += int(np.add.reduce(hashes))
    return total & ((1 << 64) - 1)


def disorder(tables: PermutedTables, expected_sum: int) -> Iterator[str]:
    """What is wrong with the rows of a file whose checksums hold; reads them all."""
    for number, table in enumerate(tables.tables, 1):
        rows = table.fingerprints
        total = 0
        for start in range(0, len(rows), SLICE_ROWS):
            part = rows[start : start + SLICE_ROWS]
            if _unsorted(rows[max(0, start - 1) : start + SLICE_ROWS]):
                yield f"table {number} is not sorted"
                break
            total += content_sum(tables.design.unpermute(part, number))
        else:
            if total & ((1 << 64) - 1) != expected_sum:
                yield f"table {number} holds other rows than the segment"


def _unsorted(rows: U64) -> bool:
    equal: Bools = np.ones(max(0, len(rows) - 1), np.bool_)
    for word in range(rows.shape[1]):
        before, after = rows[:-1, word], rows[1:, word]
        if (equal & (after < before)).any():
            return True
        equal &= after == before
    return False
