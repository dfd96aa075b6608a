"""The papers' equations, against values worked out by hand and against what the papers say."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from math import comb, log2

import pytest
from reproduce import model

from simindex.bits import vosh
from simindex.planning.cold_calls import disk_s
from simindex.planning.machine import Machine

ROUND = Machine(
    delta_r_ns=100.0, delta_l_ns=2.0, delta_v_ns=5.0, delta_p_ns=10.0, delta_s_ns=3.0,
    disk_bytes_s=1e9,
)


def test_header_is_no_wider_than_the_set_is_deep() -> None:
    """(8): t = min(g b / G, d)."""
    assert model.bphs_header_bits(4, 1, 64, 20) == 16
    assert model.bphs_header_bits(8, 3, 64, 20) == 20


def test_latency_of_bphs() -> None:
    """(9): four tables of 10 + 16 * 100 + 2^4 * 2 ns."""
    assert model.bphs_latency_ns(ROUND, 4, 1, 64, 20) == 4 * (10 + 1600 + 32)


def test_bytes_of_bphs() -> None:
    """(10): the four tables of [MJS]'s first design take 32 bytes a row."""
    assert model.bphs_bytes(model.bphs_tables(4, 1), 10**6, 64) == 32 * 10**6


@pytest.mark.parametrize(("blocks", "g"), [(4, 1), (5, 2), (6, 3), (8, 3), (9, 1)])
def test_both_terms_are_the_latency_they_were_broken_out_of(blocks: int, g: int) -> None:
    """(11) and (12) are (9) below and above d."""
    wide, deep = g * 64 / blocks + 3, g * 64 / blocks - 3
    assert model.bphs_wide_latency_ns(ROUND, blocks, g, 64, wide) == pytest.approx(
        model.bphs_latency_ns(ROUND, blocks, g, 64, wide)
    )
    assert model.bphs_deep_latency_ns(ROUND, blocks, g, deep) == pytest.approx(
        model.bphs_latency_ns(ROUND, blocks, g, 64, deep)
    )


@pytest.mark.parametrize("d", [16.0, 23.0, 26.0, 33.0])
@pytest.mark.parametrize("h", [1, 3, 6])
def test_time_and_memory_grow_with_the_blocks(d: float, h: int) -> None:
    """(13): for a fixed g the best G is its lower bound g + h."""
    for g in (1, 2, 3):
        times = [model.bphs_latency_ns(ROUND, g + h + more, g, 64, d) for more in range(8)]
        assert all(a < b for a, b in pairwise(times))
        assert model.bphs_best_latency_ns(ROUND, g, h, 64, d) == times[0]


def test_leading_blocks_are_bounded() -> None:
    """(15): with d = 34 bits and h = 3, g <= 34 * 3 / 30 = 3.4."""
    assert model.bphs_most_leading(3, 64, 34) == 3
    assert model.bphs_most_leading(3, 64, 10) == 1
    assert model.bphs_most_leading(3, 64, 64) == 61


@pytest.mark.parametrize("d", [16.0, 20.0, 26.0, 30.0, 34.0])
@pytest.mark.parametrize("h", [1, 2, 3, 6])
def test_design_is_the_fastest_there_is(d: float, h: int) -> None:
    """(14) and (15) lose nothing against all G and g, as long as g gamma stays within d."""
    blocks, g = model.bphs_design(ROUND, h, 64, d)
    assert g + h == blocks
    least = min(
        model.bphs_latency_ns(ROUND, count, leading, 64, d)
        for leading in range(1, 8) for count in range(leading + h, leading + h + 4)
        if leading * 64 / count <= d or leading == 1
    )
    assert model.bphs_latency_ns(ROUND, blocks, g, 64, d) == pytest.approx(least)


@pytest.mark.parametrize("h", range(1, 9))
def test_a_wider_header_than_the_bound_allows_pays_only_where_rows_are_dear(h: int) -> None:
    """(15) leaves out the first g with g gamma > d, which may match more bits than those below."""
    for d in range(14, 35):
        blocks, g = model.bphs_design(Machine(), h, 64, d)
        least = min(model.bphs_best_latency_ns(Machine(), more, h, 64, d) for more in range(1, 12))
        assert model.bphs_latency_ns(Machine(), blocks, g, 64, d) == least
    dear = replace(ROUND, delta_l_ns=1e6)
    assert model.bphs_design(dear, 3, 64, 25) == (4, 1)
    # Ten tables of one row, against four of 2^9.
    assert model.bphs_best_latency_ns(dear, 2, 3, 64, 25) == 10 * (10 + 25 * 100 + 1e6)
    assert model.bphs_best_latency_ns(dear, 1, 3, 64, 25) == 4 * (10 + 16 * 100 + 512e6)


