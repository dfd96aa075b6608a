"""A handle means the directory it opened, wherever the process goes and whatever it opens."""

from __future__ import annotations

import gc
import pickle
from pathlib import Path

import numpy as np
import pytest
from descriptors import open_files

import simindex
from simindex import IndexOptions
from simindex.errors import UnsupportedStorage
from simindex.storage import location
from simindex.storage.catalog import leases
from simindex.storage.files import locks

ROWS = np.arange(20, dtype=np.uint64)


def test_relative_path_outlives_a_change_of_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    options = IndexOptions(batch_rows=8)
    with simindex.open("pages.sim", "c", options=options) as index, simindex.open("pages.sim") as r:
        monkeypatch.chdir(tmp_path / "elsewhere")
        index.append(ROWS)
        index.commit()
        assert len(index) == len(r) == 20
        with pickle.loads(pickle.dumps(index)) as copy:  # noqa: S301
            assert len(copy) == 20


def test_reader_of_an_overwritten_index_shares_nothing_with_the_new(
    index_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file system may give the new catalog's directory the old one's inode."""
    with simindex.open(index_path, "c") as index:
        index.append(ROWS)
    before = set(leases._registry)
    reader = simindex.open(index_path)
    (old,) = set(leases._registry) - before
    fresh = simindex.open(index_path, "n", overwrite=True)
    assert len(fresh) == 0
    assert len(reader) == 20
    assert len(leases._registry) == len(before) + 2
    assert old in leases._registry
    fresh.close()
    reader.close()
    assert set(leases._registry) == before


def test_dropped_handle_gives_lock_and_descriptors_back(index_path: Path) -> None:
    gc.collect()
    before = len(open_files())
    index = simindex.open(index_path, "c")
    index.append(ROWS)
    with pytest.warns(ResourceWarning, match="was dropped"):
        del index
        gc.collect()
    assert len(open_files()) == before
    with simindex.open(index_path, "w") as again:
        assert len(again) == len(ROWS)


def test_stored_consent_to_remote_storage_holds(
    index_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(location, "file_system_kind", lambda path: "nfs4")
    with pytest.raises(UnsupportedStorage):
        simindex.open(index_path, "c")
    simindex.open(index_path, "c", options=IndexOptions(allow_remote=True)).close()
    simindex.open(index_path, "w").close()


def test_missing_segments_directory_is_damage(index_path: Path) -> None:
    simindex.open(index_path, "c").close()
    (index_path / "segments").rmdir()
    with pytest.raises(simindex.CorruptFile, match="segments"):
        simindex.open(index_path, "w")
    with simindex.open(index_path) as reader:
        assert [f.severity for f in reader.check()] == ["error"]
    locks.unlock(locks.lock(index_path / "LOCK"))
