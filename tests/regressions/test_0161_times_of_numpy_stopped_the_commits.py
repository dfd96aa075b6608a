"""After `seen_or_add(…, commit_s=numpy.float32(5))` the thread that commits ended with a TypeError,
so no added row was committed before the next change. `open(…, wait_s=numpy.float32(1))` raised this
TypeError, too, and a time that is too large for a float ended the writing."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simindex
from simindex import IndexOptions, Recipe
from simindex.distributed import Shards
from simindex.errors import IndexLocked

TEXT = "the quick brown fox jumps over the lazy dog"
OPTIONS = IndexOptions(keys=True, recipe=Recipe())


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, np.int8, float])
def test_a_row_is_committed_in_time(tmp_path: Path, kind: Any) -> None:
    with simindex.open(tmp_path / "a.sim", "n", options=OPTIONS) as index:
        index.seen_or_add(TEXT, key="a", commit_s=kind(1))
        with simindex.open(tmp_path / "a.sim") as reader:
            until = time.monotonic() + 60
            while not len(reader) and time.monotonic() < until:
                time.sleep(0.05)
            assert len(reader) == 1


def test_a_time_beyond_all_numbers_is_endless(tmp_path: Path) -> None:
    with simindex.open(tmp_path / "a.sim", "n", options=OPTIONS) as index:
        assert index.seen_or_add(TEXT, key="a", commit_s=10**400) is None
        found = index.seen_or_add(TEXT, key="b", commit_s=10**400)
        assert found is not None and found.key == "a"
    with simindex.open(tmp_path / "a.sim", "w", wait_s=10**400) as index:
        assert len(index) == 1
    shards = Shards.build(tmp_path / "b", np.arange(3, dtype=np.uint64), 2)
    assert shards.sweep(older_than_s=10**400) == []


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, np.int8])
def test_a_turn_is_waited_for(tmp_path: Path, kind: Any) -> None:
    path = tmp_path / "a.sim"
    with simindex.open(path, "n", options=OPTIONS), pytest.raises(IndexLocked):
        simindex.open(path, "w", wait_s=kind(1))