def test_design_follows_the_machine() -> None:
    """Dear probes ask for few tables, dear rows for wide headers."""
    assert model.bphs_design(replace(ROUND, delta_r_ns=1e6), 3, 64, 34) == (4, 1)
    assert model.bphs_design(replace(ROUND, delta_l_ns=1e6), 3, 64, 34) == (6, 3)


def test_latency_of_psm() -> None:
    """(19) with k = 16, t = 20, d = 23: 16 * (5 * 4 + 100 + 8 * 2)."""
    assert model.psm_latency_ns(ROUND, 16, 20, 23) == 16 * (20 + 100 + 16)
    assert model.psm_latency_ns(ROUND, 16, 30, 23) == 16 * (20 + 100 + 2)
    assert model.psm_latency_ns(ROUND, 1, 23, 23) == 102
    assert model.psm_latency_ns(ROUND, 0, 23, 23) == 0


def test_flips_are_bounded() -> None:
    """(20): 675 flips found all pairs of the paper at h = 3; random order needs 41,664."""
    assert model.psm_most_flips(64, 2) - 64 == 2016
    assert comb(64, 3) == 41664
    assert model.psm_most_flips(26, 3) == 26 + 325 + 2600
    assert model.psm_most_flips(2, 3) == 3
    for t in (1, 5, 26):
        assert model.psm_most_flips(t, 3) == vosh.set_count(t, 3)


def test_psm_is_fastest_where_the_header_is_deep() -> None:
    """(21): (19) at t = d, least as long as k grows no faster than its bound's dominant term."""
    assert model.psm_best_latency_ns(ROUND, 16) == model.psm_latency_ns(ROUND, 16, 23, 23)
    rows_alone = replace(ROUND, delta_v_ns=1e-9, delta_r_ns=1e-9)
    times = [model.psm_latency_ns(rows_alone, t**3, t, 26) for t in range(16, 27)]
    assert times[-1] == min(times)


def test_psm_takes_two_tables() -> None:
    """(22): 2 n b / 8 at t = d, half of the tables BPHS needs at h = 3; (26): 1 + 2^(t - d)."""
    n = 1 << 26
    assert model.psm_bytes(26, n, 64) == 2 * n * 64 // 8
    assert 2 * model.psm_bytes(26, n, 64) == model.bphs_bytes(4, n, 64)
    assert model.psm_bytes(23, n, 64) / model.bphs_bytes(1, n, 64) == 1.125


def test_larger_batches_help_psm_and_hardly_bphs() -> None:
    """After (23): r of BPHS is nearly constant in m, that of PSM almost linear."""
    n = 60_000_000
    in_cache = replace(ROUND, delta_r_ns=1.0)

    def bphs_rate(m: int) -> float:
        tau = model.bphs_latency_ns(in_cache, 4, 1, 64, log2(m))
        return model.rate(m, 0.0, model.bphs_batch_s(in_cache, 4, m, n, tau))

    def psm_rate(m: int) -> float:
        tau = model.psm_best_latency_ns(ROUND, 16)
        return model.rate(m, 0.0, model.psm_batch_s(ROUND, 16, m, n, tau))

    assert bphs_rate(1 << 27) / bphs_rate(1 << 26) < 1.1
    assert psm_rate(1 << 22) / psm_rate(1 << 20) > 3.5


def test_a_batch_of_bphs() -> None:
    """(16) - (18): 1,024 queries, 10 tables, tau = 1,000 ns; few rows, so that each term counts."""
    assert disk_s(ROUND, 60_000_000, 64) == pytest.approx(0.48)
    cpu = model.bphs_batch_s(ROUND, 10, 1024, 2000, 1000.0)
    assert cpu == pytest.approx((10 * 1024 * (10 + 3 * 10) + 2000 * 1000) * 1e-9)
    assert model.rate(1024, cpu / 2, cpu) == pytest.approx(1024 / cpu)
    assert model.rate(1024, 100.0, cpu) == pytest.approx(10.24)


def test_a_batch_of_psm() -> None:
    """(23): k = 16, m = 1,024, tau' = 500 ns; few rows, so that each term counts."""
    cpu = model.psm_batch_s(ROUND, 16, 1024, 200, 500.0)
    assert cpu == pytest.approx((1024 * 5 * 4 + 200 * 500 + 1024 * 3 * 10) * 1e-9)
