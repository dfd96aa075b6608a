"""Making a new index directory, in an order that survives a crash after every step.

FORMAT is written last: a directory without it is no index, and what an interrupted creation left in
it may be cleared by the next one. One that fails removes what it made, LOCK while it holds it: who
opened that before has no lock, see `format.lock`.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from simindex.designs import checked_designs
from simindex.errors import (
    CorruptFile,
    FormatTooNew,
    IndexExists,
    IndexLocked,
    IndexNotFound,
    InvalidOption,
)
from simindex.options import IndexOptions
from simindex.storage import disk, permuted, segment, slicelist
from simindex.storage import format as durable
from simindex.storage.catalog import Catalog, Edit, Head, pack
from simindex.storage.environment import acquire, release
from simindex.storage.remains import Remains

FIRST_GENERATION = 1
"""Of the commit that creation makes."""


def exists(directory: Path) -> bool:
    """Whether there is an index at the path, or something that has the name of its FORMAT."""
    return (directory / "FORMAT").exists()


@contextmanager
def replaceable(directory: Path) -> Iterator[None]:
    """Passes over damage that looking at an index meets: a damaged one may be replaced.

    Raises FormatTooNew where a newer version made it, unless FORMAT only looks so by its damage.
    """
    try:
        yield
    except FormatTooNew as error:
        if durable.format_agrees(directory):
            raise FormatTooNew(
                f"{error}; or remove {directory} by hand, if it may go", **error.data
            ) from error
    except CorruptFile:
        pass


def strangers(directory: Path) -> list[str]:
    """What in a directory is of no index, whole or half-made, as paths in it; sorted.

    Directories of an index hold files alone, each of a name that only an index gives, but for the
    catalog's, which LMDB gives to all: they are looked into. What a repair has kept may hold
    anything: nobody removes it.
    """
    whole = durable.is_format(directory) or (
        durable.is_file(directory / "FORMAT") and _was_an_index(directory)
    )
    found: list[str] = []
    for path in directory.iterdir():
        name = path.name
        if name in ("catalog", "segments") or durable.is_numbered(name, durable.REPAIRED_CATALOG):
            if durable.is_directory(path):
                found += _strangers_within(path, whole=whole)
            elif not whole:  # else it is damage, where an index has been
                found.append(name)
        elif name == "FORMAT":
            if not whole:
                found.append(name)
        elif name == "LOCK":
            if not (whole or durable.is_lock(path)):
                found.append(name)
        elif not (durable.TEMPORARY.fullmatch(name) and not durable.is_directory(path)) and not (
            durable.is_numbered(name, durable.KEPT_PREFIX)
        ):
            found.append(name)
    # Another process may be making or replacing an index here.
    return sorted(name for name in found if os.path.lexists(directory / name))


def _strangers_within(directory: Path, *, whole: bool) -> list[str]:
    found = [
        inner.name for inner in directory.iterdir()
        if durable.is_directory(inner) or not _is_part(directory.name, inner.name)
    ]
    if directory.name != "segments" and not whole and _is_foreign(directory / "data.mdb"):
        found.append("data.mdb")
    return [f"{directory.name}/{name}" for name in found]


def _is_part(directory: str, name: str) -> bool:
    """Whether a file's name is one that an index gives in that directory of its own."""
    if directory != "segments":
        return name in durable.CATALOG_FILES
    patterns = (segment.NAME, permuted.NAME, slicelist.NAME, durable.TEMPORARY)
    return any(pattern.fullmatch(name) for pattern in patterns)


def _is_foreign(path: Path) -> bool:
    """Whether a file is no catalog, nor what a crash leaves of one that is being made."""
    try:
        remains = Remains.read(path)
    except CorruptFile:
        return True
    if remains is None:
        return False
    with closing(remains):
        return remains.foreign


def require_nothing_else(directory: Path) -> None:
    """Refuses to overwrite a directory that holds anything that is of no index: IndexExists."""
    others = strangers(directory)
    if others:
        raise IndexExists(
            f"{directory} holds {others[0]!r}, which is of no index: it was kept. Move that away, "
            "or give an empty or a new directory",
            path=str(directory), found=others[0],
        )


