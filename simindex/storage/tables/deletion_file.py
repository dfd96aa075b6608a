"""A run of tombstones as an immutable file, `<generation, 16 hex>-<file id, 8 hex>.dead`.

    sections   2 ids           uint64 (n,), ascending
               3 key offsets   int64 (n + 1,)   only in an index with keys, as are 4 and 6
               4 key bytes     uint8
               6 seconds       uint64 (n,)      the other half of each key's hash
               7 commits       uint64 (n,)      the latest commit that deleted the id or key

The header's horizon is the newest of these commits, and its generation that of the commit which
made the file live. The file is mapped, and read as little as a look-up needs; see `checksums`.
"""

from __future__ import annotations

import os
import re
from functools import partial

import numpy as np

from simindex.arrays import I64, U64
from simindex.errors import CorruptFile
from simindex.storage.files.checksums import verified
from simindex.storage.files.durable import NewFile
from simindex.storage.files.envelope import Envelope, Identity, open_envelope
from simindex.storage.files.envelope_writer import EnvelopeWriter, SectionSpec, reads_back
from simindex.storage.tables.keys import KeyHeap
from simindex.storage.tables.record import SegmentFolder
from simindex.storage.tables.segment import IDS, KEY_BYTES, KEY_OFFSETS
from simindex.storage.tables.tombstones import Tombstones
from simindex.values import dataclass

NAME = re.compile(r"[0-9a-f]{16}-[0-9a-f]{8}\.dead")

SECONDS, COMMITS = 6, 7


@dataclass(frozen=True, slots=True)
class DeletionFile:
    """What the catalog says of such a file, and how many bytes it has."""

    name: str
    rows: int
    newest: int
    """The newest commit of its tombstones."""
    footer_checksum: int
    file_bytes: int


def write(folder: SegmentFolder, run: Tombstones, generation: int) -> DeletionFile:
    """Makes a durable file of a run; it is not part of the index until committed."""
    file_id = int.from_bytes(os.urandom(8), "little")
    name = f"{generation:016x}-{file_id & 0xFFFFFFFF:08x}.dead"
    columns: list[tuple[int, U64 | I64]] = [(IDS, run.id), (COMMITS, run.commit)]
    if run.keys is not None:
        heap = run.keys.slice(0, len(run))
        columns += [(SECONDS, run.second), (KEY_OFFSETS, heap.offsets)]
    sections = [SectionSpec(kind, 8, len(column)) for kind, column in columns]
    if run.keys is not None:
        sections.append(SectionSpec(KEY_BYTES, 1, len(heap.data)))
    identity = Identity(folder.index, file_id, generation, run.newest, len(run), folder.bits)
    with NewFile(folder.directory) as file:
        writer = EnvelopeWriter(file, identity, sections)
        for place, (_, column) in enumerate(columns):
            writer.write(place, column)
        if run.keys is not None:
            writer.write(len(columns), heap.data)
        checksum = writer.finish()
        file.publish(name, partial(reads_back, name=name))
    return DeletionFile(name, len(run), run.newest, checksum, writer.file_bytes)


def open_run(
    folder: SegmentFolder, name: str, *, rows: int, newest: int, footer_checksum: int
) -> Tombstones:
    """Maps the run that the catalog's head names, once file and head agree.

    Raises FileNotFoundError when the file is gone, which a reader meets when a merge has just
    replaced it, and CorruptFile when it is another file than the one that is named.
    """
    envelope = open_envelope(folder.directory / name, verify=folder.verify)
    identity = envelope.identity
    found = (identity.index, identity.rows, identity.horizon, identity.bits,
             envelope.footer_checksum)
    expected = (folder.index, rows, newest, folder.bits, footer_checksum)
    if found != expected:
        raise CorruptFile(
            f"{envelope.path} is not the file that the catalog names", path=envelope.path,
            found=found, expected=expected,
        )
    return run_of(envelope, keyed=folder.keyed)


def run_of(envelope: Envelope, *, keyed: bool) -> Tombstones:
    """The run in a file, on its map; CorruptFile if its sections do not fit each other."""
    rows = envelope.identity.rows
    ids, commits = envelope.section(IDS, "<u8"), envelope.section(COMMITS, "<u8")
    seconds = envelope.section(SECONDS, "<u8")
    offsets, data = envelope.section(KEY_OFFSETS, "<i8"), envelope.section(KEY_BYTES, "u1")
    keys = None
    agree = ids is not None and commits is not None and len(ids) == len(commits) == rows > 0
    if keyed and agree:
        agree = seconds is not None and offsets is not None and data is not None and (
            len(seconds) == rows and len(offsets) == rows + 1
            and int(verified(offsets[-1:])[0]) == len(data)
        )
        keys = KeyHeap(offsets, data) if offsets is not None and data is not None else None
    elif agree:
        agree = seconds is None and offsets is None and data is None
        seconds = np.broadcast_to(np.uint64(0), rows)
    if not agree or ids is None or commits is None or seconds is None:
        raise CorruptFile(
            f"{envelope.path} has sections that do not fit each other", path=envelope.path
        )
    return Tombstones(ids, seconds, commits, keys, envelope.identity.horizon, envelope)


def disorder(run: Tombstones) -> str | None:
    """What is inconsistent in a run whose file is whole, or None."""
    if (run.id[1:] < run.id[:-1]).any():
        return "its ids are not sorted"
    if int(run.commit.max()) != run.newest:
        return f"its newest commit is not {run.newest}"
    if run.keys is not None and not (int(run.keys.offsets[0]) == 0 and run.keys.within().all()):
        return "its keys are out of bounds"
    return None
