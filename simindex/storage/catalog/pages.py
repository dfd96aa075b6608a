"""The pages of `data.mdb`, looked at before LMDB is given the file.

LMDB has no checksums and believes what a page says of itself: a damaged one may end the process in
a signal, and a damaged list of free pages makes the next writer overwrite what is live.

    page 0, page 1   meta pages: commit n writes that of n mod 2, and LMDB takes the higher n
    all others       in a tree, in an overflow run of a value, or free

1. Both meta pages must be LMDB's, or it refuses the file (`mdb_env_read_header`). Commits write
   them in turn, so their numbers follow each other and have the parity of their page; before the
   first commit both are 0.
2. The commit in use is that of the higher number (`mdb_env_pick_meta`). Its trees and its free list
   are walked by the kernel `check_pages`. Of the other meta page LMDB uses nothing but the number,
   and where it failed to write one it has left new roots there, with the old number and the old
   last page (`unwritten`). But no commit makes the file shorter: so a last page beyond that of
   the commit in use is that of a later commit, whose number was made lower.
3. The newest entry of its free list has the number of the commit in use, since each commit but the
   first frees the root before it: so a number that does not belong to its roots is found.
4. The pages of a commit stay as they are until the second one after it is durable. So while others
   commit, a walk that failed is repeated if the meta pages have changed meanwhile.

Values are not read: their checksums are the matter of `catalog`.
"""

from __future__ import annotations

import errno
import mmap
import os
from pathlib import Path
from time import sleep

import numpy as np

from simindex._kernels import _native
from simindex.arrays import U8
from simindex.errors import CorruptFile
from simindex.storage.files.descriptor import PLAIN, Descriptor
from simindex.values import dataclass

META = np.dtype(
    [
        ("page", "<u8"),
        ("pad", "<u2"),
        ("flags", "<u2"),
        ("bounds", "<u4"),
        ("magic", "<u4"),
        ("version", "<u4"),
        ("address", "<u8"),
        ("map_bytes", "<u8"),
        ("page_bytes", "<u4"),
        ("free", "V44"),
        ("main", "V48"),
        ("last", "<u8"),
        ("commit", "<u8"),
    ]
)
"""A meta page's beginning in LMDB's format 1."""

EMPTY_TREE = bytes(40) + b"\xff" * 8
"""LMDB's record of a tree without a root."""

META_MAGIC, META_VERSION, META_FLAG = 0xBEEFC0DE, 1, 8

PAGE_SIZES = tuple(1 << n for n in range(12, 16))
"""LMDB takes the system's, which no system has smaller, and at most 32 KiB."""

MAP_BYTES = 1 << 38
"""Address space of LMDB's map, beyond which no commit can write; the file takes only what is used.
"""

TRIES = 100
"""How often a walk is repeated while another process commits: each time two commits have come in
between, which takes milliseconds, while a walk takes fractions of one."""

PAUSE_S = 0.002
"""Longer than a meta page is half written for a reader."""

REMEDY = "`simindex repair` makes a new one of the other files"

FAULTS = (
    "",
    "its meta page names a page size, a last page or a tree that no commit has",
    "page {page} leads to a page that the file does not have",
    "page {page} is used twice",
    "page {page} is another one than it should be",
    "page {page} has its entries in disorder",
    "page {page} has a key of an impossible size",
    "page {page} has keys out of order",
    "page {page} has a value of an impossible size",
    "page {page} has a damaged list of free pages",
    "its meta page names another commit than the free pages are of",
    "the record of the tree at page {page} counts other pages than it has",
    "page {page} is neither in use nor free",
)
"""Sentences for the numbers that the kernel returns, in its order."""


@dataclass(frozen=True, slots=True)
class Meta:
    """A meta page of LMDB's format 1."""

    page: int
    page_bytes: int
    last_page: int
    commit: int
    raw: U8

    @classmethod
    def read(cls, data: bytes, page: int) -> Meta | None:
        """The meta page that begins with these bytes, or None if LMDB would refuse it."""
        if len(data) < META.itemsize:
            return None
        record = np.frombuffer(data, META, 1)[0]
        if (
            int(record["page"]) != page
            or int(record["flags"]) != META_FLAG
            or int(record["magic"]) != META_MAGIC
            or int(record["version"]) != META_VERSION
            or int(record["page_bytes"]) not in PAGE_SIZES
        ):
            return None
        return cls(
            page, int(record["page_bytes"]), int(record["last"]), int(record["commit"]),
            np.frombuffer(data, np.uint8, META.itemsize),
        )


def preflight(data: Path) -> None:
    """Refuses a `data.mdb` that LMDB could not be trusted with.

    Raises CorruptFile. 40 us, and 1 us for each page of a tree.
    """
    fault = _first_fault(data, whole=False)
    if fault is not None:
        try:
            raise fault
        finally:
            del fault  # which would keep this frame, and the callers' maps, until it is collected


