"""Records every change of the disk that an index makes, as a trace that `replay` can crash.

A trace names files and directories by number, since names come and go:

    Write, Resize, Sync           bytes of a file; what is durable after them is told by `replay`
    SyncedWrite                   bytes that are durable when the call returns (O_DSYNC)
    Name, Rename, Exchange, SyncNames   names in a directory; node None takes one away
    Begin, Acknowledge            the workload's own marks: what is under way, what was promised

LMDB writes in C, so its file is compared before and after each commit. What differs was written as

    pages but the two meta pages, in any order    Write, one a page
    fdatasync                                     Sync
    a meta page, at most 120 bytes within 512     SyncedWrite

which tests/faults/test_power_loss.py compares with the calls that strace sees.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import RLock
from threading import enumerate as enumerate_threads
from typing import TypeVar

from simindex.storage.files import disk
from simindex.storage.files.descriptor import Descriptor
from simindex.storage.files.disk import System
from simindex.writing.releasing import THREAD_NAME as RELEASING

Result = TypeVar("Result")

PAGE_BYTES = 4096
SECTOR_BYTES = 512
META_PAGES = 2

OPAQUE = frozenset({"LOCK", "lock.mdb"})
"""Files whose bytes mean nothing after a crash: a flock's, and LMDB's table of readers."""


@dataclass(frozen=True, slots=True)
class Write:
    """Bytes written into a file, durable after its next `Sync`."""

    file: int
    offset: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Resize:
    """A file cut or lengthened by zeros; one that only takes space never cuts it."""

    file: int
    size: int
    cuts: bool = True


@dataclass(frozen=True, slots=True)
class SyncedWrite:
    """Bytes of one sector, durable as a whole when the call returns."""

    file: int
    offset: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Sync:
    """Makes a file's bytes and size durable."""

    file: int


@dataclass(frozen=True, slots=True)
class Name:
    """A name given to a node in a directory, or taken away (None)."""

    directory: int
    name: str
    node: int | None
    is_directory: bool = False


@dataclass(frozen=True, slots=True)
class Rename:
    """One name taken away and another given, both or none."""

    directory: int
    name: str
    to_directory: int
    to_name: str
    node: int


@dataclass(frozen=True, slots=True)
class Exchange(Rename):
    """Two names that were given each other's node, both or none."""

    other: int
    """The node that had the second name, and has the first."""


@dataclass(frozen=True, slots=True)
class SyncNames:
    """Makes the names in a directory durable."""

    directory: int


@dataclass(frozen=True, slots=True)
class Begin:
    """From here on a crash may leave the workload's state `state`, or the one acknowledged."""

    state: int


@dataclass(frozen=True, slots=True)
class Acknowledge:
    """From here on nothing older than `state`, nor a commit before `generation`, may be left."""

    state: int
    generation: int


Operation = Write | Resize | SyncedWrite | Sync | Name | Rename | SyncNames | Begin | Acknowledge


@dataclass(frozen=True, slots=True)
class Content:
    """A file's bytes; zeros at its end are not kept."""

    data: bytes = b""
    size: int = 0

    @classmethod
    def read(cls, path: Path) -> Content:
        """Of a file, whose holes are not read where the file system knows them."""
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            size = os.fstat(fd).st_size
            parts: list[bytes] = []
            at = 0
            while at < size:
                try:
                    start = os.lseek(fd, at, os.SEEK_DATA)
                except OSError:  # nothing but a hole is left
                    break
                stop = os.lseek(fd, start, os.SEEK_HOLE)
                parts += [bytes(start - at), os.pread(fd, stop - start, start)]
                at = stop
        finally:
            os.close(fd)
        return cls(b"".join(parts).rstrip(b"\0"), size)

    def write(self, path: Path) -> None:
        """As a file, with a hole for the zeros."""
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        try:
            if self.data:
                os.pwrite(fd, self.data, 0)
            if self.size > len(self.data):
                os.ftruncate(fd, self.size)
        finally:
            os.close(fd)


@dataclass(frozen=True, slots=True)
class Tree:
    """A directory as it was before the trace, all of it durable. Node 0 is the directory itself."""

    files: dict[int, Content]
    directories: dict[int, dict[str, int]]


