"""How a file becomes durable, and the FORMAT file that says "this is an index".

    pages.sim/
      FORMAT                      64 bytes, the last file written by create
      LOCK                        flock of the one writer
      catalog/data.mdb lock.mdb   LMDB
      segments/<name>.rows        sorted rows, never changed once named
      segments/<name>-….bphs      permuted tables, and
      segments/<name>-….issl      slice lists of a segment, as its record names them

Invariants
1. A file gets its final name only when its bytes are on the disk and were read back and verified:
   write to `.tmp-…`, verify, fsync, rename, fsync the directory.
2. Nothing is ever written into a file that has its final name.
3. A name in `segments/` means nothing until the catalog's head names it too.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import secrets
import socket
import stat
import sys
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Lock
from time import sleep
from types import TracebackType

import numpy as np
from numpy.typing import NDArray

from simindex._kernels import _native
from simindex.errors import (
    CorruptFile,
    FormatTooNew,
    FormatTooOld,
    IndexLocked,
    IndexNotFound,
    UnsupportedStorage,
)
from simindex.storage.files import disk
from simindex.storage.files.descriptor import Descriptor
from simindex.storage.files.refusals import NO_SPACE, no_space_told

MAJOR, MINOR = 1, 0
"""Version of everything on disk. Another major is refused; a newer minor is read."""

ENDIAN_TAG = 0x01020304
SWAPPED_TAG = int.from_bytes(ENDIAN_TAG.to_bytes(4, "big"), "little")

FORMAT_DTYPE = np.dtype(
    [
        ("magic", "S8"),
        ("endian", "<u4"),
        ("major", "<u2"),
        ("minor", "<u2"),
        ("incompatible", "<u4"),
        ("read_compatible", "<u4"),
        ("compatible", "<u4"),
        ("uuid", "V16"),
        ("reserved", "V16"),
        ("checksum", "<u4"),
    ]
)
"""Frozen: a golden file holds these 64 bytes."""

FORMAT_MAGIC = b"\x89SIM\r\n\x1a\n"

TEMPORARY_PREFIX = ".tmp-"

TEMPORARY = re.compile(r"\.tmp-[0-9a-f]{16}")

REPAIRED_CATALOG = "catalog.repair-"
"""A repair makes a catalog under this name and a number, then gives it the old one's."""

KEPT_PREFIX = "damaged-"
"""What a repair replaces goes into a directory of this name and a number; nothing else touches it.
"""

CATALOG_FILES = {"data.mdb", "lock.mdb"}
"""All that a catalog's directory holds."""

_NUMBER = re.compile(r"[0-9]{1,9}")

_LONGEST_HOLDER = 512
_TOLD_HOLDER = 200
_HOLDER = re.compile(rb"process [0-9]+( (o(n( [^\n]{0,400}\n?)?)?)?)?")
"""What the lock's file says of who holds it, whole or cut short by a crash behind the word."""

_NO_LINKS = {errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK, errno.ENOSYS, errno.EXDEV}
_NO_EXCHANGE = {errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM}
NOT_REGULAR = {errno.ELOOP, errno.EISDIR, errno.ENXIO, errno.ENODEV}
"""What opening a link, a directory, a socket or a device gives where a file should be."""

_LOST = {errno.EIO, *NO_SPACE}
"""What writing back may find out, and tells once."""


def sync_directory(path: Path) -> None:
    """Makes the names in a directory durable."""
    disk.system.sync_directory(path)


def make_directory(path: Path) -> None:
    """A new directory whose name is durable in its parent."""
    with no_space_told(path):
        disk.system.make_directory(path)
        try:
            sync_directory(path.parent)
        except BaseException:
            with suppress(OSError):  # another process may have put something in it
                disk.system.remove_directory(path)
            raise


def remove(path: Path) -> None:
    """Unlinks a file; one that is gone already is no error, nor a directory in its place."""
    with suppress(FileNotFoundError, IsADirectoryError):
        disk.system.unlink(path)


def is_directory(path: Path) -> bool:
    """Whether a directory has this name itself: a link to one is none."""
    return path.is_dir() and not path.is_symlink()


def is_file(path: Path) -> bool:
    """Whether a regular file has this name itself."""
    return path.is_file() and not path.is_symlink()


def is_format(directory: Path) -> bool:
    """Whether there is a FORMAT that begins as one of this package."""
    try:
        file = Descriptor(directory / "FORMAT", _NO_LINK)
    except OSError:
        return False
    with file:
        try:
            return os.read(file.fileno(), len(FORMAT_MAGIC)) == FORMAT_MAGIC
        except IsADirectoryError:
            return False


