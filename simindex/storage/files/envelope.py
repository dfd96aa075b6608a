"""The file that describes itself: header page, page-aligned sections, checksums, footer.

    offset 0       header page, 4096 bytes: HEADER, then the section table, zeros,
                   and in its last 4 bytes the CRC-32C of the 4092 before
    4096 k         sections, each on a page of its own
    4096 k'        the checksum section: one CRC-32C for each 64 KiB chunk of each section
    end - 64       FOOTER

Invariants
1. All numbers are little-endian. Every byte of a section is covered by a chunk checksum, seeded
   with the file's id, the section's place and the chunk's number, so that a chunk of another file
   or place fails. The checksums are covered by the footer, footer and header by their own.
2. Sizes are checked against the file's real length before any of them is followed.
3. The file is complete when it has its name, and never changes after.
"""

from __future__ import annotations

import errno
import mmap
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simindex._kernels import _native
from simindex.arrays import U8
from simindex.errors import CorruptFile
from simindex.resources.threads import thread_count
from simindex.storage.files.checksums import Map, Verify, verified
from simindex.storage.files.descriptor import PLAIN, Descriptor
from simindex.storage.files.format import ENDIAN_TAG, SWAPPED_TAG, check_version
from simindex.values import dataclass

PAGE_BYTES = 4096
CHUNK_BYTES = 1 << 16
MAX_SECTIONS = 16

REMEDY = "`simindex check` lists all that is damaged; restore the file from a copy"
"""What helps where rows are damaged."""

THREADED_BYTES = 1 << 26
"""Bytes from which threads are worth it to verify them."""

HUGE_PAGES_BYTES = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 4
"""Largest file that is mapped with huge pages, a quarter of the memory: with them a first touch
reads megabytes, which suits what fits in memory and nothing else."""

MAGIC = b"\x89SIR\r\n\x1a\n"
END_MAGIC = b"simindex"

HEADER = np.dtype(
    [
        ("magic", "S8"),
        ("endian", "<u4"),
        ("major", "<u2"),
        ("minor", "<u2"),
        ("incompatible", "<u4"),
        ("read_compatible", "<u4"),
        ("compatible", "<u4"),
        ("sections", "<u4"),
        ("index", "V16"),
        ("file_id", "<u8"),
        ("generation", "<u8"),
        ("horizon", "<u8"),
        ("rows", "<u8"),
        ("bits", "<u4"),
        ("chunk_bytes", "<u4"),
        ("file_bytes", "<u8"),
        ("checksum_offset", "<u8"),
    ]
)
SECTION = np.dtype(
    [("kind", "<u4"), ("itemsize", "<u4"), ("offset", "<u8"), ("count", "<u8"), ("chunks", "<u8")]
)
FOOTER = np.dtype(
    [
        ("index", "V16"),
        ("file_id", "<u8"),
        ("file_bytes", "<u8"),
        ("header_checksum", "<u4"),
        ("checksums", "<u4"),
        ("reserved", "V12"),
        ("checksum", "<u4"),
        ("magic", "S8"),
    ]
)
"""Frozen, all three: golden files hold their bytes."""


@dataclass(frozen=True, slots=True)
class Identity:
    """What a file says of itself in its header."""

    index: bytes
    file_id: int
    generation: int
    horizon: int
    rows: int
    bits: int


def seed(file_id: int, place: int) -> int:
    """What the checksums of a section begin with, and the kernel `crc32c_chunks` takes."""
    return (file_id + place) & ((1 << 64) - 1)


def open_envelope(path: Path, *, verify: Verify = "lazy", remedy: str = REMEDY) -> Envelope:
    """Maps a file once its header, footer and sizes are found consistent; CorruptFile otherwise.

    Parameters
    ----------
    verify : Verify
        When its sections are compared with their checksums; see `checksums`.
    remedy : str
        What helps where one is damaged.
    """
    try:
        file = Descriptor(path, PLAIN)
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.ENXIO):
            raise
        found = "a symbolic link" if error.errno == errno.ELOOP else "no regular file"
        raise CorruptFile(f"{path} is {found}", path=str(path)) from error
    with file:
        return Envelope(file.fileno(), str(path), verify=verify, remedy=remedy)


ASKED_BYTES = 128 << 10
"""Of each end of a file: header and footer, and all of a small one."""


def ask_ahead(paths: Sequence[Path]) -> None:
    """Has the system read what opening some files will read, from all of them at once.

    A thousand segments that are not cached are opened in 0.8 s so, in 1.05 s one after the other.
    Errors are left to the opening. macOS cannot be asked.
    """
    if not hasattr(os, "posix_fadvise"):
        return
    for path in paths:
        with suppress(OSError), Descriptor(path, PLAIN) as file:
            fd = file.fileno()
            os.posix_fadvise(fd, 0, ASKED_BYTES, os.POSIX_FADV_WILLNEED)
            end = max(0, os.fstat(fd).st_size - ASKED_BYTES)
            os.posix_fadvise(fd, end, ASKED_BYTES, os.POSIX_FADV_WILLNEED)


