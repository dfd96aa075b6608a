"""Which rows within h a query takes by the costs of the bits that differ, at every level."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from simindex._kernels import LEVELS, _native
from simindex.arrays import F32, I64, U8, U64
from simindex.bits import vosh
from simindex.bits.volatility import STEP

levels = pytest.mark.parametrize("level", range(len(LEVELS)))

ROWS, QUERIES, HEADER_BITS, H, FLIPS = 70_000, 400, 8, 20, 12
EVERY = 64 * 255
"""What all bits can cost together at most."""


class Case:
    """A table of several partitions, queries near its rows, and all that is within h under their
    flips."""

    def __init__(self, words: int = 1, h: int = H) -> None:
        rng = np.random.default_rng(7)
        rows = rng.integers(0, 2**64, (ROWS, words), np.uint64)
        self.rows: U64 = np.ascontiguousarray(rows[np.argsort(rows[:, 0], kind="stable")])
        self.ids = rng.permutation(ROWS).astype(np.uint64)
        self.queries: U64 = self.rows[rng.integers(0, ROWS, QUERIES)].copy()
        for _ in range(4):
            bit = rng.integers(0, 64, QUERIES).astype(np.uint64)
            self.queries[:, 0] ^= np.uint64(1) << bit
        self.weights: F32 = rng.standard_normal((QUERIES, 64 * words), np.float32)
        self.costs: U8 = rng.integers(0, 256, (QUERIES, 64), np.uint8)
        directory = _native.header_directory(np.ascontiguousarray(self.rows[:, 0]), HEADER_BITS)
        self.table = _native.CheckedTable(self.rows, directory, HEADER_BITS, self.ids)
        order = vosh.plan(HEADER_BITS, h, FLIPS)
        self.order = _native.CheckedVosh(
            np.linspace(0, 9, 64, dtype=np.float32), STEP, 64 * words, HEADER_BITS, h, FLIPS,
            order.candidates, order.sort_network, order.select_network,
        )
        self.h = h

    def probed(self, level: int = -1, queries: U64 | None = None, **asked: Any) -> Any:
        """By one query after the other."""
        queries = self.queries if queries is None else queries
        weights = self.weights[: len(queries)]
        return _native.psm_checked(
            self.table, self.order, queries, weights, asked.pop("first", False), level, **asked
        )

    def swept(self, level: int = -1, numbers: Any = None, **asked: Any) -> Any:
        """By partitions of the table."""
        probes = _native.partition_psm(
            self.table, self.order, self.queries, self.weights, numbers, True, level=level
        )
        assert probes.partitions > 1
        return _native.sweep(
            self.table, probes, self.h, 0, probes.partitions, level=level, **asked
        )

    def taken(self, found: Any, costs: U8, most: int) -> Any:
        """Of what was found without costs, by numpy: what costs `most` or less together."""
        query, _, distance, _ = columns = found_of(self, found)
        differing = self.queries[query, 0] ^ self.rows[columns[1], 0]
        flipped = np.unpackbits(differing.astype(">u8").view(np.uint8).reshape(-1, 8), axis=1)
        assert np.array_equal(flipped.sum(axis=1), distance)
        together = (costs[query].astype(np.int64) * flipped).sum(axis=1)
        return [column[together <= most] for column in columns]


def found_of(case: Case, found: Any) -> list[I64]:
    """query, row, distance, id of an answer, by query and row."""
    query, row, distance, ids = found[:4]
    order = np.lexsort((row, query))
    assert np.array_equal(ids, case.ids[row])
    return [np.asarray(column)[order].astype(np.int64) for column in (query, row, distance, ids)]


def assert_taken(case: Case, found: Any, wanted: list[I64]) -> None:
    for one, other in zip(found_of(case, found), wanted, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.fixture(scope="module")
def case() -> Case:
    return Case()


WAYS: dict[str, Callable[..., Any]] = {"probed": Case.probed, "swept": Case.swept}
ways = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)


@levels
@ways
def test_rows_are_taken_whose_differing_bits_cost_no_more(
    case: Case, way: Callable[..., Any], level: int
) -> None:
    """Sums beyond a byte, limits that some sum equals, and those that leave out nothing or all but
    equal rows."""
    every = way(case, level)
    sums = case.taken(every, case.costs, EVERY)
    assert len(sums[0]) > 1000
    equal = np.count_nonzero(sums[2] == 0)
    kept = []
    for most in (0, 255, 256, 1300, 1301, 2000, EVERY, 2**32 - 1):
        found = way(case, level, costs=case.costs, most=most)
        assert_taken(case, found, case.taken(every, case.costs, most))
        assert found[4:] == every[4:]  # as many probes, and rows compared
        kept.append(len(found[0]))
    assert equal <= kept[0] < kept[3] < kept[5] < kept[6] == kept[7] == len(every[0])


@levels
@ways
def test_a_limit_holds_sums_that_equal_it(
    case: Case, way: Callable[..., Any], level: int
) -> None:
    """Each bit costs the same, so that the limit is a distance."""
    every = way(case, level)
    for cost, most, furthest in ((1, 4, 4), (255, 255 * 4, 4), (255, 255 * 4 - 1, 2), (0, 0, H)):
        costs = np.full((QUERIES, 64), cost, np.uint8)
        wanted = case.taken(every, costs, most)
        assert_taken(case, way(case, level, costs=costs, most=most), wanted)
        assert int(wanted[2].max()) == furthest


@levels
def test_costs_belong_to_the_number_of_a_query_not_to_its_place(case: Case, level: int) -> None:
    """A sweep of some queries reads the rows of costs that these have among all."""
    numbers = np.random.default_rng(1).permutation(QUERIES)[:300].astype(np.uint32)
    every = case.swept(level, numbers)
    wanted = case.taken(every, case.costs, 1300)
    assert 0 < len(wanted[0]) < len(every[0])
    assert_taken(case, case.swept(level, numbers, costs=case.costs, most=1300), wanted)


@ways
def test_costs_of_other_shapes_are_refused(case: Case, way: Callable[..., Any]) -> None:
    """Before a byte of them is read."""
    m = QUERIES
    for shape in ((m - 1, 64), (m + 1, 64), (m, 63), (m, 128), (0, 64), (m, 0), (0, 0), (64, m)):
        with pytest.raises(ValueError, match="costs: a row of 64 per query"):
            way(case, costs=np.zeros(shape, np.uint8), most=9)
    wide = np.zeros((m, 128), np.uint8)
    for costs in (
        np.zeros(64 * m, np.uint8), np.zeros((m, 64, 1), np.uint8), np.zeros((m, 64), np.int8),
        np.zeros((m, 64), np.uint16), np.zeros((m, 64), np.float32), wide[:, ::2],
        np.zeros((64, m), np.uint8).T, [[0] * 64] * m,
    ):
        with pytest.raises(TypeError):
            way(case, costs=costs, most=9)
    for most in (-1, 2**32, 1.5):
        with pytest.raises(TypeError):
            way(case, costs=case.costs, most=most)


@ways
def test_wide_rows_have_no_costs(way: Callable[..., Any]) -> None:
    wide = Case(words=2, h=3)
    for columns in (64, 128):
        with pytest.raises(ValueError, match="of rows of 64 bits"):
            way(wide, costs=np.zeros((QUERIES, columns), np.uint8), most=9)


def test_the_first_match_has_no_costs(case: Case) -> None:
    """The first row within h may cost too much, and the search would end there."""
    with pytest.raises(ValueError, match="not for first matches"):
        case.probed(first=True, costs=case.costs, most=9)


def test_no_queries_have_no_costs(case: Case) -> None:
    found = case.probed(queries=case.queries[:0], costs=case.costs[:0], most=9)
    assert [len(column) for column in found[:4]] == [0, 0, 0, 0]


@ways
def test_what_is_not_taken_takes_no_room(case: Case, way: Callable[..., Any]) -> None:
    """A room for the rows that are taken, or some more, is enough, though more are within h."""
    wanted = len(way(case, costs=case.costs, most=600)[0])
    room = _native.Room(2 * wanted + 64)
    assert len(way(case, costs=case.costs, most=600, room=room)[0]) == wanted
    with pytest.raises(_native.NoRoom):
        way(case, room=_native.Room(2 * wanted + 64))
