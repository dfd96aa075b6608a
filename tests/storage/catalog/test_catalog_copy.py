"""All that a head names is in the copy of a catalog, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from backups import filled

import simindex
from simindex.errors import CorruptFile
from simindex.storage.catalog import catalog_copy
from simindex.storage.catalog.catalog import Catalog
from simindex.storage.catalog.catalog_copy import copy_commit
from simindex.storage.catalog.leases import acquire
from simindex.storage.catalog.records import Head, Reading


def copied(index: simindex.Index, to: Path) -> Head:
    to.mkdir()
    with (
        index._handle.environment.transaction() as txn,
        acquire(to, writable=True, create=True) as environment,
    ):
        _, head = Reading(txn).head()
        copy_commit(txn, head, environment, "note", b"a" * 200_000)
        with Catalog(environment).reading() as reading:
            _, found = reading.head()
            assert reading.value(found, "note") == b"a" * 200_000
            for name in head.values:
                if name != "note":
                    assert reading.value(found, name) == Reading(txn).value(head, name)
            for run in head.pending:
                assert reading.run("pending", run) == Reading(txn).run("pending", run)
            for name in head.segments:
                record = reading.segment(found, name)
                assert record == Reading(txn).segment(head, name)
                for table, _ in record.directories:
                    mine = reading.directory(record, table)
                    assert mine.tolist() == Reading(txn).directory(record, table).tolist()
    return found


@pytest.mark.parametrize("most", [1, 1 << 10, 1 << 24])
def test_what_the_head_names(
    most: int, index_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In however many transactions."""
    monkeypatch.setattr(catalog_copy, "TRANSACTION_BYTES", most)
    filled(index_path)
    with simindex.open(index_path) as index:
        head = index._current().head
        found = copied(index, tmp_path / "copy")
    assert head.pending
    assert head.segments
    assert head.tombstones
    values = {name: crc for name, crc in found.values.items() if name != "note"}
    assert values == head.values
    for name in ("generation", "appended", "next_run", "segments", "pending", "tombstones"):
        assert getattr(found, name) == getattr(head, name)


@pytest.mark.parametrize("database", ["segments", "headers", "pending", "meta"])
@pytest.mark.parametrize("missing", [False, True])
def test_a_damaged_record_ends_it(
    database: str, missing: bool, index_path: Path, tmp_path: Path
) -> None:
    filled(index_path)
    with simindex.open(index_path, "w") as index:
        head = index._current().head
        segment = next(iter(head.segments)).encode()
        key = {
            "segments": segment, "headers": segment + bytes(6), "pending": head.pending[0].key,
            "meta": b"index",
        }[database]
        with index._handle.environment.transaction(write=True) as txn:
            value = txn.get(database, key)
            assert value is not None
            if missing:
                txn.delete(database, key)
            else:
                txn.put(database, key, value[:-1] + bytes([value[-1] ^ 1]))
            txn.commit()
        with pytest.raises(CorruptFile, match=f"record {database}/"):
            copied(index, tmp_path / "copy")
