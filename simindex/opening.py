"""What opening an index asks of its caller, and of the system; and what the system refuses."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from simindex.admission import check_recipe
from simindex.errors import (
    CorruptFile,
    FormatTooNew,
    FormatTooOld,
    IndexNotFound,
    InvalidOption,
    ReadOnlyIndex,
    RecipeMismatch,
    SimindexError,
    StorageFailed,
    StorageFull,
    UnsupportedStorage,
)
from simindex.options import IndexOptions
from simindex.simhash.fingerprint import Recipe
from simindex.storage import format as durable
from simindex.storage.catalog import unpack
from simindex.storage.verification import VERIFY

_DESCRIPTORS = (errno.EMFILE, errno.ENFILE)


class _Located(Protocol):
    path: Path


Held = TypeVar("Held", bound=_Located)
Given = ParamSpec("Given")
Found = TypeVar("Found")


def checked_call(
    path: str | os.PathLike[str], mode: object, options: object, verify: object = "lazy"
) -> Path:
    """The directory, once path and options are of their kinds; see `simindex.open`."""
    if not isinstance(mode, str) or mode not in ("r", "w", "c", "n"):
        raise InvalidOption(
            f"mode={mode!r} is unknown: give r, w, c or n", option="mode", found=mode
        )
    if not isinstance(verify, str) or verify not in VERIFY:
        raise InvalidOption(
            f"verify={verify!r} is unknown: give lazy, open or never", option="verify",
            found=verify, expected=VERIFY,
        )
    if options is not None and not isinstance(options, IndexOptions):
        raise InvalidOption(
            f"options={options!r} are no IndexOptions: give simindex.IndexOptions(...)",
            option="options", found=options,
        )
    try:
        directory = Path(path)
    except TypeError as error:
        raise InvalidOption(f"{path!r} is no path: {error}", option="path", found=path) from error
    if "\0" in str(directory):
        raise InvalidOption(f"{path!r} is no path: it has a null byte", option="path", found=path)
    try:
        _check_way(directory, create=mode in ("c", "n"))
    except IndexNotFound:
        raise
    except OSError as error:
        if error.errno not in (errno.ENAMETOOLONG, errno.EINVAL):
            raise refusal(error, directory) from error
        raise InvalidOption(f"{path!r} is no path: {error}", option="path", found=path) from error
    return directory


def _check_way(directory: Path, *, create: bool) -> None:
    """Refuses a path that nothing can be at, or that leads to no directory, with IndexNotFound.

    What is in the way of one that is to be made `creation` refuses.
    """
    try:
        kind = directory.stat().st_mode
    except FileNotFoundError as error:
        if create or not directory.is_symlink():
            return
        raise IndexNotFound(
            f"{directory} is a symbolic link to nothing, so there is no index: mend the link, or "
            "name another path",
            path=str(directory),
        ) from error
    except NotADirectoryError as error:
        on_the_way = reversed(directory.parents)
        file = next((one for one in on_the_way if one.exists() and not one.is_dir()), directory)
        raise IndexNotFound(
            f"{file} is no directory, so there can be no index at {directory}: name another path",
            path=str(directory), found=str(file),
        ) from error
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise IndexNotFound(
            f"there can be no index at {directory}, which leads into a loop of symbolic links: "
            "mend the links, or name another path",
            path=str(directory),
        ) from error
    if not create and not stat.S_ISDIR(kind):
        raise IndexNotFound(
            f"{directory} is no directory, so it is no index: name another path",
            path=str(directory),
        )


def stored_options(payload: bytes | None) -> IndexOptions:
    """The options in the catalog's record of them; the usual ones where it has none.

    Raises CorruptFile if the record describes no options.
    """
    values = unpack("options", payload if payload is not None else b"\x80")
    try:
        if not isinstance(values, dict):
            raise InvalidOption("they are no map", found=type(values).__name__)
        return IndexOptions.from_dict(values)
    except InvalidOption as error:
        raise CorruptFile(
            f"the catalog's record meta/options describes no options of an index: {error}",
            path="meta/options",
        ) from error


def check_agreement(
    path: Path, options: IndexOptions, recipe: Recipe | None, asked: IndexOptions
) -> None:
    """Refuses options that are not those stored: InvalidOption, or RecipeMismatch."""
    differences = options.differences(asked)
    if differences:
        name, (mine, theirs) = next(iter(differences.items()))
        if name == "key_secret":
            raise InvalidOption(
                f"the index at {path} hashes keys with another secret (option key_secret): leave "
                "the option out, or build a new index",
                option=name, differences=differences,
            )
        raise InvalidOption(
            f"the index at {path} has {name}={mine!r}, not {theirs!r}: "
            "leave the option out, or "
            + ("run `simindex compact --structures`" if name == "structures"
               else "build a new index"),
            option=name, differences=differences,
        )
    if asked.recipe is not None:
        if recipe is None:
            raise RecipeMismatch(
                f"the index at {path} has no recipe: leave it out of the options; an "
                "empty index takes that of the first batch",
                differences={"recipe": (repr(asked.recipe), None)},
            )
        check_recipe(asked.recipe, recipe)


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