def remove_tree(path: Path) -> None:
    """Removes a directory and all in it, or a link or file of that name; follows no link."""
    found = [path]
    directories: list[Path] = []
    while found:
        inner = found.pop()
        if is_directory(inner):
            directories.append(inner)
            found += inner.iterdir()
        else:
            remove(inner)
    for inner in reversed(directories):  # each after those within it
        disk.system.remove_directory(inner)


WRITE_BACK_BYTES = 1 << 21
WRITE_BACK_DEPTH = 2
"""Whole pieces of a file go to the disk as they are written; so many are on their way at a time.

Else all of a large file is dirty until its fsync, and the fsync of a small one beside it waits as
long: 0.24 s at 400 MB, where it takes 2 ms beside a file that is written back like this.
"""

FREE_BYTES = 1 << 19
FREE_PAUSE_S = 0.006
"""85 MB a second, and as much more for each further file that waits."""

_freeing = Lock()
_to_free: set[int] = set()
"""Descriptors of files whose space is being given back, or will be: by one thread at a time."""


def _after_fork() -> None:
    # The child has none of the threads that held the lock.
    global _freeing
    _freeing = Lock()
    _to_free.clear()


os.register_at_fork(after_in_child=_after_fork)


def is_numbered(name: str, prefix: str) -> bool:
    """Whether a repair may have given a name that begins so, and ends with a number."""
    return name.startswith(prefix) and _NUMBER.fullmatch(name, len(prefix)) is not None


def next_numbered(directory: Path, prefix: str) -> Path:
    """The path of the next number that begins so."""
    taken = [
        int(path.name[len(prefix) :]) for path in directory.glob(f"{prefix}*")
        if is_numbered(path.name, prefix)
    ]
    number = max(taken, default=0) + 1
    while os.path.lexists(directory / f"{prefix}{number}"):
        number += 1
    return directory / f"{prefix}{number}"


def repaired_catalogs(directory: Path) -> list[Path]:
    """Catalogs that repairs have made and not put in place, the last one first."""
    found = [
        path for path in directory.glob(f"{REPAIRED_CATALOG}*")
        if is_numbered(path.name, REPAIRED_CATALOG) and is_directory(path)
    ]
    return sorted(found, key=lambda path: -int(path.name[len(REPAIRED_CATALOG) :]))


def unlink_held(path: Path) -> Descriptor | None:
    """Unlinks a file and returns a descriptor that keeps its space, for `free`; None if none."""
    file = None
    with suppress(OSError):  # none to be had, or the file is gone
        file = Descriptor(path, os.O_WRONLY | os.O_NOFOLLOW)
    remove(path)
    return file


def free(file: Descriptor) -> None:
    """Closes an unlinked file, and gives its space back little by little if nobody else has it.

    Where the file system discards freed blocks at once (ext4 with `discard`), an fsync waits for
    all that was freed before it: 1 ms a megabyte, 0.3 s after a file of 200 MB is closed.
    """
    fd = file.fileno()
    _to_free.add(fd)
    try:
        with _freeing:
            if _nobody_else_has(fd):
                size = os.fstat(fd).st_size
                while size:
                    size = max(0, size - FREE_BYTES)
                    disk.system.resize(fd, size)
                    sleep(FREE_PAUSE_S / max(1, len(_to_free)))
    finally:
        _to_free.discard(fd)
        file.close()


def _nobody_else_has(fd: int) -> bool:
    """Whether a file has no name left, and no other descriptor or map in any process.

    A lease for writing is granted only then; without a name, nobody can open the file afterwards.
    """
    if os.fstat(fd).st_nlink:
        return False  # somebody made a hard link, as for a backup
    try:
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except OSError:
        return False
    return True


