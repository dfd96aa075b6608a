"""Where a backup may go: nowhere, an empty folder, or an older backup of the same index.

Anything else at the path is somebody's, and stays as it is.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from simindex.errors import CorruptFile, IndexExists, InvalidOption
from simindex.storage.ancestry import VALUE, State, decode
from simindex.storage.catalog.catalog import Catalog
from simindex.storage.catalog.records import Reading
from simindex.storage.files import locks
from simindex.storage.files.descriptor import Descriptor
from simindex.storage.files.format import read_format
from simindex.storage.location import leased
from simindex.writing.creation import require_place
from simindex.writing.ownership import exists, strangers


def state(reading: Reading) -> State:
    """Where a catalog is."""
    _, head = reading.head()
    return State(head, decode(reading.value(head, VALUE)))


LONGEST_NAME = 244
"""Bytes of a folder's name: while a backup is made, a folder has one that is 11 longer."""


def require_possible(path: Path, index: Path) -> None:
    """Refuses a path that is the index, or within it, by whatever names, and one of too long a
    name; both are resolved."""
    if len(os.fsencode(path.name)) > LONGEST_NAME:
        raise InvalidOption(
            f"the name of {path} is longer than {LONGEST_NAME} bytes", remedy="name another folder",
            option="path", found=str(path),
        )
    if index in (path, *path.parents) or any(
        way.samefile(index) for way in (path, *path.parents) if way.exists()
    ):
        raise InvalidOption(
            f"the backup of {index} cannot be {path}, which is the index itself or within it",
            remedy="name a folder outside of the index", option="path", found=str(path),
        )


def require_free_or_backup(path: Path, index: Path, uuid: bytes) -> bool:
    """Whether there is an index of this uuid at the path; else nothing, or an empty folder.

    Raises IndexExists if there is anything else, IndexNotFound if there is no folder for it.
    """
    if path.is_mount():
        raise InvalidOption(
            f"{path} is a mount point, whose folder no backup can replace",
            remedy="name a folder in it", option="path", found=str(path),
        )
    if not require_place(path) or not any(path.iterdir()):
        return False
    if not exists(path):
        raise kept(path, index, f"contains {min(path.iterdir()).name!r} and is not a backup")
    others = strangers(path)
    if others:
        raise kept(path, index, f"contains {others[0]!r}, which is not part of a backup")
    if read_format(path, writable=True) != uuid:
        raise kept(path, index, "is another index")
    return True


@contextmanager
def held(path: Path) -> Iterator[tuple[State, Descriptor]]:
    """The state of an older backup, and its lock: nobody writes to it meanwhile.

    Raises IndexLocked if somebody does, CorruptFile if it cannot be read.
    """
    lock = locks.lock(path / "LOCK")
    try:
        try:
            _, lease = leased(path, writable=False)
            with lease as environment, Catalog(environment).reading() as reading:
                found = state(reading)
        except CorruptFile as error:
            raise CorruptFile(
                f"the older backup {path} is damaged, and was not changed: {error.what}",
                remedy="name another folder, or remove it by hand if nobody needs it",
                path=str(path),
            ) from error
        yield found, lock
    finally:
        locks.unlock(lock)


def kept(path: Path, index: Path, reason: str) -> IndexExists:
    """The error where what is at the path is not replaced."""
    return IndexExists(
        f"{path} {reason}, so the backup of {index} was not made there; nothing was changed",
        remedy="name another folder, or remove it by hand if nobody needs it", path=str(path),
        found=reason,
    )
