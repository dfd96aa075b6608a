"""Header directories as LMDB values: pages of consecutive headers, each sealed.

    key     segment name | table number, u2 big-endian | page number, u4 big-endian
    value   little-endian uint32 first rows of PAGE_HEADERS headers; the last page ends with the
            number of rows

They are copied out once, when a segment is first probed, and checked on the way: first 0, monotone,
last = rows. So no kernel follows a damaged offset, and no pointer into LMDB outlives a transaction.
They can be recomputed from the rows at any time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from simindex.arrays import U32
from simindex.errors import CorruptFile
from simindex.storage.catalog.values import seal
from simindex.storage.tables.permuted import Directories

PAGE_HEADERS = 1 << 15

Pages = list[tuple[bytes, bytes]]
"""Keys and sealed values of the pages of some directories."""


def page_key(segment: str, table: int, page: int) -> bytes:
    """The LMDB key of one page."""
    return segment.encode() + table.to_bytes(2, "big") + page.to_bytes(4, "big")


def page_count(header_bits: int) -> int:
    """Pages of a directory of 2**header_bits + 1 entries."""
    return -(-(1 << header_bits) // PAGE_HEADERS)


def pages(segment: str, table: int, directory: U32) -> Iterator[tuple[bytes, bytes]]:
    """(key, payload) of each page of a directory (2**t + 1,)."""
    headers = len(directory) - 1
    last = -(-headers // PAGE_HEADERS) - 1
    for page in range(last + 1):
        start = page * PAGE_HEADERS
        stop = headers + 1 if page == last else start + PAGE_HEADERS
        yield page_key(segment, table, page), directory[start:stop].astype("<u4").tobytes()


def sealed_pages(segment: str, directories: Directories) -> Pages:
    """A segment's header directories as they are stored; 15 ms for 25 MB, so made ahead of it."""
    return [
        (key, seal("headers", key, payload))
        for table, directory in directories
        for key, payload in pages(segment, table, directory)
    ]


def assemble(
    segment: str, table: int, header_bits: int, rows: int, get: Callable[[bytes], bytes]
) -> U32:
    """The directory (2**header_bits + 1,), copied out of its pages and checked.

    `get` returns the payload of a key, already unsealed. Raises CorruptFile when the pages do not
    make a directory over `rows` rows.
    """
    # An array of numpy's own, which asks for huge pages: every probe reads it at a random place.
    directory = np.empty((1 << header_bits) + 1, "<u4")
    filled = 0
    for page in range(page_count(header_bits)):
        part = np.frombuffer(get(page_key(segment, table, page)), np.uint8)
        if len(part) % 4 or filled + len(part) // 4 > len(directory):
            raise CorruptFile(f"the header directory of {segment} has a wrong size", path=segment)
        directory[filled : filled + len(part) // 4] = part.view("<u4")
        filled += len(part) // 4
    if filled != len(directory):
        raise CorruptFile(f"the header directory of {segment} has a wrong size", path=segment)
    if directory[0] != 0 or directory[-1] != rows or (directory[1:] < directory[:-1]).any():
        raise CorruptFile(f"the header directory of {segment} is not in order", path=segment)
    return directory
