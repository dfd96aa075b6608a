"""One open LMDB environment, and the transactions on it.

Transactions are short: they copy what they read and end, so no stale reader makes the file grow and
no pointer into LMDB outlives its transaction.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from math import inf
from pathlib import Path
from threading import RLock, get_ident
from time import monotonic, sleep
from types import TracebackType
from typing import Any, Generic, TypeVar
from weakref import ref

import lmdb

from simindex.errors import ClosedIndex
from simindex.storage.catalog.lmdb_files import (
    MAX_READERS,
    opening_error,
    reading_error,
    require_plain,
    reserve_lock_file,
)
from simindex.storage.catalog.pages import MAP_BYTES, preflight
from simindex.storage.files import disk

DATABASES = ("head", "meta", "segments", "headers", "pending", "tombstones")

CREATION_BYTES = 128 << 10
"""More than LMDB writes to make a file with all databases: on a full disk it would end with an
input/output error."""


class Environment:
    """An open catalog directory; see `leases.acquire`.

    Transactions of several threads run side by side; opening, closing and forking wait for those
    in progress and let none begin.
    """

    def __init__(self, directory: Path, *, writable: bool, create: bool) -> None:
        self.directory = directory
        self.data: Path = directory / "data.mdb"
        self.place: Path = Path(os.path.realpath(directory))
        """That a link on the way leads elsewhere later replaces nothing."""
        self.leases: set[ref[Any]] = set()
        """Of `leases`; also of some that were dropped."""
        self.writable: bool = writable
        self._gate = RLock()  # a handle may be dropped, and closed, within any call
        self._active: set[ref[_Token]] = set()
        """Of the transactions in progress, and of any that an interrupt has left and that ended
        when its traceback went."""
        self._writing: tuple[Any, int] | None = None
        """The last transaction that writes, with its thread."""
        self._env: Any = None
        self._broken = False
        """Whether a commit has failed, after which LMDB may begin no transaction, not even to read:
        the next one opens the environment again."""
        self._open(writable=writable, create=create)

    def _open(self, *, writable: bool, create: bool) -> None:
        data, lock = self.data, self.directory / "lock.mdb"
        require_plain(data, alone=writable)
        require_plain(lock, alone=True)  # readers write to it, too
        if not create:
            preflight(data)
        # Without the right to write there is no reader table, so LMDB cannot protect what is read;
        # checksums then tell when a writer has reused a page meanwhile.
        locked = writable or os.access(lock if lock.exists() else self.directory, os.W_OK)
        if locked:
            reserve_lock_file(lock)
        if create:
            self._require_space(CREATION_BYTES)
        env = None
        try:
            try:
                env = self._lmdb(writable=writable, create=create, locked=locked)
            except lmdb.ReadersFullError:
                # Perhaps of readers that were killed: who opens for writing needs no place to look.
                with suppress(lmdb.Error):
                    clearing = self._lmdb(writable=True, create=False, locked=True)
                    try:
                        clearing.reader_check()
                    finally:
                        clearing.close()
                env = self._lmdb(writable=writable, create=create, locked=locked)
            except lmdb.InvalidError:
                # Of the table of readers: `preflight` has seen the rest. LMDB takes one whose lock
                # was refused for another's.
                env = self._lmdb(writable=writable, create=create, locked=locked)
            self._databases = disk.system.lmdb(data, partial(_databases, env, create=create))
            self._env, self.writable, self._broken = env, writable, False
        except lmdb.Error as error:
            if env is not None:
                env.close()
            if isinstance(error, lmdb.ReadersFullError):
                raise reading_error(error, self.directory) from error
            raise opening_error(error, data) from error
        except BaseException:
            if env is not None:
                env.close()
            raise

    def _lmdb(self, *, writable: bool, create: bool, locked: bool) -> Any:
        return disk.system.lmdb(self.data, partial(
            lmdb.open,
            os.fsencode(self.directory),
            map_size=MAP_BYTES,
            max_dbs=len(DATABASES),
            max_readers=MAX_READERS,
            readonly=not writable,
            create=create,
            mode=0o666,  # the umask decides, as for all other files; LMDB's own is 0644
            lock=locked,
            readahead=False,
            writemap=False,
            sync=True,
            metasync=True,
            map_async=False,
            lib_version=0,
        ))

    @contextmanager
    def alone(self, patience_s: float = inf) -> Iterator[None]:
        """Keeps transactions from beginning, and waits for those in progress to end.

        One of this very thread was interrupted before its end, and is kept by a traceback.
        """
        deadline = monotonic() + patience_s
        with self._gate:
            while self._others_active() and monotonic() < deadline:
                sleep(0.0005)
            yield

    def _others_active(self) -> bool:
        """Whether a transaction of another thread is in progress."""
        tokens = [token for held in tuple(self._active) if (token := held()) is not None]
        return any(token.thread != get_ident() for token in tokens)

    def upgrade(self) -> None:
        """Reopens for writing an environment that was opened for reading."""
        with self.alone():
            if self.writable:
                return
            self.close_now()
            try:
                self._open(writable=True, create=False)
            except BaseException:
                self._open(writable=False, create=False)
                raise

    def close(self) -> None:
        """Closes the environment; only `Lease.release` calls this."""
        with self.alone():
            self.close_now()

    @property
    def closed(self) -> bool:
        """Whether it cannot be opened. After a failed commit, every call tries to open it again."""
        return self._env is None and not (self._broken and self.leased)

    @property
    def leased(self) -> bool:
        """Whether anybody has a claim on it."""
        return any(lease() is not None for lease in tuple(self.leases))

    def close_now(self) -> None:
        """Closes it without waiting. May be called again, after an interrupt."""
        if self._env is not None:
            self._env.close()  # before it is forgotten: LMDB refuses to open it twice
            self._env = None

    def transaction(self, *, write: bool = False) -> InTransaction[Transaction]:
        """One transaction, begun and ended on this thread; aborted unless it is committed.

        LMDB's writer lock belongs to the thread that took it, so a transaction must not travel;
        and none must begin within another, or it might wait for one that waits for both.
        Raises ClosedIndex when the last handle was closed meanwhile, and, when reading,
        CorruptFile for what LMDB finds damaged.
        """
        return InTransaction(self, lambda txn: txn, write=write)

    def get(self, database: str, key: bytes) -> bytes | None:
        """One value, in a transaction of its own.

        Every query begins with such a look, which takes 1.2 us here and 3.7 us by `transaction`.
        """
        token = _Token()
        try:
            self._enter(token)
            try:
                txn = self._env.begin()
            except lmdb.ReadersFullError:
                txn = self._begin(False)
            try:
                value: bytes | None = txn.get(key, db=self._databases[database])
                return value
            finally:
                txn.abort()
        except lmdb.Error as error:
            raise reading_error(error, self.directory) from error
        finally:
            self._active.discard(ref(token))

    def _enter(self, token: _Token) -> None:
        """Counts a transaction in, unless the environment is closed.

        The caller counts it out in a `finally` that this call is within: an interrupt may come
        whenever it is in.
        """
        with self._gate:
            if self._broken and self.leased:
                with self.alone():
                    self.close_now()
                    self._open(writable=self.writable, create=False)
            if self._env is None:
                raise ClosedIndex(
                    f"{self.directory.parent} was closed by another thread", remedy="open it again"
                )
            self._active.add(ref(token))

    def _begin(self, write: bool) -> Any:
        if write:
            # A reader that was killed would keep its pages from being used again.
            self._env.reader_check()
            if self._writing is not None and self._writing[1] == get_ident():
                self._writing[0].abort()  # if it was interrupted: this one would wait for it
        try:
            txn = self._env.begin(write=write, buffers=False)
        except lmdb.ReadersFullError:
            self._env.reader_check()
            txn = self._env.begin(write=write, buffers=False)
        if write:
            self._writing = txn, get_ident()
        return txn

    def reserve(self, new_bytes: int) -> None:
        """Lengthens the file to hold a transaction that will put `new_bytes`, without taking disk.

        LMDB counts pages that it took and gave back within a transaction as used, but does not
        write them: its file may end before its last page, as one that was cut short does, and
        `preflight` could not tell the two apart.

        Raises OSError if the disk has not so much left: LMDB would find out within its commit,
        whose outcome is then unknown.
        """
        self._require_space(new_bytes)
        info, page = self._env.info(), self._env.stat()["psize"]
        wanted = (info["last_pgno"] + 1) * page + new_bytes
        if self.data.stat().st_size < wanted:
            disk.system.lengthen(self.data, wanted)

    def _require_space(self, needed_bytes: int) -> None:
        """Raises OSError if the disk has fewer free bytes."""
        free = os.statvfs(self.directory)
        blocks = free.f_bavail if os.geteuid() else free.f_bfree
        # Without blocks, nothing is known.
        if free.f_blocks and blocks * free.f_frsize < needed_bytes:
            raise OSError(errno.ENOSPC, f"{needed_bytes} bytes must be free")

    @property
    def file_bytes(self) -> int:
        """Bytes the catalog takes on the disk."""
        return self.data.stat().st_blocks * 512


def _databases(env: Any, *, create: bool) -> dict[str, Any]:
    """All databases of an environment; new ones are made in one commit."""
    names = {name: name.encode() for name in DATABASES}
    if not create:
        return {name: env.open_db(key, create=False) for name, key in names.items()}
    with env.begin(write=True) as txn:
        return {name: env.open_db(key, txn=txn, create=True) for name, key in names.items()}


class _Token:
    """Counts a transaction of a thread, for as long as anybody has it."""

    __slots__ = ("__weakref__", "thread")

    def __init__(self) -> None:
        self.thread = get_ident()


Given = TypeVar("Given")


class InTransaction(Generic[Given]):
    """A transaction as a `with` block; see `Environment.transaction`.

    An interrupt may come just before `__exit__`. What it leaves is not waited for by its thread,
    and ends when the traceback goes.
    """

    __slots__ = ("_environment", "_given", "_token", "_txn", "_write")

    def __init__(
        self, environment: Environment, given: Callable[[Transaction], Given], *,
        write: bool = False,
    ) -> None:
        self._environment, self._given, self._write = environment, given, write
        self._token = _Token()
        self._txn: Any = None

    def __enter__(self) -> Given:
        environment = self._environment
        try:
            environment._enter(self._token)
            self._txn = environment._begin(self._write)
            return self._given(Transaction(self._txn, environment._databases, environment.data))
        except BaseException as error:
            self._end()
            self._translate(error)
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end()
        self._translate(error)

    def _end(self) -> None:
        try:
            if self._txn is not None:
                self._txn.abort()  # nothing, once it was committed
        finally:
            self._environment._active.discard(ref(self._token))

    def _translate(self, error: BaseException | None) -> None:
        if isinstance(error, lmdb.Error):
            self._environment._broken |= self._write
            if not self._write or isinstance(error, lmdb.ReadersFullError):
                raise reading_error(error, self._environment.directory) from error


class Transaction:
    """Point reads and writes on the named databases; there are no cursors."""

    __slots__ = ("_data", "_databases", "_txn", "begun")

    def __init__(self, txn: Any, databases: Mapping[str, Any], data: Path) -> None:
        self._txn, self._databases, self._data = txn, databases, data
        self.begun: bool = False
        """Whether its commit has begun, which may succeed whatever is raised from then on."""

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
        disk.system.lmdb(self._data, self._txn.commit)
