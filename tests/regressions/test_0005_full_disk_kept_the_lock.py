"""A full disk must not stop a writer that wants to delete: the holder's name is only a courtesy."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path

import numpy as np
import pytest
from descriptors import open_files

import simindex
from simindex.errors import UnsupportedStorage
from simindex.storage.view import View


def test_writer_opens_when_its_name_cannot_be_written(
    index_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with simindex.open(index_path, "c") as index:
        index.append(np.arange(4, dtype=np.uint64))

    def pwrite(fd: int, data: bytes, offset: int) -> int:
        raise OSError(errno.ENOSPC, "no space")

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", pwrite)
        index = simindex.open(index_path, "w")
    index.delete(ids=[1])
    index.commit()
    assert len(index) == 3
    index.close()
    simindex.open(index_path, "w").close()


def test_failed_opening_gives_the_lock_back(
    index_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    simindex.open(index_path, "c").close()
    for thread in threading.enumerate():  # of other tests, which close descriptors
        if thread.name == "simindex release":
            thread.join()
    before = len(open_files())

    def taken(self: View, before: object) -> None:
        raise OSError(errno.EMFILE, "too many open files")

    with monkeypatch.context() as patch:
        patch.setattr(View, "_taken", taken)
        with pytest.raises(UnsupportedStorage, match="too many"):
            simindex.open(index_path, "w")
    assert len(open_files()) == before
    simindex.open(index_path, "w").close()
