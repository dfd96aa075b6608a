"""From what the caller named to the files there are: each once, named as it is reached first."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from simindex.inputs import remote_files
from simindex.inputs.streams import STDIN
from simindex.values import dataclass

if TYPE_CHECKING:
    from simindex.inputs.document import Intake

_ESCAPE = re.compile(rb"\\x[0-9a-f]{2}")

AGAIN = "reached before"
"""Why a file is passed over that another input, or a link, has led to."""


@dataclass(frozen=True, slots=True)
class Patterns:
    """Which files of folders are wanted; see `ReadOptions`."""

    include: Sequence[str] = ()
    exclude: Sequence[str] = ()

    def leaves_out(self, path: str) -> bool:
        """Whether a file or folder of this path below the input is not looked at."""
        return _matches(path, self.exclude)

    def takes(self, path: str) -> bool:
        """Whether a file that is not left out is read."""
        return not self.include or _matches(path, self.include)

    def reach(self, path: str) -> bool:
        """Whether a walk of the folder comes to this file."""
        parts = path.split("/")
        above = ("/".join(parts[: end + 1]) for end in range(len(parts)))
        return self.takes(path) and not any(map(self.leaves_out, above))


@dataclass(frozen=True, slots=True)
class Found:
    """A file to read."""

    path: str
    name: str
    """As reached from the input, with `/`."""
    real: str
    """The absolute path without links: the same, however the file is reached."""
    named: bool
    """Whether the caller named the file; else it was found in a folder."""


WRITTEN = "the output goes there"
"""Why a file of a folder is passed over that is written meanwhile."""


class _Reached:
    """What the inputs so far have led to, in memory that does not grow with their files."""

    def __init__(self, patterns: Patterns) -> None:
        self._patterns = patterns
        self._folders: set[str] = set()
        self._files: set[str] = set()
        """Those that were named, or that a link in a folder led to."""

    def folder(self, real: str) -> None:
        """A folder was walked."""
        self._folders.add(real)

    def again(self, real: str, *, kept: bool) -> bool:
        """Whether a file was reached before; with `kept` it is remembered, if it was not."""
        if real in self._files or self._in_a_folder(real):
            return True
        if kept:
            self._files.add(real)
        return False

    def _in_a_folder(self, real: str) -> bool:
        if not self._folders:
            return False
        return any(
            str(above) in self._folders and self._patterns.reach(below(real, str(above)))
            for above in PurePath(real).parents
        )


def found(
    inputs: Sequence[str], patterns: Patterns, intake: Intake, without: Path | None = None,
    written: Collection[tuple[int, int]] = (),
) -> Iterator[Found]:
    """The files of all inputs, in the order given and a fixed order within each.

    A file that several inputs or links lead to comes once. `without` is a folder to leave out, and
    `written` are device and inode of files that folders are read without.
    """
    reached = _Reached(patterns)
    for given in inputs:
        if given == STDIN:
            yield Found(given, given, given, named=True)
            continue
        if remote_files.is_remote(given):
            yield from _remote(given, patterns, intake, reached)
            continue
        real = os.path.realpath(given)
        if not Path(given).is_dir():
            if reached.again(real, kept=True):
                intake.pass_over(printable(given), AGAIN)
            else:
                yield Found(given, PurePath(given).as_posix(), real, named=True)
            continue
        folder = PurePath(given).as_posix()
        for path, link in _walk(given, patterns, intake, without):
            there = os.path.join(real, path)  # noqa: PTH118
            name = path if folder == "." else f"{folder.rstrip('/')}/{path}"
            if written and _identity(there) in written:
                intake.pass_over(printable(name), WRITTEN)
                continue
            if link:
                there = os.path.realpath(there)
                again = patterns.reach(below(there, real)) or reached.again(there, kept=True)
            else:
                again = reached.again(there, kept=False)
            if again:
                intake.pass_over(printable(name), AGAIN)
            else:
                yield Found(name, name, there, named=False)
        reached.folder(real)


def _remote(
    given: str, patterns: Patterns, intake: Intake, reached: _Reached
) -> Iterator[Found]:
    """The file of an address, or those below it that the patterns reach."""
    try:
        folder = remote_files.is_folder(given)
        paths = [""]
        if folder:
            paths = [path for path in remote_files.below(given) if patterns.reach(path)]
    except remote_files.RemoteError as error:
        intake.bad(given, None, f"cannot be listed: {error}", remote_files.CHECK_ADDRESS)
        return
    for path in paths:
        address = remote_files.inside(given, path) if folder else given
        if reached.again(address, kept=True):
            intake.pass_over(printable(address), AGAIN)
        else:
            yield Found(address, address, address, named=not folder)


def _identity(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)  # noqa: PTH116
    except OSError:  # what is wrong is told where the file is read
        return None
    return status.st_dev, status.st_ino


def name_from(real: str, origin: str) -> str:
    """The name of a file: its path from the folder `origin`, absolute if that leads over the root.

    Both are absolute and without links, so a file has one name, whatever way it was reached.
    """
    inside = origin.rstrip("/") + "/"
    if real.startswith(inside) and real != inside:
        return real[len(inside) :]
    if origin != "/" and os.path.commonpath([real, origin]) == "/":
        return real
    return os.path.relpath(real, origin)


def below(path: str, folder: str) -> str:
    """The path of a file relative to a folder that it is in."""
    return path[len(folder.rstrip("/")) + 1 :]


def _walk(
    root: str, patterns: Patterns, intake: Intake, without: Path | None
) -> Iterator[tuple[str, bool]]:
    """Paths of the regular files below `root`, relative to it, with `/`, and which are links.

    Names are sorted within a folder, files before its subfolders.

    Links to files within the folder are followed. Links to folders are not, so no loop of links is
    entered, nor those that lead out of the folder, so that a folder from elsewhere cannot have
    files of this machine read. These, and files that are neither regular nor folders, are counted
    in ``intake.passed_over``. A folder that cannot be listed is a bad record.
    """
    inside = Path(root).resolve()
    folders = [""]
    while folders:
        folder = folders.pop()
        if without is not None and Path(root, folder).resolve() == without:
            continue
        try:
            with os.scandir(os.path.join(root, folder)) as listed:  # noqa: PTH118
                entries = sorted(listed, key=lambda entry: entry.name)
        except OSError as error:
            intake.bad(
                os.path.join(root, folder),  # noqa: PTH118
                None, f"folder cannot be listed: {error.strerror or error}",
                hint="check its permissions, leave it out with --exclude, or skip up to N such "
                "folders with --max-errors N",
            )
            continue
        if is_index(Path(root, folder)):
            intake.pass_over(printable(str(Path(root, folder))), "index of simindex")
            continue
        inner = []
        for entry in entries:
            path = folder + entry.name
            if patterns.leaves_out(path):
                continue
            if entry.is_dir(follow_symlinks=False):
                inner.append(path + "/")
                continue
            kind = _kind(entry, inside)
            if kind is not None:
                intake.pass_over(printable(str(Path(root, path))), kind)
            elif patterns.takes(path):
                yield path, entry.is_symlink()
        folders.extend(reversed(inner))


def is_index(folder: Path) -> bool:
    """Whether a folder is an index: its files are not documents."""
    # Also of a name that is too long for a file, of which `Path.is_file` raises.
    return os.path.isfile(folder / "FORMAT") and os.path.exists(  # noqa: PTH110, PTH113
        folder / "catalog" / "data.mdb"
    )


def _matches(path: str, patterns: Sequence[str]) -> bool:
    name = path.rstrip("/").rpartition("/")[2]
    return any(
        fnmatchcase(path if "/" in pattern else name, pattern.removesuffix("/"))
        for pattern in patterns
    )


def _kind(entry: os.DirEntry[str], inside: Path) -> str | None:
    """What an entry is, if it is passed over; None for a regular file, linked or not."""
    try:
        if entry.is_dir():
            return "link to a folder"
        if not entry.is_file():
            return "broken link or special file"
        if entry.is_symlink() and not Path(entry.path).resolve().is_relative_to(inside):
            return "link that leads out of the folder"
    except OSError:
        return "link that leads to itself"
    return None


def printable(name: str) -> str:
    """A file's name as valid Unicode, another for every name.

    Bytes that are not UTF-8 become ``\\xNN``. In a name with such bytes, and in one that holds what
    looks like them, a backslash becomes ``\\x5c``. All other names stay as they are.
    """
    raw = os.fsencode(name)
    try:
        if not _ESCAPE.search(raw):
            return raw.decode()
    except UnicodeDecodeError:
        pass
    return raw.replace(b"\\", b"\\x5c").decode("utf-8", "backslashreplace")
