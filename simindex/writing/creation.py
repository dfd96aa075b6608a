"""Making a new index directory, in an order that survives a crash after every step.

FORMAT is written last: a directory without it is not an index, and what an interrupted creation
left in it may be cleared by the next one. One that fails removes what it made, LOCK while it holds
it: who opened that before has no lock, see `locks.lock`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from simindex.errors import (
    CorruptFile,
    FormatTooNew,
    IndexExists,
    IndexLocked,
    IndexNotFound,
    InvalidOption,
    UnsupportedStorage,
)
from simindex.options import SECRET_BYTES, IndexOptions
from simindex.storage.catalog.catalog import Catalog, Edit
from simindex.storage.catalog.leases import acquire
from simindex.storage.catalog.records import Head
from simindex.storage.catalog.sealed_values import pack
from simindex.storage.files import disk, durable, locks, removal
from simindex.storage.files.file_names import KEPT_PREFIX, is_numbered
from simindex.storage.files.format import format_agrees, read_format, write_format
from simindex.storage.location import check_storage, file_system_kind
from simindex.storage.segment_files import checked_designs
from simindex.writing.ownership import (
    FIRST_GENERATION,
    exists,
    require_nothing_else,
    strangers,
    was_an_index,
)


@contextmanager
def replaceable(directory: Path) -> Iterator[None]:
    """Passes over damage that looking at an index meets: a damaged one may be replaced.

    Raises FormatTooNew where a newer version made it, unless FORMAT only looks so by its damage.
    """
    try:
        yield
    except FormatTooNew as error:
        if format_agrees(directory):
            raise FormatTooNew(
                error.what,
                remedy=f"{error.remedy}; or remove {directory} by hand if nobody needs it",
                **error.data,
            ) from error
    except CorruptFile:
        pass


def create(directory: Path, options: IndexOptions, *, overwrite: bool) -> None:
    """Makes an empty index at a path where there is none, or an empty or half-made directory.

    Raises
    ------
    IndexExists
        If there is an index and `overwrite` is false, or anything that is not an index: it is kept.
    IndexLocked
        If it is being written or made by another process.
    IndexNotFound
        If there is no directory for it.
    UnsupportedStorage
        If the file system there holds no index, or lets nobody create a folder.
    FormatTooNew
        If a newer version made what was to be overwritten.
    """
    recipe = options.recipe
    if recipe is not None and not recipe.fitted:
        raise InvalidOption(
            f"the recipe is {recipe.weighting} and knows no documents yet",
            remedy="give recipe.fit(texts)", option="recipe",
        )
    checked_designs(options)
    while True:
        made = _prepare(directory, overwrite=overwrite)
        try:
            check_storage(directory, allow_remote=options.allow_remote)
            locked_before = (directory / "LOCK").exists()
            lock = locks.lock(directory / "LOCK")
            break
        except BaseException as error:
            if made:
                _remove_empty(directory)
            # Another creation, which failed, has removed the directory that was there.
            if not isinstance(error, FileNotFoundError) or directory.exists():
                raise
    try:
        if exists(directory) and not overwrite:
            raise IndexExists(
                f"another process created an index at {directory}; not overwritten",
                path=str(directory),
            )
        if exists(directory):
            with replaceable(directory):
                read_format(directory, writable=True)
        cleared = False
        try:
            require_nothing_else(directory)  # now that nobody else makes an index here
            cleared = made
            _clear(directory)
            cleared = True
            _fill(directory, options)
        except BaseException:
            with suppress(OSError):
                if cleared:
                    _clear(directory)
                if not locked_before:
                    removal.remove(directory / "LOCK")
                if made:
                    _remove_empty(directory)
            raise
    finally:
        locks.unlock(lock)


def _prepare(directory: Path, *, overwrite: bool) -> bool:
    """Refuses a directory that is not a place for an index; makes one that is not there.

    Returns whether it did.
    """
    made = False
    if require_place(directory):
        if exists(directory) and not overwrite:
            raise IndexExists(
                f"there is already an index at {directory}; not overwritten",
                remedy="open it with mode 'w', or give overwrite=True to replace it",
                path=str(directory),
            )
        require_nothing_else(directory)
    else:
        try:
            durable.make_directory(directory)
            made = True
        except FileExistsError:  # another process makes the same one
            pass
        except FileNotFoundError as error:
            require_place(directory)  # unless its parent has just been removed
            system = file_system_kind(directory.parent)
            raise UnsupportedStorage(
                f"no index can be created at {directory}: the file system "
                f"there{system and f', {system},'} lets nobody create a folder",
                remedy="name another path", path=str(directory), found=system,
            ) from error
    if not exists(directory) and not overwrite and was_an_index(directory):
        raise IndexExists(
            f"{directory} has files of an index but no FORMAT; not overwritten",
            remedy=f"`simindex repair {directory}` shows what can be recovered",
            path=str(directory), found="segments",
        )
    return made


def require_place(directory: Path) -> bool:
    """Whether there is a directory at a path, where one may be or may be made.

    Raises IndexExists if there is anything else, IndexNotFound if there is no directory for it,
    InvalidOption if it is within an index.
    """
    for parent in directory.resolve().parents:
        if exists(parent) and (parent / "catalog").is_dir():
            raise InvalidOption(
                f"{directory} is within the index {parent}", remedy="name a folder outside of it",
                option="path", found=str(directory),
            )
    if directory.is_dir():
        return True
    if directory.exists():
        if directory.is_dir():  # another process has just made it
            return True
        raise IndexExists(
            f"{directory} is not a folder; not overwritten",
            remedy="name another path for the index", path=str(directory),
        )
    if directory.is_symlink():
        raise IndexExists(
            f"{directory} is a symbolic link to nothing, so no index can be created there; not "
            "overwritten",
            remedy="create the folder that it leads to, or name another path", path=str(directory),
        )
    if not directory.parent.is_dir():
        raise IndexNotFound(
            f"there is no folder {directory.parent} for an index", remedy="create it first",
            path=str(directory.parent),
        )
    return False


def discard(directory: Path, *, made: bool) -> bool:
    """Removes an index that nothing was committed to, and its directory if that was `made` for it.

    What a repair has kept there stays. Returns False, and removes nothing, where another process
    writes it or has, or anything was put there that is of no index.
    """
    if not exists(directory):
        return False
    try:
        lock = locks.lock(directory / "LOCK")
    except IndexLocked:
        return False
    try:
        with (
            acquire(directory / "catalog", writable=False) as environment,
            Catalog(environment).reading() as reading,
        ):
            _, head = reading.head()
        if head.generation > FIRST_GENERATION or strangers(directory):
            return False
        _clear(directory)
        removal.remove(directory / "LOCK")
        if made:
            _remove_empty(directory)
        return True
    finally:
        locks.unlock(lock)


def _fill(directory: Path, options: IndexOptions) -> None:
    uuid = os.urandom(16)
    if options.keyed and options.key_secret is None:
        options = replace(options, key_secret=os.urandom(SECRET_BYTES))
    for name in ("catalog", "segments"):
        durable.make_directory(directory / name)
    with acquire(directory / "catalog", writable=True, create=True) as environment:
        edit = Edit(b"", Head(0, 0, 0))
        edit.set_value("index", uuid)
        edit.set_value("options", pack(options.to_dict()))
        if options.recipe is not None:
            edit.set_value("recipe", options.recipe.to_bytes())
        Catalog(environment).commit(edit)
    durable.sync_directory(directory / "catalog")
    write_format(directory, uuid)


def _clear(directory: Path) -> None:
    removal.remove(directory / "FORMAT")
    # What a repair has kept is nobody's to remove.
    others = [
        path for path in directory.iterdir()
        if path.name != "LOCK" and not is_numbered(path.name, KEPT_PREFIX)
    ]
    if others:
        durable.sync_directory(directory)  # no FORMAT may come back without them
    for path in others:
        removal.remove_tree(path)


def _remove_empty(directory: Path) -> None:
    with suppress(OSError):  # it is not empty: another process has begun
        disk.system.remove_directory(directory)
        durable.sync_directory(directory.parent)
