"""The simulation of shards on machines: nothing is lost, and small cases equal the formulas."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise, product
from math import inf
from pathlib import Path

import pytest
import simulate
from simulation import page, real
from simulation.asking import Asked, ask
from simulation.building import Built, build
from simulation.cluster import Cluster, Load

from simindex.planning import fleet as formulas
from simindex.planning.cold_calls import Call
from simindex.planning.fleet import Fleet, Rates, ShardWork, fleet_forecast, shard_work
from simindex.planning.forecast import outlines
from simindex.planning.machine import Machine

RATES = Rates(
    text_bytes_s=1e6, built_rows_s=1e6, merged_rows_s=2e6, written_bytes_s=1e9,
    crowded=1.0, undivided_share=0.0, merged_ns=1000.0, match_share=0.5,
)
BATCH = 1_000_000
DISK = 1e9
LOCAL = Fleet(1, cores=2, network_bytes_s=inf, latency_s=0.0)
"""Machines between which nothing takes time."""

WORK = ShardWork(
    rows=4_000_000, disk_bytes=160_000_000, memory_bytes=128_000_000,
    call=Call(2.0, 1e9, 0.5e9, 0.5), thread_call=Call(1.0, 1e9, 0.5e9, 0.5), threads=2,
)
"""A shard: two cores sweep it in a second, or one after the other in two."""

ONE_CORE = replace(WORK, thread_call=WORK.call, threads=1)


def asked(fleet: Fleet, work: ShardWork = WORK, **load: float) -> Asked:
    """What happens to batches, all shards being asked."""
    return ask(
        fleet.checked(10**9), work, batch=BATCH, query_bytes=8, disk_bytes_s=DISK, rates=RATES,
        load=Load(**load),  # type: ignore[arg-type]
    )


def built(fleet: Fleet, text_bytes: float = 0, work: ShardWork = WORK, **load: float) -> Built:
    return build(
        fleet.checked(10**9), work, disk_bytes_s=DISK, text_bytes=text_bytes, rates=RATES,
        load=Load(**load),  # type: ignore[arg-type]
    )


LOADS: tuple[dict[str, float], ...] = (
    {}, {"batches": 5, "in_flight": 3}, {"hot": 9.0}, {"slow_share": 0.5, "seed": 3},
    {"lost_at_s": 0.0}, {"lost_at_s": 0.4}, {"lost_at_s": 1.7, "batches": 4, "in_flight": 2},
    {"batches": 6, "added_at_s": 1.0, "added": 3},
    {"batches": 6, "in_flight": 2, "added_at_s": 0.5, "added": 3, "lost_at_s": 0.7, "hot": 2.0},
)


@pytest.mark.parametrize(("load", "replicas"), list(product(LOADS, (1, 2))))
def test_each_batch_is_answered_once_by_each_shard(
    load: dict[str, float], replicas: int
) -> None:
    """Also if a machine is lost, whatever was under way."""
    found = asked(Fleet(4, cores=2, replicas=replicas, shards=7), ONE_CORE, **load)
    batches = int(load.get("batches", 1))
    assert len(found.batch_s) == batches
    assert set(found.answers.values()) == {1}
    assert sum(found.answers.values()) == sum(found.shards)
    assert len({batch for batch, _ in found.answers}) == batches
    expected = BATCH * RATES.match_share * sum(found.shards) / 7
    assert found.matches == pytest.approx(expected)


def test_added_shards_are_asked_by_later_batches_only() -> None:
    found = asked(Fleet(4, cores=2), batches=6, added_at_s=1.0, added=3)
    assert found.shards[0] == 4 and found.shards[-1] == 7
    assert sorted(found.shards) == found.shards
    assert found.fetched == 3


def test_a_lost_shard_is_fetched_once() -> None:
    """The second of two batches waits for the same copy."""
    assert asked(Fleet(4, shards=4), batches=4, in_flight=2, lost_at_s=0.1).fetched == 1
    assert asked(Fleet(4, shards=4, replicas=2), batches=4, in_flight=2, lost_at_s=0.1).fetched == 0


def test_one_machine_and_one_shard_take_what_the_formula_says() -> None:
    """Sent in a round, swept, returned, merged: 8 MB and 9 MB at 1 GB/s, half a million matches."""
    fleet = Fleet(1, cores=2, network_bytes_s=1e9, latency_s=0.25)
    found = asked(fleet)
    assert found.batch_s == [pytest.approx(0.258 + 1.0 + 0.259 + 0.5)]
    assert found.sent_bytes == 8 * BATCH
    # From the disk: 1 s of reading, of which a half of the 0.5 that can be hidden is.
    cold = asked(replace(fleet, memory_bytes=1))
    assert cold.batch_s == [pytest.approx(0.258 + (1.0 + 1.0 - 0.25) + 0.259 + 0.5)]
    # 8 s of text on two cores, 4 s of rows and 2 s to merge them, twice 0.16 s to the disk, and
    # once to storage.
    assert built(fleet, 16e6).seconds == pytest.approx(8.0 + 6.0 + 0.48, rel=0.005)
    assert built(fleet).seconds == pytest.approx(6.48)


def test_a_part_of_a_call_is_not_divided() -> None:
    """A quarter of the two seconds of one thread, and then the rest on both cores."""
    rates = replace(RATES, undivided_share=0.25)
    found = ask(
        LOCAL.checked(10**9), WORK, batch=BATCH, query_bytes=8, disk_bytes_s=DISK, rates=rates
    )
    assert found.batch_s == [pytest.approx(0.5 + 0.75 + 0.5)]
    assert found.busy_share == pytest.approx((0.5 + 2 * 0.75) / 2 / 1.75)


def test_one_process_hands_rows_to_tasks_one_after_the_other() -> None:
    """64 MB a second: the second of two shards begins after two seconds."""
    fleet = replace(LOCAL, shards=2).checked(10**9)
    found = build(fleet, WORK, disk_bytes_s=DISK, rates=RATES, handed_bytes_s=64e6)
    assert found.seconds == pytest.approx(2.0 + 6.0 + 0.32)
    assert found.published == [0, 1]


def test_cores_that_build_at_once_slow_each_other_down() -> None:
    """Both shards take 6 s alone, and 9 s while the other one is built."""
    rates = replace(RATES, crowded=1.5)
    fleet = replace(LOCAL, shards=2).checked(10**9)
    found = build(fleet, WORK, disk_bytes_s=inf, rates=replace(rates, written_bytes_s=inf))
    assert found.seconds == pytest.approx(9.0)
    alone = build(replace(fleet, shards=1), WORK, disk_bytes_s=inf, rates=rates)
    assert alone.seconds == pytest.approx(6.0 + 0.32)
    after = build(
        fleet, WORK, disk_bytes_s=inf, rates=replace(rates, written_bytes_s=inf),
        handed_bytes_s=8e6,
    )
    assert after.seconds == pytest.approx(16.0 + 6.0)  # handed after 8 s and 16 s


def test_constants_come_from_times_of_one_and_of_all_threads() -> None:
    assert [real.undivided(ratio, 2) for ratio in (0.5, 0.75, 1.0, 0.4, 1.2)] == [0, 0.5, 1, 0, 1]
    assert real.undivided(0.25 + 0.75 / 8, 8) == pytest.approx(0.25)


def test_the_comparison_with_real_shards_runs(tmp_path: Path) -> None:
    """On few rows, where it says nothing of times: all matches that are planted are found."""
    for one in real.check(tmp_path, real.Constants.read(), 2_000, 400):
        assert one.matches == (200, 200)
        assert len(one.build_s.runs) == real.REPEATED and len(one.batch_s.runs) == real.ASKED
        assert one.build_s.off > -1
    assert not list(tmp_path.iterdir())


def test_a_build_of_few_rows_takes_what_a_shard_begins_with() -> None:
    """Each core does so once for each of its shards."""
    constants = replace(real.Constants.read(), begun_s=100.0)
    for shards in real.SHARDS:
        seconds, _ = real.predicted(constants, shards, 20_000, 400)
        assert seconds == pytest.approx(100.0 * -(-shards // real.CORES), rel=0.01)


@pytest.mark.parametrize("wrong", [
    ["--rows", "0"], ["--rows", "-5"], ["--rows", "20000"], ["--queries", "0"],
])
def test_a_comparison_of_too_little_is_a_wrong_call(
    wrong: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as raised:
        simulate.main(["check", "--dir", str(tmp_path), *wrong])
    told = capsys.readouterr()
    assert raised.value.code == 2
    assert f"{wrong[0]} {wrong[1]} is too few" in told.err
    assert "give at least 1" in told.err
    assert told.out == ""


def test_shards_of_a_machine_share_its_cores() -> None:
    """Five shards on two cores, one thread each: three turns of two seconds."""
    found = asked(replace(LOCAL, shards=5), ONE_CORE)
    assert found.batch_s == [pytest.approx(3 * 2.0 + 0.5)]
    assert found.busy_share == pytest.approx(5 * 2.0 / 2 / 6.5)


def test_a_batch_is_passed_on_in_rounds() -> None:
    """With the asker, 2, 4 and 8 machines have it after one, two and three rounds."""
    for machines, rounds in ((1, 1), (2, 2), (3, 2), (4, 3), (7, 3), (8, 4)):
        fleet = Fleet(machines, cores=2, network_bytes_s=8e6, latency_s=0.0).checked(10**9)
        rates = replace(RATES, match_share=0.0)
        found = ask(
            fleet, WORK, batch=BATCH, query_bytes=8, disk_bytes_s=DISK, rates=rates
        )
        assert found.batch_s == [pytest.approx(rounds * 1.0 + 1.0)]
        assert formulas.send_s(fleet, machines, 8e6) == pytest.approx(rounds)
        assert found.sent_bytes == machines * 8e6


@pytest.mark.parametrize("rows", [10**6, 10**8, 10**10])
@pytest.mark.parametrize("machines", [1, 2, 5, 64])
def test_forecast_and_simulation_agree(machines: int, rows: int) -> None:
    """The forecast lets nothing overlap, so it is later, by less than what is returned."""
    fleet = Fleet(machines, cores=8, memory_bytes=4 << 30).checked(rows)
    rates = replace(RATES, undivided_share=0.25, called_share=0.7, crowded=1.4)
    forecasts = fleet_forecast(rows, fleet, rates=rates, batch=BATCH)
    whole = outlines(-(-rows // machines), machine=Machine())
    assert [one.method for one in forecasts] == [one.method for one in whole]
    for outline, found in zip(whole, forecasts, strict=True):
        work = shard_work(outline, fleet, BATCH)
        simulated = ask(
            fleet, work, batch=BATCH, query_bytes=8, rates=rates,
            disk_bytes_s=Machine().disk_bytes_s,
        ).batch_s[0]
        early = found.batch_s - simulated
        assert -1e-9 <= early <= found.return_s + 1e-9
        if machines == 1:
            assert early == pytest.approx(0.0, abs=1e-9)
        ready = build(fleet, work, disk_bytes_s=Machine().disk_bytes_s, rates=rates).seconds
        assert ready == pytest.approx(found.build_s)


def test_overlapping_batches_reach_the_rate_of_the_forecast() -> None:
    fleet = Fleet(8, cores=8, replicas=2).checked(10**9)
    found = max(fleet_forecast(10**9, fleet, rates=RATES), key=lambda one: one.queries_s)
    (outline,) = [one for one in outlines(10**9 // 4) if one.method == found.method]
    many = ask(
        fleet, shard_work(outline, fleet, BATCH), batch=BATCH, query_bytes=8, rates=RATES,
        disk_bytes_s=Machine().disk_bytes_s, load=Load(batches=200, in_flight=24),
    )
    assert 200 * BATCH / many.seconds == pytest.approx(found.queries_s, rel=0.05)


def test_more_machines_are_never_slower() -> None:
    """Where nothing takes time between them, and none is slow."""
    for load in LOADS[:3]:
        times = [
            asked(replace(LOCAL, machines=machines, shards=12), ONE_CORE, **load).seconds
            for machines in range(1, 14)
        ]
        assert all(more <= fewer + 1e-9 for fewer, more in pairwise(times)), load
        assert times[-1] < times[0]
    builds = [
        built(replace(LOCAL, machines=machines, shards=12), 12e6).seconds
        for machines in range(1, 14)
    ]
    assert all(more <= fewer + 1e-9 for fewer, more in pairwise(builds))
    assert builds[-1] < builds[0] / 6


def test_a_lost_machine_is_never_faster() -> None:
    fleet = Fleet(4, cores=2, shards=8)
    whole = asked(fleet, ONE_CORE, batches=3).seconds
    for at_s in (0.0, 0.3, 1.0, 2.5, 5.0):
        assert asked(fleet, ONE_CORE, batches=3, lost_at_s=at_s).seconds > whole
    assert asked(fleet, ONE_CORE, batches=3, lost_at_s=whole + 1).seconds == whole
    ready = built(fleet, 1e6).seconds
    for at_s in (0.0, 1.0, ready - 0.1):
        again = built(fleet, 1e6, lost_at_s=at_s)
        assert again.seconds > ready
        assert sorted(again.published) == list(range(8))
        assert again.again >= 1


def test_a_replica_answers_for_a_lost_machine_without_a_copy() -> None:
    once, twice = (
        asked(Fleet(4, cores=2, shards=4, replicas=n), batches=3, lost_at_s=0.2) for n in (1, 2)
    )
    assert (once.fetched, twice.fetched) == (1, 0)
    assert twice.seconds < once.seconds


def test_stragglers_and_hot_shards_cost_what_they_hold_up() -> None:
    fleet = replace(LOCAL, machines=4, shards=4)
    assert asked(fleet, slow_share=1.0, slowness=3.0).batch_s == [pytest.approx(3.5)]
    # The first shard has half of the queries, twice its part.
    assert asked(fleet, hot=3.0).batch_s == [pytest.approx(2.5)]
    assert asked(fleet, queries_share=0.5).batch_s == [pytest.approx(1.0)]


def test_a_seed_gives_one_result() -> None:
    fleet = Fleet(16, cores=2)
    load = {"batches": 4, "in_flight": 2, "slow_share": 0.3, "lost_at_s": 1.0}
    once, again, other = (asked(fleet, **load, seed=seed) for seed in (5, 5, 7))
    assert once == again
    assert once.ended_s != other.ended_s


def test_copies_of_a_shard_are_on_different_machines() -> None:
    """And no machine has two shards more than another."""
    for machines, shards in product((2, 3, 4, 7), (1, 2, 4, 8, 14)):
        for replicas in range(1, machines + 1):
            fleet = Fleet(machines, replicas=replicas, shards=shards).checked(10**9)
            cluster = Cluster(fleet, WORK, Load(), DISK)
            held = [len(node.shards) for node in cluster.nodes]
            assert all(len(cluster.hosts(shard)) == replicas for shard in range(shards))
            assert max(held) - min(held) <= 1
            assert max(held) == -(-shards * replicas // machines)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(page.TABLES.keys() - {"pages", "text"}))
def test_the_page_has_what_is_simulated(name: str) -> None:
    """`python tools/simulate.py page` writes it anew."""
    text = page.PAGE.read_text(encoding="utf-8")
    assert f"<!-- {name} -->\n\n{page.TABLES[name]()}\n\n<!-- end -->" in text


@pytest.mark.slow
@pytest.mark.parametrize(("name", "size"), [
    ("pages", (page.PAGES, page.PAGES * page.DOCUMENT_BYTES)),
    ("text", (page.TEXT_BYTES // page.DOCUMENT_BYTES, page.TEXT_BYTES)),
])
def test_the_page_has_collections_on_few_machines(name: str, size: tuple[int, int]) -> None:
    """The lines of more machines take a minute to simulate."""
    text = page.PAGE.read_text(encoding="utf-8")
    table = re.search(rf"<!-- {name} -->\n\n(.*?)\n\n<!-- end -->", text, re.DOTALL)
    lines = page.collection(*size, (10, 50)).splitlines()
    assert table is not None and table[1].splitlines()[: len(lines)] == lines
