"""A fork while another thread is inside a handle: the child gets an error, not a wait for ever."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest
from children import in_child

import simindex
from simindex.errors import ClosedIndex

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")


def test_child_of_a_busy_process_does_not_hang(index_path: Path) -> None:
    index = simindex.open(index_path, "c")
    index.append(np.arange(4, dtype=np.uint64))
    index.commit()
    inside, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with index._handle.lock:
            inside.set()
            leave.wait(20)

    thread = threading.Thread(target=hold)
    thread.start()
    inside.wait(20)

    def use() -> None:
        for call in (index.commit, lambda: index.append(np.arange(1, dtype=np.uint64))):
            with pytest.raises(ClosedIndex):
                call()
        index.close()
        with simindex.open(index_path) as own:
            assert len(own) == 4

    assert in_child(use) == 0
    leave.set()
    thread.join(20)
    assert len(index) == 4
    index.close()


def test_fork_waits_for_the_transactions_of_other_threads(index_path: Path) -> None:
    """The child's closing of an environment would clear the reader's slot in shared memory."""
    index = simindex.open(index_path, "c")
    inside, leave, left = threading.Event(), threading.Event(), threading.Event()

    def read() -> None:
        with index._handle.catalog.reading():
            inside.set()
            leave.wait(20)
            left.set()

    thread = threading.Thread(target=read)
    thread.start()
    inside.wait(20)
    threading.Timer(0.05, leave.set).start()
    assert in_child(lambda: None) == 0
    assert left.is_set()
    thread.join(20)
    index.append(np.arange(4, dtype=np.uint64))
    index.close()
