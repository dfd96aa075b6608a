"""A reader of an index that was overwritten was told of damage; a writer's own `check` called its
files stray."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import simindex
from simindex.errors import ClosedIndex

OPTIONS = simindex.IndexOptions(batch_rows=64)
ASKED = np.array([5], np.uint64)


@pytest.mark.parametrize(
    "ask", [lambda reader: reader.query(ASKED, h=0), len, lambda reader: reader.check()]
)
@pytest.mark.parametrize("rows", [0, 300])
def test_reader_of_an_overwritten_index_is_told_so(index_path: Path, ask, rows: int) -> None:
    """Where it has not seen the last commit of the old one, whose files are gone."""
    with simindex.open(index_path, "n", options=OPTIONS) as index:
        index.append(np.arange(100, dtype=np.uint64))
        index.commit()
        reader = simindex.open(index_path)
        assert len(reader.query(ASKED, h=0)) == 1
        index.append(np.arange(100, 200, dtype=np.uint64))
    with simindex.open(index_path, "n", options=OPTIONS, overwrite=True) as index:
        index.append(np.arange(rows, dtype=np.uint64))
    for _ in range(3):
        with pytest.raises(ClosedIndex, match="repaired or built again"):
            ask(reader)
    reader.close()


def test_files_of_a_writer_are_none_of_a_stranger(index_path: Path) -> None:
    with simindex.open(index_path, "n", options=OPTIONS) as index:
        index.append(np.arange(200, dtype=np.uint64))
        assert index.check() == []
        with simindex.open(index_path) as reader:
            assert {finding.severity for finding in reader.check()} == {"note"}
        index.commit()
        assert index.check() == []
