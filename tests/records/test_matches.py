"""Matches as a sequence, with keys that are fetched where they are asked for."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import simindex
from simindex.records.matches import Match, Matches, QueryStats, TopMatches, TopStats

STATS = QueryStats("scan", "exact", True, 0, 0, 0, 1, 0.0)
NAMES = [f"k{number}" for number in range(9)]


def matches(keyed: bool, fetched: list[Any] | None = None) -> Matches:
    def fetch(places: Any) -> list[str]:
        if fetched is not None:
            fetched.append(places)
        return NAMES if places is None else [NAMES[place] for place in places.tolist()]

    columns = np.arange(9, dtype=np.int64), np.arange(10, 19, dtype=np.uint64)
    return Matches(*columns, np.arange(9, dtype=np.uint16) % 4, STATS, fetch if keyed else None)


@pytest.mark.parametrize("keyed", [True, False])
@given(some=st.slices(9), then=st.slices(9), place=st.integers(-12, 12))
@pytest.mark.slow
def test_places_and_slices_are_those_of_the_list(
    keyed: bool, some: slice, then: slice, place: int
) -> None:
    found = matches(keyed)
    listed = list(found)
    assert list(found[some]) == listed[some]
    assert list(found[some][then]) == listed[some][then]
    assert found[some][then].keys() == (None if not keyed else NAMES[some][then])
    again = pickle.loads(pickle.dumps(found[some]))  # noqa: S301
    assert list(again[then]) == listed[some][then]
    for sequence, expected in ((found, listed), (found[some], listed[some])):
        if -len(expected) <= place < len(expected):
            assert sequence[place] == expected[place]
        else:
            with pytest.raises(IndexError, match=f"no match {place}: .* is {len(expected)}"):
                sequence[place]


def test_a_place_fetches_one_key() -> None:
    fetched: list[Any] = []
    assert matches(True, fetched)[np.int64(-1)] == Match(8, 18, "k8", 0)
    assert [places.tolist() for places in fetched] == [[8]]


def test_what_is_no_place_is_refused() -> None:
    for place in ("0", 1.0, None):
        with pytest.raises(TypeError):
            matches(False)[place]  # type: ignore[call-overload]


@pytest.mark.parametrize("segments", [1, 3])
def test_keys_of_slices_are_those_of_the_rows(tmp_path: Path, segments: int) -> None:
    """Also where they come from several segments, pending rows and the batch itself."""
    rows = np.random.default_rng(3).integers(0, 2**63, 300, dtype=np.uint64)
    options = simindex.IndexOptions(keys=True, batch_rows=100 if segments == 3 else 1000)
    with simindex.open(tmp_path / "i.sim", "n", options=options) as index:
        for start in range(0, 300, 100):
            some = rows[start : start + 100]
            keys = [f"k{number}" for number in range(start, start + 100)]
            index.append(simindex.Batch(some, keys=keys))
            index.commit()
        asked = rows[::-1] ^ np.uint64(1)
        found = index.query(asked, h=3)
        assert found.keys() == [f"k{number}" for number in range(299, -1, -1)]
        assert found[10:40:7].keys() == found.keys()[10:40:7]  # type: ignore[index]
        assert found[-1].key == "k0"
        again = np.concatenate([asked, asked[:5]])
        names = [f"new{number}" for number in range(len(again))]
        joined = index.ingest(simindex.Batch(again, keys=names), h=3)
        listed = joined.keys()
        assert listed is not None
        assert {"new0", "k0"} <= set(listed)
        assert [match.key for match in joined] == listed
        assert joined[5:300:11].keys() == listed[5:300:11]
        assert joined[-1].key == listed[-1]


def nearest(keyed: bool) -> TopMatches:
    """Three queries of up to three places, of which the second has none."""
    distance = np.array([[0, 3, 65], [65, 65, 65], [1, 2, 2]], np.uint16)
    ids = np.arange(9, dtype=np.uint64).reshape(3, 3)
    stats = TopStats("scan", "exact", True, 1.0, None, None, 4, 9, 1, 0.5)
    keys = [["a", "b"], [], ["c", "d", "e"]]
    return TopMatches(ids, distance, stats, 64, (lambda: keys) if keyed else None)


@pytest.mark.parametrize("keyed", [True, False])
@given(some=st.slices(5), place=st.integers(-7, 7))
def test_slices_of_the_nearest_are_matches(keyed: bool, some: slice, place: int) -> None:
    found = nearest(keyed)
    listed = list(found)
    assert len(listed) == len(found) == 5
    sliced = found[some]
    assert isinstance(sliced, Matches)
    assert list(sliced) == listed[some]
    assert sliced.keys() == (list("abcde")[some] if keyed else None)
    assert list(pickle.loads(pickle.dumps(sliced))) == listed[some]  # noqa: S301
    assert (sliced.stats.guarantee, sliced.stats.rows_compared) == ("exact", 9)
    if -5 <= place < 5:
        assert found[place] == listed[place]
    else:
        with pytest.raises(IndexError, match=f"no match {place}: .* is 5"):
            found[place]


def test_the_nearest_have_a_column_of_queries() -> None:
    found = nearest(False)
    assert found.query.shape == found.id.shape
    assert found.query.dtype == np.int64
    there = found.distance <= found.bits
    assert found.query[there].tolist() == [match.query for match in found]
