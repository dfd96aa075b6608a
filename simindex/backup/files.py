"""The files of a commit under second names, or as copies where there can be none.

    linked    a hard link to the index's file: no byte is copied, and the space is shared
    kept      a hard link to a file that the older backup has, too; on another file system, to its
              copy of the file
    copied    read, written, compared with its checksums, and synced

Invariants
1. A file is linked while its name is in the index, or it is missing: a writer takes names away, but
   gives back the space only of files that have no other name.
2. What is to be copied is open before the next file is looked at: so a writer may take the name
   away meanwhile, and the bytes stay until the copy is made.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path

from simindex.errors import CorruptFile, raised_by_a_handler
from simindex.records.reports import Progress
from simindex.storage.files import durable, removal
from simindex.storage.files.descriptor import PLAIN, Descriptor
from simindex.storage.files.envelope import FOOTER, PAGE_BYTES, Envelope

COPY_BYTES = 1 << 23
"""Copied at a time."""


class Files:
    """Those of one backup, in `target`; `older` is where the backup that it replaces has its own.
    """

    def __init__(self, source: Path, older: Path | None, target: Path, *, verify: bool) -> None:
        self._source, self._older, self._target = source, older, target
        self._verify = verify
        self.linked: set[str] = set()
        self.kept: set[str] = set()
        self.copied: set[str] = set()
        self.bytes_copied: int = 0
        self._open: dict[str, Descriptor] = {}
        """Files that are to be copied."""

    def take(self, names: Iterable[str]) -> None:
        """Links these files, or opens them to be copied; others that were taken before go.

        Raises FileNotFoundError where one is missing, as after a merge: others stay taken.
        """
        wanted = set(names)
        for name in (self.linked | self.kept) - wanted:
            removal.remove(self._target / name)
        self.linked &= wanted
        self.kept &= wanted
        self._open = {name: file for name, file in self._open.items() if name in wanted}
        for name in sorted(wanted - self.linked - self.kept - self._open.keys()):
            self._take(name)

    def _take(self, name: str) -> None:
        source, target = self._source / name, self._target / name
        if durable.link(source, target):
            self.linked.add(name)
            if self._older is not None and _same(source, self._older / name):
                self.linked.discard(name)
                self.kept.add(name)
            return
        file = Descriptor(source, PLAIN)
        if (
            self._older is not None
            and self._is_copy(self._older / name, file.fileno())
            and durable.link(self._older / name, target)
        ):
            self.kept.add(name)
            return
        self._open[name] = file

    def _is_copy(self, older: Path, fd: int) -> bool:
        """Whether an earlier backup's file is a copy of an open one, by its header and footer."""
        try:
            with Descriptor(older, PLAIN) as file:
                if _ends(file.fileno()) != _ends(fd):
                    return False
                if self._verify:
                    Envelope(file.fileno(), str(older)).verify()
        except CorruptFile:
            return False
        except OSError as error:  # a disk that cannot read it, too
            if raised_by_a_handler(error):
                raise
            return False
        return True

    def copy(self, progress: Progress | None) -> None:
        """Makes the copies: durable, and compared with their checksums."""
        sizes = {name: os.fstat(file.fileno()).st_size for name, file in self._open.items()}
        done, total = 0, sum(sizes.values())
        for name, size in sizes.items():
            with self._open.pop(name) as file, durable.NewFile(self._target) as new:
                new.reserve(size)
                for offset in range(0, size, COPY_BYTES):
                    data = os.pread(file.fileno(), min(COPY_BYTES, size - offset), offset)
                    new.write(data, offset)
                    if progress is not None:
                        progress(done + offset + len(data), total)
                new.publish(name, partial(_verify, str(self._source / name)))
            done += size
            self.copied.add(name)
            self.bytes_copied += size


def _verify(source: str, fd: int) -> None:
    """Raises CorruptFile unless the copy of a file has the checksums that it says."""
    Envelope(fd, source).verify()


def _same(path: Path, other: Path) -> bool:
    """Whether two names are of the same file."""
    with suppress(FileNotFoundError):
        return os.path.samestat(path.lstat(), other.lstat())
    return False


def _ends(fd: int) -> tuple[int, bytes, bytes]:
    """Size, header page and footer: two files share them only if one is a copy of the other."""
    size = os.fstat(fd).st_size
    footer = os.pread(fd, FOOTER.itemsize, max(0, size - FOOTER.itemsize))
    return size, os.pread(fd, PAGE_BYTES, 0), footer
