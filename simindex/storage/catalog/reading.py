"""The catalog's records as one transaction sees them."""

from __future__ import annotations

from simindex.arrays import U32
from simindex.storage.catalog import headers, segment_record
from simindex.storage.catalog.environment import Transaction
from simindex.storage.catalog.head import Head, Run
from simindex.storage.catalog.values import joined, unseal
from simindex.storage.tables.record import SegmentRecord


class Reading:
    """Unsealed records within one transaction."""

    def __init__(self, txn: Transaction) -> None:
        self._txn = txn

    def head(self) -> tuple[bytes, Head]:
        """The sealed value and the head in it."""
        value = self._txn.get("head", b"head")
        return value or b"", Head.decode(unseal("head", b"head", value))

    def value(self, head: Head, name: str) -> bytes | None:
        """A whole value of `meta`, or None if the head names none."""
        if name not in head.values:
            return None
        return joined("meta", name.encode(), head.values[name], self._txn.get)

    def run(self, database: str, run: Run) -> bytes:
        """A pending or tombstone run's payload."""
        return joined(database, run.key, run.checksum, self._txn.get)

    def segment(self, head: Head, name: str) -> SegmentRecord:
        """A live segment's record."""
        key = name.encode()
        payload = unseal("segments", key, self._txn.get("segments", key), head.segments[name])
        return segment_record.decode(name, payload)

    def directory(self, record: SegmentRecord, table: int = 0) -> U32:
        """A header directory uint32 (2**t + 1,) of a segment, copied out and checked."""

        def get(key: bytes) -> bytes:
            return unseal("headers", key, self._txn.get("headers", key))

        width = dict(record.directories)[table]
        return headers.assemble(record.name, table, width, record.rows, get)
