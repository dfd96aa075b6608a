"""What stands for a half of an index until a call needs it."""

from __future__ import annotations

import threading
import time
import weakref
from pathlib import Path

import simindex
from simindex.index.deferred_half import DeferredHalf
from simindex.index.opening import opened


def test_it_is_made_once_when_it_is_first_asked_for() -> None:
    made: list[str] = []

    def make() -> str:
        made.append("made")
        return "text"

    late = DeferredHalf(make)
    assert made == []
    assert late.upper() == "TEXT" and late.title() == "Text"
    assert made == ["made"]


def test_threads_that_ask_at_once_get_the_same() -> None:
    made: list[str] = []

    def make() -> str:
        time.sleep(0.02)
        made.append("made")
        return "text"

    late, begin = DeferredHalf(make), threading.Barrier(4)

    def ask() -> None:
        begin.wait()
        assert late.upper() == "TEXT"

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == ["made"]


def test_an_index_that_is_opened_briefly_goes_when_nobody_refers_to_it(index_path: Path) -> None:
    simindex.open(index_path, "n").close()
    index = opened(index_path, "w", brief=True)
    index.append([1, 2, 3])
    index.commit()
    assert [match.distance for match in index.query([2], h=0)] == [0]
    gone = weakref.ref(index)
    del index
    assert gone() is None
    with opened(index_path, "w", brief=True) as again:  # the lock is free
        assert len(again) == 3
