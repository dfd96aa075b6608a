"""What a call reads of files that are not in memory, and how long it takes with that."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from simindex.bits.design import BlockDesign
from simindex.methods.base import TablePlan
from simindex.planning import cold_calls
from simindex.planning.machine import Machine

ROUND = replace(Machine(), disk_bytes_s=1e9)
N = 60_000_000
ROWS, IDS = 8 * N, 8 * N

SWEPT = TablePlan("psm", 22, 14, False, 300.0, pass_from=1 << 17, widths=(22,), probes=15)
DESIGN = BlockDesign.flat(4, 1)
PERMUTED = TablePlan(
    DESIGN.structure, 0, 0, True, 500.0, DESIGN, swept_from=1 << 15, widths=(16,) * 4, probes=4
)
OVER_QUERIES = replace(PERMUTED, method=f"{DESIGN.structure} over queries", pass_from=0, widths=())
SCAN = TablePlan("scan", 0, 0, True, 1e7, pass_from=None)


def cold_s(*call: Any) -> float:
    """Seconds of a call on the machine of these tests."""
    return cold_calls.cold_call(*call).seconds(ROUND)


def test_a_sweep_reads_rows_and_ids_once() -> None:
    """(16) with ids: n (b + 64) / 8, whatever the number of queries."""
    for m in (1 << 17, 1_000_000, 10_000_000):
        assert cold_calls.cold_bytes(N, 1, SWEPT, m) == (ROWS + IDS, 0)
    assert cold_calls.cold_bytes(N, 4, SWEPT, 1 << 20) == (4 * ROWS + IDS, 0)


def test_probes_on_their_own_read_around_what_they_touch() -> None:
    assert cold_calls.cold_bytes(N, 1, SWEPT, 10_000) == (0, ROWS + IDS)
    assert cold_calls.cold_bytes(N, 1, SWEPT, 2) == (0, 30 * (8 << 20) + (8 << 20))


def test_every_permuted_table_is_read() -> None:
    assert cold_calls.cold_bytes(N, 1, PERMUTED, 1_000_000) == (0, 4 * ROWS + IDS)


def test_tables_over_queries_read_the_rows_once_and_the_pages_of_matches() -> None:
    assert cold_calls.cold_bytes(N, 1, OVER_QUERIES, 10_000) == (ROWS, 5000 * 4096)
    assert cold_calls.cold_bytes(N, 1, OVER_QUERIES, 1_000_000) == (ROWS, IDS)


def test_a_scan_reads_all_rows_for_a_single_query() -> None:
    assert cold_calls.cold_bytes(N, 1, SCAN, 1) == (0, ROWS + (4 << 20))


def test_what_is_read_ahead_takes_no_time_of_its_own() -> None:
    """(18): the longer of reading and computing; what is touched adds up; in order, half is hid."""
    seconds = (ROWS + IDS) / 1e9
    assert cold_s(N, 1, SWEPT, 1 << 20, 0.3) == pytest.approx(seconds)
    assert cold_s(N, 1, SWEPT, 1 << 20, 3.0) == pytest.approx(3.0)
    assert cold_s(N, 1, SWEPT, 10_000, 0.3) == pytest.approx(seconds + 0.3)
    every = (4 * ROWS + IDS) / 1e9
    assert cold_s(N, 1, PERMUTED, 1 << 15, 0.4) == pytest.approx(every + 0.2)
    assert cold_s(N, 1, PERMUTED, 1 << 15, 9.0) == pytest.approx(9.0 + every / 2)
