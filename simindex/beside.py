"""Files of permuted tables and slice lists that stand beside a segment and are whole."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from simindex.designs import slice_design
from simindex.errors import CorruptFile
from simindex.options import IndexOptions
from simindex.records import Finding
from simindex.simhash.permutation import BlockDesign
from simindex.storage import permuted, slicelist
from simindex.storage.envelope import Envelope, open_envelope
from simindex.storage.permuted import Directories
from simindex.storage.segment import (
    FINGERPRINTS,
    SegmentRecord,
    StructureRecord,
    description_of,
)
from simindex.storage.table import SortedRows, header_bits


def files_of(names: Sequence[str], segment: str) -> Iterator[str]:
    """Those that are named as if they stood beside a segment, of sorted names of files."""
    prefix = f"{segment[:25]}-"
    for place in range(bisect_left(names, prefix), len(names)):
        name = names[place]
        if not name.startswith(prefix):
            return
        if permuted.NAME.fullmatch(name) or slicelist.NAME.fullmatch(name):
            yield name


def whole(
    directory: Path, names: Sequence[str], record: SegmentRecord, index: bytes,
    options: IndexOptions,
) -> tuple[dict[str, Envelope], list[Finding]]:
    """The structures of the options that a segment has a whole file of, by name; what is wrong.

    `names` are those of all files in `directory`, sorted. Reads the files.
    """
    found: dict[str, Envelope] = {}
    findings: list[Finding] = []
    for path in map(directory.joinpath, files_of(names, record.name)):
        try:
            envelope = open_envelope(path)
            structure, *owner = description_of(envelope)
            identity = envelope.identity
            if owner != [record.name, record.footer_checksum] or (
                identity.index, identity.rows, identity.horizon, identity.bits
            ) != (index, record.rows, record.horizon, options.bits):
                raise CorruptFile(f"{path} is not of the segment beside it", path=str(path))
            envelope.verify()
            if envelope.filled_gaps():
                raise CorruptFile(f"{path} is not zero between its sections", path=str(path))
        except (CorruptFile, OSError, TypeError, ValueError) as error:
            findings.append(Finding("error", str(path), str(error)))
            continue
        if structure in options.structures and structure not in found:
            found[structure] = envelope
    for name in options.structures:
        if name != "psm" and name not in found:
            findings.append(Finding("error", str(directory / record.name), f"has no whole {name}"))
    return found, findings


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
    made: list[tuple[BlockDesign, StructureRecord, Envelope]] = []
    for design in designs:
        if design.structure not in found:
            continue
        envelope = found[design.structure]
        taken = [d for structure in structures for d in structure.directories]
        structure = StructureRecord(
            design.structure, Path(envelope.path).name, envelope.file_bytes,
            envelope.footer_checksum, permuted.free_tables(taken, design.tables - 1),
            tuple(
                min(header_bits(record.rows), design.header_bits[table])
                for table in range(1, design.tables)
            ),
        )
        structures.append(structure)
        made.append((design, structure, envelope))
    slices = slice_design(options)
    if slices is not None and slices.structure in found:
        envelope = found[slices.structure]
        structures.append(StructureRecord(
            slices.structure, Path(envelope.path).name, envelope.file_bytes,
            envelope.footer_checksum, 1, (),
        ))

    def directories() -> Iterator[Directories]:
        for design, structure, envelope in made:
            words = envelope.identity.bits // 64
            section = envelope.section(FINGERPRINTS, f"V{8 * words}")
            if section is None or len(section) != (design.tables - 1) * record.rows:
                raise CorruptFile(
                    f"{envelope.path} has sections that disagree", path=envelope.path
                )
            tables = section.view("<u8").reshape(design.tables - 1, record.rows, words)
            for (number, width), rows in zip(structure.directories, tables, strict=True):
                yield [(number, SortedRows(rows, header_bits=width).compute_directory())]

    return replace(record, structures=tuple(structures)), directories()
