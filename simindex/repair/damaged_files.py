"""Files opened for a repair, whatever state they are in; a damaged header page made again."""

from __future__ import annotations

import errno
import mmap
import os
import stat
from pathlib import Path

import msgpack
import numpy as np

from simindex._kernels import _native
from simindex.arrays import U8
from simindex.errors import CorruptFile, StorageFailed, raised_by_a_handler
from simindex.records.sketches import record_bytes
from simindex.storage.files.descriptor import NOT_REGULAR, PLAIN, Descriptor
from simindex.storage.files.envelope import FOOTER, PAGE_BYTES, Envelope, Identity, open_envelope
from simindex.storage.files.envelope_writer import SectionSpec, header_page
from simindex.storage.files.refusals import OF_DESCRIPTORS, refusal
from simindex.storage.tables.record import MAX_ROWS, generation_of
from simindex.storage.tables.segment import IDS, KEY_BYTES, KEY_OFFSETS
from simindex.storage.tables.sketches import SKETCHES
from simindex.storage.tables.structure import DESCRIPTION, FINGERPRINTS, UNDECODABLE
from simindex.storage.tables.times import TIMES

DESCRIPTION_BYTES = 1 << 16
"""Longest description that is looked for."""


def mapped(path: Path, fd: int, size: int) -> U8:
    """The bytes of a file; StorageFailed if the system does not map them."""
    try:
        return np.frombuffer(mmap.mmap(fd, size, access=mmap.ACCESS_READ), np.uint8)
    except (OSError, ValueError) as error:  # too many maps, no address space, or cut short now
        if raised_by_a_handler(error):
            raise
        raise StorageFailed(
            f"{path} cannot be mapped into memory ({error})",
            remedy="free memory, or raise the number of maps that a process may have in "
            "/proc/sys/vm/max_map_count", path=str(path),
        ) from error


def refused(path: Path, error: OSError) -> BaseException:
    """The error of ours for a file that the system refuses to read: it may well be whole."""
    found = refusal(error, path)
    if not isinstance(found, StorageFailed) or error.errno in OF_DESCRIPTORS:
        return found
    return StorageFailed(
        f"{path} cannot be read ({error.strerror})",
        remedy="make it readable, or move it away if it is lost; then run `simindex repair` again",
        path=str(path), errno=error.errno,
    )


def whole_envelope(path: Path) -> Envelope:
    """A file next to a segment, mapped.

    Raises
    ------
    CorruptFile
        If its header or footer is damaged, or it is not a file.
    StorageFailed, MemoryError
        If the system refuses it: then it may well be whole.
    """
    try:
        return open_envelope(path)
    except OSError as error:
        if raised_by_a_handler(error):
            raise
        if error.errno in (*NOT_REGULAR, errno.ENOENT):
            raise CorruptFile(f"{path} is not a regular file", path=str(path)) from error
        raise refused(path, error) from error


def opened(path: Path) -> Descriptor:
    """A descriptor of a regular file, whatever state it is in.

    Raises
    ------
    FileNotFoundError, NotADirectoryError
        If there is none.
    CorruptFile
        If something else has its name.
    StorageFailed
        If the system refuses it: then it may well be whole.
    """
    try:
        file = Descriptor(path, PLAIN)
    except (FileNotFoundError, NotADirectoryError):
        raise
    except OSError as error:
        if raised_by_a_handler(error):
            raise
        if error.errno in NOT_REGULAR:
            raise CorruptFile(f"{path} is not a regular file", path=str(path)) from error
        raise refused(path, error) from error
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise CorruptFile(f"{path} is not a regular file", path=str(path))
    return file


def opened_rows(path: Path) -> Descriptor:
    """A descriptor of a file that has a header page, whatever is on it; else CorruptFile."""
    try:
        file = opened(path)
    except FileNotFoundError as error:
        raise CorruptFile(f"{path} is missing", path=str(path)) from error
    if os.fstat(file.fileno()).st_size < PAGE_BYTES:
        file.close()
        raise CorruptFile(f"{path} ends too early", path=str(path))
    return file


def header_again(
    path: Path, *, rows: int, horizon: int, bits: int, keyed: bool, timed: bool, sketch_bits: int
) -> U8 | None:
    """The header page of a file whose own is damaged, made again from other sources.

    The footer has the checksum of the page, so it is this one to the bit; None if it is not, or
    there is no whole footer.
    """
    with opened_rows(path) as file:
        fd = file.fileno()
        size = os.fstat(fd).st_size
        raw = np.frombuffer(os.pread(fd, FOOTER.itemsize, size - FOOTER.itemsize), np.uint8)
        footer = raw.view(FOOTER)[0]
        if _native.crc32c(raw[:-12]) != int(footer["checksum"]) or not (
            0 < rows <= MAX_ROWS and 64 <= bits <= 4096 and bits % 64 == 0
        ):
            return None

        def after(sections: list[SectionSpec]) -> int:
            pages = sum(-(-section.size // PAGE_BYTES) for section in sections)
            return PAGE_BYTES * (1 + pages)

        sections = [SectionSpec(FINGERPRINTS, bits // 8, rows), SectionSpec(IDS, 8, rows)]
        unpacker = msgpack.Unpacker()
        unpacker.feed(os.pread(fd, DESCRIPTION_BYTES, after(sections)))
        try:
            unpacker.skip()
        except UNDECODABLE as error:
            if raised_by_a_handler(error):
                raise
            return None
        sections.append(SectionSpec(DESCRIPTION, 1, unpacker.tell()))
        if keyed:
            sections.append(SectionSpec(KEY_OFFSETS, 8, rows + 1))
            end = os.pread(fd, 8, after(sections[:-1]) + 8 * rows)
            sections.append(SectionSpec(KEY_BYTES, 1, int.from_bytes(end, "little")))
        if timed:
            sections.append(SectionSpec(TIMES, 4, rows + 1))
        if sketch_bits:
            sections.append(SectionSpec(SKETCHES, record_bytes(sketch_bits // 64), rows))
        if after(sections) > size:
            return None
    identity = Identity(
        bytes(footer["index"]), int(footer["file_id"]), generation_of(path.name), horizon, rows,
        bits,
    )
    page = header_page(identity, sections)
    return page if int(page[-4:].view("<u4")[0]) == int(footer["header_checksum"]) else None
