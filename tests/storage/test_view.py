"""What a handle sees: the newest commit, or the one it was opened at."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import simindex
from simindex import IndexOptions
from simindex.errors import ClosedIndex

ROWS = np.arange(4, dtype=np.uint64)


def test_a_pinned_view_is_followed_only_when_asked_to(tmp_path: Path) -> None:
    with simindex.open(tmp_path / "i.sim", "n") as index:
        reader = simindex.open(tmp_path / "i.sim", refresh=False)
        pinned = reader._handle.view
        index.append(ROWS)
        index.commit()
        assert pinned.current() is pinned.last() and not len(pinned.current().tables)
        newest = pinned.newest()
        assert newest.stored_rows == len(ROWS) and pinned.current() is newest


def test_a_commit_that_changes_nothing_a_reader_has_open_opens_nothing_again(
    tmp_path: Path,
) -> None:
    with simindex.open(tmp_path / "i.sim", "n", options=IndexOptions(batch_rows=64)) as index:
        index.append(np.arange(64, dtype=np.uint64))
        index.commit()
        reader = simindex.open(tmp_path / "i.sim")
        view = reader._handle.view
        (segment,) = view.newest().segments
        index.append(ROWS)
        index.commit()
        snapshot = view.newest()
        assert snapshot.segments == (segment,) and snapshot.segments[0] is segment
        assert view.newest() is snapshot


def test_a_closed_view_says_so(tmp_path: Path) -> None:
    index = simindex.open(tmp_path / "i.sim", "n")
    view = index._handle.view
    index.close()
    with pytest.raises(ClosedIndex, match="open the index again"):
        view.last()
