"""Deletions in files outlive the catalog, but those of a commit that never was are left out."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import simindex
from simindex import Batch, IndexOptions
from simindex.repair import deletion_files


def filled(path: Path, *, keyed: bool) -> list[str]:
    """Rows 0 to 29; 0 to 4 are deleted by one file, 10 to 14 by another, with a segment between."""
    options = IndexOptions(batch_rows=32, min_merge=0, keys=keyed)

    def named(first: int, count: int) -> dict[str, Any]:
        numbers = range(first, first + count)
        return {"keys": [f"k{n}" for n in numbers]} if keyed else {"ids": list(numbers)}

    with simindex.open(path, "n", options=options, overwrite=True) as index:
        index.append(Batch(np.arange(20, dtype=np.uint64), **named(0, 20)))
        index.commit()
        index.delete(**named(0, 5))
        index.commit()
        index.append(Batch(np.arange(20, 30, dtype=np.uint64), **named(20, 10)))
        index.commit()
        index.delete(**named(10, 5))
        index.commit()
        return [run.file for run in index._current().head.tombstones]


def held(path: Path) -> list[int]:
    with simindex.open(path) as index:
        assert [f for f in index.check() if f.severity == "error"] == []
        return sorted(n for part in index.rows() for n in part.fingerprints.tolist())


@pytest.mark.parametrize("keyed", [False, True], ids=["ids", "keys"])
def test_deletions_in_files_survive_the_loss_of_the_catalog(tmp_path: Path, keyed: bool) -> None:
    """But for those of the last commit, of which nothing says that it ended."""
    path = tmp_path / "index"
    first, second = filled(path, keyed=keyed)
    shutil.rmtree(path / "catalog")
    simindex.repair(path, apply=True)
    assert held(path) == list(range(5, 30))
    with simindex.open(path, "w") as index:
        assert {run.file for run in index._current().head.tombstones}.isdisjoint({first, second})
        index.compact(full=True)
    assert held(path) == list(range(5, 30))


@pytest.mark.parametrize("keyed", [False, True], ids=["ids", "keys"])
def test_files_that_an_older_catalog_does_not_know_make_it_uncertain(
    tmp_path: Path, keyed: bool
) -> None:
    path = tmp_path / "index"
    filled(path, keyed=keyed)
    kept = tmp_path / "data.mdb"
    shutil.copy(path / "catalog" / "data.mdb", kept)
    names = {"keys": [f"k{n}" for n in range(25, 29)]} if keyed else {"ids": list(range(25, 29))}
    with simindex.open(path, "w") as index:
        for _ in range(2):
            index.delete(**names)  # type: ignore[arg-type]
            index.commit()
    shutil.copy(kept, path / "catalog" / "data.mdb")
    for mode in ("r", "w"):
        with pytest.raises(simindex.errors.CorruptFile, match="newer than the catalog"):
            simindex.open(path, mode)  # type: ignore[arg-type]
    report = simindex.repair(path, apply=True)
    assert any("older" in str(finding) for finding in report.findings)
    assert held(path) == [*range(5, 10), *range(15, 25), 29]


@pytest.mark.parametrize("files", ["damaged", "whole"])
def test_a_certain_catalog_takes_the_files_it_names(tmp_path: Path, files: str) -> None:
    path = tmp_path / "index"
    first, _ = filled(path, keyed=False)
    (path / "FORMAT").unlink()
    if files == "damaged":
        file = path / "segments" / first
        data = bytearray(file.read_bytes())
        data[4096] ^= 1
        file.write_bytes(data)
    report = simindex.repair(path, apply=True)
    assert any("5 deletions" in loss for loss in report.losses) == (files == "damaged")
    assert held(path) == [*(range(5) if files == "damaged" else ()), *range(5, 10), *range(15, 30)]
    assert report.kept is not None
    if files == "damaged":
        assert (Path(report.kept) / "segments" / first).exists()


@given(
    listed=st.dictionaries(st.text(max_size=3), st.integers(1, 9), max_size=6), data=st.data(),
    newest=st.integers(1, 9),
)
@pytest.mark.slow
def test_files_that_count_are_named_or_followed(
    listed: dict[str, int], data: st.DataObject, newest: int
) -> None:
    named = data.draw(st.sets(st.sampled_from(sorted(listed) or [""])))
    found = deletion_files.committed(listed, named, newest)
    for name, generation in listed.items():
        assert (name in found) == (name in named or generation < newest)
