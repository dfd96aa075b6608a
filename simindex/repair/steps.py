"""What a repair does about what a survey found: new files, a new catalog, and what is kept aside.

The invariants of `rebuild` are carried out here.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from simindex.bits.design import BlockDesign
from simindex.options import SORTED_TABLE, IndexOptions
from simindex.records.reports import RepairReport
from simindex.repair import structure_files
from simindex.repair.inventory import Inventory
from simindex.repair.segment_remains import SegmentRemains
from simindex.storage import ancestry
from simindex.storage.catalog.catalog import Catalog, Edit
from simindex.storage.catalog.leases import acquire
from simindex.storage.catalog.records import Head, encode_pending, sealed_pages
from simindex.storage.catalog.sealed_values import pack
from simindex.storage.files import durable, removal
from simindex.storage.files.envelope import Envelope, open_envelope
from simindex.storage.files.file_names import (
    CATALOG_FILES,
    KEPT_PREFIX,
    REPAIRED_CATALOG,
    TEMPORARY,
    is_file,
    next_numbered,
    repaired_catalogs,
)
from simindex.storage.files.format import write_format
from simindex.storage.segment_files import SegmentFiles, checked_designs, slice_design
from simindex.storage.snapshot import take
from simindex.storage.tables.compaction import Block, sorted_block
from simindex.storage.tables.permuted import Directories
from simindex.storage.tables.record import SegmentRecord, generation_of
from simindex.storage.tables.segment import Segment, open_segment

STAGED_PAGES = 64
"""Pages of header directories, 128 KiB each, that one transaction stores."""


class Steps:
    """What is to be done about what a survey found, and what was done so far."""

    def __init__(self, found: Inventory) -> None:
        assert found.options is not None
        self.found: Inventory = found
        self.path: Path = found.path
        self.options: IndexOptions = found.options
        self.directory: Path = found.path / "segments"
        self.designs: tuple[BlockDesign, ...] = checked_designs(found.options)
        self.files: SegmentFiles = SegmentFiles(
            self.directory, found.uuid, found.options, self.designs
        )
        self.intact: dict[str, int] = {
            file.name: file.rows if file.damage is None else file.count()[0]
            for file in found.segments
        }
        names = sorted(path.name for path in self.directory.glob("*"))
        self.beside: dict[str, dict[str, Envelope]] = {}
        """Whole files of permuted tables and slice lists, by segment and structure."""
        for file in found.segments:
            if file.damage is None:
                self.beside[file.name], findings = structure_files.whole(
                    self.directory, names, file.record(), file.fingerprints, found.uuid,
                    self.options,
                )
                found.findings += findings
        self.made: list[str] = []
        self.kept: Path | None = None

    def report(self) -> RepairReport:
        """What was found, and is or was to be done."""
        found = self.found
        rows = sum(
            file.living_rows(found.tombstones, found.expired) for file in found.segments
        )
        rows += sum(len(table) for table, _ in found.runs)
        return RepairReport(
            str(self.path), tuple(found.findings), tuple(self._told()) if found.findings else (),
            tuple(found.losses), rows, found.lost_rows, applied=False,
            kept=None if self.kept is None else str(self.kept),
        )

    @property
    def only_obstructed(self) -> bool:
        """Whether nothing is wrong but that something else has the name of LMDB's lock file."""
        return self.found.obstacle is not None and len(self.found.findings) == 1

    def _told(self) -> Iterator[str]:
        if self.only_obstructed:
            yield f"catalog/lock.mdb is moved into {KEPT_PREFIX}<n>"
            return
        if not self.found.format_sound:
            yield "FORMAT is written again"
        for file in self.found.segments:
            if file.damage is not None:
                yield (
                    f"{self.intact[file.name]:,} of the {file.rows:,} rows of {file.name} are "
                    "written as a new segment"
                )
            for structure in self._unbuilt(file):
                yield f"{structure} of {file.name} is rebuilt"
        waiting = sum(len(table) for table, _ in self.found.runs)
        files = len(self.found.segments)
        yield (
            f"a new catalog of {files:,} segment{'' if files == 1 else 's'}, {waiting:,} rows "
            f"waiting for one and {len(self.found.tombstones):,} deletions takes the old one's "
            "place"
        )
        yield f"what is replaced, or no part of the index, is moved into {KEPT_PREFIX}<n>"

    def _unbuilt(self, file: SegmentRemains) -> list[str]:
        """Structures that a whole segment has no whole file of."""
        if file.damage is not None:
            return []
        return [
            name for name in self.options.structures
            if name != SORTED_TABLE and name not in self.beside[file.name]
        ]

    def clear(self) -> None:
        """Makes way for LMDB's lock file, which the next transaction makes."""
        assert self.found.obstacle is not None
        durable.move(self.found.obstacle, self._keeping() / "lock.mdb")

    def do(self) -> None:
        """Makes the new files, then puts them in place."""
        if self.directory.exists() and not self.directory.is_dir():
            durable.move(self.directory, self._keeping() / "segments")
        if not self.directory.is_dir():
            durable.make_directory(self.directory)
        catalog = next_numbered(self.path, REPAIRED_CATALOG)
        for old in repaired_catalogs(self.path):
            # Of a repair that did not end; with anything else in it, it is not known whose.
            made = all(
                path.name in CATALOG_FILES and is_file(path)
                for path in old.iterdir()
            )
            if made and old != self.found.catalog:
                removal.remove_tree(old)
        durable.make_directory(catalog)
        try:
            live = self._build(catalog)
            unused = self._unused(live)
            linked = {
                path for path in unused
                if durable.link(path, self._keeping("segments") / path.name)
            }
            if linked:
                durable.sync_directory(self._keeping("segments"))
        except BaseException:
            self.files.remove_named(self.made)
            removal.remove_tree(catalog)
            raise
        if (self.path / "catalog").exists():
            durable.move(self.path / "catalog", self._keeping() / "catalog")
        elif self.found.catalog is not None:
            durable.move(self.found.catalog, self._keeping() / "catalog")
        durable.move(catalog, self.path / "catalog")
        if not self.found.format_sound:
            if os.path.lexists(self.path / "FORMAT"):
                durable.move(self.path / "FORMAT", self._keeping() / "FORMAT")
            write_format(self.path, self.found.uuid)
        self.files.remove_named([path.name for path in unused if path in linked])
        for path in unused:
            if path not in linked:
                durable.move(path, self._keeping("segments") / path.name)

    def _keeping(self, *inner: str) -> Path:
        """The directory for what is replaced, made when there is anything."""
        if self.kept is None:
            kept = next_numbered(self.path, KEPT_PREFIX)
            durable.make_directory(kept)
            self.kept = kept
        path = self.kept.joinpath(*inner)
        if not path.is_dir():
            durable.make_directory(path)
        return path

    def _unused(self, live: set[str]) -> list[Path]:
        """What in `segments/` will be no part of the index."""
        return [
            path for path in sorted(self.directory.iterdir())
            if path.name not in live and not TEMPORARY.fullmatch(path.name)
        ]

    def _build(self, directory: Path) -> set[str]:
        """Makes the new catalog, and the files it names; returns their names."""
        with acquire(directory, writable=True, create=True) as environment:
            catalog = Catalog(environment)
            records = [
                record for file in self.found.segments
                if (record := self._segment(file, catalog)) is not None
            ]
            edit = self._edit(records)
            catalog.commit(edit)
            take(catalog, self.directory, index=self.found.uuid, options=self.options)
        durable.sync_directory(directory)
        return set(edit.files)

    def _segment(self, file: SegmentRemains, catalog: Catalog) -> SegmentRecord | None:
        """A segment of the new index with all its structures, and its directories stored."""
        record = file.record() if file.damage is None else self._salvaged(file)
        if record is None:
            return None
        folder = replace(self.files.folder, keyed=file.keyed)
        segment = open_segment(folder, record, lambda: None)
        found = self._with_missing(record, segment)
        record, directories = structure_files.recorded(record, found, self.designs, self.options)
        _store(catalog, record.name, [(0, segment.compute_directory())])
        for part in directories:
            _store(catalog, record.name, part)
        return record

    def _salvaged(self, file: SegmentRemains) -> SegmentRecord | None:
        """A new file of the rows that no damage reaches."""
        rows, key_bytes = file.count()
        if rows == 0:
            return None
        identity = file.identity
        with self.files.open_writer(
            rows, key_bytes if file.keyed else None, horizon=identity.horizon,
            generation=identity.generation, inputs=[file.name], salvaged=True,
        ) as writer:
            for block in file.blocks() if file.ordered else _sorted(file):
                writer.write(*block)
            record = writer.finish()
        self.made.append(record.name)
        return record

    def _with_missing(self, record: SegmentRecord, segment: Segment) -> dict[str, Envelope]:
        """The files of a segment's structures, after missing and damaged ones were rebuilt."""
        found, slices = dict(self.beside.get(record.name, {})), slice_design(self.options)
        made, _ = self.files.beside(
            record, segment.fingerprints,
            [design for design in self.designs if design.structure not in found],
            None if slices is None or slices.structure in found else slices,
            generation_of(record.name),
        )
        for structure in made:
            self.made.append(structure.name)
            found[structure.structure] = open_envelope(self.directory / structure.name)
        return found

    def _edit(self, records: list[SegmentRecord]) -> Edit:
        found = self.found
        edit = Edit(b"", Head(
            found.generation, found.appended, found.next_run, latest=found.latest,
            expired=found.expired,
        ))
        edit.set_value("index", found.uuid)
        edit.set_value("options", pack(self.options.to_dict()))
        for name, payload in found.values.items():
            edit.set_value(name, payload)
        edit.set_value(ancestry.VALUE, ancestry.encode((ancestry.repaired(),)))
        edit.adopted = sum(self.intact.values()) + sum(len(table) for table, _ in found.runs)
        for record in records:
            edit.add_segment(record, [])
        for table, sample in found.runs:
            if len(table):
                edit.add_run("pending", encode_pending(table, sample), len(table))
        oldest = min((record.horizon for record in records), default=edit.head.generation)
        dead = found.tombstones
        if dead.newest > oldest:
            stored = self.files.deletions(dead, edit.head.generation)
            self.made += edit.add_tombstones(stored, len(dead))
        return edit


def _sorted(file: SegmentRemains) -> Iterator[Block]:
    """All rows that no damage reaches, in the order of a segment."""
    yield sorted_block(list(file.blocks()))


def _store(catalog: Catalog, segment: str, directories: Directories) -> None:
    """Stores header directories, some pages in a transaction."""
    pages = sealed_pages(segment, directories)
    for start in range(0, len(pages), STAGED_PAGES):
        catalog.stage(b"", pages[start : start + STAGED_PAGES])
