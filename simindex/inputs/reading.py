"""From what the caller named to documents: finds files, and picks a reader for each."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePath

from simindex.errors import InvalidInput, InvalidOption
from simindex.inputs.document import Document, Intake, Source
from simindex.inputs.formats import AUTO, FORMATS, names, recognised
from simindex.inputs.streams import (
    STDIN,
    Unreadable,
    compression_of,
    open_bytes,
    require_zstandard,
)

MAX_RECORD_BYTES = 64 << 20
"""Longest line, row or text file, in bytes after decompression."""

_ESCAPE = re.compile(rb"\\x[0-9a-f]{2}")


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How inputs are read.

    Parameters
    ----------
    format : "auto" or a name of `formats.FORMATS`
        ``auto`` goes by a named file's suffix, before .gz or .zst; takes standard input for JSONL
        and every file in a folder for text.
    text_field, key_field : str
        Fields of a JSON record, or columns of a table.
    include, exclude : sequence of str
        Patterns for files in folders. One without `/` is matched with the name of a file or folder,
        one with `/` with its whole relative path, and `*` also matches `/`; an excluded folder is
        not entered. No pattern in `include` takes every file.
    max_record_bytes : int
        Longest line, row or text file.
    without : Path, optional
        A folder to leave out: the index itself.
    """

    format: str = AUTO
    text_field: str = "text"
    key_field: str = "id"
    include: Sequence[str] = ()
    exclude: Sequence[str] = ()
    max_record_bytes: int = MAX_RECORD_BYTES
    without: Path | None = None

    def __post_init__(self) -> None:
        if self.format not in names():
            raise InvalidOption(
                f"format {self.format!r} is unknown",
                remedy=f"give one of {', '.join(names())}", option="format", found=self.format,
                expected=names(),
            )


def require_inputs(inputs: Sequence[str]) -> None:
    """Refuse what cannot be read at all, before anything is created.

    Raises InvalidInput for a path that does not exist or standard input named twice, MissingExtra
    for .zst without its library.
    """
    for path in inputs:
        if path != STDIN and not Path(path).exists():
            raise InvalidInput(f"{printable(path)}: no such file or folder", path=path)
        if path != STDIN and compression_of(path) == "zst":
            require_zstandard()
    if list(inputs).count(STDIN) > 1:
        raise InvalidInput("standard input (-) can be read only once", path=STDIN)


def rereadable(inputs: Sequence[str]) -> bool:
    """Whether a second reading finds the same: no standard input, no pipe."""
    return all(path != STDIN and (Path(path).is_file() or Path(path).is_dir()) for path in inputs)


def read(
    inputs: Sequence[str], options: ReadOptions | None = None, intake: Intake | None = None
) -> Iterator[Document]:
    """Documents of all inputs, in the order given and a fixed order within each.

    Parameters
    ----------
    inputs : sequence of str
        Files, folders, and `-` for standard input.
    intake : Intake, optional
        Counts bad records; by default the first one raises.

    Yields
    ------
    Document
        The key of a text file is its path relative to the folder it was found in, or as named; of
        a record its key field, or ``file:line``.

    Raises
    ------
    InvalidInput
        On one bad record more than `intake` allows. A file that is truncated or damaged counts as
        one, at the line it broke off: what was read before stands, and the next file follows.

    Notes
    -----
    Holds one record, at most ``max_record_bytes``, and the names of one folder.
    """
    options = options or ReadOptions()
    intake = intake or Intake()
    require_inputs(inputs)
    for path in inputs:
        if path == STDIN or not Path(path).is_dir():
            yield from _read_file(path, path, True, options, intake)
            continue
        for name in _walk(path, options, intake):
            yield from _read_file(str(Path(path, name)), name, False, options, intake)


def _read_file(
    path: str, name: str, named: bool, options: ReadOptions, intake: Intake
) -> Iterator[Document]:
    intake.files += 1
    shown = printable(path)
    source = Source(
        shown, printable(PurePath(name).as_posix()), intake, options.max_record_bytes, named,
        options.text_field, options.key_field,
    )
    try:
        with open_bytes(path) as stream:
            if options.format == AUTO:
                row = recognised(path, stream, named=named)
            else:
                row = FORMATS[options.format]
            yield from row.read(stream, source)
    except Unreadable as reason:
        intake.bad(shown, reason.line, str(reason))


def _walk(root: str, options: ReadOptions, intake: Intake) -> Iterator[str]:
    """Paths of the regular files below `root`, relative to it, with `/`.

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
        if options.without is not None and Path(root, folder).resolve() == options.without:
            continue
        try:
            with os.scandir(os.path.join(root, folder)) as found:  # noqa: PTH118
                entries = sorted(found, key=lambda entry: entry.name)
        except OSError as error:
            intake.bad(
                os.path.join(root, folder),  # noqa: PTH118
                None, f"folder cannot be listed: {error.strerror or error}",
            )
            continue
        below = []
        for entry in entries:
            path = folder + entry.name
            if _matches(path, options.exclude):
                continue
            if entry.is_dir(follow_symlinks=False):
                below.append(path + "/")
                continue
            kind = _kind(entry, inside)
            if kind is not None:
                intake.passed_over[kind] += 1
            elif not options.include or _matches(path, options.include):
                yield path
        folders.extend(reversed(below))


def _matches(path: str, patterns: Sequence[str]) -> bool:
    name = path.rpartition("/")[2]
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

    Bytes that are no UTF-8 become ``\\xNN``. In a name with such bytes, and in one that holds what
    looks like them, a backslash becomes ``\\x5c``. All other names stay as they are.
    """
    raw = os.fsencode(name)
    try:
        if not _ESCAPE.search(raw):
            return raw.decode()
    except UnicodeDecodeError:
        pass
    return raw.replace(b"\\", b"\\x5c").decode("utf-8", "backslashreplace")
