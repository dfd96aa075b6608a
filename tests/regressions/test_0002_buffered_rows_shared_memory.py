"""What was given to a writer, and what it gave back, may be changed before the commit."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import simindex
from simindex import Batch


def test_returned_ids_are_the_callers_own(index_path: Path) -> None:
    with simindex.open(index_path, "c") as index:
        ids = index.append(np.arange(4, dtype=np.uint64))
        ids += np.uint64(100)
        index.commit()
        assert index.query(np.arange(4, dtype=np.uint64), h=0).id.tolist() == [0, 1, 2, 3]


def test_deleted_ids_are_copied(index_path: Path) -> None:
    with simindex.open(index_path, "c") as index:
        index.append(np.arange(4, dtype=np.uint64))
        index.commit()
        doomed = np.array([1], np.uint64)
        index.delete(ids=doomed)
        doomed[0] = 2
        index.commit()
        assert index.query(np.arange(4, dtype=np.uint64), h=0).id.tolist() == [0, 2, 3]


def test_replaced_ids_are_copied(index_path: Path) -> None:
    with simindex.open(index_path, "c") as index:
        index.append(np.arange(4, dtype=np.uint64))
        index.commit()
        ids = np.array([1], np.uint64)
        index.replace(Batch(np.array([1 << 40], np.uint64), ids=ids))
        ids[0] = 2
        index.commit()
        assert index.query(np.arange(4, dtype=np.uint64), h=0).id.tolist() == [0, 2, 3]
