"""The errors of the package: few types, which a caller can handle.

Every error says what happened, has data about it (path, row, found, expected) and the remedy, if
there is one. It knows the exit code of the command line:

    2  the call is wrong             InvalidOption, InvalidBatch, TooManyMatches, ReadOnlyIndex, ...
    3  the index is the problem      IndexNotFound, IndexExists, IndexLocked, CorruptFile, ...
    4  the input is the problem      InvalidInput
"""

from __future__ import annotations

import os
from pathlib import Path
from traceback import walk_tb
from typing import Any


class SimindexError(Exception):
    """Root of all errors that simindex raises.

    Its text says what happened and, after a colon, what to do about it, if there is a remedy. An
    error that is made from another one takes its `what`, and its remedy if that still helps.
    """

    exit_code = 3

    def __init__(self, what: str, *, remedy: str | None = None, **data: Any) -> None:
        super().__init__(what)
        self.what = what
        """What happened, and where."""
        self.remedy = remedy
        """What to do about it. It is not part of `what`. None if nothing is known to help."""
        self.data: dict[str, Any] = data
        """What the error is about: path, row, found, expected and so on."""

    def __str__(self) -> str:
        return self.what if self.remedy is None else f"{self.what}: {self.remedy}"

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild, (type(self), self.what, self.remedy, self.data))


def what_happened(error: BaseException) -> str:
    """The text of an error, without the remedy of a SimindexError, for an error made from it."""
    return error.what if isinstance(error, SimindexError) else str(error)


def raised_by_a_handler(error: BaseException) -> bool:
    """Whether a signal handler of the caller raised the error. Then it must reach the caller.

    Such an OSError has no number; those of the system have one. Errors that may come from bytes
    that cannot be decoded, such as ValueError, are recognised by their traceback: it has a frame
    that belongs neither to this package nor to a package that it calls. For other errors the answer
    is not known.
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
    """Whether a file belongs neither to this package, nor to Python's library, nor to our calls."""
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
    """An option is unknown, out of range, or contradicts the index."""

    exit_code = 2


class InvalidBatch(SimindexError, ValueError):
    """Fingerprints, ids, keys or weights have a wrong dtype, shape, length or value."""

    exit_code = 2


class TooManyMatches(SimindexError, MemoryError):
    """An answer would take more memory than the call may. `data["memory_limit"]` says how much."""

    exit_code = 2


class RecipeMismatch(InvalidBatch):
    """A batch has another recipe than the index. `data["differences"]` lists what differs.
    """


class ReadOnlyIndex(SimindexError):
    """The handle cannot write: it was opened for reading, or stopped after a failed commit. Or the
    index is a published shard, which nobody may write to."""

    exit_code = 2


class ClosedIndex(SimindexError, ValueError):
    """The handle was closed, or comes from before a fork. Open the index again."""

    exit_code = 2


class MissingExtra(SimindexError, ImportError):
    """An optional package is not installed. The message says what to install."""

    exit_code = 2


class InvalidInput(SimindexError, ValueError):
    """An input file or record cannot be read. `data` has its path and line."""

    exit_code = 4


class IndexNotFound(SimindexError, FileNotFoundError):
    """There is no index at the path."""


class IndexExists(SimindexError, FileExistsError):
    """There is an index, or something else, at the path already. It was not changed."""


class IndexLocked(SimindexError):
    """Another writer, or other code of this process, has the index open. `data["holder"]` names it.
    """


class StorageFailed(SimindexError, OSError):
    """The system refused to read or write a file of the index. The index has its last commit."""


class StorageFull(StorageFailed):
    """The disk is full, or the catalog has its largest size. The index has its last commit."""


class CommitFailed(SimindexError):
    """The commit failed. Its outcome is unknown until the index is opened again."""


class UnsupportedStorage(SimindexError):
    """The file system or the machine cannot hold an index safely."""


class ClusterFailed(SimindexError):
    """A cluster of machines has too few free processors, or lost a task. Repeat the call then."""


class CorruptFile(SimindexError):
    """A file is damaged: its bytes are not those that were written. `data` has its path and, if
    known, the offset."""


class FormatTooOld(CorruptFile):
    """An older version wrote the file, and this version does not read it any more."""


class FormatTooNew(CorruptFile):
    """A newer version wrote the file. Install that version to read the index."""