def damage(data: Path) -> CorruptFile | None:
    """What `preflight` would raise, or what else is wrong with the pages; None if nothing is.

    Other faults mislead neither readers nor writers: a record that counts other pages
    than its tree has, pages that are neither in use nor free, and anything in the commit before the
    one in use. But where that one names a later commit than its number says, the last commit is
    lost, or could not be written. A commit that certainly was not written is no fault.
    """
    return _first_fault(data, whole=True)


def _first_fault(data: Path, *, whole: bool) -> CorruptFile | None:
    try:
        file = Descriptor(data, PLAIN)
    except FileNotFoundError as error:
        raise CorruptFile(
            f"the catalog {data} is missing", remedy=REMEDY, path=str(data)
        ) from error
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise CorruptFile(f"the catalog {data} is a symbolic link", path=str(data)) from error
    with file:
        fd = file.fileno()
        for _ in range(TRIES):
            before = _metas(fd)
            # After the meta pages: a writer makes the file longer before one of them says so.
            fault = _fault(fd, data, before, os.fstat(fd).st_size, whole)
            if fault is None:
                return None
            sleep(PAUSE_S)
            if _metas(fd) == before:
                return fault
    return None  # the meta pages change all the time: whoever commits has looked at them


def _metas(fd: int) -> tuple[bytes, bytes]:
    first = os.pread(fd, META.itemsize, 0)
    meta = Meta.read(first, 0)
    page_bytes = os.sysconf("SC_PAGE_SIZE") if meta is None else meta.page_bytes
    return first, os.pread(fd, META.itemsize, page_bytes)


def _fault(
    fd: int, data: Path, raw: tuple[bytes, bytes], size: int, whole: bool
) -> CorruptFile | None:
    """What is wrong with a file of these meta pages and this length."""

    def damaged(what: str, page: int = 0) -> CorruptFile:
        return CorruptFile(
            f"the catalog {data} is damaged ({what})", remedy=REMEDY, path=str(data), page=page
        )

    metas = [meta for page in (0, 1) if (meta := Meta.read(raw[page], page)) is not None]
    if not metas:
        return damaged("it has no valid meta page")
    if len(metas) < 2:
        return damaged(f"meta page {1 - metas[0].page} is not valid", 1 - metas[0].page)
    other, used = sorted(metas, key=lambda meta: (meta.commit, -meta.page))
    if (
        used.page_bytes != other.page_bytes
        or (used.commit and used.commit % 2 != used.page)
        or other.commit != max(0, used.commit - 1)
    ):
        return damaged(
            f"its meta pages name commits {metas[0].commit} and {metas[1].commit}, which do not "
            "follow each other"
        )
    needed = (used.last_page + 1) * used.page_bytes
    if needed > MAP_BYTES:  # of a sparse file, so many pages could be there
        return damaged(f"its last page is beyond the {MAP_BYTES >> 30} GiB that a catalog may have")
    if size < needed:
        return CorruptFile(
            f"the catalog {data} has {size} bytes instead of {needed}",
            remedy=REMEDY, path=str(data), found=size, expected=needed,
        )
    if other.last_page > used.last_page:
        return damaged("the last commit looks older than the one before it", other.page)
    file = _mapped(fd, needed)
    number, page, _ = _native.check_pages(file, used.raw, whole)
    before = _native.check_pages(file, other.raw, True)[:2] if whole else (0, 0)
    if number:
        return damaged(FAULTS[number].format(page=page), page)
    if before[0] and not unwritten(_mapped(fd, min(size, MAP_BYTES)), used, other):
        return damaged(
            f"of the commit before the last, {FAULTS[before[0]].format(page=before[1])}", before[1]
        )
    return None


def _mapped(fd: int, size: int) -> U8:
    return np.frombuffer(mmap.mmap(fd, size, access=mmap.ACCESS_READ), np.uint8)


def unwritten(file: U8, used: Meta, other: Meta) -> bool:
    """Whether the meta page that is not in use has roots of a commit that failed; see 2.

    Its free list is that of the commit after the one in use, and needs pages beyond the last page
    that it names. No damage of its number alone does that. Its other root may be the old one, where
    the system cut even these writes short. `file` is all of `data.mdb`.
    """
    raw = other.raw.copy()
    record = raw.view(META)
    record["commit"] = used.commit + 1
    if _native.check_pages(file, raw, True)[0] == 0:
        return False  # it names its last page: so it may as well have been in use
    record["last"], record["main"] = len(file) // used.page_bytes - 1, EMPTY_TREE
    return _native.check_pages(file, raw, False)[0] == 0
