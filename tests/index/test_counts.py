"""Counts of a handle are exact, whichever threads call it."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import simindex
from simindex.index.counts import Counts

THREADS, CALLS = 8, 300


def side_by_side(call: Callable[[], object]) -> None:
    def run() -> None:
        for _ in range(CALLS):
            call()

    threads = [threading.Thread(target=run) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@pytest.fixture(autouse=True)
def switching(monkeypatch: pytest.MonkeyPatch) -> object:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def test_nothing_is_lost_between_threads() -> None:
    counts = Counts()
    side_by_side(lambda: counts.searched(counts.top, 1, 2, 3, 0.5))
    tally = counts.top
    number = THREADS * CALLS
    assert (tally.calls, tally.asked, tally.found) == (number, 2 * number, 3 * number)
    assert tally.seconds == number / 2


@pytest.mark.slow
def test_calls_of_threads_are_counted(tmp_path: Path) -> None:
    with simindex.open(tmp_path / "i.sim", "n") as index:
        index.append(np.zeros(3, np.uint64))
        index.commit()
        asked = np.array([0, 2**64 - 1], np.uint64)
        side_by_side(lambda: index.query(asked, h=0))
        batch = simindex.Batch(np.array([255 << 40], np.uint64))
        side_by_side(lambda: index.seen_or_add(batch))
        counts = index._handle.counts
        number = THREADS * CALLS
        query = counts.query
        assert (query.calls, query.asked, query.found) == (number, 2 * number, 3 * number)
        assert (counts.seen_or_add.added, counts.seen_or_add.found) == (1, number - 1)
