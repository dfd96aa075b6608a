"""Whose the things in a directory are: what only an index, or a repair of one, can have put there.

    strangers   of no index
    strays      files that an interrupted writer left, and no commit names

Nothing else is removed or written over. Names of an index's files are its own, but FORMAT, LOCK,
`catalog/` and `data.mdb`, which anybody may use: these count by what they hold.
"""

from __future__ import annotations

import logging
import os
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from simindex.errors import CorruptFile, IndexExists, raised_by_a_handler
from simindex.storage.catalog.catalog import Catalog
from simindex.storage.catalog.records import Head
from simindex.storage.files import locks, removal
from simindex.storage.files.file_names import (
    CATALOG_FILES,
    KEPT_PREFIX,
    REPAIRED_CATALOG,
    TEMPORARY,
    is_directory,
    is_file,
    is_numbered,
    repaired_catalogs,
)
from simindex.storage.files.format import is_format
from simindex.storage.location import catalog_is_older
from simindex.storage.tables import deletion_file, permuted, record, slice_lists

if TYPE_CHECKING:
    from simindex.repair.catalog_records import CatalogRecords

FIRST_GENERATION = 1
"""Of the commit that creation makes."""

OURS = (record.NAME, permuted.NAME, slice_lists.NAME, deletion_file.NAME)
"""Names of the files that a writer makes, and removes where no commit names them."""

log: logging.Logger = logging.getLogger(__package__)


def exists(directory: Path) -> bool:
    """Whether there is an index at the path, or something that has the name of its FORMAT."""
    return (directory / "FORMAT").exists()


def was_an_index(directory: Path) -> bool:
    """Whether there is what an index gets after FORMAT: a segment, a commit, or a repair."""
    if any(record.NAME.fullmatch(path.name) for path in (directory / "segments").glob("*.rows")):
        return True
    if repaired_catalogs(directory):
        return True
    records = _records(directory / "catalog" / "data.mdb")
    if records is None:
        return False
    with closing(records):
        return any(head.generation > FIRST_GENERATION for head, _ in records.heads())


def _records(catalog: Path) -> CatalogRecords | None:
    """What a catalog holds, read without LMDB; None if there is none."""
    if not os.path.lexists(catalog):
        return None
    from simindex.repair.catalog_records import CatalogRecords  # seldom needed

    return CatalogRecords.read(catalog)


def strangers(directory: Path) -> list[str]:
    """What in a directory is of no index, whole or half-made, as paths in it; sorted.

    Directories of an index hold files alone, each of a name that only an index gives, except for
    the catalog's, which LMDB gives to all: they are looked into. What a repair has kept may hold
    anything: nobody removes it.
    """
    whole = is_format(directory) or (
        is_file(directory / "FORMAT") and was_an_index(directory)
    )
    found: list[str] = []
    for path in directory.iterdir():
        if _is_made_of_files(path.name) and is_directory(path):
            found += _strangers_within(path, whole=whole)
        elif not _is_own(path, whole=whole):
            found.append(path.name)
    # Another process may be making or replacing an index here.
    return sorted(name for name in found if os.path.lexists(directory / name))


def _is_made_of_files(name: str) -> bool:
    """Whether an index gives a directory of its own this name."""
    return name in ("catalog", "segments") or is_numbered(name, REPAIRED_CATALOG)


def _is_own(path: Path, *, whole: bool) -> bool:
    """Whether a path belongs to an index and is not a folder of files; `whole` if FORMAT exists."""
    name = path.name
    if name == "FORMAT" or _is_made_of_files(name):  # the latter is damage where an index has been
        return whole
    if name == "LOCK":
        return whole or locks.is_lock(path)
    if is_numbered(name, KEPT_PREFIX):
        return True
    return TEMPORARY.fullmatch(name) is not None and not is_directory(path)


def _strangers_within(directory: Path, *, whole: bool) -> list[str]:
    found = [
        inner.name for inner in directory.iterdir()
        if is_directory(inner) or not _is_part(directory.name, inner.name)
    ]
    if directory.name != "segments" and not whole and _is_foreign(directory / "data.mdb"):
        found.append("data.mdb")
    return [f"{directory.name}/{name}" for name in found]


def _is_part(directory: str, name: str) -> bool:
    """Whether a file's name is one that an index gives in that directory of its own."""
    if directory != "segments":
        return name in CATALOG_FILES
    return any(pattern.fullmatch(name) for pattern in (*OURS, TEMPORARY))


def _is_foreign(path: Path) -> bool:
    """Whether a file is not a catalog, nor what a crash leaves of one that is being made."""
    try:
        records = _records(path)
    except CorruptFile:
        return True
    if records is None:
        return False
    with closing(records):
        return records.foreign


def require_nothing_else(directory: Path) -> None:
    """Refuses to overwrite a directory that holds anything that is of no index: IndexExists."""
    others = strangers(directory)
    if others:
        raise IndexExists(
            f"{directory} is not an index (it contains {others[0]!r}), and was not changed",
            remedy="name another path for the index", path=str(directory),
            found=others[0],
        )


def remove_strays(catalog: Catalog, directory: Path, value: bytes, head: Head) -> None:
    """Unlinks strays, under the writer's lock; never on a catalog that is older than its files."""
    try:
        found = sorted(directory.iterdir())
    except (FileNotFoundError, NotADirectoryError) as error:
        raise CorruptFile(
            f"{directory} is missing",
            remedy="restore it with its files from a backup", path=str(directory),
        ) from error
    ours = [
        path for path in found
        if any(name.fullmatch(path.name) for name in OURS) and not path.is_dir()
    ]
    live = {*head.segments, *(run.file for run in head.tombstones)}
    if any(path.suffix not in (".rows", ".dead") for path in ours):
        with catalog.reading() as reading:
            records = [reading.segment(head, name) for name in head.segments]
        live.update(structure.name for one in records for structure in one.structures)
    strays = [path for path in ours if path.name not in live]
    for path in strays:
        if record.generation_of(path.name) > head.generation + 1:
            raise catalog_is_older(path)
    strays += [path for path in found if TEMPORARY.fullmatch(path.name)]
    staged = [path for path in strays if catalog.staged(path.name)]
    for path in strays:
        if path not in staged:
            removal.remove(path)
    if staged:
        try:
            for path in staged:
                removal.empty(path)  # the commit that removes its directories may need the space
            catalog.unstage(value, [path.name for path in staged])
        except OSError as error:
            if raised_by_a_handler(error):
                raise
            log.warning("what an interrupted merge left is not removed yet: %s", error)
            return
        for path in staged:
            removal.remove(path)
