"""The writer of envelopes; see `envelope` for the bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simindex._kernels import _native
from simindex.arrays import U8, U32
from simindex.errors import CorruptFile
from simindex.storage.files.durable import NewFile
from simindex.storage.files.envelope import (
    CHUNK_BYTES,
    END_MAGIC,
    FOOTER,
    HEADER,
    MAGIC,
    PAGE_BYTES,
    SECTION,
    Envelope,
    Identity,
    seed,
)
from simindex.storage.files.format import ENDIAN_TAG, MAJOR, MINOR
from simindex.values import dataclass

HUGE_BYTES = 1 << 21
"""Size and alignment of a huge page. A stretch of the file that is written by one call, or read in
one piece, stays in the page cache as one, and then costs a random probe one entry of the TLB: a
PSM query over 10 M rows takes about a tenth less."""


@dataclass(frozen=True, slots=True)
class SectionSpec:
    """A section to be written: its kind, its item's size and how many there will be."""

    kind: int
    itemsize: int
    count: int

    @property
    def size(self) -> int:
        """Bytes of the section."""
        return self.itemsize * self.count


class Layout:
    """Offsets of the sections of a file, one after the other, then of checksums and footer."""

    def __init__(self, sections: Sequence[SectionSpec]) -> None:
        self.offsets: list[int] = []
        offset = PAGE_BYTES
        for section in sections:
            self.offsets.append(offset)
            offset += -(-section.size // PAGE_BYTES) * PAGE_BYTES
        self.checksum_offset: int = offset
        self.chunks: list[int] = [-(-section.size // CHUNK_BYTES) for section in sections]
        """Of each section."""
        self.file_bytes: int = offset + 4 * sum(self.chunks) + FOOTER.itemsize


def header_page(identity: Identity, sections: Sequence[SectionSpec]) -> U8:
    """The first page of a file, uint8 (PAGE_BYTES,), with its checksum.

    It follows from what the file is and has, so a damaged one can be made again to the bit.
    """
    layout = Layout(sections)
    page = np.zeros(PAGE_BYTES, np.uint8)
    header = page[: HEADER.itemsize].view(HEADER)[0]
    header["magic"], header["endian"] = MAGIC, ENDIAN_TAG
    header["major"], header["minor"] = MAJOR, MINOR
    header["sections"] = len(sections)
    header["index"] = np.void(identity.index)
    header["file_id"], header["generation"] = identity.file_id, identity.generation
    header["horizon"], header["rows"] = identity.horizon, identity.rows
    header["bits"], header["chunk_bytes"] = identity.bits, CHUNK_BYTES
    header["file_bytes"], header["checksum_offset"] = layout.file_bytes, layout.checksum_offset
    start = HEADER.itemsize
    table = page[start : start + SECTION.itemsize * len(sections)].view(SECTION)
    for place, section in enumerate(sections):
        table[place] = (
            section.kind, section.itemsize, layout.offsets[place], section.count,
            layout.chunks[place],
        )
    page[-4:].view("<u4")[0] = _native.crc32c(page[:-4])
    return page


class EnvelopeWriter:
    """Writes sections piece by piece, each in order, any of them in between the others."""

    def __init__(self, file: NewFile, identity: Identity, sections: list[SectionSpec]) -> None:
        self._file, self._identity, self._sections = file, identity, sections
        self._layout = Layout(sections)
        self._written = [0] * len(sections)
        self._checksums: list[list[U32]] = [[] for _ in sections]
        self._open_chunk = [0] * len(sections)
        self._held = [bytearray() for _ in sections]
        file.reserve(self.file_bytes)

    @property
    def file_bytes(self) -> int:
        """Bytes of the whole file."""
        return self._layout.file_bytes

    def write(self, place: int, values: NDArray[Any]) -> None:
        """Appends to section number `place`."""
        data = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
        at = self._written[place]
        self._put(place, data)
        self._written[place] = at + len(data)
        file_id = self._identity.file_id
        position = 0
        if at % CHUNK_BYTES:
            position = min(CHUNK_BYTES - at % CHUNK_BYTES, len(data))
            self._open_chunk[place] = _native.crc32c(data[:position], self._open_chunk[place])
            if (at + position) % CHUNK_BYTES == 0:
                self._close_chunk(place)
        whole = (len(data) - position) // CHUNK_BYTES * CHUNK_BYTES
        if whole:
            self._checksums[place].append(
                _native.crc32c_chunks(
                    data[position : position + whole],
                    CHUNK_BYTES,
                    seed(file_id, place),
                    (at + position) // CHUNK_BYTES,
                )
            )
            position += whole
        if position < len(data):
            start = _chunk_start(file_id, place, (at + position) // CHUNK_BYTES)
            self._open_chunk[place] = _native.crc32c(data[position:], start)

    def _put(self, place: int, data: U8) -> None:
        """Writes in calls that end at multiples of HUGE_BYTES, and holds back what is left."""
        held = self._held[place]
        at = self._layout.offsets[place] + self._written[place] - len(held)
        end = (at + len(held) + len(data)) // HUGE_BYTES * HUGE_BYTES
        if end <= at:
            held += data.data
            return
        position = 0
        if held:
            position = -(at + len(held)) % HUGE_BYTES
            held += data[:position].data
            self._file.write(bytes(held), at)
            at += len(held)
            held.clear()
        if end > at:
            self._file.write(data[position : position + end - at], at)
            position += end - at
        held += data[position:].data

    def _close_chunk(self, place: int) -> None:
        self._checksums[place].append(np.array([self._open_chunk[place]], np.uint32))

    def finish(self) -> int:
        """Adds header, checksums and footer, and returns the footer's checksum.

        The file may then be published, if it `reads_back`.
        """
        for place, section in enumerate(self._sections):
            if self._written[place] != section.size:
                raise ValueError(
                    f"section {place} got {self._written[place]} of {section.size} bytes"
                )
            if section.size % CHUNK_BYTES:
                self._close_chunk(place)
            if self._held[place]:
                at = self._layout.offsets[place] + section.size - len(self._held[place])
                self._file.write(bytes(self._held[place]), at)
        checksums = np.concatenate(
            [np.empty(0, np.uint32), *(piece for parts in self._checksums for piece in parts)]
        ).astype("<u4")
        header = header_page(self._identity, self._sections)
        footer = np.zeros((), FOOTER)
        footer["index"] = np.void(self._identity.index)
        footer["file_id"], footer["file_bytes"] = self._identity.file_id, self.file_bytes
        footer["header_checksum"] = header[-4:].view("<u4")[0]
        footer["checksums"] = _native.crc32c(checksums.view(np.uint8))
        footer["magic"] = END_MAGIC
        footer_bytes = np.frombuffer(footer.tobytes(), np.uint8)
        checksum = _native.crc32c(footer_bytes[:-12])
        footer["checksum"] = checksum
        self._file.write(header, 0)
        self._file.write(checksums.view(np.uint8), self._layout.checksum_offset)
        self._file.write(footer.tobytes(), self.file_bytes - FOOTER.itemsize)
        return checksum


def _chunk_start(file_id: int, place: int, chunk: int) -> int:
    """Checksum a chunk starts from; the same rule as the kernel `crc32c_chunks`."""
    start = np.array([seed(file_id, place), chunk], "<u8")
    return _native.crc32c(start.view(np.uint8))


def reads_back(fd: int, name: str) -> None:
    """Raises CorruptFile unless a finished file has the bytes that its checksums are of."""
    if Envelope(fd, name).damaged_chunks():
        raise CorruptFile(f"{name} reads back differently than it was written", path=name)
