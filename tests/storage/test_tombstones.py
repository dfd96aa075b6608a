"""Tombstones kill what a list of (id, key, commit) would kill, also where two keys share an id."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import simindex
from simindex import Batch, IndexOptions
from simindex.errors import CorruptFile
from simindex.storage.table import KeyHeap, Table
from simindex.storage.tombstones import Tombstones, from_hashes, from_ids


@dataclass
class Keys:
    """Stands for a KeyHeap whose second halves are given, so that ids can collide at will."""

    second: np.ndarray

    def take(self, rows: np.ndarray) -> Keys:
        return Keys(self.second[rows])

    def hashes(self) -> np.ndarray:
        return np.stack([np.zeros_like(self.second), self.second], axis=1)


def table_of(ids: list[int], second: list[int] | None, horizon: int) -> Table:
    heap: Any = None if second is None else Keys(np.array(second, np.uint64))
    return Table(
        "t", np.zeros((len(ids), 1), np.uint64), np.array(ids, np.uint64), heap,
        horizon=horizon, header_bits=0,
    )


def tombstones_of(triples: list[tuple[int, int, int]], *, keyed: bool) -> Tombstones:
    ids, second, commit = (np.array([t[i] for t in triples], np.uint64) for i in range(3))
    return Tombstones.of(ids, second if keyed else np.zeros_like(second), commit, keyed=keyed)


# Few values, so that they meet; the largest, where an empty search ends.
IDS = st.sampled_from([0, 1, 2, 2**63, 2**64 - 1])
SECONDS = st.sampled_from([0, 1, 2, 2**64 - 1])
COMMITS = st.integers(1, 6)
TRIPLES = st.lists(st.tuples(IDS, SECONDS, COMMITS), max_size=12)
ROWS = st.lists(st.tuples(IDS, SECONDS), max_size=12)


def expected_dead(
    triples: list[tuple[int, int, int]], rows: list[tuple[int, int]], horizon: int, keyed: bool
) -> list[bool]:
    return [
        any(
            i == row_id and commit > horizon and (not keyed or s == row_second)
            for i, s, commit in triples
        )
        for row_id, row_second in rows
    ]


@settings(max_examples=300)
@given(triples=TRIPLES, rows=ROWS, horizon=st.integers(0, 6), keyed=st.booleans())
def test_dead_rows_are_those_of_a_list(
    triples: list[tuple[int, int, int]], rows: list[tuple[int, int]], horizon: int, keyed: bool
) -> None:
    table = table_of([r[0] for r in rows], [r[1] for r in rows] if keyed else None, horizon)
    dead = tombstones_of(triples, keyed=keyed).dead(
        table, table.ids, np.arange(len(rows), dtype=np.int64)
    )
    assert dead.tolist() == expected_dead(triples, rows, horizon, keyed)


@given(triples=TRIPLES, rows=ROWS, horizon=st.integers(0, 6), data=st.data())
def test_alive_rows_of_a_slice_are_counted_from_its_start(
    triples: list[tuple[int, int, int]], rows: list[tuple[int, int]], horizon: int,
    data: st.DataObject,
) -> None:
    start = data.draw(st.integers(0, len(rows)))
    stop = data.draw(st.integers(start, len(rows)))
    table = table_of([r[0] for r in rows], [r[1] for r in rows], horizon)
    alive = tombstones_of(triples, keyed=True).alive(table, start, stop)
    dead = expected_dead(triples, rows, horizon, True)[start:stop]
    if alive is None:
        assert not any(dead)
    else:
        assert alive.tolist() == [i for i, killed in enumerate(dead) if not killed]


@given(parts=st.lists(TRIPLES, max_size=4), rows=ROWS, horizon=st.integers(0, 6))
def test_merged_runs_kill_what_each_of_them_kills(
    parts: list[list[tuple[int, int, int]]], rows: list[tuple[int, int]], horizon: int
) -> None:
    table = table_of([r[0] for r in rows], [r[1] for r in rows], horizon)
    runs = [tombstones_of(part, keyed=True) for part in parts]
    places = np.arange(len(rows), dtype=np.int64)
    merged = Tombstones.merged(runs, keyed=True)
    killed = [any(column) for column in zip(
        *(run.dead(table, table.ids, places).tolist() for run in runs), strict=True
    )] if runs and rows else [False] * len(rows)
    assert merged.dead(table, table.ids, places).tolist() == killed
    assert merged.newest == max((t[2] for part in parts for t in part), default=0)
    assert len(merged) == len({t[:2] for part in parts for t in part})


@given(triples=TRIPLES, keyed=st.booleans())
def test_encoded_tombstones_decode(triples: list[tuple[int, int, int]], keyed: bool) -> None:
    written = tombstones_of(triples, keyed=keyed)
    read = Tombstones.decode("x", written.encode(), keyed=keyed)
    for name in ("id", "second", "commit"):
        assert np.array_equal(getattr(read, name), getattr(written, name))


@pytest.mark.parametrize("size", [1, 8, 23, 25, 47])
def test_tombstones_of_a_wrong_size_are_noticed(size: int) -> None:
    with pytest.raises(CorruptFile):
        Tombstones.decode("x", bytes(size), keyed=False)


def test_only_later_commits_concern_a_table() -> None:
    dead = from_ids(np.array([1], np.uint64), 5)
    assert dead.later_than(4)
    assert not dead.later_than(5)
    assert not Tombstones.merged([], keyed=False).later_than(0)


def test_keys_make_both_halves() -> None:
    import mmh3

    dead = from_hashes([KeyHeap.of([key]).hashes() for key in "ab"], 3)
    pairs = sorted(mmh3.hash64(key.encode(), signed=False) for key in "ab")
    assert list(zip(dead.id.tolist(), dead.second.tolist(), strict=True)) == pairs


# -- in an index ----------------------------------------------------------------------------------


@pytest.fixture
def colliding(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """All keys share the id 7; only their second halves tell them apart."""

    real = KeyHeap.hashes

    def hashes(self: KeyHeap) -> np.ndarray:
        found = real(self).copy()
        found[:, 0] = 7
        return found

    monkeypatch.setattr(KeyHeap, "hashes", hashes)
    yield


@pytest.mark.parametrize("batch_rows", [4, 1 << 12], ids=["segments", "pending"])
def test_key_that_shares_an_id_is_not_deleted_with_it(
    index_path: Path, colliding: None, batch_rows: int
) -> None:
    options = IndexOptions(keys=True, batch_rows=batch_rows, min_merge=0)
    fingerprints = np.arange(6, dtype=np.uint64)
    with simindex.open(index_path, "c", options=options) as index:
        ids = index.append(Batch(fingerprints, keys=list("abcdef")))
        assert set(ids.tolist()) == {7}
        index.commit()
        index.delete(keys=["b", "e", "z"])
        index.replace(Batch(np.array([1 << 40], np.uint64), keys=["c"]))
        index.commit()
        for _ in range(2):
            found = index.query(fingerprints, h=0)
            assert [(m.query, m.key) for m in found] == [(0, "a"), (3, "d"), (5, "f")]
            assert index.query(np.array([1 << 40], np.uint64), h=0).keys() == ["c"]
            assert len(index) == 4
            assert index.check() == []
            index.compact(full=True)


def test_replaced_id_comes_back_after_compaction(index_path: Path) -> None:
    """Deleted, compacted, appended anew: the old tombstone must not reach the new row."""
    row = np.array([5], np.uint64)
    with simindex.open(index_path, "c", options=IndexOptions(batch_rows=8, min_merge=0)) as index:
        index.append(np.arange(20, dtype=np.uint64))
        index.commit()
        index.delete(ids=[5])
        index.commit()
        assert len(index.query(row, h=0)) == 0
        index.compact(full=True)
        assert index.stats().tombstones == 0
        for _ in range(3):
            index.append(row, ids=[5])
            index.commit()
        assert len(index) == 22
        assert index.query(row, h=0).id.tolist() == [5]
        index.delete(ids=[5])
        index.append(row, ids=[5])
        index.commit()
        assert len(index) == 20
        assert index.query(row, h=0).id.tolist() == [5]
        index.compact(full=True)
        assert index.query(row, h=0).id.tolist() == [5]
        assert index.check() == []


def test_tombstones_stay_while_an_older_table_needs_them(index_path: Path) -> None:
    options = IndexOptions(batch_rows=800, min_merge=0)
    with simindex.open(index_path, "c", options=options) as index:
        index.append(np.arange(3, dtype=np.uint64))  # stays pending
        index.commit()
        index.append(np.arange(100, 900, dtype=np.uint64))  # spills at once
        index.commit()
        index.delete(ids=[1, 103])  # the rows 1 and 200
        index.commit()
        index.compact(full=True)
        assert len(index.query(np.array([1, 200, 201], np.uint64), h=0)) == 1
        assert len(index) == 801
        assert index.check() == []


def test_small_index_gathers_no_tombstones(index_path: Path) -> None:
    """Where all tables are purged by the commit itself there is nothing left to remember."""
    row = np.array([5], np.uint64)
    with simindex.open(index_path, "c") as index:
        for _ in range(40):
            index.replace(Batch(row, ids=[1]))
            index.commit()
            assert len(index) == 1
            assert index.stats().tombstones <= 1
        index.compact(full=True)
        assert index.stats().tombstones == 0
        index.delete(ids=[1])
        index.compact(full=True)
        assert (len(index), index.stats().tombstones, index.stats().dead_rows) == (0, 0, 0)
        assert index.check() == []


def test_many_deleting_commits_keep_few_runs(index_path: Path) -> None:
    """A large old run is not written again with every eighth small one."""
    with simindex.open(index_path, "c") as index:
        index.append(np.arange(3000, dtype=np.uint64))
        index.commit()
        index.delete(ids=np.arange(1000, dtype=np.uint64))
        index.commit()
        first = index._current().head.tombstones[0]
        for doomed in range(1000, 1060):
            index.delete(ids=[doomed])
            index.commit()
            assert len(index._current().head.tombstones) <= 22
        runs = index._current().head.tombstones
        assert first in runs
        assert sum(run.rows for run in runs) == 1060
        assert len(index) == 3000 - 1060
        assert index.stats().tombstones == 1060
        assert index.check() == []

