"""A run of tombstones is stored whole, and deletes what was named, also where keys share a hash."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from siphash import siphash

import simindex
from simindex import Batch, IndexOptions
from simindex.errors import CorruptFile
from simindex.storage.tables.keys import KeyHeap
from simindex.storage.tables.row_names import Names
from simindex.storage.tables.tombstones import (
    KEYED,
    TOMBSTONE,
    Tombstones,
    from_deletions,
)

SECRET = bytes(range(16))

def second_of(key: str) -> int:
    """The other half of its hash, which "" and "c" share."""
    return {"": 0, "a": 1, "bb": 2**64 - 1, "c": 0}[key]


def of_keys(keys: list[str], *, commit: int) -> Tombstones:
    return from_deletions([Names.of_keys(KeyHeap.of(keys), SECRET)], [commit], keyed=True)


def tombstones_of(triples: list[tuple[int, str, int]], *, keyed: bool) -> Tombstones:
    ids, commit = (np.array([t[i] for t in triples], np.uint64) for i in (0, 2))
    second = np.array([second_of(t[1]) if keyed else 0 for t in triples], np.uint64)
    keys = KeyHeap.of([t[1] for t in triples]) if keyed else None
    return Tombstones.of(ids, second, commit, keys)


# Few values, so that they meet; the largest, where an empty search ends.
IDS = st.sampled_from([0, 1, 2, 2**63, 2**64 - 1])
KEYS = st.sampled_from(["", "a", "bb", "c"])
COMMITS = st.integers(1, 6)
TRIPLES = st.lists(st.tuples(IDS, KEYS, COMMITS), max_size=12)


@given(parts=st.lists(TRIPLES, max_size=4), keyed=st.booleans())
@pytest.mark.slow
def test_of_one_name_the_latest_tombstone_is_kept(
    parts: list[list[tuple[int, str, int]]], keyed: bool
) -> None:
    """Where all names that share a hash are equal; others may stay, which does no harm."""
    merged = Tombstones.merged([tombstones_of(part, keyed=keyed) for part in parts], keyed=keyed)
    every = [triple for part in parts for triple in part]
    latest: dict[tuple[int, str], int] = {}
    for number, key, commit in every:
        name = (number, key if keyed else "")
        latest[name] = max(latest.get(name, 0), commit)
    keys = [""] * len(merged) if merged.keys is None else merged.keys.decoded("str")
    found = set(zip(merged.id.tolist(), map(str, keys), merged.commit.tolist(), strict=True))
    assert {(*name, commit) for name, commit in latest.items()} <= found
    assert merged.newest == max(latest.values(), default=0)
    assert sorted(merged.id.tolist()) == merged.id.tolist()
    if not keyed or not {"", "c"} <= {key for _, key, _ in every}:
        assert len(merged) == len(latest)


@given(triples=TRIPLES, keyed=st.booleans(), commit=st.integers(0, 6))
def test_later_tombstones_are_those_of_later_commits(
    triples: list[tuple[int, str, int]], keyed: bool, commit: int
) -> None:
    run = tombstones_of(triples, keyed=keyed)
    later = run.since(commit)
    assert later.commit.tolist() == [c for c in run.commit.tolist() if c > commit]
    assert later.id.tolist() == run.id[run.commit > commit].tolist()
    if run.keys is not None and later.keys is not None:
        kept = np.flatnonzero(run.commit > commit)
        assert later.keys.decoded("str") == run.keys.take(kept).decoded("str")


@given(triples=TRIPLES, keyed=st.booleans())
def test_encoded_tombstones_decode(triples: list[tuple[int, str, int]], keyed: bool) -> None:
    written = tombstones_of(triples, keyed=keyed)
    read = Tombstones.decode("x", written.encode(), keyed=keyed)
    for name in ("id", "second", "commit"):
        assert np.array_equal(getattr(read, name), getattr(written, name))
    assert read.keyed == written.keyed == keyed
    if read.keys is not None and written.keys is not None:
        assert read.keys.decoded("str") == written.keys.decoded("str")


@pytest.mark.parametrize("size", [1, 8, 23, 25, 47])
def test_tombstones_of_a_wrong_size_are_noticed(size: int) -> None:
    for keyed in (False, True):
        with pytest.raises(CorruptFile):
            Tombstones.decode("x", bytes(size), keyed=keyed)


@pytest.mark.parametrize("size", [0, 15, 16, 23, 25, 127])
def test_keyed_tombstones_cut_short_are_noticed(size: int) -> None:
    whole = of_keys(["one", "two"], commit=3).encode()
    assert len(whole) == 16 + 2 * 24 + 3 * 8 + 6
    with pytest.raises(CorruptFile, match="tombstones"):
        Tombstones.decode("x", whole[:size] if size < len(whole) else whole + bytes(1), keyed=True)


@pytest.mark.parametrize("offsets", [[0, 4, 3], [1, 3, 6], [-1, 3, 6], [0, 3, 5], [0, 7, 6],
                                     [0, 2**62, 6], [0, 3, 2**62], [-(2**62), 0, 6]])
def test_keys_of_tombstones_out_of_bounds_are_noticed(offsets: list[int]) -> None:
    whole = of_keys(["one", "two"], commit=3).encode()
    at = KEYED.itemsize + 2 * TOMBSTONE.itemsize
    hostile = whole[:at] + np.array(offsets, "<i8").tobytes() + whole[at + 24 :]
    with pytest.raises(CorruptFile, match="keys of the tombstones"):
        Tombstones.decode("x", hostile, keyed=True)


@pytest.mark.parametrize(
    ("rows", "key_bytes"),
    [(1, 6), (3, 6), (2, 5), (2**64 - 1, 6), (2**61, 2**63), (2, 2**64 - 1), (0, 0), (2**59, 6)],
)
def test_counts_of_tombstones_that_do_not_fit_are_noticed(rows: int, key_bytes: int) -> None:
    whole = of_keys(["one", "two"], commit=3).encode()
    header = np.array((rows, key_bytes), KEYED).tobytes()
    with pytest.raises(CorruptFile, match="size"):
        Tombstones.decode("x", header + whole[KEYED.itemsize :], keyed=True)


def test_keys_make_both_halves() -> None:
    dead = of_keys(["a", "b"], commit=3)
    pairs = sorted(siphash(key.encode(), SECRET) for key in "ab")
    assert list(zip(dead.id.tolist(), dead.second.tolist(), strict=True)) == pairs
    assert dead.misplaced(SECRET) == 0
    assert dead.misplaced(bytes(16)) == 2


def test_of_a_key_deleted_often_the_latest_commit_is_kept() -> None:
    parts = [of_keys(["a", "b", "a"], commit=commit) for commit in (4, 9, 2)]
    dead = Tombstones.merged(parts, keyed=True)
    assert dead.commit.tolist() == [9, 9]
    assert dead.keys is not None
    assert sorted(dead.keys.decoded("str")) == ["a", "b"]


# -- in an index ----------------------------------------------------------------------------------


@pytest.fixture(params=[True, False], ids=["id", "hash"])
def colliding(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """All keys share the id 7, and all of their hash: only their bytes tell them apart."""

    real = KeyHeap.hashes

    def hashes(self: KeyHeap, secret: bytes) -> np.ndarray:
        found = real(self, secret).copy()
        found[:, : 1 if request.param else 2] = 7
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
            assert index.stats().tombstones <= 8  # of as many pending runs, until they are merged
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

