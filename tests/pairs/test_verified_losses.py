"""Losses of a buffer with doubtful pairs, against a plain loop that knows all similarities."""

from __future__ import annotations

from math import nan
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simindex import Recipe
from simindex.pairs import doubtful_pairs
from simindex.pairs import verified_losses as module
from simindex.pairs.buffer_losses import NOWHERE, Nearness
from simindex.pairs.doubtful_pairs import Verifier
from simindex.pairs.verified_losses import Candidates, verified_losses
from simindex.planning.doubt import Doubt
from simindex.planning.similarity import Similar
from simindex.records.sketches import packed

CERTAIN, KEPT, MOST, RADIUS = 2, 4, 6, 5
ASKED = Similar(0.9, RADIUS, 1.0, 64, 64, KEPT)

Row = tuple[int, int]
"""Fingerprint and sketch, of a few bits each."""


def exact_of(one: int, other: int) -> float | None:
    """Of two rows; stored ones have the numbers from 1,000 on."""
    return (0.95, 0.85, None, 0.91)[(min(one, other) * 7 + max(one, other) * 3) % 4]


class Known(Verifier):
    """Texts are numbers of rows."""

    def exact(self, pairs: Any) -> list[float | None]:
        return [exact_of(int(some[0]), int(others[0])) for some, others in pairs]


def apart(one: Row, other: Row) -> int | None:
    """The distance of the sketches, of rows within the radius."""
    bits = (one[1] ^ other[1]).bit_count()
    return bits if (one[0] ^ other[0]).bit_count() <= RADIUS and bits <= MOST else None


def apart_by_rows(one: Row, other: Row) -> int | None:
    """Where there are no sketches."""
    bits = (one[0] ^ other[0]).bit_count()
    return bits if bits <= RADIUS else None


def lost_by_brute_force(
    rows: list[Row], order: list[int], stored: list[Row], most_compared: int, apart: Any
) -> list[tuple[int, int, float] | None]:
    """Stored ones are those from 1,000 on."""
    lost: list[tuple[int, int, float] | None] = [None] * len(rows)
    kept = [1000 + place for place in range(len(stored))]
    for row in order:
        near = []
        for place, other in enumerate(kept):
            bits = apart(rows[row], stored[other - 1000] if other >= 1000 else rows[other])
            if bits is not None:
                near.append((bits, place, other))
        near.sort()
        if near and near[0][0] <= CERTAIN:
            lost[row] = near[0][2], near[0][0], nan
            continue
        fallback = None
        for bits, _, other in near[:most_compared]:
            exact = exact_of(row, other)
            if exact is None and bits <= KEPT and fallback is None:
                fallback = other, bits, nan
            if exact is not None and exact >= 0.9:
                lost[row] = other, bits, exact
                break
        else:
            lost[row] = fallback
        if lost[row] is None:
            kept.append(row)
    return lost


def candidates_of(rows: list[Row], stored: list[Row], apart: Any) -> Candidates:
    found = sorted(
        (row, bits, place) for row, one in enumerate(rows) for place, other in enumerate(stored)
        if (bits := apart(one, other)) is not None
    )
    columns = np.array(found, np.int64).reshape(-1, 3).T
    keys = [1000 + place for place in range(len(stored))]
    return Candidates(columns[0], columns[1].astype(np.uint16), columns[2], keys)


few_bits = st.integers(0, 255)
some_rows = st.lists(st.tuples(st.integers(0, 63), few_bits), max_size=24)


@given(
    st.data(), some_rows, some_rows, st.sampled_from([1, 3, 1024]), st.sampled_from([1, 3, 16]),
    st.booleans(),
)
@pytest.mark.slow
def test_losses_are_those_of_a_plain_loop(
    data: st.DataObject, rows: list[Row], stored: list[Row], block: int, most_compared: int,
    sketched: bool,
) -> None:
    """Wherever blocks end, and whether what is near is stored, in the buffer, or equal."""
    order = data.draw(st.permutations(range(len(rows))))
    columns = np.array(rows, np.uint64).reshape(-1, 2)
    asked = ASKED if sketched else Similar(0.9, RADIUS, 1.0, 64, 0, KEPT)
    doubt = Doubt(asked, CERTAIN, MOST)
    near, verifier = Nearness(RADIUS, 1.0, doubt.wide), Known(doubt, Recipe())
    by = apart if sketched else apart_by_rows
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(module, "BLOCK_ROWS", block)
        for place in (module, doubtful_pairs):
            patched.setattr(place, "MOST_COMPARED", most_compared)
        found = verified_losses(
            columns[:, :1].copy(), packed(columns[:, 1:], None) if sketched else None,
            np.array(order, np.int64), near, candidates_of(rows, stored, by), verifier,
            lambda row: (str(row),), lambda key: (str(key),),
        )
    expected = lost_by_brute_force(rows, [*order], stored, most_compared, by)
    for row, loss in enumerate(expected):
        of_stored = found.stored.distance[row] != NOWHERE
        of_row = found.losses.distance[row] != NOWHERE
        if loss is None:
            assert not of_stored and not of_row
            continue
        assert of_stored != of_row
        if of_stored:
            assert (found.stored.key(row), int(found.stored.distance[row])) == loss[:2]
        else:
            assert (int(found.losses.winner[row]), int(found.losses.distance[row])) == loss[:2]
        assert np.allclose(found.exact[row], loss[2], equal_nan=True)


def test_candidates_of_two_indexes_come_by_row_and_distance() -> None:
    one = Candidates(np.array([0, 0]), np.array([1, 3], "u2"), np.array([0, 1]), ["a", "b"])
    other = Candidates(np.array([0, 2]), np.array([1, 2], "u2"), np.array([0, 1]), ["x", "y"])
    both = one.and_before(other)
    assert [both.keys[place] for place in both.place] == ["x", "a", "b", "y"]
    nearest = both.nearest(3)
    assert nearest.distance.tolist() == [1, NOWHERE, 2]
    assert nearest.key(0) == "x" and nearest.key(2) == "y"
