"""Files of permuted tables and slice lists that are next to a segment and are those of its rows.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from simindex.arrays import U64
from simindex.bits.design import BlockDesign
from simindex.errors import CorruptFile, raised_by_a_handler, what_happened
from simindex.options import SORTED_TABLE, IndexOptions
from simindex.records.reports import Finding
from simindex.repair.damaged_files import whole_envelope
from simindex.storage.files.envelope import Envelope
from simindex.storage.segment_files import checked_designs, slice_design
from simindex.storage.tables import permuted, slice_lists
from simindex.storage.tables.permuted import Directories, PermutedTables
from simindex.storage.tables.record import SegmentRecord, StructureRecord
from simindex.storage.tables.slice_lists import SliceLists
from simindex.storage.tables.structure import description_of


def files_of(names: Sequence[str], segment: str) -> Iterator[str]:
    """From sorted file names, those that are named like files of a segment's structures."""
    prefix = f"{segment[:25]}-"
    for place in range(bisect_left(names, prefix), len(names)):
        name = names[place]
        if not name.startswith(prefix):
            return
        if permuted.NAME.fullmatch(name) or slice_lists.NAME.fullmatch(name):
            yield name


def whole(
    directory: Path, names: Sequence[str], record: SegmentRecord, fingerprints: U64, index: bytes,
    options: IndexOptions,
) -> tuple[dict[str, Envelope], list[Finding]]:
    """The structures of the options that a segment has a whole file of, by name; what is wrong.

    `names` are those of all files in `directory`, sorted, and `fingerprints` (n, W) the segment's
    rows, which are whole. Reads the files, and compares them with what the rows make.
    """
    found: dict[str, Envelope] = {}
    findings: list[Finding] = []
    designs = {design.structure: design for design in checked_designs(options)}
    slices = slice_design(options)
    expected_sum = cache(lambda: permuted.content_sum(fingerprints))

    def disorder(structure: str, envelope: Envelope) -> Iterator[str]:
        if slices is not None and slices.structure == structure:
            lists = SliceLists(_record(structure, envelope), slices, envelope)
            return slice_lists.disorder(lists, fingerprints)
        tables = _tables(record, envelope, designs[structure], 1)
        return permuted.disorder(tables, expected_sum())

    for path in map(directory.joinpath, files_of(names, record.name)):
        try:
            envelope = whole_envelope(path)
            structure, *owner = description_of(envelope)
            identity = envelope.identity
            if owner != [record.name, record.footer_checksum] or (
                identity.index, identity.rows, identity.horizon, identity.bits
            ) != (index, record.rows, record.horizon, options.bits):
                raise CorruptFile(f"{path} belongs to another segment", path=str(path))
            envelope.verify()
            if envelope.filled_gaps():
                raise CorruptFile(f"{path} is not zero between its sections", path=str(path))
            if structure in options.structures:
                for what in disorder(structure, envelope):
                    raise CorruptFile(f"{path}: {what}", path=str(path))
        except (CorruptFile, TypeError, ValueError) as error:
            if raised_by_a_handler(error):
                raise
            findings.append(Finding("error", str(path), what_happened(error)))
            continue
        if structure in options.structures and structure not in found:
            found[structure] = envelope
    for name in options.structures:
        if name != SORTED_TABLE and name not in found:
            findings.append(Finding("error", str(directory / record.name), f"has no whole {name}"))
    return found, findings


def _tables(
    record: SegmentRecord, envelope: Envelope, design: BlockDesign, first_table: int
) -> PermutedTables:
    """Permuted tables of a file that no catalog names yet, whose directories are to be computed."""
    widths = permuted.header_widths(record.rows, design)
    unnamed = _record(design.structure, envelope, first_table, widths)
    return PermutedTables(unnamed, design, envelope, lambda table: None)


def _record(
    structure: str, envelope: Envelope, first_table: int = 1, widths: tuple[int, ...] = ()
) -> StructureRecord:
    """The record of a file that no catalog names yet; slice lists have no directories."""
    return StructureRecord(
        structure, Path(envelope.path).name, envelope.file_bytes, envelope.footer_checksum,
        first_table, widths,
    )


def recorded(
    record: SegmentRecord,
    found: dict[str, Envelope],
    designs: tuple[BlockDesign, ...],
    options: IndexOptions,
) -> tuple[SegmentRecord, Iterator[Directories]]:
    """A segment's record with the structures found, and their directories, one at a time.

    Directories are computed from the rows, each when it is asked for.
    """
    structures: list[StructureRecord] = []
    made: list[PermutedTables] = []
    for design in designs:
        if design.structure not in found:
            continue
        taken = [d for structure in structures for d in structure.directories]
        first_table = permuted.free_tables(taken, design.tables - 1)
        tables = _tables(record, found[design.structure], design, first_table)
        structures.append(tables.record)
        made.append(tables)
    slices = slice_design(options)
    if slices is not None and slices.structure in found:
        structures.append(_record(slices.structure, found[slices.structure]))

    def directories() -> Iterator[Directories]:
        for tables in made:
            numbers = [number for number, _ in tables.record.directories]
            for number, table in zip(numbers, tables.tables, strict=True):
                yield [(number, table.compute_directory())]

    return replace(record, structures=tuple(structures)), directories()
