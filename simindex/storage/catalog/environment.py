"""One LMDB environment a directory and process, shared by every handle on it.

LMDB allows a directory to be open once in a process, and forgets its locks when anything else in
the process opens and closes `lock.mdb`; an environment must not cross a fork. So environments are
kept in a registry, looked at before they are opened, and closed in a forked child.

    acquire     gives a lease: a claim of one user, such as a handle
    release     ends it; with the last one the environment is closed

Who was interrupted may drop a lease without a release, at any step. So leases are not counted: the
environment and the registry have weak references, and only leases that live are claims. If nobody
is left to release one, nobody refers to the environment either, and LMDB closes it as it goes.

Transactions are short: they copy what they read and end, so no stale reader makes the file grow and
no pointer into LMDB outlives its transaction.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from math import inf
from pathlib import Path
from threading import RLock, get_ident
from time import monotonic, sleep
from types import TracebackType
from typing import Any, Generic, TypeVar
from weakref import ref

import lmdb

# Else numpy loads them at their first use, for which a child forked meanwhile would wait for ever.
from numpy import ma, random  # noqa: F401

from simindex.errors import (
    ClosedIndex,
    CorruptFile,
    StorageFull,
    UnsupportedStorage,
)
from simindex.storage.catalog.pages import MAP_BYTES, preflight
from simindex.storage.files import disk
from simindex.storage.files.refusals import no_space

DATABASES = ("head", "meta", "segments", "headers", "pending", "tombstones")

MAX_READERS = 1024

_LOCK_FILE_BYTES = 128 + 64 * MAX_READERS


class Environment:
    """An open catalog directory; see `acquire`.

    Transactions of several threads run side by side; opening, closing and forking wait for those
    in progress and let none begin.
    """

    def __init__(self, directory: Path, *, writable: bool, create: bool) -> None:
        self.directory = directory
        self._place = Path(os.path.realpath(directory))
        """That a link on the way leads elsewhere later replaces nothing."""
        self._leases: set[ref[Lease]] = set()
        """Also of some that were dropped."""
        self.writable = writable
        self._gate = RLock()  # a handle may be dropped, and closed, within any call
        self._active: set[ref[_Token]] = set()
        """Of the transactions in progress, and of any that an interrupt has left and that ended
        when its traceback went."""
        self._writing: tuple[Any, int] | None = None
        """The last transaction that writes, with its thread."""
        self._env: Any = None
        self._broken = False
        """Whether a commit has failed, after which LMDB may begin no transaction, not even to read:
        the next one opens the environment anew."""
        self._open(writable=writable, create=create)

    def _open(self, *, writable: bool, create: bool) -> None:
        data, lock = self.directory / "data.mdb", self.directory / "lock.mdb"
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
            _require_space(self.directory, _CREATION_BYTES)
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
            self._databases = {
                name: disk.system.lmdb(data, partial(env.open_db, name.encode(), create=create))
                for name in DATABASES
            }
            self._env, self.writable, self._broken = env, writable, False
        except lmdb.Error as error:
            if env is not None:
                env.close()
            if isinstance(error, lmdb.ReadersFullError):
                raise self._reading_error(error) from error
            raise _opening_error(error, data) from error
        except BaseException:
            if env is not None:
                env.close()
            raise

    def _lmdb(self, *, writable: bool, create: bool, locked: bool) -> Any:
        return disk.system.lmdb(self.directory / "data.mdb", partial(
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
    def _alone(self, patience_s: float = inf) -> Iterator[None]:
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
        with self._alone():
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
        with self._alone():
            self.close_now()

    @property
    def closed(self) -> bool:
        """Whether it opens no more. After a failed commit, opening it anew is tried until it is."""
        return self._env is None and not (self._broken and self.leased)

    @property
    def leased(self) -> bool:
        """Whether anybody has a claim on it."""
        return any(lease() is not None for lease in tuple(self._leases))

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
            raise self._reading_error(error) from error
        finally:
            self._active.discard(ref(token))

    def _enter(self, token: _Token) -> None:
        """Counts a transaction in, unless the environment is closed.

        The caller counts it out in a `finally` that this call is within: an interrupt may come
        whenever it is in.
        """
        with self._gate:
            if self._broken and self.leased:
                with self._alone():
                    self.close_now()
                    self._open(writable=self.writable, create=False)
            if self._env is None:
                raise ClosedIndex(
                    f"{self.directory.parent} was closed by another thread: open it again"
                )
            self._active.add(ref(token))

    def _reading_error(self, error: lmdb.Error) -> Exception:
        if isinstance(error, lmdb.ReadersFullError):
            return UnsupportedStorage(
                f"more than {MAX_READERS} processes and threads read {self.directory} at once: "
                "close some and try again"
            )
        return system_error(error, self.directory) or CorruptFile(
            f"the catalog {self.directory} cannot be read: {error}", path=str(self.directory)
        )

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
        _require_space(self.directory, new_bytes)
        info, page = self._env.info(), self._env.stat()["psize"]
        wanted = (info["last_pgno"] + 1) * page + new_bytes
        data = self.directory / "data.mdb"
        if data.stat().st_size < wanted:
            disk.system.lengthen(data, wanted)

    def check_place(self) -> None:
        """Raises ClosedIndex if its name leads to another file now, as after a repair.

        Not if it leads to none, nor once the environment is closed.
        """
        if self.closed:
            return
        try:
            found = _identity(self._place)
        except OSError:
            return
        if found is not None and _known(found) is not self:
            index = self.directory.parent
            raise ClosedIndex(
                f"{index} was repaired or built anew since it was opened: open it again",
                path=str(index),
            )

    @property
    def file_bytes(self) -> int:
        """Bytes the catalog takes on the disk."""
        return (self.directory / "data.mdb").stat().st_blocks * 512


_CREATION_BYTES = 128 << 10
"""More than LMDB writes to make a file with all databases, a commit for each: on a full disk it
would end with an input/output error."""


def _require_space(directory: Path, needed_bytes: int) -> None:
    disk = os.statvfs(directory)
    blocks = disk.f_bavail if os.geteuid() else disk.f_bfree
    if disk.f_blocks and blocks * disk.f_frsize < needed_bytes:  # without blocks, nothing is known
        raise OSError(errno.ENOSPC, f"{needed_bytes} bytes must be free")


def system_error(error: Exception, path: Path) -> OSError | MemoryError | None:
    """What the system refused LMDB, or None where it was not the system; LMDB's own are negative.
    """
    code = (getattr(error, "code", 0) or 0) if isinstance(error, lmdb.Error) else 0
    if code == errno.ENOMEM:
        return MemoryError(f"the system has no memory for {path}")
    return OSError(code, os.strerror(code), str(path)) if code > 0 else None


def _opening_error(error: lmdb.Error, data: Path) -> Exception:
    if isinstance(error, lmdb.DiskError):
        return StorageFull(f"cannot open the catalog {data}: {error}", path=str(data))
    if isinstance(error, lmdb.MemoryError):  # the address space is limited, as by `ulimit -v`
        return UnsupportedStorage(
            f"cannot map {MAP_BYTES >> 30} GiB of address space for {data}: "
            "raise the limit on virtual memory",
            path=str(data),
        )
    return system_error(error, data) or CorruptFile(
        f"cannot open the catalog {data}: {error}", path=str(data)
    )


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
            data = environment.directory / "data.mdb"
            return self._given(Transaction(self._txn, environment._databases, data))
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
                raise self._environment._reading_error(error) from error


class Transaction:
    """Point reads and writes on the named databases; there are no cursors."""

    __slots__ = ("_data", "_databases", "_txn")

    def __init__(self, txn: Any, databases: Mapping[str, Any], data: Path) -> None:
        self._txn, self._databases, self._data = txn, databases, data

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


_registry: dict[tuple[int, int], ref[Environment]] = {}
"""By device and inode of `data.mdb`, which no other file gets while it is open."""

_registry_lock = RLock()


def _identity(directory: Path) -> tuple[int, int] | None:
    try:
        status = (directory / "data.mdb").stat()
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


def _known(key: tuple[int, int] | None) -> Environment | None:
    """The environment of a file, if there is one."""
    found = None if key is None else _registry.get(key)
    return None if found is None else found()


def environments() -> list[Environment]:
    """Those of this process."""
    return [known for held in tuple(_registry.values()) if (known := held()) is not None]


class Lease:
    """A claim on the process's environment of a catalog; a context manager, which gives it.

    It ends with `release`, and when nobody refers to it any more.
    """

    __slots__ = ("__weakref__", "environment")

    def __init__(self, environment: Environment) -> None:
        self.environment = environment
        environment._leases.add(ref(self))

    def release(self) -> None:
        """Closes the environment if this was the last claim on it.

        May be called again, after an interrupt.
        """
        environment = self.environment
        with _registry_lock:
            environment._leases.discard(ref(self))
            if not environment.leased:
                # In this order: after an interrupt it may be acquired again.
                environment.close()
                for key, known in tuple(_registry.items()):
                    if known() is environment or known() is None:
                        del _registry[key]

    def __enter__(self) -> Environment:
        return self.environment

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()


def acquire(directory: Path, *, writable: bool = False, create: bool = False) -> Lease:
    """A claim on the process's environment for a catalog directory.

    Raises FileNotFoundError if there is no such directory.
    """
    directory.stat()
    with _registry_lock:
        opened: Environment | None = None
        lease: Lease | None = None
        try:
            environment = _known(_identity(directory))
            if environment is None or environment.closed:
                environment = opened = Environment(directory, writable=writable, create=create)
                key = _identity(directory)
                if key is None:  # another process has just removed it
                    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), directory)
                _registry[key] = ref(environment)
            lease = Lease(environment)
            if writable:
                environment.upgrade()
            return lease
        except BaseException:
            # Also after an interrupt, whose traceback may keep what is open here.
            if lease is not None:
                lease.release()
            elif opened is not None:
                opened.close()
            raise


FORK_PATIENCE_S = 10.0
"""How long a fork waits for transactions of other threads; only a stuck disk takes as long."""

_forking = ExitStack()


def _before_fork() -> None:
    # Closing the inherited environment in the child would end its transactions, too, and with them
    # the parent's claims in the shared table of readers: so there must be none.
    _forking.enter_context(_registry_lock)
    for environment in environments():
        _forking.enter_context(environment._alone(FORK_PATIENCE_S))


def _after_fork_in_child() -> None:
    # The child must not use inherited environments; LMDB lets it open its own only once they are
    # closed.
    _forking.close()
    for environment in environments():
        with suppress(lmdb.Error):
            environment.close_now()
    _registry.clear()


os.register_at_fork(
    before=_before_fork, after_in_parent=_forking.close, after_in_child=_after_fork_in_child
)


def require_plain(path: Path, *, alone: bool) -> None:
    """Refuses anything but a regular file, which LMDB would follow or wait for.

    With `alone` also one that has a second name, by which it belongs to somebody else.
    """
    with suppress(FileNotFoundError):
        status = path.lstat()
        if not stat.S_ISREG(status.st_mode):
            raise CorruptFile(f"{path} is no regular file", path=str(path))
        if alone and status.st_nlink > 1:
            raise CorruptFile(
                f"{path} has a second name (a hard link), where writing would change it, too: put "
                "a copy in its place",
                path=str(path),
            )


def reserve_lock_file(path: Path) -> None:
    """Takes the lock file's space before LMDB maps it: on a full disk LMDB would end in SIGBUS.

    Only when it does not exist: opening and closing an existing one would drop LMDB's locks.
    """
    try:
        file = disk.system.create(path, os.O_RDWR | os.O_EXCL)
    except FileExistsError:
        return
    with file:
        try:
            disk.system.allocate(file.fileno(), _LOCK_FILE_BYTES)
        except OSError as error:
            disk.system.unlink(path)
            raise no_space(path) from error
