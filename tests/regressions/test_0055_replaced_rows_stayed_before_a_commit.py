"""`replace` of one key several times before a commit kept all rows: a deletion reached only rows
that were committed before."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import simindex
from simindex import Batch, IndexOptions
from simindex.errors import StorageFull
from simindex.storage.segment_files import SegmentFiles

KEYS = [f"k{number}" for number in range(6)]


def batch(keys: list[str], value: int) -> Batch:
    return Batch(np.full(len(keys), value, np.uint64), keys=keys)


def rows_of(index: simindex.Index) -> Counter[tuple[str, int]]:
    return Counter(
        (key, int(value)) for part in index.rows()
        for key, value in zip(part.keys, part.fingerprints.tolist(), strict=True)
    )


def options(batch_rows: int) -> IndexOptions:
    return IndexOptions(keys=True, batch_rows=batch_rows, min_merge=2)


@pytest.mark.parametrize("batch_rows", [1, 2, 1000])
def test_the_last_replacement_counts(index_path: Path, batch_rows: int) -> None:
    with simindex.open(index_path, "n", options=options(batch_rows)) as index:
        for value in (1, 2, 3):
            index.replace(batch(["page"], value))
        index.commit()
        assert rows_of(index) == {("page", 3): 1}
        index.replace(batch(["page", "page"], 9))
    with simindex.open(index_path) as index:
        assert rows_of(index) == {("page", 9): 2}
        assert len(index) == 2
        assert index.check() == []


def test_documents_that_were_seen_and_wait_are_deleted(index_path: Path) -> None:
    with simindex.open(index_path, "n", options=options(100)) as index:
        assert index.seen_or_add(batch(["a"], 1), h=0) is None
        index.delete(keys=["a"])
        assert index.seen_or_add(batch(["a"], 1), h=0) is None
    with simindex.open(index_path) as index:
        assert rows_of(index) == {("a", 1): 1}


CALLS = st.one_of(
    st.tuples(st.just("append"), st.lists(st.sampled_from(KEYS), min_size=1, max_size=5)),
    st.tuples(st.just("replace"), st.lists(st.sampled_from(KEYS), min_size=1, max_size=5)),
    st.tuples(st.just("delete"), st.lists(st.sampled_from(KEYS), max_size=4)),
    st.tuples(st.sampled_from(["commit", "commit", "full", "discard", "reopen"]), st.just([])),
)


@settings(max_examples=30)
@given(calls=st.lists(CALLS, max_size=16), batch_rows=st.sampled_from([1, 2, 3, 7, 50]))
def test_calls_act_in_their_order(
    calls: list[tuple[str, list[str]]], batch_rows: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """However rows are buffered, spilled, left pending or committed when they are deleted."""
    path = tmp_path_factory.mktemp("index") / "pages.sim"
    index = simindex.open(path, "n", options=options(batch_rows))
    committed: Counter[tuple[str, int]] = Counter()
    now: Counter[tuple[str, int]] = Counter()
    for value, (call, keys) in enumerate(calls):
        there = {row[0] for row in now} & set(keys)
        if call in ("replace", "delete"):
            now = Counter({row: count for row, count in now.items() if row[0] not in keys})
        if call in ("append", "replace"):
            getattr(index, call)(batch(keys, value))
            now.update((key, value) for key in keys)
        elif call == "delete":
            assert index.delete(keys=keys) == len(there)
        elif call == "discard":
            index.discard()
            now = committed.copy()
        elif call == "commit":
            index.commit()
            committed = now.copy()
        elif call == "full":
            index.compact(full=True)
            committed = now.copy()
        else:
            index.close()
            index = simindex.open(path, "w")
            committed = now.copy()
        assert rows_of(index) == committed
        assert len(index) == committed.total()
    index.commit()
    assert rows_of(index) == now
    assert index.check() == []
    index.compact(full=True)
    assert rows_of(index) == now
    if not now:
        index.append(batch(KEYS, 99))
    index.compact(full=True)
    index.close()
    (path / "catalog" / "data.mdb").unlink()
    simindex.repair(path, apply=True)
    with simindex.open(path, "w") as index:
        assert rows_of(index) == (now or Counter((key, 99) for key in KEYS))
        index.delete(keys=KEYS)
        index.commit()
        assert len(index) == 0
        assert {finding.severity for finding in index.check()} == {"note"}  # what repair has kept


@pytest.mark.parametrize("writes", [0, 1, 2])
def test_a_replacement_that_fails_changes_nothing(
    index_path: Path, writes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where rows of before it were written in its course."""
    real, done = SegmentFiles.write, 0

    def write(files: SegmentFiles, *arguments: object) -> object:
        nonlocal done
        done += 1
        if done > writes:
            raise StorageFull("full")
        return real(files, *arguments)

    with simindex.open(index_path, "n", options=options(3)) as index:
        index.append(batch(["a"], 1))
        index.commit()
        index.append(batch(["a", "b"], 2))
        with monkeypatch.context() as patch:
            patch.setattr(SegmentFiles, "write", write)
            with pytest.raises(StorageFull):
                index.replace(batch(["a"] * 10, 3))
        index.commit()
        assert rows_of(index) == {("a", 1): 1, ("a", 2): 1, ("b", 2): 1}
        index.replace(batch(["a"], 4))
        index.commit()
        assert rows_of(index) == {("b", 2): 1, ("a", 4): 1}
        assert index.check() == []
