"""One LMDB environment a directory and process, shared by every handle on it.

LMDB allows a directory to be open once in a process, and forgets its locks when anything else in
the process opens and closes `lock.mdb`; an environment must not cross a fork. So environments are
kept in a registry, looked at before they are opened, and closed in a forked child.

    acquire     gives a lease: a claim of one user, such as a handle
    release     ends it; with the last one the environment is closed

Who was interrupted may drop a lease without a release, at any step. So leases are not counted: the
environment and the registry have weak references, and only leases that live are claims. If nobody
is left to release one, nobody refers to the environment either, and LMDB closes it as it goes.
"""

from __future__ import annotations

import errno
import os
from contextlib import ExitStack, suppress
from pathlib import Path
from threading import RLock
from weakref import ref

import lmdb

from simindex.errors import ClosedIndex
from simindex.storage.catalog.environment import Environment

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


def check_place(environment: Environment) -> None:
    """Raises ClosedIndex if the name of a catalog leads to another file now, as after a repair.

    Not if it leads to none, nor once the environment is closed.
    """
    if environment.closed:
        return
    try:
        found = _identity(environment.place)
    except OSError:
        return
    if found is not None and _known(found) is not environment:
        index = environment.directory.parent
        raise ClosedIndex(
            f"{index} was repaired or built again after it was opened",
            remedy="open it again", path=str(index),
        )


class Lease:
    """A claim on the process's environment of a catalog; a context manager, which gives it.

    It ends with `release`, and when nobody refers to it any more.
    """

    __slots__ = ("__weakref__", "environment")

    def __init__(self, environment: Environment) -> None:
        self.environment: Environment = environment
        environment.leases.add(ref(self))

    def release(self) -> None:
        """Closes the environment if this was the last claim on it.

        May be called again, after an interrupt.
        """
        environment = self.environment
        with _registry_lock:
            environment.leases.discard(ref(self))
            if not environment.leased:
                # In this order: after an interrupt it may be acquired again.
                environment.close()
                for key, known in tuple(_registry.items()):
                    if known() is environment or known() is None:
                        del _registry[key]

    def __enter__(self) -> Environment:
        return self.environment

    def __exit__(self, *raised: object) -> None:
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
        _forking.enter_context(environment.alone(FORK_PATIENCE_S))


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
