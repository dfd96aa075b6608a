"""One LMDB environment a directory and process, shared by every handle on it.

LMDB allows a directory to be open once in a process, and forgets its locks when anything else in
the process opens and closes `lock.mdb`; an environment must not cross a fork. So environments are
kept in a registry, counted, looked at before they are opened, and closed in a forked child.

Transactions are short: they copy what they read and end, so no stale reader makes the file grow and
no pointer into LMDB outlives its transaction.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import RLock
from typing import Any

import lmdb

from simindex.errors import CorruptFile, StorageFull, UnsupportedStorage

DATABASES = ("head", "meta", "segments", "headers", "pending", "tombstones")

MAP_BYTES = 1 << 38
"""Address space of the map; the file takes only what is used."""

MAX_READERS = 1024

_LOCK_FILE_BYTES = 128 + 64 * MAX_READERS

_META_MAGIC = 0xBEEFC0DE


class Environment:
    """An open catalog directory; use `acquire` and `release`."""

    def __init__(self, directory: Path, *, writable: bool, create: bool) -> None:
        self.directory = directory
        self.users = 0
        self.lock = RLock()
        self._open(writable=writable, create=create)

    def _open(self, *, writable: bool, create: bool) -> None:
        data = self.directory / "data.mdb"
        if not create:
            preflight(data)
        if writable:
            reserve_lock_file(self.directory / "lock.mdb")
        locked = writable or os.access(self.directory, os.W_OK)
        try:
            self._env = lmdb.open(
                str(self.directory),
                map_size=MAP_BYTES,
                max_dbs=len(DATABASES),
                max_readers=MAX_READERS,
                readonly=not writable,
                create=create,
                lock=locked,
                readahead=False,
                writemap=False,
                sync=True,
                metasync=True,
                map_async=False,
                lib_version=0,
            )
            if writable:
                self._env.reader_check()
            self._databases = {
                name: self._env.open_db(name.encode(), create=create) for name in DATABASES
            }
        except lmdb.DiskError as error:
            raise StorageFull(f"cannot open the catalog {data}: {error}", path=str(data)) from error
        except lmdb.MemoryError as error:  # the address space is limited, as by `ulimit -v`
            raise UnsupportedStorage(
                f"cannot map {MAP_BYTES >> 30} GiB of address space for {data}: "
                "raise the limit on virtual memory",
                path=str(data),
            ) from error
        except lmdb.Error as error:
            raise CorruptFile(f"cannot open the catalog {data}: {error}", path=str(data)) from error
        self.writable = writable

    def upgrade(self) -> None:
        """Reopens for writing an environment that was opened for reading."""
        with self.lock:
            if not self.writable:
                self._env.close()
                self._open(writable=True, create=False)

    def close(self) -> None:
        """Closes the environment; only `release` calls this."""
        with self.lock:
            self._env.close()

    @contextmanager
    def transaction(self, *, write: bool = False) -> Iterator[Transaction]:
        """One transaction, begun and ended on this thread; aborted unless it is committed.

        LMDB's writer lock belongs to the thread that took it, so a transaction must not travel.
        """
        with self.lock:
            try:
                txn = self._env.begin(write=write, buffers=False)
            except lmdb.ReadersFullError:
                self._env.reader_check()
                txn = self._env.begin(write=write, buffers=False)
            try:
                yield Transaction(txn, self._databases)
            finally:
                txn.abort()

    def get(self, database: str, key: bytes) -> bytes | None:
        """One value, in a transaction of its own; every query begins with one such look."""
        with self.lock:
            try:
                txn = self._env.begin()
            except lmdb.ReadersFullError:
                self._env.reader_check()
                txn = self._env.begin()
            try:
                value: bytes | None = txn.get(key, db=self._databases[database])
                return value
            finally:
                txn.abort()

    @property
    def file_bytes(self) -> int:
        """Bytes the catalog takes on the disk."""
        return (self.directory / "data.mdb").stat().st_blocks * 512


class Transaction:
    """Point reads and writes on the named databases; there are no cursors."""

    __slots__ = ("_databases", "_txn")

    def __init__(self, txn: Any, databases: Mapping[str, Any]) -> None:
        self._txn, self._databases = txn, databases

    def get(self, database: str, key: bytes) -> bytes | None:
        """A copy of the value, or None."""
        value: bytes | None = self._txn.get(key, db=self._databases[database])
        return value

    def put(self, database: str, key: bytes, value: bytes) -> None:
        """Sets the value."""
        self._txn.put(key, value, db=self._databases[database])

    def delete(self, database: str, key: bytes) -> bool:
        """Removes the key; returns whether it was there."""
        return bool(self._txn.delete(key, db=self._databases[database]))

    def commit(self) -> None:
        """Makes the writes durable."""
        self._txn.commit()


_registry: dict[tuple[int, int], Environment] = {}
_registry_lock = RLock()


def acquire(directory: Path, *, writable: bool = False, create: bool = False) -> Environment:
    """The process's environment for a catalog directory; give it back with `release`."""
    status = directory.stat()
    key = (status.st_dev, status.st_ino)
    with _registry_lock:
        environment = _registry.get(key)
        if environment is None:
            environment = Environment(directory, writable=writable, create=create)
            _registry[key] = environment
        elif writable:
            environment.upgrade()
        environment.users += 1
        return environment


