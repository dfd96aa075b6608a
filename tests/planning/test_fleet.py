"""Shards on machines by formulas, against values worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from math import inf, nan

import pytest

from simindex.errors import InvalidOption
from simindex.options import IndexOptions
from simindex.planning.cold_calls import Call
from simindex.planning.fleet import (
    Fleet,
    FleetForecast,
    Rates,
    ShardWork,
    fleet_forecast,
    merge_passes,
    send_s,
    shards_built_s,
    sweep_s,
)
from simindex.planning.forecast import forecast
from simindex.planning.machine import Machine
from simindex.writing.policy import pick, settling

ROUND = replace(Machine(), disk_bytes_s=1e9)
RATES = Rates(
    text_bytes_s=1e6, built_rows_s=1e6, merged_rows_s=2e6, written_bytes_s=5e8,
    crowded=1.0, undivided_share=0.0, merged_ns=1000.0, match_share=0.5,
)
WORK = ShardWork(
    2_000_000, 1_000_000_000, 900_000_000, Call(8.0, 2e9, 1e9, 0.5), Call(1.0, 2e9, 1e9, 0.5), 8
)


def of(found: list[FleetForecast], method: str) -> FleetForecast:
    (one,) = [one for one in found if one.method == method]
    return one


@pytest.mark.slow
def test_a_machine_with_a_core_sweeps_as_an_index_does() -> None:
    """The planner's own prediction, of memory and of the disk."""
    for memory in (64 << 30, 1):
        fleet = Fleet(1, cores=1, memory_bytes=memory)
        local = {one.method: one for one in forecast(10_000_000, h=3)}
        for found in fleet_forecast(10_000_000, fleet, h=3):
            one = local[found.method]
            rates = one.batch_queries_s if found.fits else one.cold_queries_s
            assert found.fits == (memory > 1)
            assert found.sweep_s == pytest.approx(1e6 / rates[1_000_000])
            assert found.disk_bytes == one.disk_bytes and found.memory_bytes == one.memory_bytes


def test_times_of_a_batch_add_up() -> None:
    """8 MB to 3 machines in two rounds, 4.5 MB and half a million matches back."""
    fleet = Fleet(3, network_bytes_s=1e6, latency_s=1.0, price_h=36.0)
    for one in fleet_forecast(1_000_000, fleet, rates=RATES, text_bytes=48_000_000):
        assert one.send_s == pytest.approx(2 * 9.0)
        assert (one.sent_bytes, one.returned_bytes) == (24_000_000, 9_000_000)
        assert one.return_s == pytest.approx(10.0)
        assert one.merge_s == pytest.approx(0.5)
        assert one.batch_s == pytest.approx(28.5 + one.sweep_s)
        assert one.queries_s == pytest.approx(1e6 / max(18.0, one.sweep_s))
        # 16 MB of text to each machine at 1 MB/s, which is slower than 16 cores.
        assert one.text_s == pytest.approx(16.0)
        assert one.build_cost == pytest.approx(one.build_s * 3 * 0.01)
        assert one.batch_cost == pytest.approx(max(18.0, one.sweep_s) * 3 * 0.01)


def test_rounds_of_sending() -> None:
    fleet = Fleet(1, network_bytes_s=1e6, latency_s=0.0)
    rounds = {machines: send_s(fleet, machines, 1e6) for machines in (1, 2, 3, 4, 7, 8)}
    assert rounds == {1: 1, 2: 2, 3: 2, 4: 3, 7: 3, 8: 4}


def test_a_sweep_takes_turns_on_the_cores_and_shares_the_disk() -> None:
    fleet = Fleet(1, cores=8)
    assert sweep_s(WORK, 1, fleet, ROUND, True, RATES) == 1.0
    assert sweep_s(WORK, 9, fleet, ROUND, True, RATES) == 2.0
    # 3 shards: 6 s of reading, of which half of the second of computing is hidden.
    assert sweep_s(WORK, 3, fleet, ROUND, False, RATES) == pytest.approx(6.5)
    # A quarter of the 8 s of one thread is not divided by 8, and all takes half of the time.
    rates = replace(RATES, undivided_share=0.25, called_share=0.5)
    assert sweep_s(WORK, 1, fleet, ROUND, True, rates) == pytest.approx((2.0 + 0.75) / 2)
    # A second of its 4 is for matches that other shards have.
    fewer = replace(WORK, elsewhere=1e6)
    rates = replace(rates, match_ns=1000.0)
    assert sweep_s(fewer, 1, fleet, ROUND, True, rates) == pytest.approx(1.375 * 0.75)
    alone = replace(WORK, thread_call=WORK.call, threads=1)
    assert sweep_s(alone, 1, fleet, ROUND, True, rates) == pytest.approx(4.0)


