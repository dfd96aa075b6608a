"""Rows go by their age: which ones, when, and what an age may be."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simindex
from simindex import Batch, IndexOptions
from simindex.errors import InvalidOption, ReadOnlyIndex
from simindex.storage.tables import times

START = 1_000_000_000


class Clock:
    """Seconds since 1970, as the test says."""

    def __init__(self) -> None:
        self.seconds = float(START)

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    own = Clock()
    monkeypatch.setattr(times, "clock", own)
    return own


@pytest.fixture(params=[False, True], ids=["ids", "keys"])
def index(request: pytest.FixtureRequest, index_path: Path) -> Iterator[simindex.Index]:
    options = IndexOptions(times=True, batch_rows=64, min_merge=0, keys=request.param)
    with simindex.open(index_path, "n", options=options) as opened:
        yield opened


def rows(index: simindex.Index, first: int, count: int = 1) -> Batch:
    numbers = range(first, first + count)
    named: dict[str, Any] = {"ids": list(numbers)}
    if index.options.keys:
        named = {"keys": [str(number) for number in numbers]}
    return Batch(np.array(numbers, np.uint64), **named)


def held(index: simindex.Index) -> list[int]:
    return sorted(row for part in index.rows() for row in part.rows[:, 0].tolist())


def test_rows_before_the_cutoff_go_and_the_others_stay(
    index: simindex.Index, clock: Clock
) -> None:
    for number in range(5):
        index.append(rows(index, number))
        clock.seconds += 10
    index.commit()
    assert index.expire(older_than=30) == 2  # the row of number 2 is exactly that old
    assert held(index) == [0, 1, 2, 3, 4]
    index.commit()
    assert held(index) == [2, 3, 4]
    assert [len(index.query(np.array([n], np.uint64), h=0)) for n in range(5)] == [0, 0, 1, 1, 1]
    assert index.expire(older_than=30) == 0
    index.compact(full=True)
    assert held(index) == [2, 3, 4]
    assert index.check() == []


@pytest.mark.parametrize("cutoff", [
    pytest.param(20, id="seconds"),
    pytest.param(np.int64(20), id="numpy seconds"),
    pytest.param(20.0, id="fractional"),
    pytest.param(timedelta(seconds=20), id="timedelta"),
    pytest.param(datetime.fromtimestamp(START + 20, UTC), id="datetime"),
    pytest.param(
        datetime.fromtimestamp(START + 20, timezone(timedelta(hours=9))), id="in another zone"
    ),
])
def test_an_age_is_told_in_several_ways(
    index: simindex.Index, clock: Clock, cutoff: Any
) -> None:
    for number in range(4):
        index.append(rows(index, number))
        clock.seconds += 10
    assert index.expire(older_than=cutoff) == 2
    index.commit()
    assert held(index) == [2, 3]


def test_a_row_never_goes_before_its_time(index: simindex.Index, clock: Clock) -> None:
    """Times are whole seconds, so it may stay up to a second longer."""
    clock.seconds += 0.9
    index.append(rows(index, 1))
    clock.seconds += 1.0
    assert index.expire(older_than=1.2) == 0
    assert index.expire(older_than=0.9) == 1


@pytest.mark.parametrize("bad", [
    -1, -0.001, float("nan"), float("inf"), 10**400, True, None, "30d", [1], np.array([1, 2]),
    1j, timedelta(seconds=-1), date(2020, 1, 1), datetime(2001, 1, 1),
    datetime.fromtimestamp(START + 1, UTC),
], ids=repr)
def test_what_is_no_age_is_refused(index: simindex.Index, clock: Clock, bad: Any) -> None:
    """Also a time that is to come: rows until then would be dead when they come. And a time without
    a zone, which is another one on each machine."""
    index.append(rows(index, 1))
    with pytest.raises(InvalidOption) as caught:
        index.expire(older_than=bad)
    assert caught.value.data["option"] == "older_than"
    assert "timedelta" in (caught.value.remedy or "")
    index.commit()
    assert held(index) == [1]


@pytest.mark.parametrize("age", [10**12, timedelta.max], ids=["seconds", "timedelta"])
def test_an_age_from_before_all_times_deletes_nothing(
    index: simindex.Index, clock: Clock, age: Any
) -> None:
    index.append(rows(index, 1))
    assert index.expire(older_than=age) == 0


def test_an_index_without_times_says_what_to_do(index_path: Path) -> None:
    with simindex.open(index_path, "n") as index:
        index.append(np.array([1], np.uint64))
        with pytest.raises(InvalidOption, match="does not store when") as caught:
            index.expire(older_than=0)
        assert "simindex merge" in (caught.value.remedy or "")
    with pytest.raises(InvalidOption, match="times"):
        simindex.open(index_path, "w", options=IndexOptions(times=True))


def test_options_that_do_not_ask_for_times_open_an_index_with_times(index_path: Path) -> None:
    simindex.open(index_path, "n", options=IndexOptions(times=True)).close()
    with simindex.open(index_path, "c", options=IndexOptions()) as index:
        assert index.options.times


def test_a_reader_refuses(index_path: Path) -> None:
    simindex.open(index_path, "n", options=IndexOptions(times=True)).close()
    with simindex.open(index_path) as index, pytest.raises(ReadOnlyIndex):
        index.expire(older_than=0)


def test_rows_that_wait_expire_too(index: simindex.Index, clock: Clock) -> None:
    """In memory, written ahead as a segment, and added one at a time."""
    index.append(rows(index, 0, 70))  # of which 64 are a segment
    index.seen_or_add(rows(index, 1 << 40), h=0, commit_s=None)
    clock.seconds += 10
    index.append(rows(index, 100, 5))
    before = index.contains(**named(index, 3, 69, 100))
    assert before.tolist() == [True, True, True]
    assert index.expire(older_than=5) == 70  # a row that was added one at a time comes when it is
    assert index.contains(**named(index, 3, 69, 100, 1 << 40)).tolist() == [
        False, False, True, True
    ]  # handed over
    index.commit()
    assert held(index) == [*range(100, 105), 1 << 40]
    assert index.check() == []


def named(index: simindex.Index, *numbers: int) -> dict[str, Any]:
    return {"keys": list(map(str, numbers))} if index.options.keys else {"ids": list(numbers)}


def test_committed_rows_are_not_found_by_name_once_they_expire(
    index: simindex.Index, clock: Clock
) -> None:
    index.append(rows(index, 1))
    index.commit()
    clock.seconds += 10
    assert index.expire(older_than=5) == 1
    assert not index.contains(**named(index, 1))[0]
    assert index.delete(**named(index, 1)) == 0
    index.append(rows(index, 1))
    assert index.contains(**named(index, 1))[0]
    index.commit()
    assert held(index) == [1]


def test_what_is_deleted_or_expired_is_not_counted_again(
    index: simindex.Index, clock: Clock
) -> None:
    for first in (0, 10, 20):
        index.append(rows(index, first, 10))
        index.commit()
        clock.seconds += 10
    index.delete(**named(index, 1, 2, 11))
    assert index.expire(older_than=25) == 8
    assert index.expire(older_than=15) == 9
    index.commit()
    assert held(index) == list(range(20, 30))


def test_a_name_with_a_newer_row_keeps_it(index: simindex.Index, clock: Clock) -> None:
    """Rows expire, and not names."""
    index.append(rows(index, 7))
    index.commit()
    clock.seconds += 10
    index.append(rows(index, 7))
    index.commit()
    assert index.expire(older_than=5) == 1
    index.commit()
    assert held(index) == [7]


def test_a_replaced_row_is_new(index: simindex.Index, clock: Clock) -> None:
    index.append(rows(index, 7))
    index.commit()
    clock.seconds += 10
    index.replace(rows(index, 7))
    index.commit()
    assert index.expire(older_than=5) == 0
    assert held(index) == [7]


@pytest.mark.parametrize("reopened", [False, True])
def test_a_clock_that_goes_back_makes_no_row_expire_before_an_earlier_one(
    index: simindex.Index, clock: Clock, reopened: bool, index_path: Path
) -> None:
    index.append(rows(index, 1))
    index.commit()
    clock.seconds -= 1000
    if reopened:
        index.close()
        index = simindex.open(index_path, "w")
    index.append(rows(index, 2))
    index.commit()
    clock.seconds += 1001
    assert index.expire(older_than=10) == 0
    clock.seconds += 10
    assert index.expire(older_than=10) == 2
    index.close()


def test_no_row_is_dead_when_it_comes(index: simindex.Index, clock: Clock) -> None:
    """Though the clock went back to before what has expired."""
    index.append(rows(index, 1))
    clock.seconds += 100
    assert index.expire(older_than=50) == 1
    index.commit()
    clock.seconds -= 90
    index.append(rows(index, 2))
    index.commit()
    assert held(index) == [2]


@pytest.mark.parametrize("seconds", [-5.0, 2.0**33, float(times.LAST_TIME)])
def test_a_clock_out_of_range_loses_nothing(
    index: simindex.Index, clock: Clock, seconds: float
) -> None:
    clock.seconds = seconds
    index.append(rows(index, 1))
    assert index.expire(older_than=0) == 0
    index.commit()
    assert held(index) == [1]
    assert index.stats().oldest == min(max(0, int(seconds)), times.LAST_TIME)


def test_discard_forgets_it(index: simindex.Index, clock: Clock) -> None:
    index.append(rows(index, 1))
    index.commit()
    clock.seconds += 100
    assert index.expire(older_than=50) == 1
    index.discard()
    index.commit()
    assert held(index) == [1]


def test_a_reader_of_an_earlier_commit_keeps_its_rows(
    index: simindex.Index, clock: Clock
) -> None:
    """Also after a merge has dropped them."""
    index.append(rows(index, 0, 64))
    index.commit()
    clock.seconds += 100
    index.append(rows(index, 100, 3))
    index.commit()
    with simindex.open(index.path, refresh=False) as pinned, simindex.open(index.path) as follows:
        assert len(pinned) == len(follows) == 67
        index.expire(older_than=50)
        index.commit()
        index.compact(full=True)
        assert held(pinned) == [*range(64), 100, 101, 102]
        assert len(pinned.query(np.array([5], np.uint64), h=0)) == 1
        assert held(follows) == [100, 101, 102]
        assert len(follows.query(np.array([5], np.uint64), h=0)) == 0
        assert len(follows) == 3


def test_every_method_and_pair_knows_what_has_expired(
    index_path: Path, clock: Clock, rng: np.random.Generator
) -> None:
    values = rng.integers(0, 2**63, 300, dtype=np.uint64)
    options = IndexOptions(
        times=True, min_merge=0, batch_rows=64, structures=("psm", "bphs:G=4,g=1", "issl")
    )
    with simindex.open(index_path, "n", options=options) as index:
        index.append(values[:150], ids=range(150))
        clock.seconds += 100
        index.append(values[150:], ids=range(150, 300))
        index.append(values[:20] ^ np.uint64(1), ids=range(300, 320))
        index.commit()
        index.expire(older_than=50)
        index.commit()
        for method in ("psm", "bphs", "scan"):
            found = index.query(values, h=0, method=method)
            assert sorted(found.id.tolist()) == list(range(150, 300))
        assert len(index.query(values, h=0, first=True)) == 150
        assert min(part.id.min() for part in index.query_stream(values, h=0)) >= 150
        assert index.top(values[:150], k=1).id.min() >= 150
        assert index.top(values[:150], k=1, method="issl").id.min() >= 150
        assert sum(map(len, index.pairs(h=1))) == 0
        assert index.clusters(h=1).id.min() >= 150
        assert len(index) == 170
        assert index.stats().dead_rows == 150


def sizes(path: Path) -> tuple[int, int]:
    files = 0
    for file in (path / "segments").iterdir():
        with suppress(FileNotFoundError):  # one that a merge has just renamed or removed
            files += file.stat().st_size
    return files, (path / "catalog" / "data.mdb").stat().st_size


@pytest.mark.slow
@pytest.mark.parametrize("keys", [False, True], ids=["ids", "keys"])
def test_a_sliding_window_keeps_the_size_of_an_index(
    index_path: Path, clock: Clock, rng: np.random.Generator, keys: bool
) -> None:
    """By commits alone: 20 windows pass, and the disk never has four of them."""
    window, step = 10_000, 1_000
    options = IndexOptions(times=True, keys=keys, batch_rows=16_384)
    largest = [0, 0]
    with simindex.open(index_path, "n", options=options) as index:
        for number in range(20 * window // step):
            clock.seconds += step
            values = rng.integers(0, 2**63, step, dtype=np.uint64)
            index.append(values, keys=[f"{number}/{i}" for i in range(step)] if keys else None)
            index.expire(older_than=window - 1)
            index.commit()
            assert len(index) == min(number + 1, window // step) * step
            if number >= 10 * window // step:
                largest = [max(pair) for pair in zip(largest, sizes(index_path), strict=True)]
            elif number == 10 * window // step - 1:
                settled = sizes(index_path)
        assert index.check() == []
        assert index.stats().tombstones == 0
    bytes_a_row = 60 if keys else 46
    assert largest[0] < 4 * window * bytes_a_row
    assert largest[1] < 2 * settled[1]
