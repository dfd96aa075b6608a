"""Transactions of an environment, and what the system may refuse it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import lmdb
import numpy as np
import pytest

import simindex
from simindex.errors import UnsupportedStorage
from simindex.storage.catalog import environment as module
from simindex.storage.catalog.environment import Environment
from simindex.storage.catalog.leases import acquire

pytestmark = pytest.mark.usefixtures("nothing_left_open")

ROWS = np.arange(30, dtype=np.uint64)


def test_all_databases_of_a_new_catalog_are_made_in_one_commit(tmp_path: Path) -> None:
    """Each commit waits for the disk."""
    with acquire(tmp_path, writable=True, create=True) as environment:
        assert environment._env.info()["last_txnid"] == 1
        assert environment._env.stat()["entries"] == len(module.DATABASES)
        with environment.transaction() as txn:
            assert txn.get("meta", b"x") is None


@pytest.mark.slow
def test_transaction_that_is_not_committed_changes_nothing(filled: Path) -> None:
    lease = acquire(filled / "catalog", writable=True)
    environment = lease.environment
    with environment.transaction(write=True) as txn:
        txn.put("meta", b"x", b"1")
    with pytest.raises(KeyError), environment.transaction(write=True) as txn:
        txn.put("meta", b"x", b"1")
        raise KeyError
    with environment.transaction() as txn:
        assert txn.get("meta", b"x") is None
    lease.release()


@pytest.mark.slow
def test_full_table_of_readers_is_cleared_of_the_dead_once_then_typed(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease = acquire(filled / "catalog")
    environment = lease.environment
    real, calls = environment._env, []

    class Full:
        failures = 1

        def begin(self, **options: object) -> object:
            if self.failures:
                self.failures -= 1
                raise lmdb.ReadersFullError("full")
            return real.begin(**options)

        def reader_check(self) -> None:
            calls.append("check")

    full = Full()
    monkeypatch.setattr(environment, "_env", full)
    with environment.transaction() as txn:
        assert txn.get("head", b"head")
    assert calls == ["check"]
    full.failures = 2
    with pytest.raises(UnsupportedStorage, match="read"), environment.transaction():
        pass
    monkeypatch.undo()
    lease.release()


@pytest.mark.slow
def test_killed_reader_does_not_make_the_catalog_grow_for_ever(index_path: Path) -> None:
    """Its claim on old pages is found dead when the writer next begins."""
    with simindex.open(index_path, "c") as index:
        index.append(ROWS)
    code = f"""
import os, simindex
index = simindex.open({str(index_path)!r})
with index._handle.catalog.reading():
    os.kill(os.getpid(), 9)
"""
    with simindex.open(index_path, "w") as index:
        subprocess.run([sys.executable, "-c", code], check=False)
        assert index._handle.environment._env.readers().count("\n") > 1
        index.append(ROWS)
        index.commit()
        assert "no active" in index._handle.environment._env.readers()


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_index_that_cannot_be_written_is_read(filled: Path) -> None:
    for path in (filled, filled / "catalog", filled / "segments"):
        path.chmod(0o555)
    try:
        with simindex.open(filled) as reader:
            assert len(reader) == 30
    finally:
        for path in (filled, filled / "catalog", filled / "segments"):
            path.chmod(0o755)


@pytest.mark.slow
def test_reader_without_rights_takes_no_locks(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options: list[dict[str, object]] = []
    real = lmdb.open
    monkeypatch.setattr(module.os, "access", lambda path, how: False)
    monkeypatch.setattr(
        module.lmdb, "open", lambda path, **given: (options.append(given), real(path, **given))[1]
    )
    (filled / "catalog" / "lock.mdb").unlink()
    with simindex.open(filled) as reader:
        assert len(reader) == 30
    assert options[0]["lock"] is False
    assert options[0]["readonly"] is True
    assert not (filled / "catalog" / "lock.mdb").exists()


@pytest.mark.slow
def test_limited_address_space_is_typed(filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(path: str, **options: object) -> None:
        raise lmdb.MemoryError("Cannot allocate memory")

    monkeypatch.setattr(module.lmdb, "open", fail)
    with pytest.raises(UnsupportedStorage, match="virtual memory"):
        simindex.open(filled)


@pytest.mark.slow
def test_environment_is_the_old_engine_and_never_writes_through_the_map(filled: Path) -> None:
    environment = Environment(filled / "catalog", writable=True, create=False)
    flags = environment._env.flags()
    assert flags["writemap"] is False
    assert flags["sync"] is flags["metasync"] is True
    environment.close()
    data = (filled / "catalog" / "data.mdb").read_bytes()[:4096]
    assert int.from_bytes(data[20:24], "little") == 1


@pytest.mark.slow
def test_environment_that_could_not_be_opened_anew_is_tried_again(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a failed commit; handles that are opened meanwhile share it."""

    def refuse(*arguments: object, **named: object) -> None:
        raise lmdb.MemoryError("none")

    with simindex.open(filled) as reader:
        reader._handle.environment._broken = True
        with monkeypatch.context() as patch:
            patch.setattr(module.lmdb, "open", refuse)
            with pytest.raises(UnsupportedStorage):
                reader.refresh()
        with simindex.open(filled, "w") as writer:
            assert writer._handle.environment is reader._handle.environment
            reader.refresh()
            assert len(reader) == len(writer) == 30
