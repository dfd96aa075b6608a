"""Sweeping a table by partitions of probes finds what probing it query by query finds."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import simindex
from simindex._kernels import LEVELS, _native
from simindex.arrays import U64
from simindex.bits import vosh
from simindex.bits.volatility import STEP
from simindex.methods import bphs, psm
from simindex.methods.base import TablePlan

levels = pytest.mark.parametrize("level", range(len(LEVELS)))


def random_rows(n: int, words: int = 1, seed: int = 3) -> U64:
    rng = np.random.default_rng(seed)
    return rng.integers(0, 2**64, (n, words), dtype=np.uint64)


def near(rows: U64, m: int, seed: int = 5) -> U64:
    """m queries, each 0 to 2 flipped bits off a row; random ones where there is no row."""
    rng = np.random.default_rng(seed)
    if not len(rows):
        return random_rows(m, rows.shape[1], seed)
    flipped = rows[rng.integers(0, len(rows), m)]
    for _ in range(2):
        flipped[:, 0] ^= np.uint64(1) << rng.integers(0, 64, m, dtype=np.uint64)
    return np.ascontiguousarray(flipped)


class Case:
    """A table, queries on it, and the answers of both kernels, ordered by query and row."""

    def __init__(
        self, rows: U64, queries: U64, bits: int, k: int, h: int = 3,
        directory: Any = None, directory_bits: int | None = None,
    ) -> None:
        wide = bits if directory_bits is None else directory_bits
        self.rows = np.ascontiguousarray(rows[np.argsort(rows[:, 0], kind="stable")])
        if directory is None:
            directory = _native.header_directory(np.ascontiguousarray(self.rows[:, 0]), wide)
        words = rows.shape[1]
        self.bits, self.h = bits, h
        self.ids = np.random.default_rng(1).permutation(len(rows)).astype(np.uint64)
        self.queries = queries
        self.weights = np.random.default_rng(2).standard_normal(
            (len(queries), 64 * words), dtype=np.float32
        )
        self.table = _native.CheckedTable(self.rows, directory, wide, self.ids)
        order = vosh.plan(bits, h, k)
        self.networked = len(order.candidates) > 0
        self.order = _native.CheckedVosh(
            np.linspace(0, 9, 64, dtype=np.float32), STEP, 64 * words, bits, h, k,
            order.candidates, order.sort_network, order.select_network,
        )

    def partitioned(
        self, numbers: Any = None, *, own: bool = True, level: int = -1
    ) -> _native.CheckedProbes:
        return _native.partition_psm(
            self.table, self.order, self.queries, self.weights, numbers, own, level=level
        )

    def swept(self, level: int = -1) -> tuple[Any, ...]:
        probes = self.partitioned(level=level)
        return ordered(
            _native.sweep(self.table, probes, self.h, 0, probes.partitions, level=level)
        )

    def swept_in_parts(self, ends: list[int], level: int = -1) -> tuple[Any, ...]:
        """Some partitions after the other, with the own headers apart."""
        own = _native.partition_headers(self.table, self.bits, self.queries, None)
        parts = [
            _native.sweep(self.table, probes, self.h, begin, end, level=level)
            for probes in (own, self.partitioned(own=False, level=level))
            for begin, end in pairwise([0, *ends, probes.partitions])
        ]
        columns = [np.concatenate(column) for column in list(zip(*parts, strict=True))[:4]]
        return ordered((*columns, sum(p[4] for p in parts), sum(p[5] for p in parts)))

    def probed(self, level: int = -1) -> tuple[Any, ...]:
        return ordered(
            _native.psm_checked(self.table, self.order, self.queries, self.weights, False, level)
        )


def ordered(found: tuple[Any, ...]) -> tuple[Any, ...]:
    order = np.lexsort((found[1], found[0]))
    return (*(column[order] for column in found[:4]), *found[4:])


def assert_same(case: Case, level: int = -1) -> None:
    swept, probed = case.swept(level), case.probed(level)
    for got, wanted in zip(swept[:4], probed[:4], strict=True):
        assert got.dtype == wanted.dtype
        np.testing.assert_array_equal(got, wanted)
    assert swept[4:] == probed[4:]


@levels
@pytest.mark.parametrize("words", [1, 2, 3])
@pytest.mark.parametrize("bits", [1, 9, 16])
@pytest.mark.slow
def test_a_sweep_finds_what_probes_find(level: int, words: int, bits: int) -> None:
    # Above 0.5 MB of rows there are several partitions.
    rows = random_rows(150_000, words)
    case = Case(rows, near(rows, 101 if bits == 1 else 3001), bits, 1 if bits == 1 else 12)
    assert len(case.swept(level)[0]) > (0 if bits == 1 else 1000)
    assert_same(case, level)


@levels
@pytest.mark.parametrize("k", [1, 2, 10, 15, 16, 17, 33, 64])
def test_any_number_of_flips_is_swept(level: int, k: int) -> None:
    rows = random_rows(200_000)
    assert_same(Case(rows, near(rows, 1003), 14, k), level)


def test_flip_sets_without_networks_are_refused() -> None:
    rows = random_rows(20_000)
    case = Case(rows, near(rows, 50), 12, 0)
    assert not case.networked
    with pytest.raises(ValueError, match="networks"):
        case.swept()


@levels
@pytest.mark.parametrize("words", [1, 2])
@pytest.mark.parametrize("bits", [9, 16])
def test_partitions_can_be_swept_one_after_the_other(level: int, words: int, bits: int) -> None:
    rows = random_rows(150_000, words)
    case = Case(rows, near(rows, 3001), bits, 12)
    partitions = case.partitioned().partitions
    assert partitions >= 4
    for got, wanted in zip(
        case.swept_in_parts([1, partitions // 2, partitions // 2], level), case.probed(level),
        strict=True,
    ):
        np.testing.assert_array_equal(got, wanted)


@levels
@pytest.mark.parametrize("bits", [6, 10, 12, 14])
@pytest.mark.slow
def test_probes_that_share_buckets_are_swept(level: int, bits: int) -> None:
    # 2,000 to 12 rows under a header, and from 3 to 800 probes.
    rows = random_rows(150_000)
    rows[1::97, 0] = rows[0, 0] ^ np.uint64(1)
    case = Case(rows, near(rows, 5003), bits, 10)
    assert case.partitioned().size >= 2 << bits
    assert_same(case, level)


@levels
def test_queries_that_are_skipped_find_nothing(level: int) -> None:
    rows = random_rows(150_000)
    for bits in (10, 16):
        case = Case(rows, near(rows, 3001), bits, 12)
        skip = (np.arange(3001) % 3 == 0).astype(np.uint8)
        probes = case.partitioned(level=level)
        found = ordered(
            _native.sweep(case.table, probes, 3, 0, probes.partitions, skip, level=level)
        )
        whole = case.swept(level)
        kept = skip[whole[0]] == 0
        assert 0 < kept.sum() < len(kept)
        for got, wanted in zip(found[:4], whole[:4], strict=True):
            np.testing.assert_array_equal(got, wanted[kept])


@levels
def test_some_queries_of_a_batch_are_partitioned(level: int) -> None:
    rows = random_rows(150_000)
    case = Case(rows, near(rows, 3001), 14, 12)
    numbers = np.arange(1, 3001, 7, dtype=np.uint32)
    probes = case.partitioned(numbers, level=level)
    assert probes.size == 13 * len(numbers)
    found = ordered(_native.sweep(case.table, probes, 3, 0, probes.partitions, level=level))
    whole = case.swept(level)
    kept = np.isin(whole[0], numbers)
    assert 0 < kept.sum() < len(kept)
    for got, wanted in zip(found[:4], whole[:4], strict=True):
        np.testing.assert_array_equal(got, wanted[kept])
    with pytest.raises(ValueError, match="numbers"):
        case.partitioned(np.array([3001], np.uint32))


def test_partitions_and_tables_that_are_not_the_probes_are_refused() -> None:
    rows = random_rows(150_000)
    case, other = Case(rows, near(rows, 100), 14, 5), Case(rows, near(rows, 100), 13, 5)
    probes = case.partitioned()
    with pytest.raises(ValueError, match="partitions"):
        _native.sweep(case.table, probes, 3, 0, probes.partitions + 1)
    with pytest.raises(ValueError, match=r"this table|header_bits"):
        _native.sweep(other.table, probes, 3, 0, probes.partitions)
    with pytest.raises(ValueError, match="skip"):
        _native.sweep(case.table, probes, 3, 0, 1, np.zeros(99, np.uint8))


@levels
def test_a_directory_wider_than_the_header_is_swept(level: int) -> None:
    rows = random_rows(200_000)
    assert_same(Case(rows, near(rows, 2000), 11, 12, directory_bits=15), level)


@levels
@pytest.mark.parametrize("words", [1, 2])
def test_skewed_tables_are_swept(level: int, words: int) -> None:
    rows = random_rows(200_000, words)
    rows[:, 0] >>= np.random.default_rng(9).integers(0, 40, len(rows)).astype(np.uint64)
    assert_same(Case(rows, near(rows, 100), 14, 10), level)


@levels
def test_a_hot_bucket_of_many_rows_takes_all_probes(level: int) -> None:
    rows = random_rows(200_000) >> np.uint64(20)
    rows[::2, 0] |= np.uint64(3) << np.uint64(62)
    case = Case(rows, near(rows[1::2], 30), 12, 5)
    assert case.swept(level)[5] > 15 * 100_000
    assert_same(case, level)


@levels
def test_one_partition_takes_more_probes_than_a_chunk_of_memory_holds(level: int) -> None:
    rows = random_rows(200_000)
    queries = np.repeat(rows[:1], 5000, axis=0)
    case = Case(rows, queries, 14, 15)
    assert len(case.swept(level)[0]) >= 5000
    assert_same(case, level)


@levels
@pytest.mark.parametrize("n", [0, 1, 2, 7, 8, 9, 100])
@pytest.mark.parametrize("m", [0, 1, 15, 16, 17, 255, 257])
def test_tiny_tables_and_batches_are_swept(level: int, n: int, m: int) -> None:
    rows = random_rows(n)
    assert_same(Case(rows, near(rows, m), 4, 3), level)


@levels
@pytest.mark.parametrize("seed", range(4))
def test_a_damaged_directory_is_read_within_bounds(level: int, seed: int) -> None:
    rows = random_rows(140_000)
    rng = np.random.default_rng(seed)
    sound = _native.header_directory(np.sort(rows[:, 0]), 13)
    damaged = sound.copy()
    places = rng.integers(0, len(sound), 200)
    damaged[places] = rng.integers(0, 2**32, 200, dtype=np.uint32)
    damaged[places[:20]] = 0xFFFFFFFF
    damaged[places[20:40]] = 0
    assert_same(Case(rows, near(rows, 100), 13, 10, directory=damaged), level)


def test_distances_and_ids_are_those_of_the_rows() -> None:
    rows = random_rows(150_000, 2)
    case = Case(rows, near(rows, 2000), 14, 12)
    query, row, distance, ids, *_ = case.swept()
    assert len(query) > 500
    differing = np.bitwise_count(case.rows[row] ^ case.queries[query]).sum(axis=1)
    np.testing.assert_array_equal(distance, differing)
    np.testing.assert_array_equal(ids, case.ids[row])
    assert distance.max() <= 3


@levels
def test_a_sweep_repeats_itself(level: int) -> None:
    rows = random_rows(200_000)
    case = Case(rows, near(rows, 2000), 14, 12)
    probes = case.partitioned(level=level)
    once, again = (
        _native.sweep(case.table, probes, 3, 0, probes.partitions, level=level) for _ in range(2)
    )
    for column, same in zip(once, again, strict=True):
        np.testing.assert_array_equal(column, same)


def test_weights_that_do_not_fit_the_queries_are_refused() -> None:
    rows = random_rows(1000)
    case = Case(rows, near(rows, 10), 8, 5)
    with pytest.raises(ValueError, match="weights"):
        _native.partition_psm(
            case.table, case.order, case.queries, case.weights[:-1].copy(), None, True
        )
    with pytest.raises(ValueError, match="queries"):
        _native.partition_psm(case.table, case.order, random_rows(10, 2), case.weights, None, True)


def is_swept(rows: int, words: int, flips: int, queries: int, exact: bool = False) -> bool:
    enough = psm.pass_from(rows, words, 20, flips, exact=exact)
    return TablePlan("psm", 20, flips, exact, 0.0, pass_from=enough).takes_a_pass(queries)


def test_only_large_batches_on_large_tables_are_swept() -> None:
    rows, queries = 60_000_000, 1_000_000
    assert is_swept(rows, 1, 15, queries)
    assert is_swept(10_000_000, 1, 10, 1 << 16)
    assert not is_swept(rows, 1, 15, 1 << 16)
    assert not is_swept(rows, 2, 15, queries)
    assert not is_swept(1_000_000, 1, 15, queries)
    assert not is_swept(rows, 1, 15, queries, exact=True)
    assert not is_swept(rows, 1, 200, queries)


@pytest.mark.parametrize("threads", [1, 2, 7])
@pytest.mark.parametrize("flips", [10, 15, 63])
@pytest.mark.parametrize("rows", [10_000_000, 60_000_000, 400_000_000])
def test_slices_of_a_sweep_bound_the_probes_of_a_call(rows: int, threads: int, flips: int) -> None:
    size = psm.slice_queries(rows, flips, 25_000_000, threads)
    assert size > bphs.SLICE_QUERIES // threads
    assert threads * size * (flips + 1) <= psm.MOST_PROBES


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("probes", [1 << 24, 50_000])
@pytest.mark.parametrize("first", [False, True])
@pytest.mark.slow
def test_an_index_answers_alike_whether_it_sweeps_or_not(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch, threads: int, probes: int, first: bool
) -> None:
    rng = np.random.default_rng(4)
    stored = rng.standard_normal((60_000, 64), dtype=np.float32)
    asked = stored[:9000] + rng.laplace(size=(9000, 64)).astype(np.float32) * np.float32(0.02)
    stored_rows, asked_rows = (
        np.packbits(weights >= 0, axis=1).view(">u8")[:, 0].astype(np.uint64)
        for weights in (stored, asked)
    )
    batch = simindex.Batch(asked_rows, weights=asked)
    sweeps = []
    swept = _native.sweep

    def counted(*arguments: Any, **named: Any) -> Any:
        sweeps.append(arguments[1].size)
        return swept(*arguments, **named)

    monkeypatch.setattr(_native, "sweep", counted)
    with simindex.open(tmp_path / "index", "n") as index:
        index.append(stored_rows, weights=stored)
        index.commit()
        index.tune(machine=False)
        options = {"h": 3, "recall": 0.9, "threads": threads, "method": "psm", "first": first}
        probed = index.query(batch, **options)
        assert not sweeps
        plans = index._answerer.plans
        planned = plans.plan

        def to_sweep(*question: Any) -> Any:
            plan = planned(*question)
            return plan if plan.exact else replace(
                plan, tables=tuple(replace(one, pass_from=0) for one in plan.tables)
            )

        monkeypatch.setattr(plans, "plan", to_sweep)
        monkeypatch.setattr(psm, "LEAST_PROBES", probes)
        found = index.query(batch, **options)
    assert len(sweeps) >= threads * (1 + first)
    assert len(found) > 5000
    if first:  # of several rows either may be the one
        np.testing.assert_array_equal(found.query, probed.query)
        assert sum(sweeps) < len(batch) * (found.stats.flips + 1)
        return
    assert sum(sweeps) == found.stats.probes == probed.stats.probes
    for column in ("query", "id", "distance"):
        np.testing.assert_array_equal(getattr(found, column), getattr(probed, column))
