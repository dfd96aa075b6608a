"""The header page of a segment's file, made again where its own is damaged."""

from __future__ import annotations

import os
from pathlib import Path
from typing import cast

import msgpack
import numpy as np
from numpy.typing import NDArray

from simindex._kernels import _native
from simindex.errors import raised_by_a_handler
from simindex.repair.opening import opened_rows
from simindex.storage.files.durable import NewFile
from simindex.storage.files.envelope import FOOTER, PAGE_BYTES, Identity
from simindex.storage.files.envelope_writer import EnvelopeWriter, SectionSpec
from simindex.storage.tables.record import MAX_ROWS, generation_of
from simindex.storage.tables.segment import IDS, KEY_BYTES, KEY_OFFSETS
from simindex.storage.tables.structure import DESCRIPTION, FINGERPRINTS, UNDECODABLE

DESCRIPTION_BYTES = 1 << 16
"""Longest description that is looked for."""


class _Nowhere:
    """A file that takes no space."""

    def reserve(self, size: int) -> None:
        """Does nothing."""


def header_again(
    path: Path, *, rows: int, horizon: int, bits: int, keyed: bool
) -> NDArray[np.uint8] | None:
    """The header page of a file whose own is damaged, made anew from what else tells of it.

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
        if after(sections) > size:
            return None
    identity = Identity(
        bytes(footer["index"]), int(footer["file_id"]), generation_of(path.name), horizon, rows,
        bits,
    )
    page = EnvelopeWriter(cast(NewFile, _Nowhere()), identity, sections)._header_page()
    return page if int(page[-4:].view("<u4")[0]) == int(footer["header_checksum"]) else None
