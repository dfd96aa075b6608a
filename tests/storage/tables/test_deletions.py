"""Deletions kill what a list of (id, key, commit) would kill, in whatever runs they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simindex.storage.tables import deletions
from simindex.storage.tables.deletions import NOTHING_DEAD, Deletions, Sampled
from simindex.storage.tables.keys import KeyHeap
from simindex.storage.tables.row_names import Names
from simindex.storage.tables.table import Table
from simindex.storage.tables.tombstones import Tombstones, from_deletions

Key = tuple[int, str]
"""Its id and its bytes: keys collide at will."""

Triple = tuple[int, str, int]
"""Id, key, commit."""

# Few values, so that they meet; the largest, where an empty search ends; and ids that the filter of
# short runs takes for one.
IDS = st.sampled_from([0, 1, 1 + (1 << 40), 2**63, 2**64 - 1])
KEYS = st.sampled_from(["", "a", "bb", "c"])
TRIPLES = st.lists(st.tuples(IDS, KEYS, st.integers(1, 6)), max_size=12)
RUNS = st.lists(TRIPLES, max_size=4)
ROWS = st.lists(st.tuples(IDS, KEYS), max_size=12)
HORIZONS = st.integers(0, 6)
TIMES = st.none() | st.lists(st.integers(1, 5), min_size=12, max_size=12)
EXPIRED = st.integers(0, 6)


def table_of(
    rows: Sequence[Key], horizon: int, *, keyed: bool, times: Sequence[int] | None = None
) -> Table:
    return Table(
        "t", np.zeros((len(rows), 1), np.uint64), np.array([i for i, _ in rows], np.uint64),
        KeyHeap.of([key for _, key in rows]) if keyed else None, horizon=horizon, header_bits=0,
        times=None if times is None else np.array(times[: len(rows)], np.uint32),
    )


def run_of(triples: Sequence[Triple], *, keyed: bool) -> Tombstones:
    ids, commit = (np.array([t[i] for t in triples], np.uint64) for i in (0, 2))
    keys = KeyHeap.of([t[1] for t in triples]) if keyed else None
    return Tombstones.of(ids, np.zeros(len(triples), np.uint64), commit, keys)


def deletions_of(
    runs: Sequence[Sequence[Triple]], *, keyed: bool, expired: int = 0
) -> Deletions:
    return Deletions([run_of(run, keyed=keyed) for run in runs], expired)


def expected(
    runs: Sequence[Sequence[Triple]], rows: Sequence[Key], horizon: int, keyed: bool,
    times: Sequence[int] | None = None, expired: int = 0,
) -> list[bool]:
    return [
        any(
            i == row_id and commit > horizon and (not keyed or key == row_key)
            for run in runs for i, key, commit in run
        ) or (times is not None and times[place] < expired)
        for place, (row_id, row_key) in enumerate(rows)
    ]


@pytest.fixture(scope="module", params=["filtered", "looked up"])
def ways(request: pytest.FixtureRequest) -> Iterator[None]:
    """Few deletions are filtered, many are not."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "looked up":
            patch.setattr(deletions, "FILTERED", -1)
        yield


@settings(max_examples=200)
@given(
    runs=RUNS, rows=ROWS, horizon=HORIZONS, keyed=st.booleans(), times=TIMES, expired=EXPIRED,
    time=EXPIRED,
)
@pytest.mark.slow
def test_dead_rows_are_those_of_a_list(
    ways: None, runs: list[list[Triple]], rows: list[Key], horizon: int, keyed: bool,
    times: list[int] | None, expired: int, time: int,
) -> None:
    table = table_of(rows, horizon, keyed=keyed, times=times)
    every = np.arange(len(rows), dtype=np.int64)
    dead = deletions_of(runs, keyed=keyed, expired=expired)
    wanted = expected(runs, rows, horizon, keyed, times, expired)
    assert dead.live_before(table, time) == sum(
        times is not None and times[place] < time and not gone for place, gone in enumerate(wanted)
    )
    assert dead.dead(table, table.ids, every).tolist() == wanted
    parts = [part.tolist() for _, part in dead.dead_parts(table)]
    assert [one for part in parts for one in part] == wanted or (not parts and not any(wanted))
    assert dead.count(table) == sum(wanted)
    bits = dead.live_bits(table)
    if bits is None:
        assert not dead.concerns(table)
    else:
        assert np.unpackbits(bits, count=len(rows)).tolist() == [not one for one in wanted]
    found = Sampled.of(table).advanced(table, dead, 6)
    assert found.share == sum(wanted) / max(1, len(rows))


@given(
    runs=RUNS, rows=ROWS, horizon=HORIZONS, times=TIMES, expired=EXPIRED, data=st.data()
)
@pytest.mark.slow
def test_alive_rows_of_a_slice_are_counted_from_its_start(
    runs: list[list[Triple]], rows: list[Key], horizon: int, times: list[int] | None, expired: int,
    data: st.DataObject,
) -> None:
    start = data.draw(st.integers(0, len(rows)))
    stop = data.draw(st.integers(start, len(rows)))
    table = table_of(rows, horizon, keyed=True, times=times)
    alive = deletions_of(runs, keyed=True, expired=expired).alive(table, start, stop)
    dead = expected(runs, rows, horizon, True, times, expired)[start:stop]
    if alive is None:
        assert not any(dead)
    else:
        assert alive.tolist() == [i for i, killed in enumerate(dead) if not killed]


