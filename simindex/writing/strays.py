"""Files that an interrupted writer left, and no commit names."""

from __future__ import annotations

import logging
from pathlib import Path

from simindex.errors import CorruptFile, raised_by_a_handler
from simindex.storage.catalog.catalog import Catalog
from simindex.storage.catalog.records import Head
from simindex.storage.files import removal
from simindex.storage.files.names import TEMPORARY
from simindex.storage.location import catalog_is_older
from simindex.storage.tables import permuted, slicelist
from simindex.storage.tables.record import NAME, generation_of

OURS = (NAME, permuted.NAME, slicelist.NAME)
"""Names of the files that a writer makes, and removes where no commit names them."""

log = logging.getLogger("simindex")


def remove_strays(catalog: Catalog, directory: Path, value: bytes, head: Head) -> None:
    """Unlinks them, under the writer's lock; never on a catalog older than its files."""
    try:
        found = sorted(directory.iterdir())
    except (FileNotFoundError, NotADirectoryError) as error:
        raise CorruptFile(
            f"{directory} is missing: bring it back, with the files in it", path=str(directory),
        ) from error
    ours = [
        path for path in found
        if any(name.fullmatch(path.name) for name in OURS) and not path.is_dir()
    ]
    live = set(head.segments)
    if any(path.suffix != ".rows" for path in ours):
        with catalog.reading() as reading:
            records = [reading.segment(head, name) for name in head.segments]
        live.update(structure.name for record in records for structure in record.structures)
    strays = [path for path in ours if path.name not in live]
    for path in strays:
        if generation_of(path.name) > head.generation + 1:
            raise catalog_is_older(path)
    strays += [path for path in found if TEMPORARY.fullmatch(path.name)]
    staged = [path for path in strays if catalog.staged(path.name)]
    for path in strays:
        if path not in staged:
            removal.remove(path)
    if staged:
        try:
            catalog.unstage(value, [path.name for path in staged])
        except OSError as error:
            if raised_by_a_handler(error):
                raise
            log.warning("what an interrupted merge left is not removed yet: %s", error)
            return
        for path in staged:
            removal.remove(path)
