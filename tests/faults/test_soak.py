"""A writer, a compactor and readers for some seconds, killed and stopped at random."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from reliability.oracle import APART_BITS, ERROR_BITS, World
from reliability.soaking import HANG_S, Plan, Process, Soak

SEED = 20_111


def test_answers_are_those_of_the_snapshot_whoever_is_killed(tmp_path: Path) -> None:
    plan = Plan(
        4.0, SEED, readers=2, answers=2_000, kills=4, documents=250, window=12, rate=10.0,
        patience_s=120.0,
    )
    soak = Soak(plan, tmp_path)
    outcomes = soak.run()
    print(outcomes, soak.summary())
    notes = [path.read_text() for path in tmp_path.glob("*.txt")]
    for outcome in outcomes:
        assert outcome.passed, (outcome, notes)


def test_oracle_does_what_its_operations_say() -> None:
    """A list of rows that is changed operation by operation holds what the closed form says."""
    world = World(SEED, documents=100, window=12)
    rows: list[tuple[int, int]] = []
    for number in range(1, 40):
        operation = world.operation(number)
        gone = set(operation.deleted.tolist()) | set(operation.replacing.ids.tolist())
        assert not (gone and operation.ingested)
        assert gone <= {name for name, _ in rows}
        rows = [row for row in rows if row[0] not in gone]
        for part in (operation.replacing, operation.appended):
            rows += zip(part.ids.tolist(), part.fingerprints.tolist(), strict=True)
        values, names = world.state(number).contents()
        assert sorted(rows) == list(zip(names.tolist(), values.tolist(), strict=True))
    assert len(rows) > 1000


@pytest.mark.parametrize("h", [0, 3, 6])
def test_oracle_finds_by_clusters_what_it_finds_by_comparing_all(h: int) -> None:
    world = World(SEED, documents=300, window=12)
    apart = np.bitwise_count(world.centres[:, None] ^ world.centres[None, :200])
    assert np.sort(apart, axis=0)[1].min() >= APART_BITS
    rng = np.random.default_rng(SEED)
    state = world.state(30)
    queries, clusters = world.questions(rng, 30, 200)
    found, every = state.matches(queries, clusters, h), state.brute(queries, h)
    assert len(every.query) > 5
    assert every.same(found.query, found.distance, found.id)
    nearest, first = state.nearest(queries, clusters), state.brute_nearest(queries, 1)
    starts = np.searchsorted(nearest.query, np.arange(len(queries)))
    near = first.distance <= APART_BITS - 3 * ERROR_BITS - 1
    assert near.sum() > 100
    assert np.array_equal(nearest.id[starts[near]], first.id[near])


def test_process_that_waits_for_ever_is_told_from_one_that_gets_on() -> None:
    """By the processor time it uses: where a machine is busy, time alone tells nothing."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as popen:
        process = Process("reader", 0, 1, popen)
        now = 0.0
        for beat in range(1, 5):
            now += HANG_S + 1
            assert not process.hangs(beat, now)
        while not process.hangs(4, now):  # until it has begun to wait
            assert now < 1000 * HANG_S
            now += HANG_S / 2 + 1
            time.sleep(0.01)
        process.stopped_until = now + 1
        assert not process.hangs(4, now)
        popen.kill()