def release(environment: Environment) -> None:
    """Closes the environment when its last user gives it back."""
    with _registry_lock:
        environment.users -= 1
        if environment.users == 0:
            for key, known in list(_registry.items()):
                if known is environment:
                    del _registry[key]
            environment.close()


def _forget_after_fork() -> None:
    # The child must not use inherited environments; LMDB lets it open its own only once they are
    # closed. Locks may have been held by threads that do not exist here, so they are made anew.
    global _registry_lock
    _registry_lock = RLock()
    for environment in _registry.values():
        environment.lock = RLock()
        with suppress(lmdb.Error):
            environment.close()
    _registry.clear()


os.register_at_fork(after_in_child=_forget_after_fork)


def preflight(data: Path) -> None:
    """Refuses a `data.mdb` that is cut short before LMDB maps it, which would end in SIGBUS.

    Reads the two meta pages: each valid one names the last page in use, which must be in the file.
    """
    try:
        fd = os.open(data, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError as error:
        raise CorruptFile(
            f"the catalog {data} is missing: the segment files may still hold the rows",
            path=str(data),
        ) from error
    try:
        size = os.fstat(fd).st_size
        page = os.sysconf("SC_PAGE_SIZE")
        metas = [_read_meta(os.pread(fd, 152, 0))]
        if metas[0] is not None:
            page = metas[0][0]
        metas.append(_read_meta(os.pread(fd, 152, page)))
    finally:
        os.close(fd)
    valid = [meta for meta in metas if meta is not None]
    if size < 2 * page or not valid:
        raise CorruptFile(f"the catalog {data} is damaged: no valid meta page", path=str(data))
    needed = max((last + 1) * page_bytes for page_bytes, last in valid)
    if size < needed:
        raise CorruptFile(
            f"the catalog {data} is cut short: {size} bytes instead of {needed}",
            path=str(data), found=size, expected=needed,
        )


def _read_meta(data: bytes) -> tuple[int, int] | None:
    """(page size, last page) of a meta page, or None if it is not one of LMDB's format 1."""
    if len(data) < 152:
        return None
    magic, version = struct.unpack_from("<II", data, 16)
    page_bytes = struct.unpack_from("<I", data, 40)[0]
    last_page = struct.unpack_from("<Q", data, 136)[0]
    if magic != _META_MAGIC or version != 1 or page_bytes not in (1 << n for n in range(9, 17)):
        return None
    return page_bytes, last_page


def reserve_lock_file(path: Path) -> None:
    """Takes the lock file's space before LMDB maps it: on a full disk LMDB would end in SIGBUS.

    Only when it does not exist: opening and closing an existing one would drop LMDB's locks.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    try:
        fd = os.open(path, flags, 0o666)
    except FileExistsError:
        return
    try:
        os.posix_fallocate(fd, 0, _LOCK_FILE_BYTES)
    except OSError as error:
        path.unlink()
        raise StorageFull(
            f"no space for {path}: free some and try again", path=str(path)
        ) from error
    finally:
        os.close(fd)
