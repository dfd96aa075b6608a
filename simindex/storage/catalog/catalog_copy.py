"""One commit of a catalog as the content of another, new one.

Every record is read by its key, and its checksum compared, before it is stored. So damage ends a
copy, and what the head does not name stays behind: free pages, and directories that were staged
for a merge.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import lmdb

from simindex.storage.catalog.catalog import page_bytes
from simindex.storage.catalog.environment import Environment, Transaction
from simindex.storage.catalog.lmdb_files import writing_error
from simindex.storage.catalog.records import Head, Reading, page_count, page_key
from simindex.storage.catalog.sealed_values import joined, parts, seal, unseal
from simindex.storage.files.refusals import no_space_told

Record = tuple[str, bytes, bytes]
"""Database, key and sealed value."""

TRANSACTION_BYTES = 1 << 24
"""Of values that one transaction stores: LMDB keeps them in memory until its end."""


def copy_commit(txn: Transaction, head: Head, to: Environment, name: str, payload: bytes) -> None:
    """Stores in an empty catalog all that a head names, with one value of `meta` set.

    Raises CorruptFile if a record is missing or damaged, StorageFull if there is no space.
    """
    added = [(key, seal("meta", key, part)) for key, part in parts(name.encode(), payload)]
    crc = int.from_bytes(added[-1][1][-4:], "little")
    kept = replace(head, values={each: crc for each, crc in head.values.items() if each != name})
    new = replace(kept, values={**kept.values, name: crc})
    last = [*(("meta", *record) for record in added),
            ("head", b"head", seal("head", b"head", new.encode()))]
    for records in _portions(_stored(txn, kept)):
        _store(to, records)
    _store(to, last)


def _stored(txn: Transaction, head: Head) -> Iterator[Record]:
    """Every record that a head names, as it is stored."""
    for name, crc in head.values.items():
        yield from _parts(txn, "meta", name.encode(), crc)
    for database in ("pending", "tombstones"):
        for run in getattr(head, database):
            if not run.file:
                yield from _parts(txn, database, run.key, run.checksum)
    reading = Reading(txn)
    for name in head.segments:
        record = reading.segment(head, name)
        yield "segments", name.encode(), txn.get("segments", name.encode()) or b""
        for table, width in record.directories:
            for page in range(page_count(width)):
                key = page_key(name, table, page)
                value = txn.get("headers", key)
                unseal("headers", key, value)
                yield "headers", key, value or b""


def _parts(txn: Transaction, database: str, key: bytes, crc: int) -> Iterator[Record]:
    """The parts of a payload, the first of which the head names."""
    found: list[Record] = []

    def get(database: str, key: bytes) -> bytes | None:
        value = txn.get(database, key)
        found.append((database, key, value or b""))
        return value

    joined(database, key, crc, get)
    yield from found


def _portions(records: Iterable[Record]) -> Iterator[list[Record]]:
    portion: list[Record] = []
    held = 0
    for record in records:
        portion.append(record)
        held += len(record[2])
        if held >= TRANSACTION_BYTES:
            yield portion
            portion, held = [], 0
    yield portion


def _store(to: Environment, records: list[Record]) -> None:
    values = [value for _, _, value in records]
    try:
        with no_space_told(to.data), to.transaction(write=True) as txn:
            to.reserve(page_bytes(values, len(records)))
            for database, key, value in records:
                txn.put(database, key, value)
            txn.commit()
    except lmdb.Error as error:
        raise writing_error(error, to.data) from error
