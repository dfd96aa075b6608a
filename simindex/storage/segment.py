"""A segment: one immutable `.rows` file holding a sorted table.

    sections   1 fingerprints  uint64 (n, W)
               2 ids           uint64 (n,)
               3 key offsets   int64 (n + 1,)     only in an index with keys
               4 key bytes     uint8
               5 description   msgpack: the index's options, and of a merged segment the names of
                               those it was merged from, for rebuilding a catalog

The name is `<generation, 16 hex>-<file id's low half, 8 hex>.rows`; the generation is that of the
commit after those its rows are from, which made it live, or a later one if it is merged.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import msgpack
import numpy as np
from numpy.typing import NDArray

from simindex.errors import CorruptFile, raised_by_a_handler
from simindex.records import U64
from simindex.storage.envelope import (
    Envelope,
    EnvelopeWriter,
    Identity,
    SectionSpec,
    open_envelope,
)
from simindex.storage.format import NewFile
from simindex.storage.table import KeyHeap, Table, header_bits
from simindex.storage.verification import Verify, verified

FINGERPRINTS, IDS, KEY_OFFSETS, KEY_BYTES, DESCRIPTION = 1, 2, 3, 4, 5

NAME = re.compile(r"[0-9a-f]{16}-[0-9a-f]{8}\.rows")

UNDECODABLE = (ValueError, TypeError, OverflowError, msgpack.UnpackException)
"""What msgpack raises at bytes that are none of its own; anything else is no damage."""

MAX_DESCRIPTION_BYTES = 1 << 20
"""The names of thirty thousand merged segments; 64 MB in memory if it is a list of small things."""

Loader = Callable[[], NDArray[np.uint32] | None]
"""Fetches a header directory, or says by None that it must be computed."""

REBUILD = (
    "`simindex compact --structures` with the names that `simindex stats` lists builds it anew"
)
"""What helps where the file of a structure is damaged."""

MAX_ROWS = (1 << 32) - 1
"""A row number is an uint32."""


@dataclass(frozen=True, slots=True)
class StructureRecord:
    """What the catalog says of a structure that a segment carries; see `permuted`, `slicelist`."""

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


class SegmentWriter:
    """Writes one segment as its sorted rows arrive.

    Parameters
    ----------
    rows, key_bytes : int
        How many there will be, exactly; key_bytes is None in an index without keys.
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
    ) -> None:
        file_id = secrets.randbits(64)
        self.name = f"{generation:016x}-{file_id & 0xFFFFFFFF:08x}.rows"
        sections = [
            SectionSpec(FINGERPRINTS, bits // 8, rows),
            SectionSpec(IDS, 8, rows),
            SectionSpec(DESCRIPTION, 1, len(description)),
        ]
        if key_bytes is not None:
            sections.append(SectionSpec(KEY_OFFSETS, 8, rows + 1))
            sections.append(SectionSpec(KEY_BYTES, 1, key_bytes))
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
            self._file.__exit__(None, None, None)
            raise

    def __enter__(self) -> SegmentWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.__exit__(kind, error, trace)

    def write(self, fingerprints: U64, ids: U64, keys: KeyHeap | None) -> None:
        """Appends rows, which must not sort before those written already."""
        self._envelope.write(0, fingerprints)
        self._envelope.write(1, ids)
        if keys is not None:
            self._envelope.write(3, keys.offsets[1:] - keys.offsets[0] + self._key_end)
            self._envelope.write(4, keys.data)
            self._key_end += len(keys.data)

    def finish(self) -> SegmentRecord:
        """Makes the file durable under its name; it is not part of the index until committed."""
        _, checksum = self._envelope.finish(self.name)
        return SegmentRecord(
            self.name, self._rows, self._horizon, self._envelope.file_bytes, checksum,
            header_bits(self._rows),
        )


class Segment(Table):
    """A segment file as a table on its memory map."""

    __slots__ = ("envelope", "record")

    def __init__(self, envelope: Envelope, record: SegmentRecord, load: Loader) -> None:
        identity = envelope.identity
        words = identity.bits // 64
        fingerprints = envelope.section(FINGERPRINTS, f"V{8 * words}")
        ids = envelope.section(IDS, "<u8")
        offsets = envelope.section(KEY_OFFSETS, "<i8")
        data = envelope.section(KEY_BYTES, "u1")
        if fingerprints is None or ids is None or (offsets is None) != (data is None):
            raise CorruptFile(f"{envelope.path} lacks a section", path=envelope.path)
        keys = None if offsets is None or data is None else KeyHeap(offsets, data)
        agree = len(fingerprints) == len(ids) == identity.rows
        if keys is not None:
            agree &= len(keys.offsets) == identity.rows + 1
            agree &= int(keys.offsets[-1]) == len(keys.data)
        if not agree:
            raise CorruptFile(f"{envelope.path} has sections that disagree", path=envelope.path)
        super().__init__(
            record.name,
            fingerprints.view("<u8").reshape(-1, words),
            ids,
            keys,
            horizon=record.horizon,
            header_bits=record.header_bits,
            load_directory=load,
        )
        self.envelope, self.record = envelope, record


def open_segment(
    directory: Path,
    record: SegmentRecord,
    *,
    index: bytes,
    bits: int,
    keyed: bool,
    load_directory: Loader,
    verify: Verify = "lazy",
) -> Segment:
    """Maps the segment a catalog record names, once file and record agree.

    Raises FileNotFoundError when the file is gone, which a reader meets when a compaction has just
    replaced it, and CorruptFile when it is another file than the record's, or has keys where
    `keyed` says that rows of the index have none, or the other way round.
    """
    if not NAME.fullmatch(record.name):
        raise CorruptFile(f"the catalog names a segment {record.name!r}", path=record.name)
    envelope = open_envelope(directory / record.name, verify=verify)
    identity = envelope.identity
    found = (identity.index, identity.rows, identity.horizon, identity.bits, envelope.file_bytes,
             envelope.footer_checksum)
    expected = (index, record.rows, record.horizon, bits, record.file_bytes,
                record.footer_checksum)
    if found != expected:
        raise CorruptFile(
            f"{envelope.path} is another file than the catalog names", path=envelope.path,
            found=found, expected=expected,
        )
    segment = Segment(envelope, record, load_directory)
    if (segment.keys is not None) != keyed:
        has, options = ("no keys", "some") if keyed else ("keys", "none")
        raise CorruptFile(
            f"{envelope.path} has {has}, and the index's options tell of {options}",
            path=envelope.path,
        )
    return segment


def open_structure(
    directory: Path,
    segment: SegmentRecord,
    record: StructureRecord,
    *,
    index: bytes,
    bits: int,
    missing_ok: bool,
    verify: Verify,
) -> tuple[Envelope | None, CorruptFile | None]:
    """Maps the file of a structure beside a segment, once file, record and segment agree.

    What is wrong with the file is returned, to be raised when it is used; a file that is gone
    raises FileNotFoundError unless `missing_ok`, since a compaction may just have replaced it.
    """
    path = directory / record.name
    try:
        envelope = open_envelope(path, verify=verify, remedy=REBUILD)
        identity = envelope.identity
        expected = (index, segment.rows, segment.horizon, bits, record.file_bytes,
                    record.footer_checksum)
        found = (identity.index, identity.rows, identity.horizon, identity.bits,
                 envelope.file_bytes, envelope.footer_checksum)
        if found != expected or description_of(envelope) != [
            record.structure, segment.name, segment.footer_checksum
        ]:
            raise CorruptFile(
                f"{path} is another file than the catalog names", path=str(path),
                found=found, expected=expected,
            )
    except FileNotFoundError:
        if not missing_ok:
            raise
        return None, CorruptFile(f"{path} is missing: {REBUILD}", path=str(path))
    except CorruptFile as error:
        return None, CorruptFile(f"{error}: {REBUILD}", **error.data)
    return envelope, None


def description_of(envelope: Envelope) -> Any:
    """What a file says of itself beside its header; None if it has no such section."""
    section = envelope.section(DESCRIPTION, "u1")
    if section is not None and len(section) > MAX_DESCRIPTION_BYTES:
        raise CorruptFile(
            f"{envelope.path} has a description of {len(section):,} bytes", path=envelope.path
        )
    try:
        return None if section is None else msgpack.unpackb(verified(section).tobytes(), raw=False)
    except UNDECODABLE as error:
        if raised_by_a_handler(error):
            raise
        raise CorruptFile(
            f"{envelope.path} has a description that cannot be decoded", path=envelope.path
        ) from error
