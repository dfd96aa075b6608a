"""What waits for a commit: in memory, and in segments that were written ahead of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import simindex
from simindex import IndexOptions
from simindex.errors import StorageFull
from simindex.storage.files.refusals import no_space
from simindex.storage.segment_files import SegmentFiles
from simindex.writing import waiting as module

SPILL = 64
OPTIONS = IndexOptions(batch_rows=SPILL, min_merge=0)


@pytest.fixture
def index(tmp_path: Path) -> simindex.Index:
    return simindex.open(tmp_path / "i.sim", "n", options=OPTIONS)


def rows(first: int, count: int) -> dict[str, object]:
    ids = np.arange(first, first + count, dtype=np.uint64)
    return {"fingerprints": ids * np.uint64(0x9E3779B97F4A7C15), "ids": ids}


def add(index: simindex.Index, first: int, count: int) -> None:
    given = rows(first, count)
    index.append(given["fingerprints"], ids=given["ids"])


def waiting(index: simindex.Index) -> module.Waiting:
    writer = index._handle.writer
    assert writer is not None
    return writer.committer.waiting


def test_a_deletion_concerns_the_rows_that_came_before_it(index: simindex.Index) -> None:
    """In memory and spilled, and none that come after it, of the same ids."""
    add(index, 0, SPILL + 10)
    index.delete(ids=[0, SPILL])
    add(index, 0, 1)
    add(index, 100, SPILL)
    index.delete(ids=[100])
    before = waiting(index)
    assert len(before.spilled) == 2 and before.withdrawn == 1
    index.commit()
    assert waiting(index) is not before and waiting(index).empty
    held = [0, *range(1, SPILL), *range(SPILL + 1, SPILL + 10), *range(101, 100 + SPILL)]
    assert len(index) == len(held)
    asked = [*range(200)]
    assert index.contains(ids=asked).tolist() == [one in held for one in asked]
    assert len(index.get(0)) == 1
    index.close()
    assert simindex.open(index.path).check() == []


def test_a_call_that_fails_leaves_what_waited(
    index: simindex.Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(index, 0, 10)
    index.delete(ids=[3])
    before = waiting(index)
    counts = before.rows, before.added, before.deletions, before.sequence
    write, written = SegmentFiles.write, []

    def once(files: SegmentFiles, *given: object) -> object:
        if written:
            raise no_space(index.path)
        written.append(write(files, *given))  # type: ignore[arg-type]
        return written[0]

    monkeypatch.setattr(SegmentFiles, "write", once)
    with pytest.raises(StorageFull):
        add(index, 10, 3 * SPILL)
    assert waiting(index) is before and not before.spilled
    assert (before.rows, before.added, before.deletions, before.sequence) == counts
    monkeypatch.undo()
    index.close()
    found = simindex.open(index.path)
    assert found.contains(ids=[*range(11)]).tolist() == [n not in (3, 10) for n in range(11)]
    assert found.check() == []


@pytest.mark.parametrize(("limit", "what"), [
    ("MAX_DELETIONS", "deletions"), ("MAX_DELETED_KEY_BYTES", "bytes of keys"),
])
def test_a_commit_deletes_so_much_at_most(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, what: str
) -> None:
    monkeypatch.setattr(module, limit, 2)
    with simindex.open(tmp_path / "i.sim", "n", options=IndexOptions(keys="str")) as index:
        index.append(np.arange(3, dtype=np.uint64), keys=["a", "b", "c"])
        index.delete(keys=["a", "b"])
        with pytest.raises(simindex.InvalidBatch, match=f"more than 2 {what}.*commit more often"):
            index.delete(keys=["c"])
        index.commit()
        assert index.contains(keys=["a", "b", "c"]).tolist() == [False, False, True]
        index.delete(keys=["c"])
