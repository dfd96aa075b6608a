"""The papers' equations, against values worked out by hand and against what the papers say."""

from __future__ import annotations

import pytest

from simindex.planning import model
from simindex.planning.machine import Machine

ROUND = Machine(
    delta_r_ns=100.0, delta_l_ns=2.0, delta_v_ns=5.0, delta_p_ns=10.0, delta_s_ns=3.0,
    disk_bytes_s=1e9,
)


def test_a_batch_of_bphs() -> None:
    """(16) - (18): 1,024 queries, 10 tables, tau = 1,000 ns; few rows, so that each term counts."""
    assert model.disk_s(ROUND, 60_000_000, 64) == pytest.approx(0.48)
    cpu = model.bphs_batch_s(ROUND, 10, 1024, 2000, 1000.0)
    assert cpu == pytest.approx((10 * 1024 * (10 + 3 * 10) + 2000 * 1000) * 1e-9)
    assert model.rate(1024, cpu / 2, cpu) == pytest.approx(1024 / cpu)
    assert model.rate(1024, 100.0, cpu) == pytest.approx(10.24)


def test_a_batch_of_psm() -> None:
    """(23): k = 16, m = 1,024, tau' = 500 ns; few rows, so that each term counts."""
    cpu = model.psm_batch_s(ROUND, 16, 1024, 200, 500.0)
    assert cpu == pytest.approx((1024 * 5 * 4 + 200 * 500 + 1024 * 3 * 10) * 1e-9)
