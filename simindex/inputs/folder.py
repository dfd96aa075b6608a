"""Files below a folder, in a fixed order, chosen by patterns."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from simindex.inputs.document import Intake


def walk(
    root: str,
    *,
    include: Sequence[str],
    exclude: Sequence[str],
    without: Path | None,
    intake: Intake,
) -> Iterator[str]:
    """Paths of the regular files below `root`, relative to it, with `/`.

    Names are sorted within a folder, files before its subfolders. A pattern without `/` is matched
    with the name of a file or folder, one with `/` with its whole relative path, and `*` also
    matches `/`; an excluded folder is not entered. No pattern in `include` takes every file.

    Links to files within the folder are followed. Links to folders are not, so no loop of links is
    entered, nor those that lead out of the folder, so that a folder from elsewhere cannot have
    files of this machine read. These, and files that are neither regular nor folders, are counted
    in ``intake.passed_over``. A folder that cannot be listed is a bad record. `without` is left
    out: the index being built.
    """
    inside = Path(root).resolve()
    folders = [""]
    while folders:
        folder = folders.pop()
        if without is not None and Path(root, folder).resolve() == without:
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
            if _matches(path, exclude):
                continue
            if entry.is_dir(follow_symlinks=False):
                below.append(path + "/")
                continue
            kind = _kind(entry, inside)
            if kind is not None:
                intake.passed_over[kind] += 1
            elif not include or _matches(path, include):
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
