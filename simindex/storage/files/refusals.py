"""What the operating system refuses, told as errors that name the file and the remedy."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from simindex.errors import (
    CorruptFile,
    IndexNotFound,
    ReadOnlyIndex,
    SimindexError,
    StorageFailed,
    StorageFull,
    UnsupportedStorage,
)

NO_SPACE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}

LAST_COMMIT = "; the index has its last commit"
"""The end of a remedy; a command that knows what is left of its run says that instead."""

OF_DESCRIPTORS = (errno.EMFILE, errno.ENFILE)
"""What the system says where a process, or all of them, have too many files open."""


class _Located(Protocol):
    path: Path

Held = TypeVar("Held", bound=_Located)

Given = ParamSpec("Given")

Found = TypeVar("Found")


@contextmanager
def remedied(path: Path) -> Iterator[None]:
    """Adds to an error of damage what to do about it, where it has no remedy of its own."""
    try:
        yield
    except CorruptFile as error:
        error.remedy = error.remedy or f"`simindex repair {path}` shows what can be recovered"
        raise


@contextmanager
def translated(path: Path, writable: bool) -> Iterator[None]:
    """Turns the operating system's refusals while a handle is opened into errors of ours."""
    try:
        yield
    except FileNotFoundError as error:
        if isinstance(error, SimindexError):
            raise
        if error.filename is None:  # a folder that was to be opened, to make something in it
            raise IndexNotFound(
                f"{path.parent} is not a folder, so no index can be created in it",
                remedy="make it first", path=str(path),
            ) from error
        raise CorruptFile(f"{error.filename} is missing", path=str(path)) from error
    except OSError as error:
        if writable and error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
            what, remedy = (
                f"{path} cannot be written", "check its permissions, or open it with mode 'r'"
            ) if os.path.lexists(path) else (
                f"no index can be created at {path}",
                "check the permissions of its folder, or name another path",
            )
            raise ReadOnlyIndex(
                f"{what} ({error.strerror})", remedy=remedy, path=str(path)
            ) from error
        found = refusal(error, path)
        if isinstance(found, StorageFailed) and error.errno in OF_DESCRIPTORS:
            raise UnsupportedStorage(found.what, remedy=found.remedy, path=str(path)) from error
        raise found from error


@contextmanager
def no_space_told(path: Path | str) -> Iterator[None]:
    """Turns "no space left" into StorageFull; other errors of the system pass unchanged."""
    try:
        yield
    except StorageFull:
        raise
    except OSError as error:
        if error.errno in NO_SPACE:
            raise no_space(path) from error
        raise


def no_space(path: Path | str) -> StorageFull:
    """The error where the disk has no room for a file."""
    return StorageFull(
        f"no space left while writing {path}",
        remedy=f"free some space and repeat the call{LAST_COMMIT}", path=str(path),
    )


def storage_failed(path: Path | str, reason: str, code: int | None = None) -> StorageFailed:
    """The error where a file cannot be read or written; without a `code` not by the system."""
    return StorageFailed(
        f"{path} cannot be read or written ({reason})",
        remedy=f"check the disk and repeat the call{LAST_COMMIT}",
        path=str(path), errno=code,
    )


@contextmanager
def told(path: Path) -> Iterator[None]:
    """What `typed` does, for a generator."""
    try:
        yield
    except OSError as error:
        raise _of_open_index(error, path) from error


def each(path: Path, found: Iterator[Found]) -> Generator[Found, None, None]:
    """An iterator whose errors are ours."""
    with told(path):
        yield from found


def typed(call: Callable[Concatenate[Held, Given], Found]) -> Callable[
    Concatenate[Held, Given], Found
]:
    """A method of a handle whose errors are ours, whatever the operating system refuses in it."""

    @wraps(call)
    def checked(handle: Held, /, *arguments: Given.args, **named: Given.kwargs) -> Found:
        try:
            return call(handle, *arguments, **named)
        except OSError as error:
            raise _of_open_index(error, handle.path) from error

    return checked


WENT = "its folder was removed or renamed while it was open"
REOPEN = "close this handle; open the index where it is now, or build it again"
"""Why an open index has no files any more, and what to do."""


def _of_open_index(error: OSError, path: Path) -> BaseException:
    """`refusal`, or IndexNotFound where all of an index is gone that was there when it was opened.
    """
    gone = error.errno == errno.ENOENT and not isinstance(error, SimindexError)
    if gone and not os.path.lexists(path):
        return IndexNotFound(
            f"there is no index at {path} any more: {WENT}", remedy=REOPEN, path=str(path)
        )
    return refusal(error, path)


def refusal(error: OSError, path: Path) -> BaseException:
    """The error of ours that says what the system refused, of which file, and what to do.

    One that is ours already is returned, and one of a pipe, which is not a file of an index.
    """
    if isinstance(error, SimindexError) or error.errno in (None, errno.EPIPE):
        return error
    file = error.filename if isinstance(error.filename, str) else str(path)
    if error.errno in NO_SPACE:
        return no_space(file)
    if error.errno in OF_DESCRIPTORS:
        return StorageFailed(
            f"too many open files for {path}",
            remedy="close handles, or raise the limit (`ulimit -n`), then compact the index, "
            "which needs as many files",
            path=str(path), errno=error.errno,
        )
    if error.errno == errno.ENOMEM:
        return MemoryError(f"no memory is left to read {file}")
    return storage_failed(file, str(error.strerror), error.errno)