class Recorder(System):
    """Does what it is asked and notes it; takes the place of `disk.system` within `record`.

    Parameters
    ----------
    root : Path
        The folder that the index is in, or will be.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.trace: list[Operation] = []
        self._gate = RLock()
        self._nodes = 0
        self._inodes: dict[int, int] = {}
        self._directories: dict[str, int] = {}
        self._names: dict[int, dict[str, int]] = {}
        self._images: dict[str, Content | None] = {}
        self.data_files: set[int] = set()
        """Nodes of files that LMDB writes."""
        files: dict[int, Content] = {}
        self._scan(root, files)
        self.start = Tree(files, {node: dict(names) for node, names in self._names.items()})

    def _scan(self, directory: Path, files: dict[int, Content]) -> int:
        node = self._new_directory(directory)
        for path in sorted(directory.iterdir()):
            if path.is_dir():
                self._names[node][path.name] = self._scan(path, files)
            else:
                self._names[node][path.name] = number = self._new_file(path.stat().st_ino)
                # Nothing here may open and close a file that LMDB has locked.
                opaque = path.name == "lock.mdb"
                files[number] = Content() if opaque else Content.read(path)
        return node

    def _new_file(self, inode: int) -> int:
        node = self._inodes[inode] = self._nodes
        self._nodes += 1
        return node

    def _new_directory(self, path: Path) -> int:
        node = self._directories[str(path)] = self._nodes
        self._names[node] = {}
        self._nodes += 1
        return node

    def _place(self, path: Path) -> tuple[int, str]:
        return self._directories[str(path.parent)], path.name

    def note(self, *operations: Operation) -> None:
        """Adds to the trace; what wants another order holds some back here."""
        self.trace += operations

    def begin(self, state: int) -> None:
        """Marks that the workload's state `state` is under way."""
        self.note(Begin(state))

    def acknowledge(self, state: int, generation: int) -> None:
        """Marks that it was promised."""
        self.note(Acknowledge(state, generation))

    # -- the calls ---------------------------------------------------------------------------------

    def create(self, path: Path, flags: int) -> Descriptor:
        with self._gate:
            new = not os.path.lexists(path)
            file = super().create(path, flags)
            if new:
                node = self._new_file(os.fstat(file.fileno()).st_ino)
                directory, name = self._place(path)
                self._names[directory][name] = node
                self.note(Name(directory, name, node))
            return file

    def _file(self, fd: int) -> int:
        return self._inodes[os.fstat(fd).st_ino]

    def write(self, fd: int, data: bytes | memoryview, offset: int) -> int:
        with self._gate:
            written = super().write(fd, data, offset)
            self.note(Write(self._file(fd), offset, bytes(memoryview(data).cast("B")[:written])))
            return written

    def allocate(self, fd: int, size: int) -> None:
        with self._gate:
            super().allocate(fd, size)
            self.note(Resize(self._file(fd), size, cuts=False))

    def resize(self, fd: int, size: int) -> None:
        with self._gate:
            super().resize(fd, size)
            self.note(Resize(self._file(fd), size))

    def lengthen(self, path: Path, size: int) -> None:
        with self._gate:
            before = self._image(path)
            super().lengthen(path, size)
            if before is not None:
                self._images[str(path)] = Content(before.data, size)
            self.note(Resize(self._inodes[path.stat().st_ino], size))

    def sync(self, fd: int) -> None:
        with self._gate:
            super().sync(fd)
            self.note(Sync(self._file(fd)))

    def rename(self, path: Path, to: Path) -> None:
        with self._gate:
            super().rename(path, to)
            directory, name = self._place(path)
            to_directory, to_name = self._place(to)
            node = self._names[directory].pop(name)
            self._names[to_directory][to_name] = node
            self._moved((path, to))
            self.note(Rename(directory, name, to_directory, to_name, node))

    def _moved(self, *moves: tuple[Path, Path]) -> None:
        """Directories have other paths, and so has all in them."""
        before = dict(self._directories)
        found = {
            old: str(to) + old[len(str(path)) :] for path, to in moves for old in before
            if old == str(path) or old.startswith(f"{path}/")
        }
        for old in found:
            del self._directories[old]
            self._images.pop(f"{old}/data.mdb", None)
        for old, new in found.items():
            self._directories[new] = before[old]

    def exchange(self, path: Path, other: Path) -> None:
        with self._gate:
            super().exchange(path, other)
            directory, name = self._place(path)
            other_directory, other_name = self._place(other)
            node, behind = self._names[directory][name], self._names[other_directory][other_name]
            self._names[directory][name] = behind
            self._names[other_directory][other_name] = node
            self._moved((path, other), (other, path))
            self.note(Exchange(directory, name, other_directory, other_name, node, behind))

    def link(self, path: Path, to: Path) -> None:
        with self._gate:
            super().link(path, to)
            directory, name = self._place(path)
            node = self._names[directory][name]
            directory, name = self._place(to)
            self._names[directory][name] = node
            self.note(Name(directory, name, node))

    def unlink(self, path: Path) -> None:
        with self._gate:
            super().unlink(path)
            directory, name = self._place(path)
            del self._names[directory][name]
            self._images.pop(str(path), None)
            self.note(Name(directory, name, None))

    def make_directory(self, path: Path) -> None:
        with self._gate:
            super().make_directory(path)
            directory, name = self._place(path)
            node = self._names[directory][name] = self._new_directory(path)
            self.note(Name(directory, name, node, is_directory=True))

    def remove_directory(self, path: Path) -> None:
        with self._gate:
            super().remove_directory(path)
            directory, name = self._place(path)
            del self._names[directory][name], self._directories[str(path)]
            self.note(Name(directory, name, None))

    def sync_directory(self, path: Path) -> None:
        with self._gate:
            super().sync_directory(path)
            if str(path) in self._directories:  # or it is above the root, which always lasts
                self.note(SyncNames(self._directories[str(path)]))

    def lmdb(self, data: Path, work: Callable[[], Result]) -> Result:
        with self._gate:
            before = self._image(data)
            try:
                return work()
            finally:
                if data.exists():
                    after = self._images[str(data)] = Content.read(data)
                    self.committed(data, before, after)

    def _image(self, data: Path) -> Content | None:
        if str(data) not in self._images:
            self._images[str(data)] = Content.read(data) if data.exists() else None
        return self._images[str(data)]

    def committed(self, data: Path, before: Content | None, after: Content) -> None:
        """Notes what a transaction, or opening, has written into LMDB's file."""
        if before is None:
            directory, name = self._place(data)
            node = self._names[directory][name] = self._new_file(data.stat().st_ino)
            self.data_files.add(node)
            self.note(Name(directory, name, node), Write(node, 0, padded(after)))
            return
        node = self._inodes[data.stat().st_ino]
        changed = changed_pages(before, after)
        pages = [page for page in changed if page >= META_PAGES]
        end = max([before.size, *((page + 1) * PAGE_BYTES for page in pages)])
        if after.size != end:
            raise AssertionError(f"{data} has {after.size} bytes, not {end}")
        metas = [page for page in changed if page < META_PAGES]
        for page in pages:
            self.note(Write(node, page * PAGE_BYTES, page_of(after, page)))
        if pages and not metas:
            raise AssertionError(f"pages of {data} were written, and no meta page")
        if metas:
            (meta,) = metas
            changes = page_of(after, meta)
            if changes[SECTOR_BYTES:] != page_of(before, meta)[SECTOR_BYTES:]:
                raise AssertionError("a meta page was changed beyond its first sector")
            self.note(Sync(node), SyncedWrite(node, meta * PAGE_BYTES, changes[:SECTOR_BYTES]))


def padded(content: Content) -> bytes:
    """All bytes of a file, zeros at its end included."""
    return content.data + bytes(content.size - len(content.data))


def page_of(content: Content, page: int) -> bytes:
    """One page of a file; zeros beyond its end."""
    return content.data[page * PAGE_BYTES : (page + 1) * PAGE_BYTES].ljust(PAGE_BYTES, b"\0")


def changed_pages(before: Content, after: Content) -> list[int]:
    """Numbers of the pages that differ."""
    count = -(-max(len(before.data), len(after.data)) // PAGE_BYTES)
    return [page for page in range(count) if page_of(before, page) != page_of(after, page)]


@contextmanager
def record(recorder: Recorder) -> Iterator[Recorder]:
    """Lets all writing go through a recorder meanwhile.

    Space that indexes which were closed before give back is none of its own, so that is waited for.
    """
    for thread in enumerate_threads():
        if thread.name == RELEASING:
            thread.join()
    real = disk.system
    disk.system = recorder
    try:
        yield recorder
    finally:
        disk.system = real
