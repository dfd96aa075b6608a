"""A child shares the lock's descriptor until it has closed it: that must not matter."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import simindex
from simindex import IndexLocked


def test_closing_gives_the_lock_back_though_another_descriptor_is_open(index_path: Path) -> None:
    index = simindex.open(index_path, "c")
    assert index._handle.writer is not None
    inherited = os.dup(index._handle.writer.committer.lock.fileno())
    index.close()
    simindex.open(index_path, "w").close()
    os.close(inherited)


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_child_that_lets_go_leaves_the_lock_to_its_parent(index_path: Path) -> None:
    with simindex.open(index_path, "c") as index:
        pid = os.fork()
        if pid == 0:
            index.close()
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        with pytest.raises(IndexLocked):
            simindex.open(index_path, "w")