def create(directory: Path, options: IndexOptions, *, overwrite: bool) -> None:
    """Makes an empty index at a path where there is none, or an empty or half-made directory.

    Raises
    ------
    IndexExists
        If there is an index and `overwrite` is false, or anything that is no index: it is kept.
    IndexLocked
        If it is being written or made by another process.
    FormatTooNew
        If a newer version made what was to be overwritten.
    """
    recipe = options.recipe
    if recipe is not None and recipe.weighting == "tfidf" and not recipe.fitted:
        raise InvalidOption(
            "the recipe is tfidf and knows no documents yet: give recipe.fit(texts)",
            option="recipe",
        )
    checked_designs(options)
    while True:
        made = _prepare(directory, overwrite=overwrite)
        try:
            durable.check_storage(directory, allow_remote=options.allow_remote)
            locked_before = (directory / "LOCK").exists()
            fd = durable.lock(directory / "LOCK")
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
                f"an index was made at {directory} by another process: it was kept",
                path=str(directory),
            )
        if exists(directory):
            with replaceable(directory):
                durable.read_format(directory, writable=True)
        require_nothing_else(directory)  # now that nobody else makes an index here
        cleared = made
        try:
            _clear(directory)
            cleared = True
            _fill(directory, options)
        except BaseException:
            with suppress(OSError):
                if cleared:
                    _clear(directory)
                if not locked_before:
                    durable.remove(directory / "LOCK")
                if made:
                    _remove_empty(directory)
            raise
    finally:
        durable.unlock(fd)


def _prepare(directory: Path, *, overwrite: bool) -> bool:
    """Refuses a directory that is no place for an index; makes one that is not there.

    Returns whether it did.
    """
    made = False
    if directory.is_symlink() or directory.exists():
        if not directory.is_dir():
            raise IndexExists(f"{directory} is a file: it was kept", path=str(directory))
        if exists(directory) and not overwrite:
            raise IndexExists(
                f"there is already an index at {directory}: it was kept. "
                "Open it with mode 'w', or ask to overwrite it",
                path=str(directory),
            )
        require_nothing_else(directory)
    else:
        if not directory.parent.is_dir():
            raise IndexNotFound(
                f"there is no directory {directory.parent} for an index: make it first",
                path=str(directory.parent),
            )
        with suppress(FileExistsError):  # another process makes the same one
            durable.make_directory(directory)
            made = True
    if not exists(directory) and not overwrite and _was_an_index(directory):
        raise IndexExists(
            f"{directory} has lost its FORMAT, and holds what was in an index: it was kept. "
            f"`simindex repair {directory}` says what can be had again",
            path=str(directory), found="segments",
        )
    return made


def _was_an_index(directory: Path) -> bool:
    """Whether there is what an index gets after FORMAT: a segment, a commit, or a repair."""
    if any(segment.NAME.fullmatch(path.name) for path in (directory / "segments").glob("*.rows")):
        return True
    if durable.repaired_catalogs(directory):
        return True
    remains = Remains.read(directory / "catalog" / "data.mdb")
    if remains is None:
        return False
    with closing(remains):
        return any(head.generation > FIRST_GENERATION for head, _ in remains.heads())


def discard(directory: Path, *, made: bool) -> bool:
    """Removes an index that nothing was committed to, and its directory if that was `made` for it.

    What a repair has kept there stays. Returns False, and removes nothing, where another process
    writes it or has, or anything was put there that is of no index.
    """
    if not exists(directory):
        return False
    try:
        fd = durable.lock(directory / "LOCK")
    except IndexLocked:
        return False
    try:
        environment = acquire(directory / "catalog", writable=False)
        try:
            with Catalog(environment).reading() as reading:
                _, head = reading.head()
        finally:
            release(environment)
        if head.generation > FIRST_GENERATION or strangers(directory):
            return False
        _clear(directory)
        durable.remove(directory / "LOCK")
        if made:
            _remove_empty(directory)
        return True
    finally:
        durable.unlock(fd)


def _fill(directory: Path, options: IndexOptions) -> None:
    uuid = secrets.token_bytes(16)
    for name in ("catalog", "segments"):
        durable.make_directory(directory / name)
    environment = acquire(directory / "catalog", writable=True, create=True)
    try:
        edit = Edit(b"", Head(0, 0, 0))
        edit.set_value("index", uuid)
        edit.set_value("options", pack(options.to_dict()))
        if options.recipe is not None:
            edit.set_value("recipe", options.recipe.to_bytes())
        Catalog(environment).commit(edit)
    finally:
        release(environment)
    durable.sync_directory(directory / "catalog")
    durable.write_format(directory, uuid)


def _clear(directory: Path) -> None:
    durable.remove(directory / "FORMAT")
    durable.sync_directory(directory)
    for path in directory.iterdir():
        # What a repair has kept is nobody's to remove.
        if path.name != "LOCK" and not durable.is_numbered(path.name, durable.KEPT_PREFIX):
            durable.remove_tree(path)


def _remove_empty(directory: Path) -> None:
    with suppress(OSError):  # it is not empty: another process has begun
        disk.system.remove_directory(directory)
        durable.sync_directory(directory.parent)