@pytest.mark.parametrize("million", [1, 2, 8, 13, 30, 100, 400, 1500])
def test_rows_are_merged_as_often_as_writers_merge_them(million: int) -> None:
    """Segments of a million are picked as they come, and settled when the writer leaves."""
    seal, rows = IndexOptions().batch_rows, million * 1_000_000
    left: list[int] = []
    merged, given = 0, rows
    while given or settling(left):
        if given:
            left.append(min(seal, given))
            given -= left[-1]
        while places := (pick(left, IndexOptions().min_merge) if given else settling(left)):
            merged += (total := sum(left[place] for place in places))
            left = [size for place, size in enumerate(left) if place not in places] + [total]
    assert merge_passes(rows) == pytest.approx(merged / rows, abs=0.55)


def test_shards_are_built_a_core_each_and_go_to_disk_storage_and_replicas() -> None:
    """Two turns of 2 s and 1 s to merge, 10 GB twice at 0.5 GB/s, 10 GB over the network, and as
    much fetched."""
    fleet = Fleet(2, cores=8, shards=20, replicas=2, network_bytes_s=1e9)
    assert shards_built_s(WORK, fleet, ROUND, RATES) == pytest.approx(6.0 + 40.0 + 10.0 + 10.0)
    crowded = replace(RATES, crowded=1.5)
    assert shards_built_s(WORK, fleet, ROUND, crowded) == pytest.approx(9.0 + 60.0)
    four = replace(fleet, shards=8, replicas=1)  # four of eight cores of each machine
    assert shards_built_s(WORK, four, ROUND, crowded) == pytest.approx(
        3.0 * (1 + 0.5 * 3 / 7) + 16.0 + 4.0
    )


def test_replicas_divide_machines_into_groups() -> None:
    """Fewer and larger shards, which other batches are asked at the same time."""
    one, two = (fleet_forecast(10**9, Fleet(8, replicas=n), rates=RATES) for n in (1, 2))
    assert (one[0].shards, two[0].shards) == (8, 4)
    assert two[0].rows_per_shard == 2 * one[0].rows_per_shard
    scan = of(one, "scan"), of(two, "scan")
    assert scan[1].batch_s > scan[0].batch_s
    assert scan[1].queries_s == pytest.approx(scan[0].queries_s, rel=0.01)


@pytest.mark.slow
def test_more_machines_sweep_no_slower() -> None:
    for recall in (1.0, 0.95):
        found = [
            fleet_forecast(10**9, Fleet(machines), recall=recall)
            for machines in (1, 2, 4, 8, 16, 64)
        ]
        for fewer, more in pairwise(found):
            assert of(more, "scan").sweep_s < of(fewer, "scan").sweep_s
            assert max(one.memory_bytes for one in more) < max(one.memory_bytes for one in fewer)


def test_weights_of_queries_are_sent() -> None:
    found = fleet_forecast(10**8, Fleet(1), recall=0.95)
    sent = {one.recall: one.sent_bytes for one in found}
    assert sent[1.0] == 8_000_000 and sent[0.95] == 8_000_000 + 256_000_000


def test_the_fastest_batch_is_chosen() -> None:
    found = fleet_forecast(10**9, Fleet(4))
    (chosen,) = [one for one in found if one.chosen]
    assert chosen.batch_s == min(one.batch_s for one in found)


def test_no_more_shards_than_rows() -> None:
    assert fleet_forecast(3, Fleet(100))[0].shards == 3


@pytest.mark.parametrize(
    ("fleet", "option"),
    [
        (Fleet(0), "machines"), (Fleet(10_001), "machines"), (Fleet(2, replicas=3), "replicas"),
        (Fleet(2, cores=0), "cores"), (Fleet(2, shards=0), "shards"),
        (Fleet(2, network_bytes_s=0), "network_bytes_s"), (Fleet(2, disk_bytes_s=-1), "disk"),
        (Fleet(2, price_h=-1), "price_h"), (Fleet(2, price_h=inf), "price_h"),
        (Fleet(2, price_h=1e300), "price_h"), (Fleet(2, price_h=nan), "price_h"),
        (Fleet(2, latency_s=-1), "latency_s"),
        (Fleet(2, memory_bytes=0), "memory_bytes"),
    ],
)
def test_options_out_of_range_are_named(fleet: Fleet, option: str) -> None:
    with pytest.raises(InvalidOption, match=option):
        fleet_forecast(1000, fleet)


def test_a_batch_has_a_query() -> None:
    with pytest.raises(InvalidOption, match="batch"):
        fleet_forecast(1000, Fleet(2), batch=0)
