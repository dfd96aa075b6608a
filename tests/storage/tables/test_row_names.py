"""Rows are found by their names: all of them, and no others."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simindex.arrays import U64
from simindex.storage.tables import row_names
from simindex.storage.tables.keys import KeyHeap
from simindex.storage.tables.row_names import IdSet, Names, RowsById, named

SECRET = bytes(range(16))
ids = st.lists(
    st.one_of(st.integers(0, 9), st.sampled_from([2**63, 2**64 - 1])), max_size=40
).map(lambda some: np.array(some, np.uint64))


def brute(stored: U64, wanted: list[int]) -> list[tuple[int, int]]:
    return [
        (place, row) for place, one in enumerate(wanted)
        for row, id_ in enumerate(stored.tolist()) if id_ == one
    ]


@given(stored=ids, asked=st.lists(ids, max_size=6), few=st.sampled_from([0, 4]))
@pytest.mark.slow
def test_rows_are_found_by_looking_through_and_in_order(
    stored: U64, asked: list[U64], few: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_names, "FEW", few)
        patch.setattr(row_names, "LOOKED_THROUGH", 8)
        patch.setattr(row_names, "READ_ROWS", 7)
        rows = RowsById(stored)
        for wanted in map(np.unique, asked):
            places, found = rows(wanted)
            pairs = zip(places.tolist(), found.tolist(), strict=True)
            assert sorted(pairs) == brute(stored, wanted.tolist())


@given(stored=ids, asked=ids)
def test_a_name_that_comes_twice_is_found_twice(stored: U64, asked: U64) -> None:
    places, rows = named(RowsById(stored), None, Names.of_ids(asked))
    pairs = zip(places.tolist(), rows.tolist(), strict=True)
    assert sorted(pairs) == brute(stored, asked.tolist())


def test_keys_that_share_an_id_are_told_apart() -> None:
    heap = KeyHeap.of(["one", "two", "one"])
    same = np.zeros(3, np.uint64)
    asked = Names.of_keys(KeyHeap.of(["two", "three", "one"]), SECRET)
    alike = Names(np.zeros(3, np.uint64), asked.second, asked.keys)
    places, rows = named(RowsById(same), heap, alike)
    pairs = zip(places.tolist(), rows.tolist(), strict=True)
    assert sorted(pairs) == [(0, 1), (2, 0), (2, 2)]


@given(parts=st.lists(ids, max_size=8), asked=ids)
@pytest.mark.slow
def test_a_set_of_ids_has_what_it_was_given(parts: list[U64], asked: U64) -> None:
    some = IdSet()
    for part in parts:
        some.add(part)
    given = {one for part in parts for one in part.tolist()}
    assert some.among(asked).tolist() == [one in given for one in asked.tolist()]
