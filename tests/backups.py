"""An index to be backed up: segments, permuted tables, lists, tombstones, and rows that wait."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import simindex
from simindex import Batch, IndexOptions

OPTIONS = IndexOptions(batch_rows=64, min_merge=2, structures=("psm", "bphs:G=4,g=1", "issl:w=16"))


def numbered(first: int, count: int) -> Batch:
    """Rows whose ids are consecutive numbers."""
    ids = np.arange(first, first + count, dtype=np.uint64)
    return Batch(ids * np.uint64(0x9E3779B97F4A7C15), ids=ids)


def ids_in(of: Path | simindex.Index) -> set[int]:
    """Ids of all live rows."""
    if isinstance(of, Path):
        with simindex.open(of) as index:
            return ids_in(index)
    found: set[int] = set()
    for batch in of.rows():
        assert batch.ids is not None
        found |= set(batch.ids.tolist())
    return found


def filled(path: Path) -> set[int]:
    """Makes the index and returns its ids."""
    index = simindex.open(path, "c", options=OPTIONS)
    index.append(numbered(0, 200))
    index.commit()
    index.delete(ids=list(range(80)))  # so many that they are a file
    index.append(numbered(200, 3))
    index.commit()
    index.close()  # without the merges that leaving a `with` block waits for
    return ids_in(path)


def grown(path: Path, first: int, count: int = 100) -> set[int]:
    """Adds a commit with a segment, and returns all ids."""
    index = simindex.open(path, "w")
    index.append(numbered(first, count))
    index.commit()
    index.close()
    return ids_in(path)


def sound(path: Path) -> set[int]:
    """Ids of an index in which `check` finds nothing."""
    with simindex.open(path) as index:
        assert index.check() == []
        return ids_in(index)


def files_of(path: Path) -> dict[str, int]:
    """Names of segment files with their inodes."""
    return {file.name: file.stat().st_ino for file in (path / "segments").iterdir()}


def inside(folder: Path) -> list[str]:
    """Names in a folder, sorted."""
    return sorted(path.name for path in folder.iterdir())
