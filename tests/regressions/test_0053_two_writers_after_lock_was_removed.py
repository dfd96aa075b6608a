"""Once somebody had removed LOCK, a second writer was let in. Every commit of the first then raised
an untyped ValueError, or could name files that the second had removed as strays."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import simindex
from simindex.errors import CommitFailed, CorruptFile, ReadOnlyIndex

OPTIONS = simindex.IndexOptions(batch_rows=100, min_merge=0)


def rows(first: int, count: int) -> np.ndarray:
    return np.arange(first, first + count, dtype=np.uint64) << np.uint64(40)


@pytest.fixture
def filled(index_path: Path) -> Path:
    """A segment of a hundred rows."""
    with simindex.open(index_path, "n", options=OPTIONS) as index:
        index.append(rows(0, 100))
    return index_path


@pytest.mark.parametrize("count", [5, 100, 250])
@pytest.mark.parametrize("change", ["append", "delete", "compact", "nothing"])
def test_the_first_writer_changes_nothing_any_more(filled: Path, change: str, count: int) -> None:
    first = simindex.open(filled, "w")
    first.append(rows(1000, count))
    (filled / "LOCK").unlink()
    expected = 100
    with simindex.open(filled, "w") as second:
        if change == "append":
            second.append(rows(2000, count))
            expected += count
        elif change == "delete":
            second.delete(ids=[3, 4])
            expected -= 2
        elif change == "compact":
            second.compact(full=True)
    with pytest.raises(CommitFailed, match=r"was not changed.*LOCK"):
        first.commit()
    with pytest.raises(ReadOnlyIndex, match="LOCK"):
        first.append(rows(3000, 1))
    assert len(first.query(rows(7, 1), h=0)) == 1
    first.close()
    with simindex.open(filled, "w") as again:
        assert len(again) == expected
        assert again.check() == []


@pytest.mark.parametrize("call", ["compact", "structures"])
def test_no_compaction_without_the_lock(filled: Path, call: str) -> None:
    with simindex.open(filled, "w") as first:
        first.append(rows(1000, 100))
        first.commit()
        (filled / "LOCK").rename(filled / "LOCK.old")
        with pytest.raises(CommitFailed, match="LOCK was removed or replaced"):
            if call == "compact":
                first.compact(full=True)
            else:
                first.compact(structures=["psm", "bphs:G=2,g=1"])
        (filled / "LOCK.old").rename(filled / "LOCK")
        first.close()
    with simindex.open(filled, "w") as again:
        assert len(again) == 200
        assert again.check() == []


@pytest.mark.parametrize("damage", ["gone", "shorter"])
def test_a_commit_names_only_files_that_are_there(filled: Path, damage: str) -> None:
    first = simindex.open(filled, "w")
    first.append(rows(1000, 100))
    spilled, *_ = [
        path for path in (filled / "segments").iterdir()
        if path.name in first._handle.writer.uninstalled
    ]
    if damage == "gone":
        spilled.unlink()
    else:
        spilled.write_bytes(spilled.read_bytes()[:-1])
    with pytest.raises(CorruptFile, match="removed or changed before its commit"):
        first.commit()
    first.close()
    with simindex.open(filled, "w") as again:
        assert len(again) == 100
        assert again.check() == []
