"""All pairs of an index, against numpy: whatever the rows, the tables and the memory."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pytest
from pair_oracle import Listed, collapsed, expected

import simindex
from simindex.errors import ClosedIndex, InvalidOption
from simindex.pairs.tiles import Room
from simindex.records.pairs import CollapsedPairs


@pytest.fixture
def filled(index_path: Path, rng: np.random.Generator) -> Iterator[tuple[simindex.Index, Any, Any]]:
    """An index of several segments, pending rows, deleted rows, and its live rows and ids."""
    rows = np.concatenate([
        oracle.skewed(rng, 2000, templates=150, flips=4), oracle.uniform(rng, 2000)
    ])
    rows[rng.integers(0, 4000, 100)] = rows[7]
    rng.shuffle(rows)
    ids = rng.permutation(4000).astype(np.uint64)
    options = simindex.IndexOptions(batch_rows=4000, min_merge=0)
    with simindex.open(index_path, "c", options=options) as index:
        for start, stop in ((0, 1500), (1500, 3000), (3000, 3800), (3800, 3850), (3850, 4000)):
            index.append(rows[start:stop, 0], ids=ids[start:stop])
            index.commit()
        gone = ids[rng.integers(0, 4000, 450)]
        index.delete(ids=gone)
        index.commit()
        live = ~np.isin(ids, gone)
        stats = index.stats()
        assert stats.segments > 1 and stats.pending_rows and stats.dead_rows
        yield index, rows[live], ids[live]


def columns(chunks: Any) -> Listed:
    found = []
    for some in chunks:
        assert some.a.dtype == some.b.dtype == np.uint64 and some.distance.dtype == np.uint16
        rows = [tuple(pair) for pair in some]
        assert rows == sorted(rows)
        found += rows
    return sorted(found)


LEAST = 1 << 23


@pytest.mark.parametrize("memory", [None, LEAST, 3 * LEAST])
@pytest.mark.parametrize("h", [0, 3, 6])
@pytest.mark.slow
def test_an_index_gives_the_pairs_of_its_live_rows(
    filled: tuple[simindex.Index, Any, Any], h: int, memory: int | None, monkeypatch: Any
) -> None:
    index, rows, ids = filled
    if memory == LEAST:  # so that this few rows are tiles, too
        monkeypatch.setattr(Room, "within", lambda *_, **__: Room(700, 3000))
    pairs = index.pairs(h=h, memory_limit=memory, threads=2)
    assert columns(pairs) == expected(rows, ids, h)
    chunks = list(index.pairs(h=h, memory_limit=memory, collapse_equal=True))
    near, groups = collapsed(rows, ids, h)
    assert columns(chunks) == near
    assert all(isinstance(some, CollapsedPairs) for some in chunks)
    given = [pair for some in chunks if isinstance(some, CollapsedPairs) for pair in some.groups]
    assert sorted(given) == groups


@pytest.mark.slow
def test_pairs_are_those_of_the_commit_of_the_call(
    filled: tuple[simindex.Index, Any, Any],
) -> None:
    index, rows, ids = filled
    pairs = index.pairs(h=2)
    first = next(pairs)
    index.delete(ids=ids)
    index.append(np.zeros(10, np.uint64))
    index.commit()
    assert columns([first, *pairs]) == expected(rows, ids, 2)
    assert len(columns(index.pairs(h=2))) == 45


@pytest.mark.slow
def test_chunks_do_not_depend_on_threads(filled: tuple[simindex.Index, Any, Any]) -> None:
    index = filled[0]
    one, two = ([list(some) for some in index.pairs(h=3, threads=n)] for n in (1, 2))
    assert one == two


def test_an_empty_index_has_no_pairs(index_path: Path) -> None:
    with simindex.open(index_path, "c") as index:
        assert list(index.pairs()) == list(index.pairs(collapse_equal=True)) == []


@pytest.mark.parametrize("kind", ["str", "bytes"])
def test_pairs_of_an_index_with_keys_have_keys(index_path: Path, kind: Any) -> None:
    keys: list[Any] = [f"page {n}" if kind == "str" else b"page %d" % n for n in range(6)]
    rows = np.array([1, 3, 1 << 40, 7, 1, (1 << 40) + 2], np.uint64)
    near = {(0, 1): 1, (0, 4): 0, (1, 3): 1, (1, 4): 1, (2, 5): 1}
    with simindex.open(index_path, "c", options=simindex.IndexOptions(keys=kind)) as index:
        index.append(rows[:3], keys=keys[:3])
        index.commit()
        index.append(rows[3:], keys=keys[3:])
        index.commit()
        found = {}
        for some in index.pairs(h=1):
            named = some.keys()
            assert named is not None
            for a, b, distance in zip(*named, some.distance.tolist(), strict=True):
                found[tuple(sorted((keys.index(a), keys.index(b))))] = distance
        assert found == near
        (some,) = index.pairs(h=1, collapse_equal=True)
        assert isinstance(some, CollapsedPairs)
        named = some.groups.keys()
        assert named is not None
        assert sorted([named[0][0], named[1][0]]) == [keys[0], keys[4]]


@pytest.mark.parametrize("collapse_equal", [False, True])
def test_pickled_pairs_bring_their_keys(index_path: Path, collapse_equal: bool) -> None:
    keys = [f"page {n}" for n in range(4)]
    with simindex.open(index_path, "c", options=simindex.IndexOptions(keys=True)) as index:
        index.append(np.array([1, 1, 3, 7], np.uint64), keys=keys)
        index.commit()
        (found,) = index.pairs(h=1, collapse_equal=collapse_equal)
        expected = found.keys()
        groups = found.groups.keys() if isinstance(found, CollapsedPairs) else None
        pickled = pickle.dumps(found)
    again = pickle.loads(pickled)  # noqa: S301
    assert type(again) is type(found)
    assert list(again) == list(found) != []
    assert again.keys() == expected is not None
    if collapse_equal:
        assert list(again.groups) == list(found.groups)
        assert again.groups.keys() == groups == ([groups[0][0]], [groups[1][0]])


def test_pickled_pairs_without_keys_have_none() -> None:
    rows = np.array([1, 1, 3], np.uint64)
    rotated = simindex.rotation_pairs(rows, h=1)
    for found in (simindex.find_all(rows, h=1), rotated):
        again = pickle.loads(pickle.dumps(found))  # noqa: S301
        assert list(again) == list(found) != []
        assert again.keys() is None
    assert pickle.loads(pickle.dumps(rotated)).stats == rotated.stats  # noqa: S301


def test_rows_of_one_id_are_not_paired_with_each_other(index_path: Path) -> None:
    with simindex.open(index_path, "c") as index:
        index.append(np.array([0, 1, 3, 0], np.uint64), ids=[5, 5, 9, 9])
        index.commit()
        assert columns(index.pairs(h=1)) == [(5, 9, 0), (5, 9, 1), (5, 9, 1)]


def test_a_million_equal_rows_of_one_id_end(index_path: Path) -> None:
    """Pairs that are left out are not looked at: there are 5 10**11."""
    with simindex.open(index_path, "c") as index:
        index.append(np.zeros(1_000_000, np.uint64), ids=np.zeros(1_000_000, np.uint64))
        index.append(np.zeros(1, np.uint64), ids=[3])
        index.commit()
        assert sum(map(len, index.pairs())) == 1_000_000


def test_a_million_equal_rows_are_one_group(index_path: Path) -> None:
    with simindex.open(index_path, "c") as index:
        index.append(np.full(1_000_000, 77, np.uint64))
        index.commit()
        first = next(index.pairs())
        assert 0 < len(first) <= 1 << 17
        chunks = list(index.pairs(collapse_equal=True, memory_limit=16 << 20))
        groups = [some.groups for some in chunks if isinstance(some, CollapsedPairs)]
        assert all((some.first == 0).all() for some in groups)
        members = np.sort(np.concatenate([some.row for some in groups]))
        assert np.array_equal(members, np.arange(1, 1_000_000, dtype=np.uint64))
        assert not any(map(len, chunks))


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"h": -1}, "h"), ({"h": 65}, "h"), ({"h": 2.0}, "h"), ({"h": True}, "h"),
        ({"method": "psm"}, "method"), ({"threads": 0}, "threads"),
        ({"memory_limit": 0}, "memory_limit"), ({"memory_limit": "1G"}, "memory_limit"),
        ({"memory_limit": -5}, "memory_limit"),
    ],
)
def test_a_wrong_option_is_refused_by_the_call(
    index_path: Path, options: dict[str, Any], named: str
) -> None:
    """Not only when the first pair is asked for."""
    with simindex.open(index_path, "c") as index:
        with pytest.raises(InvalidOption) as caught:
            index.pairs(**options)
        assert caught.value.data["option"] == named


def test_too_little_memory_names_the_least_that_works(index_path: Path) -> None:
    with simindex.open(index_path, "c") as index:
        index.append(np.arange(100, dtype=np.uint64))
        index.commit()
        with pytest.raises(InvalidOption) as caught:
            index.pairs(memory_limit=1000)
        least = caught.value.data["expected"]
        assert columns(index.pairs(memory_limit=least, h=1)) == expected(
            np.arange(100, dtype=np.uint64), range(100), 1
        )
        with pytest.raises(InvalidOption):
            index.pairs(memory_limit=least - 1)


def test_progress_ends_with_all_rows_looked_at(filled: tuple[simindex.Index, Any, Any]) -> None:
    """Rows are read once for each block of the radius, and count once."""
    index = filled[0]
    told: list[tuple[int, int]] = []
    for _ in index.pairs(h=2, progress=lambda done, total: told.append((done, total))):
        pass
    assert told == sorted(told)
    assert {total for _, total in told} == {len(index)}
    assert told[-1][0] == len(index)


def test_a_closed_index_has_no_pairs(index_path: Path) -> None:
    index = simindex.open(index_path, "c")
    index.close()
    with pytest.raises(ClosedIndex):
        index.pairs()
