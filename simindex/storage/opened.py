"""An index found at its place: its uuid, its catalog, and what the catalog says of the whole.

    FORMAT    names the uuid; read again once the catalog is open, since another index may take the
              place in between
    catalog   an environment that the process shares, and gives back by `Lease.release`
    described options and recipe, which every snapshot of the index is read by
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from simindex.errors import CorruptFile
from simindex.options import IndexOptions
from simindex.simhash.recipe import Recipe
from simindex.storage.catalog.catalog import Catalog
from simindex.storage.catalog.options_record import stored_options
from simindex.storage.catalog.registry import Lease, acquire
from simindex.storage.files.format import read_format
from simindex.storage.snapshot import Snapshot
from simindex.storage.tables.record import NAME


def leased(path: Path, *, writable: bool) -> tuple[bytes, Lease]:
    """The uuid and the catalog of the index at a path, which others may put another in place of.

    Raises IndexNotFound or CorruptFile, and what the operating system refuses.
    """
    while True:
        uuid = read_format(path, writable=writable)
        for name in ("catalog", "segments"):
            part = path / name
            if part.is_symlink() or (part.exists() and not part.is_dir()):
                raise CorruptFile(f"{part} is no directory", path=str(part))
        lease = acquire(path / "catalog", writable=writable)
        try:
            if read_format(path, writable=writable) == uuid:
                return uuid, lease
        except BaseException:
            lease.release()
            raise
        lease.release()  # opened, perhaps, while another index took its place


@dataclass(frozen=True, slots=True)
class Described:
    """What a catalog says of the whole index."""

    options: IndexOptions
    options_checksum: int | None
    """Changes with the options; None if the catalog has no record of them."""
    recipe: Recipe | None


def described(catalog: Catalog, *, index: bytes) -> Described:
    """The options and the recipe in a catalog; CorruptFile if it is another index's."""
    with catalog.reading() as reading:
        _, head = reading.head()
        named = reading.value(head, "index")
        stored = reading.value(head, "options")
        checksum = head.values.get("options")
        recipe = reading.value(head, "recipe")
    if named not in (None, index):
        raise CorruptFile(
            f"{catalog.path} or FORMAT beside it is of another index",
            remedy="bring back its own; `simindex repair` says what can be had again without it",
            path=str(catalog.path),
        )
    return Described(
        stored_options(stored), checksum, Recipe.from_bytes(recipe) if recipe is not None else None
    )


def check_age(path: Path, catalog: Catalog, snapshot: Snapshot) -> None:
    """Refuses a catalog that is older than the files beside it, as a writer does."""
    latest = f"{snapshot.head.generation + 2:016x}"
    newer: list[str] = []
    with suppress(OSError), os.scandir(path / "segments") as entries:
        newer = [entry.name for entry in entries if entry.name >= latest]
    ours = [name for name in newer if NAME.fullmatch(name)]
    # While others commit, files of later commits are there.
    if ours and catalog.head_value() == snapshot.value:
        raise catalog_is_older(path / "segments" / min(ours))


def catalog_is_older(file: Path) -> CorruptFile:
    """The error where a file is there that only a later commit than the catalog's can name."""
    return CorruptFile(
        f"{file} is newer than the catalog, an older catalog/data.mdb that was put in its place",
        remedy="bring back the newer one; if there is none, `simindex repair` makes one of what is "
        "there",
        path=str(file),
    )
