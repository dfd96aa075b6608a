"""What the operating system refuses, told as errors that name the file and the remedy."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from simindex.errors import (
    CorruptFile,
    FormatTooNew,
    FormatTooOld,
    IndexNotFound,
    ReadOnlyIndex,
    SimindexError,
    StorageFailed,
    StorageFull,
    UnsupportedStorage,
)
from simindex.storage.files import durable

_DESCRIPTORS = (errno.EMFILE, errno.ENFILE)


class _Located(Protocol):
    path: Path

Held = TypeVar("Held", bound=_Located)

Given = ParamSpec("Given")

Found = TypeVar("Found")


@contextmanager
def remedied(path: Path) -> Iterator[None]:
    """Adds to what is said of damage what to do about it, where no other remedy is named."""
    try:
        yield
    except (FormatTooNew, FormatTooOld):
        raise
    except CorruptFile as error:
        if "`simindex " in str(error):
            raise
        raise type(error)(
            f"{error}. `simindex repair {path}` says what can be had again", **error.data
        ) from error


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
                f"{path.parent} is no folder, so no index can be made in it: make it first",
                path=str(path),
            ) from error
        raise CorruptFile(f"{path} lacks {error.filename}", path=str(path)) from error
    except OSError as error:
        if writable and error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
            remedy = (
                f"{path} cannot be written ({error.strerror}): see to its permissions, or open it "
                "with mode 'r'" if os.path.lexists(path) else
                f"no index can be made at {path} ({error.strerror}): see to the permissions of its "
                "folder, or name another place"
            )
            raise ReadOnlyIndex(remedy, path=str(path)) from error
        found = refusal(error, path)
        if error.errno in _DESCRIPTORS:
            raise UnsupportedStorage(str(found), path=str(path)) from error
        raise found from error


@contextmanager
def told(path: Path) -> Iterator[None]:
    """What `typed` does, for a generator."""
    try:
        yield
    except OSError as error:
        raise refusal(error, path) from error


def each(path: Path, found: Iterator[Found]) -> Iterator[Found]:
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
            raise refusal(error, handle.path) from error

    return checked


def refusal(error: OSError, path: Path) -> BaseException:
    """The error of ours that says what the system refused, of which file, and what to do.

    One that is ours already is returned, and one of a pipe, which is no file of an index.
    """
    if isinstance(error, SimindexError) or error.errno in (None, errno.EPIPE):
        return error
    file = error.filename if isinstance(error.filename, str) else str(path)
    if error.errno in durable.NO_SPACE:
        return StorageFull(
            f"no space left while writing {file}: free some and try again; "
            "the index holds its last commit",
            path=file,
        )
    if error.errno in _DESCRIPTORS:
        return StorageFailed(
            f"too many open files for {path}: close handles, or raise the limit (`ulimit -n`) and "
            "then compact the index, which needs as many",
            path=str(path), errno=error.errno,
        )
    if error.errno == errno.ENOMEM:
        return MemoryError(f"the system has no memory for {file}")
    return StorageFailed(
        f"{file} cannot be read or written ({error.strerror}): see to the disk and try again; "
        "the index holds its last commit",
        path=file, errno=error.errno,
    )
