"""What can go wrong, as few types as a caller can act on.

Every error says what happened, carries data about it (path, row, found, expected) and, where there
is one, the remedy. It knows the exit code the command line gives it:

    2  the call is wrong             InvalidOption, InvalidBatch, RecipeMismatch, ReadOnlyIndex
    3  the index is the problem      IndexNotFound, IndexExists, IndexLocked, CorruptFile, ...
    4  the input is the problem      InvalidInput
"""

from __future__ import annotations

import os
from pathlib import Path
from traceback import walk_tb
from typing import Any


class SimindexError(Exception):
    """Root of every error this package raises on purpose.

    Its text is what happened, and after a colon what to do about it, where it names a remedy.
    What is made of another error takes its `what`, and passes its remedy on where it still holds.
    """

    exit_code = 3

    def __init__(self, what: str, *, remedy: str | None = None, **data: Any) -> None:
        super().__init__(what)
        self.what = what
        """What happened, and where."""
        self.remedy = remedy
        """What to do about it, which is not part of `what`; None where nothing is known to help."""
        self.data: dict[str, Any] = data
        """What the error is about: path, row, found, expected, ... as named by the raiser."""

    def __str__(self) -> str:
        return self.what if self.remedy is None else f"{self.what}: {self.remedy}"

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild, (type(self), self.what, self.remedy, self.data))


def what_happened(error: BaseException) -> str:
    """The text of an error, of ours without its remedy: for an error that is made of it."""
    return error.what if isinstance(error, SimindexError) else str(error)


def raised_by_a_handler(error: BaseException) -> bool:
    """Whether a signal handler of the caller's has raised it: it is for the caller, at any place.

    An OSError is one if it has no number, as those of the system have. Errors that may come of
    bytes which cannot be decoded, such as ValueError, are told by their traceback, in which there
    is then a frame of neither this package nor what it calls. Of others it is not known.
    """
    if isinstance(error, SimindexError):
        return False
    if isinstance(error, OSError):
        return error.errno is None
    if not isinstance(error, _OF_BYTES):
        return False
    return any(_is_foreign(frame.f_code.co_filename) for frame, _ in walk_tb(error.__traceback__))


_OF_BYTES = (ValueError, TypeError, AttributeError, LookupError, OverflowError)
_PACKAGE = str(Path(__file__).parent) + os.sep
_LIBRARY = str(Path(os.__file__).parent) + os.sep
_PACKAGES = ("site-packages", "dist-packages")
_CALLED = ("numpy", "lmdb", "msgpack", "mmh3")


def _is_foreign(file: str) -> bool:
    """Whether a file of code is none of this package, of Python's library, or of what we call."""
    if file.startswith((_PACKAGE, "<frozen")) or file.endswith((".pyx", ".pxd")):
        return False
    parts = Path(file).parts
    if any(name in parts for name in _PACKAGES):
        return not any(name in parts for name in _CALLED)
    return not file.startswith(_LIBRARY) and not file.startswith("<__array_function__")


def _rebuild(
    kind: type[SimindexError], what: str, remedy: str | None, data: dict[str, Any]
) -> SimindexError:
    return kind(what, remedy=remedy, **data)


class InvalidOption(SimindexError, ValueError):
    """An option is unknown, out of range, or contradicts the index it is used on."""

    exit_code = 2


class InvalidBatch(SimindexError, ValueError):
    """Fingerprints, ids, keys or weights of the wrong dtype, shape, length or value."""

    exit_code = 2


class RecipeMismatch(InvalidBatch):
    """A batch was made by another recipe than the index's; `data["differences"]` lists them."""


class ReadOnlyIndex(SimindexError):
    """A writing call on a handle opened for reading, closed, or stopped by a failed commit."""

    exit_code = 2


class ClosedIndex(SimindexError, ValueError):
    """The handle was closed, or inherited over a fork; open the index again."""

    exit_code = 2


class MissingExtra(SimindexError, ImportError):
    """An optional dependency is not installed; the message names the extra."""

    exit_code = 2


class InvalidInput(SimindexError, ValueError):
    """An input file or record cannot be read; carries path and line."""

    exit_code = 4


class IndexNotFound(SimindexError, FileNotFoundError):
    """There is no index at the path."""


class IndexExists(SimindexError, FileExistsError):
    """There is already an index, or something else, at the path; it was kept."""


class IndexLocked(SimindexError):
    """Another writer, or other code of this process, holds the index; `data["holder"]` says who."""


class StorageFailed(SimindexError, OSError):
    """The system would not read or write a file of the index; the index holds its last commit."""


class StorageFull(StorageFailed):
    """The disk is full, or the catalog has its largest size; the index has its last commit."""


class CommitFailed(SimindexError):
    """The catalog's commit failed: its outcome is unknown until the index is reopened."""


class UnsupportedStorage(SimindexError):
    """The file system or the machine cannot hold an index safely."""


class CorruptFile(SimindexError):
    """A file's bytes are not what was written; carries path and, where known, offset."""


class FormatTooOld(CorruptFile):
    """Written by a version this one no longer reads."""


class FormatTooNew(CorruptFile):
    """Written by a newer version; install it to read the index."""