class NewFile:
    """A file under a temporary name, which `publish` gives its final one.

    Used as a context manager: leaving it without `publish` removes the file.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._path = directory / f"{TEMPORARY_PREFIX}{secrets.token_hex(8)}"
        with no_space_told(self._path):
            self._file = disk.system.create(self._path, os.O_RDWR | os.O_EXCL | os.O_NOFOLLOW)
        self._published = False
        self._sent: deque[int] = deque()
        """Offsets of pieces on their way to the disk."""

    def __enter__(self) -> NewFile:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self._file.close()
        except OSError:
            if not self._published:  # else all of it is on the disk: nothing was lost
                raise
        finally:
            if not self._published:
                remove(self._path)

    def reserve(self, size: int) -> None:
        """Takes the disk space of `size` bytes now, so that a full disk fails here."""
        if size:
            with no_space_told(self._path):
                disk.system.allocate(self._file.fileno(), size)

    def write(self, data: NDArray[np.uint8] | bytes, offset: int) -> None:
        """Writes all of `data` at `offset`."""
        fd = self._file.fileno()
        view = memoryview(data)  # type: ignore[arg-type]  # an array is a buffer, unknown to its stub
        with no_space_told(self._path):
            while view:
                piece = view[: WRITE_BACK_BYTES - offset % WRITE_BACK_BYTES]
                written = disk.system.write(fd, piece, offset)
                if written == WRITE_BACK_BYTES:
                    self._write_back(offset)
                view, offset = view[written:], offset + written

    def _write_back(self, offset: int) -> None:
        self._send(offset, wait=False)
        self._sent.append(offset)
        if len(self._sent) > WRITE_BACK_DEPTH:
            self._send(self._sent.popleft(), wait=True)

    def _send(self, offset: int, *, wait: bool) -> None:
        code = disk.system.write_back(self._file.fileno(), offset, WRITE_BACK_BYTES, wait)
        if code in _LOST:  # what else fails here leaves it to fsync
            raise OSError(code, os.strerror(code), str(self._path))

    def publish(self, name: str, verify: Callable[[int], None]) -> Path:
        """Verifies, syncs and renames; returns the final path.

        `verify` reads the file back through the descriptor it is given and raises if the bytes are
        not those that were written.
        """
        final = self.directory / name
        with no_space_told(final):
            verify(self._file.fileno())
            disk.system.sync(self._file.fileno())
            disk.system.rename(self._path, final)
            self._published = True
            try:
                sync_directory(self.directory)
            except BaseException:
                remove(final)  # nothing names it yet
                raise
        return final


def write_format(directory: Path, uuid: bytes) -> None:
    """Writes FORMAT, the last step of creating an index."""
    record = np.zeros((), FORMAT_DTYPE)
    record["magic"], record["endian"] = FORMAT_MAGIC, ENDIAN_TAG
    record["major"], record["minor"] = MAJOR, MINOR
    record["uuid"] = np.void(uuid)
    data = np.frombuffer(record.tobytes(), np.uint8).copy()
    data[-4:] = np.frombuffer(np.uint32(_native.crc32c(data[:-4])).tobytes(), np.uint8)

    def verify(fd: int) -> None:
        if os.pread(fd, len(data), 0) != data.tobytes():
            raise CorruptFile("FORMAT reads back other than it was written", path=str(directory))

    for stray in directory.glob(f"{TEMPORARY_PREFIX}*"):  # of one that was interrupted
        if TEMPORARY.fullmatch(stray.name):
            remove(stray)
    with NewFile(directory) as file:
        file.write(data, 0)
        file.publish("FORMAT", verify)
    sync_directory(directory.parent)


_NO_LINK = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK


def read_format(directory: Path, *, writable: bool = False) -> bytes:
    """The index's uuid (16 bytes), once its version is known to be readable, or `writable`, too.

    Raises
    ------
    IndexNotFound
        If there is no FORMAT: the directory is no index.
    CorruptFile, FormatTooNew, FormatTooOld
        If it is damaged, or of a version this package does not read.
    """
    path = directory / "FORMAT"
    try:
        file = Descriptor(path, _NO_LINK)
    except OSError as error:
        if error.errno in NOT_REGULAR:
            what = "a symbolic link" if path.is_symlink() else "no regular file"
            raise CorruptFile(f"{path} is {what}", path=str(path)) from error
        if not isinstance(error, (FileNotFoundError, NotADirectoryError)):
            raise
        if any((directory / "segments").glob("*.rows")):
            raise IndexNotFound(
                f"{directory} has lost its FORMAT",
                remedy=f"`simindex repair {directory}` makes it anew",
                path=str(directory),
            ) from error
        raise IndexNotFound(
            f"there is no index at {directory}",
            remedy="create one with mode 'c' or `simindex build`",
            path=str(directory),
        ) from error
    with file:
        try:
            data = os.read(file.fileno(), FORMAT_DTYPE.itemsize + 1)
        except IsADirectoryError as error:
            raise CorruptFile(f"{path} is a directory", path=str(path)) from error
    if data[:8] != FORMAT_MAGIC:
        raise CorruptFile(f"{path} is not a FORMAT file of simindex", path=str(path), offset=0)
    if len(data) != FORMAT_DTYPE.itemsize:
        raise CorruptFile(
            f"{path} has {len(data)} bytes, not {FORMAT_DTYPE.itemsize}",
            path=str(path), found=len(data), expected=FORMAT_DTYPE.itemsize,
        )
    record = np.frombuffer(data, FORMAT_DTYPE)[0]
    if int(record["endian"]) == SWAPPED_TAG:
        raise CorruptFile(
            f"{path} is of a machine of another byte order: an index is little-endian on every "
            "machine", path=str(path), offset=8,
        )
    check_version(path, int(record["major"]), int(record["minor"]), int(record["incompatible"]))
    found = _native.crc32c(np.frombuffer(data[:-4], np.uint8))
    if found != int(record["checksum"]) or int(record["endian"]) != ENDIAN_TAG:
        raise CorruptFile(f"{path} is damaged: its checksum differs", path=str(path))
    if writable:
        check_features(path, int(record["read_compatible"]))
    return bytes(record["uuid"])


def format_agrees(directory: Path) -> bool:
    """Whether FORMAT's checksum holds, or it is of a length that no version known here writes."""
    with Descriptor(directory / "FORMAT", _NO_LINK) as file:
        data = os.read(file.fileno(), FORMAT_DTYPE.itemsize + 1)
    if len(data) != FORMAT_DTYPE.itemsize:
        return True
    return _native.crc32c(np.frombuffer(data[:-4], np.uint8)) == int.from_bytes(
        data[-4:], "little"
    )


