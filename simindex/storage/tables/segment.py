"""A segment: one immutable `.rows` file holding a sorted table.

    sections   1 fingerprints  uint64 (n, W)
               2 ids           uint64 (n,)
               3 key offsets   int64 (n + 1,)     only in an index with keys
               4 key bytes     uint8
               8 times         uint32 (n + 1,)    only in an index with times; see `times`
               9 sketches      uint8 (n, 8 S + 1)  only in an index with sketches; see `sketches`
               5 description   msgpack: the index's options, and of a merged segment the names of
                               those it was merged from, for rebuilding a catalog

The name is `<generation, 16 hex>-<file id's low half, 8 hex>.rows`; the generation is that of the
commit after those its rows are from, which made it live, or a later one if it is merged.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from simindex.arrays import U8, U32, U64
from simindex.errors import CorruptFile
from simindex.records.sketches import record_bytes
from simindex.storage.files.checksums import verified
from simindex.storage.files.durable import NewFile
from simindex.storage.files.envelope import Envelope, Identity, open_envelope
from simindex.storage.files.envelope_writer import EnvelopeWriter, SectionSpec, reads_back
from simindex.storage.tables.keys import KeyHeap
from simindex.storage.tables.record import NAME, SegmentFolder, SegmentRecord
from simindex.storage.tables.sketches import SKETCHES
from simindex.storage.tables.sorted_rows import header_bits
from simindex.storage.tables.structure import DESCRIPTION, FINGERPRINTS, require_named
from simindex.storage.tables.table import Table
from simindex.storage.tables.times import LAST_TIME, TIMES

IDS, KEY_OFFSETS, KEY_BYTES = 2, 3, 4

Loader = Callable[[], U32 | None]
"""Fetches a header directory, or says by None that it must be computed."""


class SegmentWriter:
    """Writes one segment as its sorted rows arrive.

    Parameters
    ----------
    rows, key_bytes : int
        How many there will be, exactly; key_bytes is None in an index without keys.
    timed : bool
        Whether rows have times.
    sketch_words : int
        Words S of a row's sketch, 0 if rows have none.
    """

    def __init__(
        self,
        directory: Path,
        *,
        index: bytes,
        generation: int,
        horizon: int,
        bits: int,
        rows: int,
        key_bytes: int | None,
        description: bytes,
        timed: bool = False,
        sketch_words: int = 0,
    ) -> None:
        file_id = int.from_bytes(os.urandom(8), "little")
        self.name: str = f"{generation:016x}-{file_id & 0xFFFFFFFF:08x}.rows"
        sections = [
            SectionSpec(FINGERPRINTS, bits // 8, rows),
            SectionSpec(IDS, 8, rows),
            SectionSpec(DESCRIPTION, 1, len(description)),
        ]
        if key_bytes is not None:
            sections.append(SectionSpec(KEY_OFFSETS, 8, rows + 1))
            sections.append(SectionSpec(KEY_BYTES, 1, key_bytes))
        self._times_place, self._oldest = len(sections) if timed else None, LAST_TIME
        if timed:
            sections.append(SectionSpec(TIMES, 4, rows + 1))
        self._sketches_place = len(sections) if sketch_words else None
        if sketch_words:
            sections.append(SectionSpec(SKETCHES, record_bytes(sketch_words), rows))
        self._rows, self._horizon = rows, horizon
        self._keyed, self._key_end = key_bytes is not None, 0
        self._file = NewFile(directory)
        try:
            identity = Identity(index, file_id, generation, horizon, rows, bits)
            self._envelope = EnvelopeWriter(self._file, identity, sections)
            self._envelope.write(2, np.frombuffer(description, np.uint8))
            if self._keyed:
                self._envelope.write(3, np.zeros(1, "<i8"))
        except BaseException:
            self._file.__exit__()
            raise

    def __enter__(self) -> SegmentWriter:
        return self

    def __exit__(self, *raised: object) -> None:
        self._file.__exit__(*raised)

    def write(
        self, fingerprints: U64, ids: U64, keys: KeyHeap | None, times: U32 | None = None,
        sketches: U8 | None = None,
    ) -> None:
        """Appends rows, which must not sort before those written already."""
        self._envelope.write(0, fingerprints)
        self._envelope.write(1, ids)
        if keys is not None:
            self._envelope.write(3, keys.offsets[1:] - keys.offsets[0] + self._key_end)
            self._envelope.write(4, keys.data)
            self._key_end += len(keys.data)
        if self._times_place is not None and times is not None and len(times):
            self._envelope.write(self._times_place, times)
            self._oldest = min(self._oldest, int(times.min()))
        if self._sketches_place is not None and sketches is not None:
            self._envelope.write(self._sketches_place, sketches)

    def finish(self) -> SegmentRecord:
        """Makes the file durable under its name; it is not part of the index until committed."""
        if self._times_place is not None:
            self._envelope.write(self._times_place, np.array([self._oldest], "<u4"))
        checksum = self._envelope.finish()
        self._file.publish(self.name, partial(reads_back, name=self.name))
        return SegmentRecord(
            self.name, self._rows, self._horizon, self._envelope.file_bytes, checksum,
            header_bits(self._rows),
        )


class Segment(Table):
    """A segment file as a table on its memory map."""

    __slots__ = ("_stored_oldest", "envelope", "record")

    def __init__(
        self, envelope: Envelope, record: SegmentRecord, load: Loader, sketch_words: int
    ) -> None:
        identity = envelope.identity
        words = identity.bits // 64
        fingerprints = envelope.section(FINGERPRINTS, f"V{8 * words}")
        ids = envelope.section(IDS, "<u8")
        offsets = envelope.section(KEY_OFFSETS, "<i8")
        data = envelope.section(KEY_BYTES, "u1")
        if fingerprints is None or ids is None or (offsets is None) != (data is None):
            raise CorruptFile(f"{envelope.path} has no such section", path=envelope.path)
        keys = None if offsets is None or data is None else KeyHeap(offsets, data)
        times = envelope.section(TIMES, "<u4")
        item = record_bytes(sketch_words)
        sketches = envelope.section(SKETCHES, f"V{item}") if item else None
        agree = len(fingerprints) == len(ids) == identity.rows
        if sketches is not None:
            agree &= len(sketches) == identity.rows
        if times is not None:
            agree &= len(times) == identity.rows + 1
        if keys is not None:
            agree &= len(keys.offsets) == identity.rows + 1
            agree &= int(keys.offsets[-1]) == len(keys.data)
        if not agree:
            raise CorruptFile(
                f"{envelope.path} has sections that do not fit each other", path=envelope.path
            )
        super().__init__(
            record.name,
            fingerprints.view("<u8").reshape(-1, words),
            ids,
            keys,
            horizon=record.horizon,
            header_bits=record.header_bits,
            load_directory=load,
            times=None if times is None else times[:-1],
            sketches=None if sketches is None else sketches.view(np.uint8).reshape(-1, item),
        )
        self._stored_oldest = None if times is None else times[-1:]
        self.envelope: Envelope = envelope
        self.record: SegmentRecord = record

    def _least_time(self) -> int:
        stored = self._stored_oldest
        return LAST_TIME if stored is None else int(verified(stored)[0])


def open_segment(
    folder: SegmentFolder, record: SegmentRecord, load_directory: Loader
) -> Segment:
    """Maps the segment a catalog record names, once file and record agree.

    Raises FileNotFoundError when the file is gone, which a reader meets when a compaction has just
    replaced it, and CorruptFile when it is another file than the record's, or has keys, times or
    sketches where `folder` says that rows of the index have none, or the other way round.
    """
    if not NAME.fullmatch(record.name):
        raise CorruptFile(f"the catalog names a segment {record.name!r}", path=record.name)
    envelope = open_envelope(folder.directory / record.name, verify=folder.verify)
    require_named(envelope, folder, record, record)
    segment = Segment(envelope, record, load_directory, folder.sketch_words)
    for what, there, wanted in (
        ("keys", segment.keys is not None, folder.keyed),
        ("times", segment.times is not None, folder.timed),
        ("sketches", envelope.has_section(SKETCHES), folder.sketch_words > 0),
    ):
        if there != wanted:
            has, options = (f"no {what}", "some") if wanted else (what, "none")
            raise CorruptFile(
                f"{envelope.path} has {has}, but the options of the index say {options}",
                path=envelope.path,
            )
    return segment
