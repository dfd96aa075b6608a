"""The directory of an index, as a caller names it."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from simindex.errors import (
    IndexNotFound,
    InvalidOption,
)
from simindex.options import IndexOptions
from simindex.storage.files.refusals import refusal
from simindex.storage.files.verification import VERIFY


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
