"""A structure next to a segment: a file of its own, made of the segment's rows.

    sections   numbered by each kind; 5 is the description, msgpack: structure, name and footer
               checksum of the segment

The name is `<stem of the segment>-<file id's low half, 8 hex>.<kind>`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import msgpack
import numpy as np

from simindex.errors import CorruptFile, InvalidOption, raised_by_a_handler
from simindex.storage.files.checksums import verified
from simindex.storage.files.durable import NewFile
from simindex.storage.files.envelope import Envelope, Identity, open_envelope
from simindex.storage.files.envelope_writer import EnvelopeWriter, SectionSpec, reads_back
from simindex.storage.files.published import RESTORE, is_published
from simindex.storage.tables.record import SegmentFolder, SegmentRecord, StructureRecord

FINGERPRINTS = 1

DESCRIPTION = 5

UNDECODABLE = (ValueError, TypeError, OverflowError, msgpack.UnpackException)
"""What msgpack raises at bytes that are none of its own; anything else is not damage."""

MAX_DESCRIPTION_BYTES = 1 << 20
"""The names of thirty thousand merged segments; 64 MB in memory if it is a list of small things."""

REBUILD = (
    "`simindex compact --structures` with the names that `simindex stats --verbose` lists "
    "rebuilds it"
)
"""What helps where the file of a structure is damaged, in an index that may be written to."""

Design = TypeVar("Design")


class Structure:
    """A structure over one segment, on a memory map; or what is wrong with its file.

    Raises the damage when the file is asked for, not before: an index of which a structure is
    damaged still answers by other methods, and can be given new ones.
    """

    def __init__(
        self, record: StructureRecord, envelope: Envelope | None, damage: CorruptFile | None = None
    ) -> None:
        self.record: StructureRecord = record
        self.damage: CorruptFile | None = damage
        self._envelope = envelope
        self.path: str | None = None if envelope is None else envelope.path
        """Of the file; None if it could not be opened."""

    @property
    def envelope(self) -> Envelope:
        """The file; raises CorruptFile if it could not be opened."""
        if self.damage is not None or self._envelope is None:
            raise self.damage or CorruptFile(f"{self.record.name} is not open")
        return self._envelope


@contextmanager
def new_structure(
    folder: SegmentFolder,
    segment: SegmentRecord,
    structure: str,
    sections: Sequence[SectionSpec],
    *,
    kind: str,
    generation: int,
) -> Iterator[tuple[str, EnvelopeWriter]]:
    """The name and the writer of a new file, for `sections` and then the description.

    The description is written. The file is published at the end of the block, in which it is
    finished; none stays if the block raises.
    """
    description: bytes = msgpack.packb([structure, segment.name, segment.footer_checksum])
    file_id = int.from_bytes(os.urandom(8), "little")
    identity = Identity(
        folder.index, file_id, generation, segment.horizon, segment.rows, folder.bits
    )
    with NewFile(folder.directory) as file:
        writer = EnvelopeWriter(
            file, identity, [*sections, SectionSpec(DESCRIPTION, 1, len(description))]
        )
        writer.write(len(sections), np.frombuffer(description, np.uint8))
        name = f"{segment.name[:25]}-{file_id & 0xFFFFFFFF:08x}.{kind}"
        yield name, writer
        file.publish(name, partial(reads_back, name=name))


def helps(path: str | Path) -> str:
    """What helps where the file of a structure is damaged."""
    return RESTORE if is_published(Path(path).parent.parent) else REBUILD


def owner_of(name: str) -> str:
    """Name of the segment to which the file of a structure belongs."""
    return f"{name[:25]}.rows"


def stored_design(
    record: StructureRecord, bits: int, parse: Callable[[str, int], Design]
) -> Design:
    """The design that a record names; raises CorruptFile if `parse` refuses it."""
    try:
        return parse(record.structure, bits)
    except InvalidOption as error:
        raise CorruptFile(
            f"the catalog names a structure {record.structure!r}: {error.what}", path=record.name
        ) from error


def require_named(
    envelope: Envelope, folder: SegmentFolder, segment: SegmentRecord,
    record: SegmentRecord | StructureRecord,
) -> None:
    """Raises CorruptFile unless a file is the one that the record of a segment, or of a structure
    next to it, names."""
    identity = envelope.identity
    found = (identity.index, identity.rows, identity.horizon, identity.bits, envelope.file_bytes,
             envelope.footer_checksum)
    expected = (folder.index, segment.rows, segment.horizon, folder.bits, record.file_bytes,
                record.footer_checksum)
    if found != expected or (
        isinstance(record, StructureRecord)
        and description_of(envelope) != [record.structure, segment.name, segment.footer_checksum]
    ):
        raise CorruptFile(
            f"{envelope.path} is not the file that the catalog names", path=envelope.path,
            found=found, expected=expected,
        )


def open_structure(
    folder: SegmentFolder, segment: SegmentRecord, record: StructureRecord, *, directories: int
) -> tuple[Envelope | None, CorruptFile | None]:
    """Maps the file of a structure next to a segment, once file, record and segment agree.

    Raises CorruptFile if the record names another number of header directories.
    What is wrong with the file is returned, to be raised when it is used. A file that is gone
    raises FileNotFoundError, since a compaction may just have replaced it, unless
    `folder.missing_ok`.
    """
    if len(record.header_bits) != directories:
        raise CorruptFile(
            f"the catalog's record of {record.name} is not complete", path=record.name
        )
    path = folder.directory / record.name
    try:
        envelope = open_envelope(path, verify=folder.verify, remedy=helps(path))
        require_named(envelope, folder, segment, record)
    except FileNotFoundError:
        if not folder.missing_ok:
            raise
        return None, CorruptFile(f"{path} is missing", remedy=helps(path), path=str(path))
    except CorruptFile as error:
        return None, CorruptFile(error.what, remedy=helps(path), **error.data)
    return envelope, None


def description_of(envelope: Envelope) -> Any:
    """What a file says of itself in addition to its header; None if it has no such section."""
    section = envelope.section(DESCRIPTION, "u1")
    if section is not None and len(section) > MAX_DESCRIPTION_BYTES:
        raise CorruptFile(
            f"{envelope.path} has a description of {len(section):,} bytes", path=envelope.path
        )
    try:
        return None if section is None else msgpack.unpackb(verified(section).tobytes(), raw=False)
    except UNDECODABLE as error:
        if raised_by_a_handler(error):
            raise
        raise CorruptFile(
            f"{envelope.path} has a description that cannot be decoded", path=envelope.path
        ) from error