@dataclass(frozen=True, slots=True)
class Header:
    """What the header page of a file says, once its checksum and its bounds hold."""

    identity: Identity
    file_bytes: int
    checksum_offset: int
    read_compatible: int
    """Features that a writer must know; see `format.check_features`."""
    table: NDArray[Any]
    """Its sections, in order, as SECTION."""
    checksum: int
    """The page's own."""

    @classmethod
    def read(cls, path: str, page: U8) -> Header:
        """The header of a page, which may be cut short or anything.

        Raises CorruptFile, and FormatTooNew and FormatTooOld if another version wrote it.
        """
        if len(page) < HEADER.itemsize or not has_magic(page):
            raise _corrupt(path, "is not a file of simindex", 0)
        header = page[: HEADER.itemsize].view(HEADER)[0]
        if int(header["endian"]) == SWAPPED_TAG:
            raise _corrupt(
                path, "holds its numbers in another byte order: files of simindex are "
                "little-endian on every machine", 8,
            )
        check_version(
            Path(path), int(header["major"]), int(header["minor"]), int(header["incompatible"])
        )
        if not is_whole(page):
            raise _corrupt(path, "has a damaged header", 0)
        if (
            int(header["endian"]) != ENDIAN_TAG
            or int(header["chunk_bytes"]) != CHUNK_BYTES
            or int(header["sections"]) > MAX_SECTIONS
        ):
            raise _corrupt(path, "has a header no version writes", 0)
        identity = Identity(
            bytes(header["index"]),
            *(int(header[name]) for name in ("file_id", "generation", "horizon", "rows", "bits")),
        )
        table_end = HEADER.itemsize + SECTION.itemsize * int(header["sections"])
        return cls(
            identity, int(header["file_bytes"]), int(header["checksum_offset"]),
            int(header["read_compatible"]), page[HEADER.itemsize : table_end].view(SECTION),
            int(page[-4:].view("<u4")[0]),
        )

    def check_table(self, path: str) -> None:
        """Raises CorruptFile if a section or the checksums are outside their bounds."""
        # Invariant 2. Python integers do not wrap, so a forged count cannot fold back into range.
        end, chunks = PAGE_BYTES, 0
        for offset, itemsize, count, declared in zip(
            *(self.table[name].tolist() for name in ("offset", "itemsize", "count", "chunks")),
            strict=True,
        ):
            size = itemsize * count
            if offset < end or offset % PAGE_BYTES or offset + size > self.checksum_offset:
                raise _corrupt(path, "has a section outside its bounds", offset)
            if declared != -(-size // CHUNK_BYTES):
                raise _corrupt(path, "has a section with a wrong number of checksums", offset)
            end, chunks = offset + size, chunks + declared
        if self.checksum_offset < end or (
            self.checksum_offset + 4 * chunks + FOOTER.itemsize != self.file_bytes
        ):
            raise _corrupt(path, "has checksums outside their bounds", self.checksum_offset)


def has_magic(page: U8) -> bool:
    """Whether a page begins as the header of a file."""
    return bytes(page[: len(MAGIC)]) == MAGIC


def is_whole(page: U8) -> bool:
    """Whether a page is the header of a file, undamaged."""
    return (
        len(page) == PAGE_BYTES and has_magic(page)
        and _native.crc32c(page[:-4]) == int(page[-4:].view("<u4")[0])
    )


def _corrupt(path: str, what: str, offset: int) -> CorruptFile:
    return CorruptFile(f"{path} {what}", path=path, offset=offset)


class Envelope:
    """An open file: its identity, and its sections as read-only arrays on the memory map.

    Whoever reads these arrays has them verified first; see `checksums`.
    """

    def __init__(
        self, fd: int, path: str, *, verify: Verify = "never", remedy: str = REMEDY
    ) -> None:
        self.path = path
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise self._corrupt("is not a regular file", 0)
        size = status.st_size
        if size < PAGE_BYTES + FOOTER.itemsize:
            raise self._corrupt(f"has only {size} bytes: it ends too early", size)
        page = np.frombuffer(os.pread(fd, PAGE_BYTES, 0), np.uint8)
        header = Header.read(path, page)
        if header.file_bytes != size:
            raise self._corrupt(f"has {size} bytes instead of {header.file_bytes}", size)
        self.identity: Identity = header.identity
        self.read_compatible: int = header.read_compatible
        self.file_bytes: int = size
        self._read_footer(os.pread(fd, FOOTER.itemsize, size - FOOTER.itemsize), header.checksum)
        self._table = header.table
        header.check_table(path)
        mapped = Map(fd, size, access=mmap.ACCESS_READ)
        mapped.path = path
        if size <= HUGE_PAGES_BYTES and hasattr(mmap, "MADV_HUGEPAGE"):  # not on macOS
            with suppress(OSError):  # a kernel without huge pages
                mapped.madvise(mmap.MADV_HUGEPAGE)
        self._map = np.frombuffer(mapped, np.uint8)
        start = self._checksum_offset = header.checksum_offset
        self._checksums = self._map[start : size - FOOTER.itemsize].view("<u4")
        if _native.crc32c(self._checksums.view(np.uint8)) != self._checksums_crc:
            raise self._corrupt("has damaged checksums", start)
        if verify != "never":
            mapped.sections = tuple(self._verified(remedy))
        if verify == "open":
            for place in range(len(self._table)):
                verified(self._bytes(place), threads=thread_count(None, size, worth=THREADED_BYTES))

    def _verified(self, remedy: str) -> Iterator[_native.Verified]:
        first = 0
        for place, entry in enumerate(self._table):
            checksums = self._checksums[first : first + int(entry["chunks"])]
            first += len(checksums)
            yield _native.Verified(
                self._bytes(place), checksums, seed(self.identity.file_id, place),
                os.fsencode(self.path), int(entry["offset"]), remedy,
            )

    def _read_footer(self, data: bytes, header_checksum: int) -> None:
        footer = np.frombuffer(data, FOOTER)[0]
        raw = np.frombuffer(data, np.uint8)
        if _native.crc32c(raw[:-12]) != int(footer["checksum"]) or (
            bytes(footer["magic"]) != END_MAGIC
        ):
            raise self._corrupt("has a damaged footer", self.file_bytes - FOOTER.itemsize)
        if (
            bytes(footer["index"]) != self.identity.index
            or int(footer["file_id"]) != self.identity.file_id
            or int(footer["file_bytes"]) != self.file_bytes
            or int(footer["header_checksum"]) != header_checksum
        ):
            raise self._corrupt("has a footer of another file", self.file_bytes - FOOTER.itemsize)
        self._checksums_crc = int(footer["checksums"])
        self.footer_checksum: int = int(footer["checksum"])

    def section(self, kind: int, dtype: str) -> NDArray[Any] | None:
        """The section of that kind as a read-only array on the map, or None."""
        for place, entry in enumerate(self._table):
            if int(entry["kind"]) == kind:
                if int(entry["itemsize"]) != np.dtype(dtype).itemsize:
                    raise self._corrupt(f"has a section {kind} of another item size", 0)
                return self._bytes(place).view(dtype)
        return None

    def has_section(self, kind: int) -> bool:
        """Whether there is a section of that kind."""
        return kind in self._table["kind"]

    def _bytes(self, place: int) -> U8:
        entry = self._table[place]
        offset, size = int(entry["offset"]), int(entry["itemsize"]) * int(entry["count"])
        return self._map[offset : offset + size]

    def damaged_chunks(self, kind: int | None = None) -> list[tuple[int, int]]:
        """(offset in the file, bytes) of each chunk whose checksum differs; reads it all once.

        With `kind`, only the sections of that kind.
        """
        found = []
        first = 0
        for place, entry in enumerate(self._table):
            data, chunks = self._bytes(place), int(entry["chunks"])
            expected = self._checksums[first : first + chunks]
            first += chunks
            if kind is not None and int(entry["kind"]) != kind:
                continue
            actual = _native.crc32c_chunks(data, CHUNK_BYTES, seed(self.identity.file_id, place))
            for chunk in np.flatnonzero(actual != expected).tolist():
                at = chunk * CHUNK_BYTES
                found.append((int(entry["offset"]) + at, min(CHUNK_BYTES, len(data) - at)))
        return found

    def filled_gaps(self) -> list[tuple[int, int]]:
        """(offset, bytes) of stretches between sections, and before the checksums, not all zero.

        Nobody reads them; but no bit of a file is to change unseen.
        """
        starts = [*self._table["offset"].tolist(), self._checksum_offset]
        sizes = (self._table["itemsize"].astype(object) * self._table["count"]).tolist()
        ends = [PAGE_BYTES, *(start + size for start, size in zip(starts, sizes, strict=False))]
        gaps = zip(ends, starts, strict=True)
        return [(end, start - end) for end, start in gaps if self._map[end:start].any()]

    def verify(self, kind: int | None = None) -> None:
        """Raises CorruptFile with the first damaged chunk's offset; see `damaged_chunks`."""
        for offset, size in self.damaged_chunks(kind)[:1]:
            raise self._corrupt(f"is damaged within {size} bytes at {offset}", offset)

    def _corrupt(self, what: str, offset: int) -> CorruptFile:
        return _corrupt(self.path, what, offset)