@settings(max_examples=200)
@given(
    commits=st.lists(st.lists(st.tuples(IDS, KEYS), max_size=3), min_size=1, max_size=6),
    rows=ROWS, horizon=HORIZONS, keyed=st.booleans(), times=TIMES, data=st.data(),
)
@pytest.mark.slow
def test_what_is_known_of_a_table_is_advanced_by_later_commits(
    ways: None, commits: list[list[Key]], rows: list[Key], horizon: int, keyed: bool,
    times: list[int] | None, data: st.DataObject,
) -> None:
    """Also where runs were merged meanwhile, or commits were not looked at."""
    table, expired = table_of(rows, horizon, keyed=keyed, times=times), 0
    known, sampled = NOTHING_DEAD, Sampled.of(table)
    runs: list[Tombstones] = []
    every: list[Triple] = []
    for commit, names in enumerate(commits, 1):
        new = [(i, key, commit) for i, key in names]
        every += new
        runs.append(run_of(new, keyed=keyed))
        if data.draw(st.booleans()):
            runs = [Tombstones.merged(runs, keyed=keyed)]
        expired += data.draw(st.integers(0, 2))
        if data.draw(st.booleans()) or commit == len(commits):
            known = known.advanced(table, Deletions(runs, expired), commit)
            sampled = sampled.advanced(table, Deletions(runs, expired), commit)
            wanted = expected([every], rows, horizon, keyed, times, expired)
            mask = known.mask(len(rows))
            assert ([] if mask is None else mask.tolist()) == (wanted if any(wanted) else [])
            assert known.count == sum(wanted)
            assert sampled.share == sum(wanted) / max(1, len(rows))


def test_only_later_commits_concern_a_table() -> None:
    one = from_deletions([Names.of_ids(np.array([1], np.uint64))], [5], keyed=False)
    dead = Deletions([one])
    assert dead.concerns(table_of([], 4, keyed=False))
    assert not dead.concerns(table_of([], 5, keyed=False))
    assert not Deletions().concerns(table_of([], 0, keyed=False))
    assert [len(run) for run in dead.since(4).runs] == [1]
    assert dead.since(5).runs == ()


def test_only_older_tables_have_expired() -> None:
    """A table without times never has, and a table without rows has none to look at."""
    table = table_of([(1, ""), (2, "")], 5, keyed=False, times=[7, 9])
    assert not Deletions((), 7).concerns(table)
    assert Deletions((), 8).concerns(table)
    assert not Deletions((), 8).concerns(table_of([(1, "")], 5, keyed=False))
    assert not Deletions((), 8).concerns(table_of([], 5, keyed=False, times=[]))


def test_later_deletions_join_without_a_merge() -> None:
    """A commit costs what it deletes, however much was deleted before it."""
    old = run_of([(i, "", 1) for i in range(1000)], keyed=False)
    new = run_of([(7, "", 2)], keyed=False)
    both = Deletions([old]).and_later(new)
    assert both.runs[0] is old and both.runs[1] is new
    assert (len(both), both.newest) == (1001, 2)
    assert both.and_later(run_of([], keyed=False)) is both
    assert both.and_later(run_of([], keyed=False), 5).and_later(new, 3).expired == 5


def test_a_sample_tells_about_how_many_rows_are_deleted() -> None:
    rng = np.random.default_rng(5)
    count = 200_000
    ids = rng.permutation(count).astype(np.uint64)
    table = Table("t", np.zeros((count, 1), np.uint64), ids, None, horizon=0, header_bits=0)
    sampled = Sampled.of(table)
    assert len(sampled.rows) == len(np.unique(sampled.rows)) == 4096
    for commit, share in enumerate((0.1, 0.34, 0.5), 1):
        gone = np.arange(round(share * count), dtype=np.uint64)
        run = from_deletions([Names.of_ids(gone)], [commit], keyed=False)
        sampled = sampled.advanced(table, Deletions([run]), commit)
        assert abs(sampled.share - share) < 0.03
    assert sampled.advanced(table, Deletions([run]), 4).dead is sampled.dead


@pytest.mark.parametrize("count", [1, 40_000], ids=["filtered", "looked up"])
def test_all_rows_of_a_large_table_are_looked_at(count: int) -> None:
    rows = 3 * deletions.READ_ROWS + 5
    ids = np.arange(rows, dtype=np.uint64)[::-1].copy()
    table = Table("t", np.zeros((rows, 1), np.uint64), ids, None, horizon=0, header_bits=0)
    gone = np.random.default_rng(2).choice(rows, count, replace=False).astype(np.uint64)
    halves = [gone[: count // 2], gone[count // 2 :]]
    dead = Deletions([
        from_deletions([Names.of_ids(half)], [1], keyed=False) for half in halves
    ])
    known = NOTHING_DEAD.advanced(table, dead, 1)
    mask = known.mask(rows)
    assert mask is not None
    assert known.count == count
    assert set(ids[mask == 1].tolist()) == set(gone.tolist())