def link(source: Path, target: Path) -> bool:
    """Gives a file a second name; False where the file system has no such thing."""
    with no_space_told(target):
        try:
            disk.system.link(source, target)
        except OSError as error:
            if error.errno in _NO_LINKS:
                return False
            raise
    return True


def move(source: Path, target: Path) -> None:
    """Gives a file or directory another name on its file system, for good."""
    with no_space_told(target):
        disk.system.rename(source, target)
        sync_directory(target.parent)
        if source.parent != target.parent:
            sync_directory(source.parent)


def exchange(path: Path, other: Path) -> bool:
    """Gives two directories each other's name, at once and for good.

    False where the file system does not exchange names. An error leaves both as they were, as far
    as it can.
    """
    with no_space_told(path):
        try:
            disk.system.exchange(path, other)
        except OSError as error:
            if error.errno in _NO_EXCHANGE:
                return False
            raise
        try:
            for parent in {path.parent: None, other.parent: None}:
                sync_directory(parent)
        except BaseException:
            disk.system.exchange(path, other)
            raise
    return True


def hold(directory: Path) -> Descriptor | None:
    """Holds a directory until the descriptor that is returned is closed, or the process ends.

    None where another process holds it, or it is gone or no directory.
    """
    try:
        held = Descriptor(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        fcntl.flock(held.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        if _is_named(held.fileno(), directory):
            return held
    except BlockingIOError:
        pass
    except BaseException:
        held.close()
        raise
    held.close()
    return None


def _is_named(fd: int, path: Path) -> bool:
    """Whether a path still leads to what is open: who held it before may have removed it."""
    try:
        return os.path.samestat(os.fstat(fd), path.lstat())
    except FileNotFoundError:
        return False


def check_version(path: Path, major: int, minor: int, incompatible: int) -> None:
    """Refuses what this version cannot read, and says what to do."""
    version = f"{major}.{minor}"
    if major > MAJOR or (major == MAJOR and incompatible):
        raise FormatTooNew(
            f"{path} has format {version}, this simindex reads up to {MAJOR}.{MINOR}",
            remedy="install a newer simindex",
            path=str(path), found=version, expected=f"{MAJOR}.{MINOR}",
        )
    if major < MAJOR:
        raise FormatTooOld(
            f"{path} has format {version}, this simindex reads {MAJOR}.x",
            remedy="build the index anew",
            path=str(path), found=version, expected=f"{MAJOR}.{MINOR}",
        )


def check_features(path: Path | str, read_compatible: int) -> None:
    """Refuses to write where there is what this version reads past: it would be lost."""
    if read_compatible:
        raise FormatTooNew(
            f"{path} has features ({read_compatible:#x}) that this simindex can read but not write",
            remedy="open the index with mode 'r', or install a newer simindex",
            path=str(path), found=read_compatible, expected=0,
        )


NETWORK_FILE_SYSTEMS = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "fuse.sshfs", "ceph", "lustre", "afs", "gpfs"}
)


