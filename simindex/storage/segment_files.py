"""Segment files with the files of their structures: written completely, or not at all.

    SegmentFiles.write    a table in memory       -> <name>.rows, a .bphs for each design, an .issl
    SegmentFiles.merge    some segments           -> one, without their dead rows
    SegmentFiles.beside   a segment that is there -> .bphs and .issl files next to it
    SegmentFiles.deletions          tombstones    -> <name>.dead
    SegmentFiles.merge_deletions    some of these -> one

The options of the index say which structures a segment has: `checked_designs` and `slice_design`.
What is written is durable under its name and no part of the index: the catalog's next commit may
name it. Nothing here reads or writes the catalog, so any thread may call it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from simindex.bits.design import BlockDesign
from simindex.errors import CorruptFile, InvalidOption, raised_by_a_handler
from simindex.options import SORTED_TABLE, IndexOptions, is_slicing
from simindex.storage.catalog.records import Pages, sealed_pages
from simindex.storage.catalog.sealed_values import pack
from simindex.storage.files import removal
from simindex.storage.files.checksums import verified
from simindex.storage.tables import compaction, deletion_file, permuted, slice_lists
from simindex.storage.tables.permuted import Directories
from simindex.storage.tables.record import SegmentFolder, SegmentRecord, StructureRecord
from simindex.storage.tables.segment import Segment, SegmentWriter, open_segment
from simindex.storage.tables.slice_lists import SliceDesign
from simindex.storage.tables.tombstones import Tombstones
from simindex.values import dataclass

if TYPE_CHECKING:
    from simindex.arrays import U64
    from simindex.records.reports import Progress
    from simindex.storage.files.descriptor import Descriptor
    from simindex.storage.tables.deletion_file import DeletionFile
    from simindex.storage.tables.deletions import Deletions
    from simindex.storage.tables.table import Table

log: logging.Logger = logging.getLogger(__package__)

Written = tuple[SegmentRecord, Directories]
"""A durable segment that is not live yet, with the header directories of all its tables."""

LONG_ROWS, LONG_BYTES = 1 << 14, 1 << 20
"""A run of so many tombstones, or of so long a payload, is a file. A commit merges shorter ones
only, and the catalog holds no more than some of these."""

Step = Callable[[], None]
"""Called after each table, and after slices of 256 bits; what it raises ends the work."""


def checked_designs(options: IndexOptions) -> tuple[BlockDesign, ...]:
    """The block designs of `options.structures`, in their order.

    Raises
    ------
    InvalidOption
        If one cannot be made of `options.bits` bits, or all together have too many tables.
    """
    designs = _designs(tuple(options.structures), options.bits)
    tables = sum(design.tables - 1 for design in designs)
    if tables > permuted.MAX_TABLE:
        raise InvalidOption(
            f"structures={options.structures!r} need {tables} permuted tables, the limit is "
            f"{permuted.MAX_TABLE}",
            remedy="name fewer", option="structures", found=tables, expected=permuted.MAX_TABLE,
        )
    return designs


@lru_cache(maxsize=64)  # a snapshot of each commit asks
def _designs(structures: tuple[str, ...], bits: int) -> tuple[BlockDesign, ...]:
    return tuple(
        BlockDesign.parse(name, bits) for name in structures
        if name != SORTED_TABLE and not is_slicing(name)
    )


def slice_design(options: IndexOptions) -> SliceDesign | None:
    """How fingerprints are cut for the slice lists of `options.structures`, if these are there."""
    for name in options.structures:
        if is_slicing(name):
            return SliceDesign.parse(name, options.bits)
    return None


@dataclass(frozen=True, slots=True)
class Merged:
    """What a merge has made of its inputs, to be put in their place by one commit.

    Only a merge that came to its end has one. One that failed or was cancelled has none, so
    "nothing was written" and "every row was deleted" are different values.
    """

    record: SegmentRecord | None
    """The durable segment; None if every row of the inputs is deleted."""
    pages: Pages
    """Its header directories as they will be stored."""
    dead: dict[str, int]
    """Deleted rows, by input."""
    deletions: DeletionFile | None = None
    """The durable run of a merge of runs of tombstones; None if all of them are settled."""

    @property
    def files(self) -> tuple[str, ...]:
        """Names of the files that were written."""
        if self.deletions is not None:
            return (self.deletions.name,)
        return () if self.record is None else self.record.files


def describe(options: IndexOptions, inputs: Sequence[str], *, salvaged: bool = False) -> bytes:
    """What a segment says of its index, and of the segments it was made of, to a repair."""
    told = options.to_dict()
    if inputs:
        told["inputs"] = list(inputs)
    if salvaged:
        told["salvaged"] = True
    return pack(told)


@dataclass(frozen=True, slots=True)
class SegmentFiles:
    """Where an index's segment files are written, and what they carry."""

    directory: Path
    index: bytes
    options: IndexOptions
    designs: tuple[BlockDesign, ...]

    @property
    def folder(self) -> SegmentFolder:
        """What the files it opens and writes must agree with."""
        options = self.options
        return SegmentFolder(
            self.directory, self.index, options.bits, options.keyed, timed=options.times,
            sketch_words=options.sketch_words,
        )

    @property
    def slices(self) -> SliceDesign | None:
        """How fingerprints are cut for slice lists, if segments carry these."""
        return slice_design(self.options)

    @property
    def steps(self) -> int:
        """How often `step` is called for a segment."""
        sliced = 0 if self.slices is None else self.slices.steps
        return sliced + sum(design.tables - 1 for design in self.designs)

    def open_writer(
        self,
        rows: int,
        key_bytes: int | None,
        *,
        horizon: int,
        generation: int,
        inputs: Sequence[str] = (),
        salvaged: bool = False,
    ) -> SegmentWriter:
        """A new file for exactly this many rows; `inputs` names the segments that it replaces."""
        return SegmentWriter(
            self.directory,
            index=self.index,
            generation=generation,
            horizon=horizon,
            bits=self.options.bits,
            rows=rows,
            key_bytes=key_bytes,
            description=describe(self.options, inputs, salvaged=salvaged),
            timed=self.options.times,
            sketch_words=self.options.sketch_words,
        )

    def write(self, table: Table, generation: int) -> Written:
        """A table's rows as a segment."""
        key_bytes = None if table.keys is None else len(table.keys.data)
        with self.open_writer(
            len(table), key_bytes, horizon=table.horizon, generation=generation
        ) as writer:
            writer.write(
                table.fingerprints, table.ids, table.keys, table.times, table.sketches
            )
            record = writer.finish()
        return self._with_structures(record, table, generation, None)

    def merge(
        self,
        inputs: Sequence[Segment],
        tombstones: Deletions,
        *,
        horizon: int,
        generation: int,
        progress: Progress | None = None,
        step: Step | None = None,
    ) -> Merged:
        """Writes the live rows of some segments as one.

        Parameters
        ----------
        horizon : int
            The commit that `tombstones` are as of; later ones apply to the new segment.
        progress, step : functions, optional
            Called as rows are written, and after each permuted table and some slices. What they
            raise ends the merge, and none of its files stay.

        Raises
        ------
        CorruptFile, StorageFull
            If an input is damaged, or there is no space.
        """
        record, dead = self._merge_rows(inputs, tombstones, horizon, generation, progress)
        if record is None:
            return Merged(None, [], dead)
        try:
            merged = open_segment(self.folder, record, lambda: None)
        except BaseException:
            self.remove([record])
            raise
        record, directories = self._with_structures(record, merged, generation, step)
        return Merged(record, sealed_pages(record.name, directories), dead)

    def _merge_rows(
        self, inputs: Sequence[Segment], tombstones: Deletions, horizon: int, generation: int,
        progress: Progress | None,
    ) -> tuple[SegmentRecord | None, dict[str, int]]:
        """The segment with the live rows of others, if there are any, and the dead of each."""
        names = [segment.name for segment in inputs]
        merged = compaction.merge(inputs, tombstones)
        dead = dict(zip(names, merged.dead, strict=True))
        if not merged.rows:
            return None, dead
        done = 0
        with self.open_writer(
            merged.rows, merged.key_bytes, horizon=horizon, generation=generation, inputs=names
        ) as writer:
            for block in merged.blocks():
                writer.write(*block)
                done += len(block.ids)
                if progress is not None:
                    progress(done, merged.rows)
            return writer.finish(), dead

    def _with_structures(
        self, record: SegmentRecord, table: Table, generation: int, step: Step | None
    ) -> Written:
        """A new segment with its structures; none of its files stay if one fails."""
        try:
            written, directories = self.beside(
                record, table.fingerprints, self.designs, self.slices, generation, step
            )
            record = replace(record, structures=tuple(written))
            directories.insert(0, (0, table.compute_directory()))
        except BaseException:
            self.remove([record])
            raise
        return record, directories

    def beside(
        self,
        record: SegmentRecord,
        fingerprints: U64,
        designs: Sequence[BlockDesign],
        slices: SliceDesign | None,
        generation: int,
        step: Step | None = None,
    ) -> tuple[list[StructureRecord], Directories]:
        """Writes permuted tables and slice lists next to a segment's file, all or none."""
        fingerprints = verified(fingerprints) if designs or slices else fingerprints
        written: list[StructureRecord] = []
        directories: Directories = []
        try:
            for design in designs:
                taken = [*record.directories, *(d for made in written for d in made.directories)]
                structure, more = permuted.write(
                    self.folder, record, fingerprints, design,
                    first_table=permuted.free_tables(taken, design.tables - 1),
                    generation=generation, step=step,
                )
                written.append(structure)
                directories += more
            if slices is not None:
                written.append(
                    slice_lists.write(
                        self.folder, record, fingerprints, slices, generation=generation,
                        memory_bytes=self.options.slice_memory, step=step,
                    )
                )
        except BaseException:
            self.remove_named(structure.name for structure in written)
            raise
        return written, directories

    def deletions(self, run: Tombstones, generation: int) -> bytes | DeletionFile:
        """A run of tombstones as the catalog's payload or, if it is long, as a file."""
        if len(run) < min(LONG_ROWS, self.options.seal_rows):
            payload = run.encode()
            if len(payload) < LONG_BYTES:
                return payload
        return deletion_file.write(self.folder, run, generation)

    def merge_deletions(
        self, runs: Sequence[Tombstones], *, oldest: int, generation: int
    ) -> Merged:
        """Writes some runs of tombstones as one, without those that are settled.

        Every table of the index has had the tombstones up to commit `oldest` applied. Raises as
        `merge`.
        """
        for run in runs:
            if run.envelope is not None:
                run.envelope.verify()
        parts = [run.since(oldest) for run in runs]
        together = Tombstones.merged(parts, keyed=self.options.keyed)
        if not len(together):
            return Merged(None, [], {})
        return Merged(None, [], {}, deletion_file.write(self.folder, together, generation))

    def require(self, files: Mapping[str, int]) -> None:
        """Raises unless the named file exists and has this many bytes.

        Who removes files of an index by hand, or by opening it for writing a second time, may have
        taken it away since it was written.
        """
        for name, file_bytes in files.items():
            path = self.directory / name
            try:
                found = path.lstat().st_size
            except FileNotFoundError:
                found = None
            if found != file_bytes:
                raise CorruptFile(
                    f"{path} was removed or changed before its commit: nothing was committed",
                    remedy="open the index again, and repeat what was not committed",
                    path=str(path), found=found, expected=file_bytes,
                )

    def remove(self, records: Iterable[SegmentRecord]) -> None:
        """Unlinks all files of some segments; see `remove_named`."""
        for record in records:
            self.remove_named(record.files)

    def empty(self, record: SegmentRecord) -> None:
        """Gives back the space of a segment that never was part of the index, but not its name."""
        path = self.directory / record.name
        with _left_to_the_next_writer(path), suppress(FileNotFoundError):
            removal.empty(path)
        self.remove_named(record.files[1:])

    def remove_held(self, names: Iterable[str]) -> list[Descriptor]:
        """Unlinks some files; descriptors that keep their space for now."""
        held = []
        for name in names:
            with _left_to_the_next_writer(self.directory / name):
                held.append(removal.unlink_held(self.directory / name))
        return [file for file in held if file is not None]

    def remove_named(self, names: Iterable[str]) -> None:
        """Unlinks some files; one that cannot be unlinked now is a stray, and harms nothing."""
        for name in names:
            with _left_to_the_next_writer(self.directory / name):
                removal.remove(self.directory / name)


@contextmanager
def _left_to_the_next_writer(path: Path) -> Iterator[None]:
    """Logs that a file was not removed. What was done, or another error, must not be hidden."""
    try:
        yield
    except OSError as error:
        if raised_by_a_handler(error):
            raise
        log.warning("%s is not removed yet, the next writer does: %s", path, error)
