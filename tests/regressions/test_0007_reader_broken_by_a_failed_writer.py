"""Handles of one process share an environment; what one meets must not hurt the others."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import lmdb
import numpy as np
import pytest

import simindex
from simindex.errors import ClosedIndex, CorruptFile, StorageFull
from simindex.storage.catalog import environment as module
from simindex.storage.catalog.catalog import Catalog
from simindex.storage.catalog.leases import acquire

ROWS = np.arange(5, dtype=np.uint64)


@pytest.fixture
def filled(index_path: Path) -> Path:
    with simindex.open(index_path, "c") as index:
        index.append(ROWS)
    return index_path


def test_reader_goes_on_when_a_writer_cannot_open(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = lmdb.open

    def fail_to_write(path: str, **options: object) -> lmdb.Environment:
        if not options["readonly"]:
            raise lmdb.DiskError("no space")
        return real(path, **options)

    with simindex.open(filled) as reader:
        monkeypatch.setattr(module.lmdb, "open", fail_to_write)
        with pytest.raises(StorageFull):
            simindex.open(filled, "w")
        assert len(reader) == 5
        monkeypatch.undo()
        with simindex.open(filled, "w") as writer:
            writer.append(ROWS)
        assert len(reader) == 10


def test_environment_that_cannot_be_read_is_closed_again(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise LMDB says for ever that it is open already."""
    monkeypatch.setattr(module, "DATABASES", (*module.DATABASES, "none"))
    with pytest.raises(CorruptFile) as kept:
        simindex.open(filled)
    monkeypatch.undo()
    with simindex.open(filled) as reader:
        assert len(reader) == 5
    assert "catalog" in str(kept.value)


def test_reading_does_not_wait_for_a_write_transaction(filled: Path) -> None:
    with simindex.open(filled, "w"), simindex.open(filled) as reader:
        seen: list[int] = []
        with (
            acquire(filled / "catalog") as environment,
            environment.transaction(write=True),
        ):
            thread = threading.Thread(target=lambda: seen.append(len(reader)))
            thread.start()
            thread.join(20)
        assert seen == [5]


def test_call_that_meets_a_closed_environment_says_so(filled: Path) -> None:
    reader = simindex.open(filled)
    catalog = Catalog(reader._handle.environment)
    reader.close()
    with pytest.raises(ClosedIndex):
        catalog.head_value()


def test_closing_waits_for_a_transaction_of_another_thread(filled: Path) -> None:
    reader = simindex.open(filled)
    inside, leave = threading.Event(), threading.Event()
    heads: list[bytes] = []

    def read() -> None:
        with Catalog(reader._handle.environment).reading() as reading:
            inside.set()
            leave.wait(20)
            heads.append(reading.head()[0])

    thread = threading.Thread(target=read)
    thread.start()
    inside.wait(20)
    closing = threading.Thread(target=reader.close)
    closing.start()
    closing.join(0.05)
    assert closing.is_alive()
    leave.set()
    thread.join(20)
    closing.join(20)
    assert not closing.is_alive()
    assert len(heads) == 1


@pytest.mark.parametrize("error", [lmdb.CorruptedError, lmdb.PageNotFoundError, lmdb.BadTxnError])
def test_what_lmdb_finds_damaged_is_a_corrupt_file(
    filled: Path, monkeypatch: pytest.MonkeyPatch, error: type[lmdb.Error]
) -> None:
    class Damaged:
        def begin(self, **options: object) -> None:
            raise error("damaged")

    with simindex.open(filled) as reader:
        monkeypatch.setattr(reader._handle.environment, "_env", Damaged())
        with pytest.raises(CorruptFile, match="catalog"):
            reader.query(ROWS)
        monkeypatch.undo()
        assert len(reader) == 5


def test_busy_readers_do_not_keep_a_writer_from_opening(filled: Path) -> None:
    """It waits for the reads in progress, not for a moment without any."""
    done = threading.Event()

    def read(reader: simindex.Index) -> None:
        while not done.is_set():
            reader.refresh()

    with simindex.open(filled) as reader:
        threads = [threading.Thread(target=read, args=(reader,)) for _ in range(3)]
        for thread in threads:
            thread.start()
        started = time.monotonic()
        with simindex.open(filled, "w") as writer:
            writer.append(ROWS)
        took_s = time.monotonic() - started
        done.set()
        for thread in threads:
            thread.join(20)
        assert took_s < 10
        assert len(reader) == 10
