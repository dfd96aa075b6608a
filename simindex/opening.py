"""What opening an index asks of its caller, and of the system."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

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
    UnsupportedStorage,
)
from simindex.options import IndexOptions
from simindex.simhash.fingerprint import Recipe
from simindex.storage.verification import VERIFY


def checked_call(
    path: str | os.PathLike[str], mode: object, options: object, verify: object
) -> Path:
    """The directory, once path and options are of their kinds; see `simindex.open`."""
    if mode not in ("r", "w", "c", "n"):
        raise InvalidOption(
            f"mode={mode!r} is unknown: give r, w, c or n", option="mode", found=mode
        )
    if verify not in VERIFY:
        raise InvalidOption(
            f"verify={verify!r} is unknown: give lazy, open or never", option="verify",
            found=verify, expected=VERIFY,
        )
    if options is not None and not isinstance(options, IndexOptions):
        raise InvalidOption(
            f"options={options!r} are no IndexOptions: give simindex.IndexOptions(...)",
            option="options", found=options,
        )
    directory = Path(path)
    try:
        directory.exists()
    except (ValueError, OSError) as error:
        raise InvalidOption(f"{path!r} is no path: {error}", option="path", found=path) from error
    return directory


def check_agreement(
    path: Path, options: IndexOptions, recipe: Recipe | None, asked: IndexOptions
) -> None:
    """Refuses options that are not those stored: InvalidOption, or RecipeMismatch."""
    differences = options.differences(asked)
    if differences:
        name, (mine, theirs) = next(iter(differences.items()))
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
        if error.filename is None:  # a folder that was to be opened, to make something in it
            raise IndexNotFound(
                f"{path.parent} is no folder, so no index can be made in it: make it first",
                path=str(path),
            ) from error
        raise CorruptFile(f"{path} lacks {error.filename}", path=str(path)) from error
    except OSError as error:
        if isinstance(error, SimindexError) or error.errno not in (
            errno.EMFILE, errno.ENFILE, *((errno.EROFS, errno.EACCES, errno.EPERM) * writable)
        ):
            raise
        if error.errno in (errno.EMFILE, errno.ENFILE):
            raise UnsupportedStorage(
                f"too many open files for {path}: close handles, compact the index, or raise the "
                "limit (ulimit -n)",
                path=str(path),
            ) from error
        raise ReadOnlyIndex(
            f"{path} cannot be written ({error.strerror}): open it with mode 'r'", path=str(path)
        ) from error
