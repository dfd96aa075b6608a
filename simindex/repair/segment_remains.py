"""What is intact of a segment's file: all of it, or the rows that no damage reaches.

    header page    says where the sections are; if it is damaged, other records of the segment
                   may give it again, and the footer says whether it is the same
    checksums      one a chunk; a chunk counts if it agrees with its own, so footer and further
                   checksums may be damaged
    a row          counts if all chunks that its fingerprint, its id, its sketch, the ends of its
                   key and its key are in do, and its key makes its id and is text where keys are
                   text
    a time         that damage reaches is not known: the row counts as one that came now
    their order    is looked at, but rows out of order count

Invariant: no byte is given out that does not agree with a checksum of the file.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simindex._kernels import _native
from simindex.arrays import I64, U8, U32, U64, Bools
from simindex.errors import CorruptFile
from simindex.options import IndexOptions
from simindex.records.sketches import record_bytes
from simindex.repair.damaged_files import mapped, opened_rows
from simindex.storage.catalog.records import LAST_GENERATION
from simindex.storage.catalog.sealed_values import unpack
from simindex.storage.files.envelope import (
    CHUNK_BYTES,
    FOOTER,
    PAGE_BYTES,
    Header,
    Identity,
    is_whole,
    open_envelope,
    seed,
)
from simindex.storage.tables.compaction import Block
from simindex.storage.tables.keys import KeyHeap
from simindex.storage.tables.record import MAX_ROWS, SegmentFolder, SegmentRecord, generation_of
from simindex.storage.tables.segment import IDS, KEY_BYTES, KEY_OFFSETS, open_segment
from simindex.storage.tables.sketches import SKETCHES
from simindex.storage.tables.sorted_rows import header_bits
from simindex.storage.tables.structure import DESCRIPTION, FINGERPRINTS, MAX_DESCRIPTION_BYTES
from simindex.storage.tables.times import LAST_TIME, TIMES, now
from simindex.storage.tables.tombstones import Tombstones
from simindex.values import dataclass

WINDOW_WORDS = 1 << 20
"""Words of fingerprints that are looked at together."""

SUMMED_BYTES = 1 << 26
"""Bytes that are summed between two calls of `progress`; whole chunks."""

BytesRead = Callable[[int], None]
"""Told how many bytes more were read."""



@dataclass(frozen=True, slots=True)
class _Section:
    offset: int
    itemsize: int
    count: int
    data: U8
    sound: Bools
    """By chunk."""

    def reaches(self, items: I64) -> Bools:
        """Whether some items are within sound chunks."""
        first = items * self.itemsize // CHUNK_BYTES
        last = ((items + 1) * self.itemsize - 1) // CHUNK_BYTES
        return self.sound[first] & self.sound[last]


class SegmentRemains:
    """A `.rows` file as far as it is intact; see the module.

    Raises
    ------
    CorruptFile
        If nothing of it can be trusted: its header is damaged, or it is not a file of simindex.
    FormatTooNew, FormatTooOld
        If another version wrote it.
    """

    def __init__(
        self, path: Path, progress: BytesRead | None = None, *,
        header: U8 | None = None,
    ) -> None:
        self.path: Path = path
        self.name: str = path.name
        with opened_rows(path) as file:
            fd = file.fileno()
            self.size: int = os.fstat(fd).st_size
            page = header
            if page is None:
                page = np.frombuffer(os.pread(fd, PAGE_BYTES, 0), np.uint8)
            if not is_whole(page):
                raise self._corrupt("has a damaged header")
            self.header: Header = Header.read(str(path), page)
            self._map = mapped(path, fd, self.size)
        self.identity: Identity = self.header.identity
        self.rows: int = self.header.identity.rows
        self._check_identity()
        self.keyed: bool = KEY_OFFSETS in self.header.table["kind"]
        """Whether its rows have keys."""
        self.timed: bool = TIMES in self.header.table["kind"]
        """Whether its rows have times."""
        self.sketch_bits: int = sum(
            int(item) // 8 * 64 for item in self.header.table["itemsize"][
                self.header.table["kind"] == SKETCHES
            ][:1]
        )
        """Width of a row's sketch; 0 if rows have none."""
        self._blind = self.size < self.header.checksum_offset
        """Whether it is cut short before its checksums, so that nothing can be trusted."""
        self._sections = {} if self._blind else self._read_sections(progress)
        self.footer_checksum: int | None = None
        self.damage: str | None = None
        """What is wrong with the file, None if nothing is."""
        try:
            envelope = open_envelope(path)
            self.footer_checksum = envelope.footer_checksum
            if envelope.filled_gaps():
                self.damage = f"{path} is not zero between its sections"
        except CorruptFile as error:
            self.damage = error.what
        bad = [np.flatnonzero(~section.sound) for section in self._sections.values()]
        places = list(zip(self._sections.values(), bad, strict=True))
        for section, chunks in places:
            if len(chunks) and self.damage is None:
                at = section.offset + int(chunks[0]) * CHUNK_BYTES
                self.damage = (
                    f"{path} is damaged in {sum(map(len, bad))} of its chunks, the first at {at}"
                )
        if not self._blind:
            self._check_sections()
        self.ordered: bool = True
        """Whether its rows are in order; `examine` finds out."""
        self._options: IndexOptions | None = None
        self._counted: tuple[int, int] | None = None

    def examine(self, options: IndexOptions) -> None:
        """Reads the rows, and notes as damage what is wrong with them though checksums hold.

        The options are those of its index. O(bytes of the file), in bounded memory.
        """
        self._options, self._counted = options, None
        total = key_bytes = previous = 0
        for start, stop in self._windows():
            rows = np.flatnonzero(self.intact(start, stop)) + start
            if not len(rows):
                continue
            total += len(rows)
            if self.keyed:
                offsets = self._column(KEY_OFFSETS, "<i8")
                key_bytes += int((offsets[rows + 1] - offsets[rows]).sum())
            words = self.columns()[0][rows]
            if int(words[0]) < previous or (words[1:] < words[:-1]).any():
                self.ordered = False
            previous = int(words[-1])
        self._counted = total, key_bytes
        if self.damage is None and total < self.rows:
            self.damage = (
                f"{self.path} has {self.rows - total:,} keys that are out of bounds, no text, or "
                "of other ids"
            )
        if self.damage is None and not self.ordered:
            self.damage = f"{self.path} has rows that are not sorted"
        if self.damage is None and self.timed and not self._tells_its_oldest():
            self.damage = f"{self.path} has rows older than it says"
        if self.damage is None and self.footer_checksum is not None:
            own = self.identity
            try:
                folder = SegmentFolder(
                    self.path.parent, own.index, own.bits, self.keyed, timed=self.timed,
                    sketch_words=self.sketch_bits // 64,
                )
                open_segment(folder, self.record(), lambda: None)
            except CorruptFile as error:
                self.damage = error.what

    def record(self) -> SegmentRecord:
        """The record of an undamaged file, without its structures."""
        assert self.footer_checksum is not None
        return SegmentRecord(
            self.name, self.rows, self.identity.horizon, self.header.file_bytes,
            self.footer_checksum, header_bits(self.rows),
        )

    def _corrupt(self, what: str) -> CorruptFile:
        return CorruptFile(f"{self.path} {what}", path=str(self.path))

    def _check_identity(self) -> None:
        found = self.identity
        if (
            not 64 <= found.bits <= 4096 or found.bits % 64
            or found.rows > MAX_ROWS
            or max(found.generation, found.horizon) >= LAST_GENERATION
            or generation_of(self.name) != found.generation
            or int(self.name[17:25], 16) != found.file_id & 0xFFFFFFFF
        ):
            raise self._corrupt("has another name than its header says")

    def _read_sections(self, progress: BytesRead | None) -> dict[int, _Section]:
        """Sections by kind, bounded by the file's real size; overlapping ones are refused."""
        self.header.check_table(str(self.path))
        start, end = self.header.checksum_offset, self.header.file_bytes - FOOTER.itemsize
        checksums = self._map[start:end]
        checksums = checksums[: len(checksums) // 4 * 4].view("<u4")
        found: dict[int, _Section] = {}
        first = 0
        for place, entry in enumerate(self.header.table):
            kind, itemsize, offset, count, chunks = (int(value) for value in entry)
            if kind in found:
                raise self._corrupt("has a section twice")
            data = self._map[offset : min(offset + itemsize * count, self.size)]
            expected = checksums[first : first + chunks]
            first += chunks
            sound = np.zeros(chunks, np.bool_)
            for at in range(0, len(data), SUMMED_BYTES):
                part = data[at : at + SUMMED_BYTES]
                number = at // CHUNK_BYTES
                actual = _native.crc32c_chunks(
                    part, CHUNK_BYTES, seed(self.identity.file_id, place), number
                )
                known = expected[number : number + len(actual)]
                sound[number : number + len(known)] = actual[: len(known)] == known
                if progress is not None:
                    progress(len(part))
            found[kind] = _Section(offset, itemsize, count, data, sound)
        return found

    def _check_sections(self) -> None:
        rows, items = self.identity.rows, {FINGERPRINTS: self.identity.bits // 8, IDS: 8}
        counts = {FINGERPRINTS: rows, IDS: rows}
        if KEY_OFFSETS in self._sections or KEY_BYTES in self._sections:
            items |= {KEY_OFFSETS: 8, KEY_BYTES: 1}
            counts[KEY_OFFSETS] = rows + 1
        if TIMES in self._sections:
            items[TIMES], counts[TIMES] = 4, rows + 1
        if SKETCHES in self._sections:
            items[SKETCHES], counts[SKETCHES] = record_bytes(self.sketch_bits // 64), rows
        for kind, itemsize in items.items():
            section = self._sections.get(kind)
            if section is None or section.itemsize != itemsize or (
                section.count != counts.get(kind, section.count)
            ):
                raise self._corrupt("has sections that do not fit each other")

    def description(self) -> dict[str, Any]:
        """What it says of its index; nothing if that is damaged."""
        section = self._sections.get(DESCRIPTION)
        if section is None or not section.sound.all() or section.itemsize != 1:
            return {}
        if len(section.data) > MAX_DESCRIPTION_BYTES:
            return {}
        try:
            told = unpack(self.name, section.data.tobytes())
        except CorruptFile:
            return {}
        return told if isinstance(told, dict) else {}

    def _windows(self) -> Iterator[tuple[int, int]]:
        step = max(1, WINDOW_WORDS * 64 // (self.identity.bits + self.sketch_bits))
        for start in range(0, 0 if self._blind else self.rows, step):
            yield start, min(self.rows, start + step)

    def _column(self, kind: int, dtype: str) -> NDArray[Any]:
        """A column's items as far as the file goes."""
        section = self._sections[kind]
        whole = len(section.data) // section.itemsize * section.itemsize
        return section.data[:whole].view(dtype)

    def intact(self, start: int, stop: int) -> Bools:
        """Which of the rows from start to stop no damage reaches, by their keys, too, once these
        were examined."""
        if self._counted is not None and self._counted[0] == self.rows:
            return np.ones(stop - start, np.bool_)
        rows = np.arange(start, stop, dtype=np.int64)
        whole = self._sections[FINGERPRINTS].reaches(rows) & self._sections[IDS].reaches(rows)
        if self.sketch_bits:
            whole &= self._sections[SKETCHES].reaches(rows)
        if self.keyed:
            offsets, data = self._sections[KEY_OFFSETS], self._sections[KEY_BYTES]
            whole &= offsets.reaches(rows) & offsets.reaches(rows + 1)
            ends = np.zeros((stop - start, 2), np.int64)
            among = np.flatnonzero(whole)
            column = self._column(KEY_OFFSETS, "<i8")
            ends[among, 0], ends[among, 1] = column[start + among], column[start + among + 1]
            inside = (ends[:, 0] >= 0) & (ends[:, 0] <= ends[:, 1]) & (ends[:, 1] <= data.count)
            ends[~inside] = 0
            before = np.concatenate([[0], np.cumsum(~data.sound)])
            first, last = ends[:, 0] // CHUNK_BYTES, -(-ends[:, 1] // CHUNK_BYTES)
            whole &= inside & (before[np.maximum(first, last)] == before[first])
            among = np.flatnonzero(whole)
            options = self._options
            if options is not None and len(among):
                ids = self._column(IDS, "<u8")[start + among]
                keys = self._keys(start, stop, among)
                whole[among] = ~keys.faulty(ids, options.key_kind, options.stored_secret)
        return whole

    def count(self) -> tuple[int, int]:
        """(rows, bytes of their keys) that no damage reaches, as `examine` found them."""
        assert self._counted is not None
        return self._counted

    def _tells_its_oldest(self) -> bool:
        """Whether the last time of an undamaged file is the least of the others."""
        times = self._column(TIMES, "<u4")
        least = [int(times[start:stop].min()) for start, stop in self._windows()]
        return int(times[-1]) == min(least, default=LAST_TIME)

    def times(self, rows: I64) -> U32:
        """When some rows came; those of which it is not known came now."""
        found = np.full(len(rows), now(), np.uint32)
        known = self._sections[TIMES].reaches(rows)
        found[known] = self._column(TIMES, "<u4")[rows[known]]
        return found

    def latest(self) -> int:
        """The last time of its rows, as far as it is known; 0 if it has none."""
        windows = self._windows() if self.timed else ()
        last = 0
        for start, stop in windows:
            rows = np.arange(start, stop)
            rows = rows[self._sections[TIMES].reaches(rows)]
            if len(rows):
                last = max(last, int(self._column(TIMES, "<u4")[rows].max()))
        return last

    def lost_ids(self, expired: int = 0) -> Iterator[tuple[U64, int]]:
        """Ids of rows that damage reaches, and of how many of these the ids are lost, too.

        Without rows that are known to have come before the time `expired`.
        """
        for start, stop in self._windows():
            rows = np.flatnonzero(~self.intact(start, stop)) + start
            if expired and self.timed:
                rows = rows[self.times(rows) >= expired]
            known = rows[self._sections[IDS].reaches(rows)]
            yield self._column(IDS, "<u8")[known], len(rows) - len(known)
        if self._blind:
            yield np.empty(0, np.uint64), self.rows

    def lost_rows(self, deleted: Tombstones, expired: int = 0) -> tuple[int, int]:
        """How many rows damage reaches and no deletion is known to; and of how many of these
        it is not known whether one does.

        Keys are not compared: half of a key's hash is its id.
        """
        rows = unknown = 0
        for ids, nameless in self.lost_ids(expired):
            rows += self._alive(deleted, ids, None) + nameless
            unknown += nameless
        deletable = deleted.newest > self.identity.horizon or (self.timed and expired > 0)
        return rows, unknown if deletable else 0

    def living_rows(self, deleted: Tombstones, expired: int = 0) -> int:
        """How many rows neither damage nor a deletion reaches, nor came before the time `expired`.

        Where there are deletions since it was written, its rows are read.
        """
        if deleted.newest <= self.identity.horizon and not (self.timed and expired):
            return self.count()[0]
        count = 0
        for _, ids, keys, times, _ in self.blocks():
            if times is not None:
                kept = np.flatnonzero(times >= expired)
                ids, keys = ids[kept], None if keys is None else keys.take(kept)
            count += self._alive(deleted, ids, keys)
        return count

    def _alive(self, deleted: Tombstones, ids: U64, keys: KeyHeap | None) -> int:
        """How many of some of its rows no deletion reaches."""
        rows, horizon = np.arange(len(ids)), np.full(1, self.identity.horizon, np.uint64)
        return len(ids) - int(np.count_nonzero(deleted.killed(ids, keys, rows, horizon)))

    def blocks(self) -> Iterator[Block]:
        """The rows that no damage reaches, in order."""
        words, item = self.identity.bits // 64, record_bytes(self.sketch_bits // 64)
        for start, stop in self._windows():
            rows = np.flatnonzero(self.intact(start, stop)) + start
            if not len(rows):
                continue
            fingerprints = self._column(FINGERPRINTS, f"V{8 * words}")[rows]
            keys = None
            if self.keyed:
                keys = self._keys(start, stop, rows - start)
            sketches = None
            if item:
                taken = self._column(SKETCHES, f"V{item}")[rows]
                sketches = taken.view(np.uint8).reshape(-1, item)
            yield Block(
                fingerprints.view("<u8").reshape(-1, words), self._column(IDS, "<u8")[rows], keys,
                self.times(rows) if self.timed else None, sketches,
            )

    def _keys(self, start: int, stop: int, among: I64) -> KeyHeap:
        """Keys of some of the rows from start to stop, counted from start, that are intact."""
        data = self._sections[KEY_BYTES].data
        offsets = self._column(KEY_OFFSETS, "<i8")[start : stop + 1]
        whole = KeyHeap(offsets, data)
        if len(offsets) == stop + 1 - start and whole.within().all():
            return whole.take(among)
        ends = zip(offsets[among].tolist(), offsets[among + 1].tolist(), strict=True)
        return KeyHeap.of([data[first:last].tobytes() for first, last in ends])

    @property
    def fingerprints(self) -> U64:
        """uint64 (n, W): of all rows, on the map, damaged where the file is; or none."""
        words = self.identity.bits // 64
        if self._blind:
            return np.empty((0, words), np.uint64)
        rows: U64 = self._column(FINGERPRINTS, f"V{8 * words}").view("<u8").reshape(-1, words)
        return rows

    def columns(self) -> tuple[U64, U64]:
        """First words and ids of all rows, on the map, damaged where the file is; or none."""
        ids = np.empty(0, np.uint64) if self._blind else self._column(IDS, "<u8")
        return self.fingerprints[:, 0], ids
