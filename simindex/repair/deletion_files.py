"""The files of tombstones that a repair finds, and what it takes of them: all of a file or nothing.

A deletion of a commit that never was would delete rows without need, so of files that no head names
only those count that another commit came after.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from simindex.errors import CorruptFile
from simindex.options import IndexOptions
from simindex.repair.damaged_files import whole_envelope
from simindex.storage.catalog.records import LAST_GENERATION
from simindex.storage.tables.deletion_file import NAME, disorder, run_of
from simindex.storage.tables.record import generation_of
from simindex.storage.tables.tombstones import Tombstones


def listed(directory: Path, index: bytes) -> dict[str, int]:
    """Names of an index's files of tombstones, and their generations, as far as they have headers.
    """
    found: dict[str, int] = {}
    if directory.is_dir():
        for path in sorted(directory.iterdir()):
            if NAME.fullmatch(path.name):
                with suppress(CorruptFile):
                    identity = whole_envelope(path).identity
                    named = int(path.name[17:25], 16) == identity.file_id & 0xFFFFFFFF
                    known = generation_of(path.name) == identity.generation < LAST_GENERATION
                    if identity.index == index and named and known:
                        found[path.name] = identity.generation
    return found


def committed(listed: dict[str, int], named: Collection[str], newest: int) -> list[str]:
    """Of some files those that were part of the index, though its newest head is not known.

    `named` are those that any head names; `newest` is the generation of the newest file there is.
    """
    return [name for name, generation in listed.items() if name in named or generation < newest]


def read(path: Path, options: IndexOptions) -> Tombstones:
    """The run of a file; CorruptFile if it is missing, or any byte of it is damaged."""
    envelope = whole_envelope(path)
    envelope.verify()
    run = run_of(envelope, keyed=options.keyed)
    wrong = disorder(run)
    if wrong is not None:
        raise CorruptFile(f"{path}: {wrong}", path=str(path))
    return run
