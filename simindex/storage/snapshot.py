"""The index as of one commit: its tables, its tombstones, its sample of weights.

A snapshot is taken in one short transaction, after which nothing of the catalog is held: segment
files that a later compaction unlinks live on while they are mapped.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from pathlib import Path

import numpy as np

from simindex._kernels import _native
from simindex.arrays import I64, U8, U32
from simindex.bits.design import BlockDesign
from simindex.errors import CorruptFile
from simindex.options import IndexOptions, is_slicing
from simindex.records.batch import Batch
from simindex.simhash.recipe import Recipe
from simindex.storage.catalog.catalog import Catalog
from simindex.storage.catalog.records import Head, Run, SealedHead, decode_pending
from simindex.storage.files.checksums import Verify, verified
from simindex.storage.files.envelope import ask_ahead
from simindex.storage.segment_files import checked_designs, slice_design
from simindex.storage.tables.compaction import Block, in_order
from simindex.storage.tables.deletion_file import open_run
from simindex.storage.tables.deletions import (
    NOTHING_DEAD,
    READ_ROWS,
    DeadRows,
    Deletions,
    Sampled,
)
from simindex.storage.tables.permuted import open_permuted
from simindex.storage.tables.record import SegmentFolder, SegmentRecord
from simindex.storage.tables.reservoir import Reservoir
from simindex.storage.tables.row_names import Names, named
from simindex.storage.tables.segment import Segment, open_segment
from simindex.storage.tables.slice_lists import SliceDesign, open_slices
from simindex.storage.tables.table import Table
from simindex.storage.tables.times import LAST_TIME
from simindex.storage.tables.tombstones import Tombstones

MAX_RESERVOIR_ROWS = 1 << 18

RETRIES = 10
"""How often a reader takes a new head when a compaction unlinks a file under its hands."""


class OtherOptions(Exception):
    """A commit has changed the options, which say how a snapshot is read."""


class Snapshot:
    """Immutable; see the module."""

    def __init__(
        self,
        catalog: Catalog,
        value: bytes,
        head: Head,
        segments: tuple[Segment, ...],
        runs: tuple[Table, ...],
        tombstones: Deletions,
        samples: tuple[Reservoir, ...],
        options: IndexOptions,
    ) -> None:
        self._catalog = catalog
        self.value: bytes = value
        self.head: Head = head
        self.segments: tuple[Segment, ...] = segments
        self.pending: tuple[Table, ...] = runs
        self.tables: tuple[Table, ...] = (*segments, *runs)
        self.tombstones: Deletions = tombstones
        self.samples: tuple[Reservoir, ...] = samples
        self.options: IndexOptions = options
        self._dead: dict[str, DeadRows] = {}
        self._masks: dict[str, U8 | None] = {}
        self._sampled: dict[str, Sampled] = {}
        self.ready: object = None
        """What a handle has made ready to ask it once more: it goes with the maps that it is of."""
        self.slices: SliceDesign | None = slice_design(options)
        """Of the slice lists that every new segment gets; None if it gets none."""

    @cached_property
    def designs(self) -> tuple[BlockDesign, ...]:
        """Block designs whose tables some segment has, or will have."""
        found = {
            tables.design.structure: tables.design
            for segment in self.segments for tables in segment.structures.values()
        }
        found.update((design.structure, design) for design in checked_designs(self.options))
        return tuple(found.values())

    @cached_property
    def slice_bits(self) -> int | None:
        """Width of the narrowest slices that any segment has lists of; None if none has lists."""
        return min((s.slices.width for s in self.segments if s.slices is not None), default=None)

    @cached_property
    def stored_rows(self) -> int:
        """Rows in all tables, deleted ones included."""
        return sum(len(table) for table in self.tables)

    def runs_of(self, named: Sequence[Run]) -> list[Tombstones]:
        """The tombstones of some runs that the head names."""
        runs = zip(self.head.tombstones, self.tombstones.runs, strict=True)
        return [run for own, run in runs if own in named]

    @property
    def oldest(self) -> int:
        """The commit up to which tombstones were applied to every table."""
        return min((table.horizon for table in self.tables), default=self.head.generation)

    @cached_property
    def dead_rows(self) -> int:
        """Rows that are deleted but still stored. Reads all ids once if anything was deleted, and
        all times if anything has expired."""
        return sum(self._dead_rows(table).count for table in self.tables)

    def _dead_rows(self, table: Table) -> DeadRows:
        """Which rows of a table are deleted, a bit a row: made when first asked for, by reading all
        ids of the table, and again after later deletions."""
        known = self._dead.get(table.name, NOTHING_DEAD)
        if known.commit != self.head.generation:
            known = known.advanced(table, self.tombstones, self.head.generation)
            self._dead[table.name] = known
        return known

    def dead(self, table: Table) -> U8 | None:
        """Which rows of a table are deleted, uint8 (n,), a byte a row; None if none is.
        """
        if table.name not in self._masks:
            self._masks[table.name] = self._dead_rows(table).mask(len(table))
        return self._masks[table.name]

    def dead_share(self, table: Table) -> float:
        """About what part of a table's rows is deleted: see `Sampled`."""
        if not self.tombstones.concerns(table):
            return 0.0
        known = self._sampled.get(table.name) or Sampled.of(table)
        if known.commit != self.head.generation:
            known = known.advanced(table, self.tombstones, self.head.generation)
            self._sampled[table.name] = known
        return known.share

    @cached_property
    def oldest_time(self) -> int | None:
        """The least time of a row that is not deleted; None if there is none.

        Reads the times of tables that have deleted rows, in addition to what `dead_rows` reads.
        """
        least = LAST_TIME + 1
        for table in self.tables:
            if table.times is None or table.oldest >= least:
                continue
            bits = self._dead_rows(table).bits
            if bits is None:
                least = table.oldest
                continue
            for start in range(0, len(table), READ_ROWS):
                times = verified(table.times[start : start + READ_ROWS])
                live = times[np.unpackbits(bits[start // 8 :], count=len(times)) == 0]
                if len(live):
                    least = min(least, int(live.min()))
        return None if least > LAST_TIME else least

    def named(self, names: Names) -> Iterator[tuple[Table, I64, I64]]:
        """Live rows that have some names: a table, places of names, and rows; see `row_names`."""
        for table in self.tables:
            places, rows = named(table.by_id, table.keys, names)
            if len(rows):
                live = ~self.tombstones.dead(table, table.ids[rows], rows)
                yield table, places[live], rows[live]

    @cached_property
    def live_rows(self) -> int:
        """Rows that are not deleted."""
        return self.stored_rows - self.dead_rows

    def leave(self, error: CorruptFile) -> bool:
        """Whether it is of a structure that can be done without; it is then not planned with again.
        """
        for segment in self.segments:
            structures = (*segment.structures.values(), segment.slices)
            for structure in structures:
                if structure is not None and structure.path == error.data.get("path"):
                    if structure.damage is None:
                        structure.damage = CorruptFile(
                            error.what, remedy=error.remedy, **error.data
                        )
                    return True
        return False

    def keep(self, before: Snapshot) -> None:
        """Takes over what an earlier commit knows of tables; later deletions are added when asked.

        A mask stays while nothing is deleted, a sample until it is asked for again.
        """
        if self.options is before.options and self.segments == before.segments:
            self.designs = before.designs
        for table in self.tables:
            name = table.name
            known = before._dead.get(name)
            if known is not None:
                self._dead[name] = known
                unchanged = (
                    self.tombstones.newest <= known.commit
                    and self.tombstones.expired == known.expired
                )
                if name in before._masks and unchanged:
                    self._masks[name] = before._masks[name]
            if name in before._sampled:
                self._sampled[name] = before._sampled[name]

    @cached_property
    def reservoir(self) -> Reservoir:
        """Sampled rows with their weights: the segments' and the pending runs'.

        Raises CorruptFile if it cannot be read, or a weight is not a number.
        """
        parts, words = [part for part in self.samples if len(part)], self.options.words
        with self._catalog.reading() as reading:
            _, newest = reading.head()
            # A later commit may have replaced the value; then the pending runs' part must do.
            if newest.values.get("reservoir") == self.head.values.get("reservoir"):
                payload = reading.value(self.head, "reservoir")
                parts += [Reservoir.decode("the index", payload, words)] if payload else []
        merged = Reservoir.merged([Reservoir.empty(words), *parts], MAX_RESERVOIR_ROWS)
        merged.check()
        return merged


def live_rows(
    snapshot: Snapshot, chunk_rows: int, options: IndexOptions, recipe: Recipe | None
) -> Iterator[tuple[Batch, U32 | None]]:
    """All live rows as batches of 1 to `chunk_rows`, in order; see `Index.rows`. With their times,
    if they have any."""
    tables = snapshot.tables

    def live_block(place: int, start: int, stop: int) -> Block:
        table = tables[place]
        live = snapshot.tombstones.alive(table, start, stop)
        fingerprints = verified(table.fingerprints[start:stop])
        ids = verified(table.ids[start:stop])
        heap = None if table.keys is None else table.keys.slice(start, stop)
        times = None if table.times is None else verified(table.times[start:stop])
        sketches = None if table.sketches is None else verified(table.sketches[start:stop])
        if live is None:
            return Block(fingerprints, ids, heap, times, sketches)
        return Block(
            fingerprints[live], ids[live], None if heap is None else heap.take(live),
            None if times is None else times[live],
            None if sketches is None else sketches[live],
        )

    for fingerprints, ids, heap, times, sketches in in_order(tables, live_block, chunk_rows):
        for start in range(0, len(ids), chunk_rows):
            part = slice(start, min(start + chunk_rows, len(ids)))
            sketch = None if sketches is None else sketches[part]
            if heap is not None:
                keys = heap.slice(part.start, part.stop).decoded(options.key_kind)
                batch = Batch(fingerprints[part], keys=keys, recipe=recipe, sketch=sketch)
            else:
                batch = Batch(fingerprints[part], ids=ids[part], recipe=recipe, sketch=sketch)
            yield batch, None if times is None else times[part]


def take(
    catalog: Catalog,
    segments_directory: Path,
    *,
    index: bytes,
    options: IndexOptions,
    options_checksum: int | None = None,
    before: Snapshot | None = None,
    verify: Verify = "lazy",
) -> Snapshot:
    """The newest snapshot, which is `before` if nothing was committed since; what is in both is
    opened once.

    Raises CorruptFile when a record or a file the head names is missing or damaged, and, with
    `options_checksum`, OtherOptions when the head names options of another one.
    """
    gone = "a segment"
    for attempt in range(1, RETRIES + 1):
        try:
            folder = SegmentFolder(
                segments_directory, index, options.bits, options.keyed, verify,
                timed=options.times, sketch_words=options.sketch_words,
                missing_ok=attempt == RETRIES,
            )
            return _take(catalog, folder, options, options_checksum, before)
        except FileNotFoundError as error:
            # Not the error itself: it leads to this frame, and with it to what `before` has mapped.
            gone = error.filename or gone
    raise CorruptFile(f"the catalog names {gone}, which is missing", path=gone)


def _take(
    catalog: Catalog, folder: SegmentFolder, options: IndexOptions, options_checksum: int | None,
    before: Snapshot | None,
) -> Snapshot:
    known = None if before is None else SealedHead(before.value, before.head)
    waiting: dict[Run, tuple[Table, Reservoir]] = {}
    if before is not None:
        waiting = dict(zip(
            before.head.pending, zip(before.pending, before.samples, strict=True), strict=True
        ))
    dead: Deletions | None = None
    records: list[SegmentRecord] = []
    decoded: dict[Run, Tombstones] = {}
    with catalog.reading() as reading:
        value, head = reading.head(known)
        if options_checksum is not None and head.values.get("options") != options_checksum:
            raise OtherOptions
        if before is not None and value == before.value:
            return before
        _native.expect_segments(len(head.segments))
        changed = before is None or head.segments != before.head.segments
        if changed:
            # A segment that was given other structures has its old name and another record.
            opened = {} if before is None else {
                segment.name: before.head.segments[segment.name] for segment in before.segments
            }
            records = [
                reading.segment(head, name) for name, crc in head.segments.items()
                if opened.get(name) != crc
            ]
        pending = [
            waiting.get(run) or decode_pending(
                f"pending run {run.number}", reading.run("pending", run), rows=run.rows,
                words=options.words, keyed=folder.keyed, horizon=run.horizon, timed=folder.timed,
                sketch_words=folder.sketch_words,
            )
            for run in head.pending
        ]
        if before is not None and head.tombstones == before.head.tombstones:
            dead = before.tombstones
            if head.expired != dead.expired:
                dead = Deletions(dead.runs, head.expired)
        else:
            if before is not None:
                runs = before.tombstones.runs
                decoded = dict(zip(before.head.tombstones, runs, strict=True))
            for run in head.tombstones:
                if run not in decoded and not run.file:
                    decoded[run] = Tombstones.decode(
                        f"run {run.number}", reading.run("tombstones", run), keyed=folder.keyed
                    )
    if dead is None:
        for run in head.tombstones:
            if run not in decoded:
                decoded[run] = open_run(
                    folder, run.file, rows=run.rows, newest=run.horizon,
                    footer_checksum=run.checksum,
                )
        dead = Deletions([decoded[run] for run in head.tombstones], head.expired)
    segments = () if before is None else before.segments
    if changed:
        segments = _segments(catalog, folder, head, records, segments)
    snapshot = Snapshot(
        catalog, value, head, segments,
        tuple(table for table, _ in pending), dead, tuple(sample for _, sample in pending),
        options,
    )
    if before is not None:
        snapshot.keep(before)
    return snapshot


def _segments(
    catalog: Catalog, folder: SegmentFolder, head: Head, new: Sequence[SegmentRecord],
    opened: Sequence[Segment],
) -> tuple[Segment, ...]:
    """The segments that the head names: some that are open, and the new ones."""
    if len(new) > 1:
        ask_ahead([folder.directory / name for record in new for name in record.files])
    segments = {segment.name: segment for segment in opened}
    segments |= {record.name: _opened(catalog, folder, record) for record in new}
    return tuple(segments[name] for name in head.segments)


def _opened(catalog: Catalog, folder: SegmentFolder, record: SegmentRecord) -> Segment:
    """A segment with its structures, on their maps."""
    load = partial(_load_directory, catalog, record)
    segment = open_segment(folder, record, partial(load, 0))
    segment.structures = {
        structure.structure: open_permuted(folder, record, structure, load)
        for structure in record.structures if not is_slicing(structure.structure)
    }
    for structure in record.structures:
        if is_slicing(structure.structure):
            segment.slices = open_slices(folder, record, structure)
    return segment


def _load_directory(
    catalog: Catalog, record: SegmentRecord, table: int
) -> U32 | None:
    """A header directory of a segment, or None once it was compacted away."""
    with catalog.reading() as reading:
        _, head = reading.head()
        if record.name not in head.segments:
            return None
        # Its structures may have changed since, and others have taken their numbers.
        now = reading.segment(head, record.name)
        owner = [s for s in record.structures if table in dict(s.directories)]
        if not set(owner) <= set(now.structures):
            return None
        return reading.directory(record, table)
