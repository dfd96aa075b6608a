"""All pairs of tables, against numpy: whatever the rows, the parts and the memory."""

from __future__ import annotations

from itertools import chain
from typing import Any

import numpy as np
import oracle
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pair_oracle import Listed, collapsed, expected

from simindex.pairs.live_rows import StoredRows
from simindex.pairs.pair_search import PairSearch
from simindex.pairs.tiles import Found, Room
from simindex.storage.tables.table import Table, sort_table


def world(rng: np.random.Generator, kind: str, n: int, words: int) -> Any:
    """Rows that are uniform, in families, many of them equal, or alike in all but a few bits."""
    if kind == "uniform":
        return oracle.uniform(rng, n, words)
    rows = oracle.skewed(rng, n, words, templates=max(1, n // 20), flips=4)
    if kind == "equal" and n:
        rows = rows[rng.integers(0, max(1, n // 6), n)]
    if kind == "hot" and n:
        rows[:] = rows[0]
        rows[:, -1] ^= rng.integers(0, 16, n, dtype=np.uint64)
    return rows


WORLDS = ("uniform", "families", "equal", "hot")


def cut(rng: np.random.Generator, rows: Any, ids: Any, parts: int) -> list[Table]:
    bounds = np.sort(rng.integers(0, len(rows) + 1, parts - 1))
    return [
        sort_table("part", some, named, None, horizon=0)
        for some, named in zip(np.split(rows, bounds), np.split(ids, bounds), strict=True)
    ]


def listed(found: Found) -> Listed:
    assert found.a_ids is not None and found.b_ids is not None
    a, b = np.minimum(found.a_ids, found.b_ids), np.maximum(found.a_ids, found.b_ids)
    return list(zip(a.tolist(), b.tolist(), found.distance.tolist(), strict=True))


@given(
    seed=st.integers(0, 2**32), kind=st.sampled_from(WORLDS), n=st.integers(0, 120),
    words=st.sampled_from([1, 1, 2, 3, 8]), h=st.integers(0, 8), parts=st.integers(1, 4),
    room=st.tuples(st.sampled_from([5, 20, 1000]), st.sampled_from([7, 50, 100_000])),
    repeated=st.booleans(), threads=st.integers(1, 2),
)
@pytest.mark.slow
def test_every_pair_is_found_once_in_any_room(
    seed: int, kind: str, n: int, words: int, h: int, parts: int, room: tuple[int, int],
    repeated: bool, threads: int,
) -> None:
    """Tiny rooms cut values, hot values and runs of equal rows; none may lose or double a pair."""
    rng = np.random.default_rng(seed)
    rows = world(rng, kind, n, words)
    ids = rng.permutation(n).astype(np.uint64)
    if repeated:
        ids //= np.uint64(2)
    stored = StoredRows(cut(rng, rows, ids, parts), None, words=words)
    search = PairSearch(stored, h=h, room=Room(*room), collapse=False, threads=threads)
    found: Listed = []
    for some in search:
        assert len(some) <= room[1]
        found += listed(some)
    assert sorted(found) == expected(rows, ids, h)


@given(
    seed=st.integers(0, 2**32), kind=st.sampled_from(WORLDS), n=st.integers(0, 120),
    words=st.sampled_from([1, 1, 2, 8]), h=st.integers(0, 8), parts=st.integers(1, 4),
    room=st.tuples(st.sampled_from([5, 20, 1000]), st.sampled_from([7, 50, 100_000])),
)
@pytest.mark.slow
def test_equal_rows_are_represented_by_the_smallest_id_in_any_room(
    seed: int, kind: str, n: int, words: int, h: int, parts: int, room: tuple[int, int]
) -> None:
    rng = np.random.default_rng(seed)
    rows = world(rng, kind, n, words)
    ids = rng.permutation(n).astype(np.uint64)
    stored = StoredRows(cut(rng, rows, ids, parts), None, words=words, numbered=True)
    pairs: Listed = []
    groups = []
    for found in PairSearch(stored, h=h, room=Room(*room), collapse=True, threads=1):
        assert found.a_numbers is not None and found.a_ids is not None
        places, at = stored.place(found.a_numbers)
        for table, row, name in zip(places, at, found.a_ids, strict=True):
            assert stored.tables[table].ids[row] == name
        for a, b, distance in listed(found):
            if distance:
                pairs.append((a, b, distance))
            else:
                groups.append((a, b))
    assert (sorted(pairs), sorted(groups)) == collapsed(rows, ids, h)


@pytest.mark.parametrize(("words", "h"), [(1, 64), (1, 63), (2, 128), (2, 127)])
@pytest.mark.slow
def test_a_distance_of_all_bits_pairs_all_rows(
    words: int, h: int, rng: np.random.Generator
) -> None:
    rows = oracle.uniform(rng, 30, words)
    rows[15:] = ~rows[:15]
    ids = np.arange(30, dtype=np.uint64)
    stored = StoredRows(cut(rng, rows, ids, 2), None, words=words)
    for room in (Room(1000, 1000), Room(8, 20)):
        search = PairSearch(stored, h=h, room=room, collapse=False, threads=1)
        assert sorted(chain.from_iterable(map(listed, search))) == expected(rows, ids, h)