def check_storage(directory: Path, *, allow_remote: bool) -> None:
    """Refuses machines and file systems on which locks and maps cannot be trusted."""
    if sys.byteorder != "little" or sys.maxsize < 1 << 40:
        raise UnsupportedStorage("simindex needs a 64-bit little-endian machine")
    kind = file_system_kind(directory)
    if kind in NETWORK_FILE_SYSTEMS and not allow_remote:
        raise UnsupportedStorage(
            f"{directory} is on a {kind} file system, where locks and memory maps are not "
            "reliable: keep the index on a local disk, or set allow_remote and use one machine",
            path=str(directory), found=kind,
        )


def file_system_kind(path: Path) -> str:
    """The file system's name as the kernel gives it, or "" where that is unknown."""
    try:
        device = path.stat().st_dev
        wanted = f"{os.major(device)}:{os.minor(device)}"
        for line in Path("/proc/self/mountinfo").read_text("utf-8", "replace").splitlines():
            fields, _, rest = line.partition(" - ")
            if fields.split()[2] == wanted:
                return rest.split()[0]
    except (OSError, IndexError):
        pass
    return ""


def lock(path: Path) -> Descriptor:
    """Takes the writer's lock, for `unlock` to give back; IndexLocked names who holds it.

    It goes with the descriptor, too: an interrupt may drop that before anybody has it.
    """
    file: Descriptor | None = None
    try:
        while file is None:  # a creation that failed has removed it meanwhile
            file = _locked(path)
        fd = file.fileno()
        text = f"process {os.getpid()} on {socket.gethostname()}\n".encode(errors="replace")
        with suppress(OSError):  # it serves messages only: a full disk must not keep a writer out
            if _tells_holder(os.pread(fd, _LONGEST_HOLDER, 0)):  # else it is somebody's file
                disk.system.resize(fd, 0)
                disk.system.write(fd, text, 0)
    except BaseException:
        if file is not None:
            file.close()
        raise
    return file


def _locked(path: Path) -> Descriptor | None:
    """The locked file; None if that has lost its name since it was opened."""
    try:
        file = disk.system.create(path, os.O_RDWR | os.O_NOFOLLOW)
    except OSError as error:
        if error.errno in NOT_REGULAR:
            raise CorruptFile(
                f"{path} is no regular file: remove it, the next writer makes a new one",
                path=str(path),
            ) from error
        raise
    try:
        fd = file.fileno()
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:  # its text would be written
            raise CorruptFile(
                f"{path} is no regular file of its own: remove it, the next writer makes a new one",
                path=str(path),
            )
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        named = _is_named(fd, path)
    except BlockingIOError as error:
        try:
            holder = _told_holder(os.pread(fd, _LONGEST_HOLDER, 0))
        finally:
            file.close()
        raise IndexLocked(
            f"{path.parent} is being written by {holder}: wait for it, or open with mode 'r'",
            path=str(path.parent), holder=holder,
        ) from error
    except BaseException:
        file.close()
        raise
    if not named:
        file.close()
        return None
    return file


def is_locked(file: Descriptor, path: Path) -> bool:
    """Whether a lock still keeps others out: its name leads to the file that is locked."""
    return not file.closed and _is_named(file.fileno(), path)


def _told_holder(text: bytes) -> str:
    """Who a lock's text says holds it, for people: anybody may have written it."""
    found = text.rstrip(b"\0").decode("utf-8", "backslashreplace").strip() or "another process"
    shown = "".join(one if one.isprintable() else ascii(one)[1:-1] for one in found)
    return shown if len(shown) <= _TOLD_HOLDER else f"{shown[: _TOLD_HOLDER - 3]}..."


def is_lock(path: Path) -> bool:
    """Whether a file may be the writer's lock: empty, or with the text that `lock` writes."""
    try:
        file = Descriptor(path, _NO_LINK)
    except OSError:
        return False
    with file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            return False
        text = os.read(file.fileno(), _LONGEST_HOLDER + 1)
    return _tells_holder(text)


def _tells_holder(text: bytes) -> bool:
    """Whether a lock's text is of this package, or what a crash left of it: bytes may be zeros."""
    text = text.rstrip(b"\0")
    return b"process ".startswith(text) or _HOLDER.fullmatch(text) is not None


def unlock(file: Descriptor) -> None:
    """Gives the writer's lock back, also where a forked child still has its descriptor open.

    May be called again, after an interrupt.
    """
    if file.closed:
        return
    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_UN)
    finally:
        file.close()
