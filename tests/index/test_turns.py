"""Threads take turns in the order in which they come, and nothing that ends a call stops them."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest
from children import in_child

import simindex
from simindex import Batch
from simindex.errors import ClosedIndex
from simindex.index import turns
from simindex.index.turns import Turns

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")

PATIENCE_S = 20.0


class Clock:
    """That stands still until it is told."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(turns, "monotonic", made)
    return made


def happens(what: Callable[[], bool]) -> bool:
    """Whether it becomes so within a time that is long for any machine."""
    end = time.monotonic() + PATIENCE_S
    while not what() and time.monotonic() < end:
        time.sleep(0.001)
    return what()


class Caller(threading.Thread):
    """Makes one call in a thread of its own, and notes its name meanwhile."""

    def __init__(self, of: Turns, name: str, met: list[str]) -> None:
        super().__init__(daemon=True)
        self.of, self.met, self.call = of, met, name
        self.start()

    def run(self) -> None:
        with self.of:
            self.met.append(self.call)


def queued(of: Turns, count: int) -> bool:
    return happens(lambda: len(of._queue) == count)


def comes_straight_back(of: Turns) -> None:
    """So that it is expected to do so again."""
    for _ in range(2):
        with of:
            pass


# Order -------------------------------------------------------------------------------------------


def test_threads_are_called_in_the_order_in_which_they_came(clock: Clock) -> None:
    of, met, callers = Turns(), list[str](), list[Caller]()
    with of:
        for name in "abcdef":
            callers.append(Caller(of, name, met))
            assert queued(of, len(callers))
        assert met == []
    for caller in callers:
        caller.join(PATIENCE_S)
    assert met == list("abcdef")


def test_a_thread_that_comes_straight_back_keeps_its_turn_until_it_is_over(clock: Clock) -> None:
    of, met = Turns(), list[str]()
    comes_straight_back(of)
    with of:
        other = Caller(of, "other", met)
        assert queued(of, 1)
    for _ in range(100):
        with of:
            time.sleep(turns.MOST_TURN_S / 10)  # the other looks meanwhile, and waits on
            clock.now += turns.MOST_TURN_S / 200
    assert met == []
    with of:
        clock.now += turns.MOST_TURN_S
    other.join(PATIENCE_S)
    assert met == ["other"]


def test_a_turn_that_is_over_between_two_calls_is_passed_on_by_the_next(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others need not wait until they look themselves, which they do when turns are over."""
    monkeypatch.setattr(turns, "ROUND_S", 10 * PATIENCE_S)
    monkeypatch.setattr(turns, "MOST_TURN_S", 10 * PATIENCE_S)
    of, met, others = Turns(), list[str](), list[Caller]()

    def loop() -> None:
        comes_straight_back(of)
        with of:
            others.append(Caller(of, "other", met))
            assert queued(of, 1)
        clock.now = of._turn.ends
        with of:
            met.append("next")

    thread = threading.Thread(target=loop, daemon=True)
    thread.start()
    thread.join(PATIENCE_S)
    assert met == ["other", "next"]
    others[0].join(PATIENCE_S)


def test_a_turn_that_nobody_waits_for_begins_anew(clock: Clock) -> None:
    of, met = Turns(), list[str]()
    comes_straight_back(of)
    clock.now += 10 * turns.MOST_TURN_S
    comes_straight_back(of)
    with of:
        other = Caller(of, "other", met)
        assert queued(of, 1)
    with of:
        pass
    assert met == []
    clock.now += 2 * turns.BACK_S
    other.join(PATIENCE_S)


def test_a_thread_that_stays_away_loses_its_turn(clock: Clock) -> None:
    """Whoever waited sees it without being called."""
    of, met = Turns(), list[str]()
    comes_straight_back(of)
    with of:
        others = [Caller(of, "first", met)]
        assert queued(of, 1)
        others.append(Caller(of, "second", met))
        assert queued(of, 2)
    time.sleep(4 * turns.MOST_TURN_S)
    assert met == []
    clock.now += 2 * turns.BACK_S
    for other in others:
        other.join(PATIENCE_S)
    assert met == ["first", "second"]


def test_a_thread_that_works_between_its_calls_passes_each_turn_on(clock: Clock) -> None:
    of, met = Turns(), list[str]()
    for name in "abc":
        clock.now += 2 * turns.BACK_S  # of work
        with of:
            other = Caller(of, name, met)
            assert queued(of, 1)
        other.join(PATIENCE_S)
        assert met[-1] == name


def test_a_thread_that_ends_passes_its_turn_on_at_once(clock: Clock) -> None:
    """Others wait until its turn is over, since it was expected back; here it never would be."""
    of, met, over = Turns(), list[str](), threading.Event()

    def loop() -> None:
        comes_straight_back(of)
        with of:
            others.append(Caller(of, "first", met))
            assert queued(of, 1)
            others.append(Caller(of, "second", met))
            assert queued(of, 2)
        over.wait(PATIENCE_S)

    others = list[Caller]()
    thread = threading.Thread(target=loop)
    thread.start()
    assert queued(of, 2)
    time.sleep(4 * turns.MOST_TURN_S)
    assert met == []
    over.set()
    for other in others:
        other.join(PATIENCE_S)
    assert met == ["first", "second"]


def test_a_call_within_a_call_is_a_part_of_it(clock: Clock) -> None:
    of, met = Turns(), list[str]()
    with of:
        other = Caller(of, "other", met)
        assert queued(of, 1)
        with of:
            clock.now += turns.MOST_TURN_S
        assert met == []
        with of:
            pass
    other.join(PATIENCE_S)
    assert met == ["other"]


def test_no_thread_is_passed_over() -> None:
    """Eight threads that call without a pause have all been called before one is called again."""
    of, lock, order, done = Turns(), threading.Lock(), list[int](), threading.Event()
    begin = threading.Barrier(8)

    def call() -> None:
        begin.wait()
        while not done.is_set():
            with of, lock:
                order.append(threading.get_ident())

    threads = [threading.Thread(target=call) for _ in range(8)]
    for thread in threads:
        thread.start()
    # Once all are in the queue, which takes a turn each on a machine that is busy otherwise.
    assert happens(lambda: len(set(order)) == 8)
    seen = len(order)
    assert happens(lambda: len(set(order[seen:])) == 8)
    done.set()
    for thread in threads:
        thread.join(PATIENCE_S)
    heard = [one for one, before in zip(order[seen:], order[seen - 1 :], strict=False)
             if one != before]
    between = [
        len(set(heard[first:last])) for first, last in _repeats(heard)
    ]
    assert not between or min(between) >= 4, "a thread was called twice while others waited"


def _repeats(heard: list[int]) -> Iterator[tuple[int, int]]:
    """Places of a thread's turn, and of its next one."""
    last: dict[int, int] = {}
    for place, one in enumerate(heard):
        if one in last:
            yield last[one], place
        last[one] = place


# Beside each other -------------------------------------------------------------------------------


class Loop(threading.Thread):
    """Makes a call each time it is told, and says whether it ran beside another one."""

    def __init__(self, of: Turns) -> None:
        super().__init__(daemon=True)
        self.of, self.told = of, list[bool]()
        self._go, self._gone = threading.Semaphore(0), threading.Semaphore(0)
        self.start()

    def run(self) -> None:
        while True:
            self._go.acquire()
            with self.of.beside as accompanied:
                self.told.append(accompanied)
            self._gone.release()

    def begin(self) -> None:
        self._go.release()

    def ended(self) -> bool:
        return self._gone.acquire(timeout=PATIENCE_S)

    def call(self) -> bool:
        self.begin()
        assert self.ended()
        return self.told[-1]


def makes_such_calls(of: Turns) -> None:
    for _ in range(2):
        with of.beside as accompanied:
            assert not accompanied


def another(of: Turns) -> Loop:
    """A thread that may join at its next call; this one has the turn."""
    other = Loop(of)
    other.call()  # after the first call it is not expected back
    makes_such_calls(of)
    return other


def test_two_threads_run_calls_of_a_kind_beside_each_other(clock: Clock) -> None:
    of = Turns()
    other = another(of)
    with of.beside:
        assert other.call()
        assert other.call()
        with of.beside as accompanied:
            assert not accompanied, "a call within a call is a part of it"
    with of.beside as accompanied:
        assert accompanied


def test_a_third_thread_waits_until_a_turn_is_over(clock: Clock) -> None:
    of = Turns()
    other = another(of)
    with of.beside:
        assert other.call()
        third = Loop(of)
        third.begin()
        assert queued(of, 1)
        assert other.call()
        assert third.told == []
        clock.now = of._turn.ends
    assert third.ended()


def test_a_call_of_another_kind_runs_beside_none(clock: Clock) -> None:
    of, met = Turns(), list[str]()
    other = another(of)
    with of.beside:
        assert other.call()
        Caller(of, "exclusive", met)
        assert queued(of, 1)
        other.begin()
        assert queued(of, 2), "it does not overtake the first in the queue"
        clock.now = of._turn.ends
    assert other.ended()
    assert met == ["exclusive"]


def test_none_joins_the_turn_of_another_kind_of_call(clock: Clock) -> None:
    of = Turns()
    other = another(of)
    with of:
        other.begin()
        assert queued(of, 1)
        clock.now = of._turn.ends
    assert other.ended()


@pytest.mark.parametrize("pauses", ["the turn", "the other"])
def test_a_thread_that_pauses_between_calls_is_no_companion(clock: Clock, pauses: str) -> None:
    """It would have to wait for the interpreter's lock at each of its calls."""
    of = Turns()
    other = another(of)
    clock.now += turns.QUICK_S
    if pauses == "the other":
        makes_such_calls(of)
    with of.beside:
        if pauses == "the turn":
            of._own.caller.quick = False
        other.begin()
        assert queued(of, 1)
        clock.now = of._turn.ends
    assert other.ended()


@pytest.mark.parametrize("why", ["one processor", "turns are faster"])
def test_no_thread_joins_where_it_would_be_slower(clock: Clock, why: str) -> None:
    of = Turns(most=1 if why == "one processor" else 2)
    other = another(of)
    of._pace.paired = why == "one processor"
    with of.beside:
        other.begin()
        assert queued(of, 1)
        clock.now = of._turn.ends
    assert other.ended()


def test_a_second_thread_goes_once_turns_are_faster(clock: Clock) -> None:
    of = Turns()
    other = another(of)
    with of.beside:
        assert other.call()
        of._pace.paired = False
        other.begin()
        assert queued(of, 1)
        clock.now = of._turn.ends
    assert other.ended()


def test_a_place_beside_the_turn_is_passed_on(clock: Clock) -> None:
    """To the first in the queue, if it makes such calls without a pause."""
    of = Turns()
    other, third = Loop(of), Loop(of)
    other.call()
    third.call()
    makes_such_calls(of)
    with of.beside:
        assert other.call()
        third.begin()
        assert queued(of, 1)
        clock.now = of._second.ends
        of._turn.ends += 1.0
        other.begin()
        assert third.ended()
        assert third.told[-1]
        assert queued(of, 1)
        clock.now = of._turn.ends
    assert other.ended()


# What ends a call --------------------------------------------------------------------------------


def test_an_error_passes_the_turn_on(clock: Clock) -> None:
    of, met = Turns(), list[str]()
    with pytest.raises(KeyError), of:
        other = Caller(of, "other", met)
        assert queued(of, 1)
        raise KeyError
    other.join(PATIENCE_S)
    assert met == ["other"]


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="no signals for one thread")
def test_an_interrupt_while_it_waits_takes_a_thread_out_of_the_queue() -> None:
    of, met, go = Turns(), list[str](), threading.Event()

    def hold() -> None:
        with of:
            go.wait(PATIENCE_S)

    holder = threading.Thread(target=hold)
    holder.start()
    assert happens(lambda: of._turn.left == float("inf"))

    def interrupt() -> None:
        queued(of, 1)
        Caller(of, "behind", met)
        queued(of, 2)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        interrupter = threading.Thread(target=interrupt)
        interrupter.start()
        with pytest.raises(KeyboardInterrupt), of:
            raise AssertionError("it was not its turn")
    finally:
        signal.signal(signal.SIGINT, before)
    interrupter.join(PATIENCE_S)
    assert queued(of, 1)
    go.set()
    assert happens(lambda: met == ["behind"])
    with of:
        met.append("again")
    holder.join(PATIENCE_S)


class Interrupted(BaseException):
    pass


@contextmanager
def interrupted_at(event: int) -> Iterator[list[str]]:
    """Raises at so many lines of the module that this thread passes; gives which it was."""
    left, where = [event], list[str]()

    def line(frame: FrameType, kind: str, _: Any) -> Any:
        if kind == "line":
            left[0] -= 1
            if left[0] == 0:
                where.append(f"{frame.f_code.co_name}:{frame.f_lineno}")
                raise Interrupted
        return line

    def called(frame: FrameType, kind: str, _: Any) -> Any:
        return line if frame.f_code.co_filename == turns.__file__ else None

    sys.settrace(called)
    try:
        yield where
    finally:
        sys.settrace(None)


@pytest.mark.parametrize("beside", [False, True])
@pytest.mark.parametrize("contended", [False, True])
@pytest.mark.slow
def test_an_interrupt_at_any_line_keeps_no_thread_waiting(
    monkeypatch: pytest.MonkeyPatch, contended: bool, beside: bool
) -> None:
    """Of `with` while others wait before and behind it, or nobody does."""
    monkeypatch.setattr(turns, "PATIENCE_S", 0.02)
    passed = 0
    for event in range(1, 200):
        of, met, others = Turns(), list[str](), list[Caller]()
        holds, go, over = threading.Event(), threading.Event(), threading.Event()

        def hold(of: Turns = of, holds: threading.Event = holds,
                 go: threading.Event = go) -> None:
            with of:
                holds.set()
                go.wait(PATIENCE_S)

        holder = threading.Thread(target=hold if contended else holds.set)
        holder.start()
        assert holds.wait(PATIENCE_S)

        def come(of: Turns = of, met: list[str] = met, others: list[Caller] = others,
                 go: threading.Event = go, over: threading.Event = over) -> None:
            happens(lambda: len(of._queue) == 1 or over.is_set())
            others.append(Caller(of, "behind", met))
            happens(lambda: len(of._queue) == 2 or over.is_set())
            go.set()

        behind = threading.Thread(target=come if contended else go.set)
        behind.start()
        where: list[str] = []
        try:
            with interrupted_at(event) as where, of.beside if beside else of:
                pass
        except Interrupted:
            pass
        over.set()
        behind.join(PATIENCE_S)
        go.set()
        others.append(Caller(of, "later", met))
        for other in others:
            other.join(PATIENCE_S)
            assert not other.is_alive(), f"{where} keeps a thread waiting"
        with of:
            met.append("again")
        holder.join(PATIENCE_S)
        assert not of._queue, where
        passed += bool(where)
        if not where:
            break
    else:
        raise AssertionError("the call never ends")
    assert passed >= (20 if contended else 15)


def test_what_nobody_will_end_is_overruled(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread that ends within its call leaves its turn behind, and a ticket in the queue."""
    monkeypatch.setattr(turns, "PATIENCE_S", 0.02)
    of, met = Turns(), list[str]()
    gone = threading.Thread(target=of.__enter__)
    gone.start()
    gone.join(PATIENCE_S)
    of._queue.append(turns._Ticket(turns._Caller()))
    others = [Caller(of, name, met) for name in "abc"]
    for other in others:
        other.join(PATIENCE_S)
    assert sorted(met) == list("abc")
    assert not of._queue


# Of an index -------------------------------------------------------------------------------------


def calls(index: simindex.Index) -> dict[str, Callable[[], Any]]:
    """Those that take the lock."""
    one = Batch(np.array([1 << 40], np.uint64), ids=[99])
    return {
        "append": lambda: index.append(one),
        "replace": lambda: index.replace(one),
        "delete": lambda: index.delete(ids=[1]),
        "commit": lambda: index.commit(),
        "discard": lambda: index.discard(),
        "compact": lambda: index.compact(),
        "ingest": lambda: index.ingest(one),
        "seen_or_add": lambda: index.seen_or_add(one),
        "contains": lambda: index.contains(ids=[1]),
        "close": lambda: index.close(),
    }


@pytest.mark.parametrize("name", calls(None))  # type: ignore[arg-type]
def test_every_call_that_takes_the_lock_waits_for_its_turn(index_path: Path, name: str) -> None:
    with simindex.open(index_path, "n") as index:
        index.append(np.array([3], np.uint64), ids=[1])
        of = index._handle.turns
        with of:
            thread = threading.Thread(target=calls(index)[name])
            thread.start()
            assert queued(of, 1)
            thread.join(0.01)
            assert thread.is_alive()
        thread.join(PATIENCE_S)
        assert not thread.is_alive()


def test_threads_that_wait_are_told_of_a_close(index_path: Path) -> None:
    index = simindex.open(index_path, "n")
    of, told, threads = index._handle.turns, list[str](), list[threading.Thread]()

    def call(name: str) -> None:
        try:
            calls(index)[name]()
        except ClosedIndex:
            told.append(name)

    with of, index._handle.lock:
        for name in ("append", "seen_or_add", "commit"):
            threads.append(threading.Thread(target=call, args=(name,)))
            threads[-1].start()
            assert queued(of, len(threads))
        index.close()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert told == ["append", "seen_or_add", "commit"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks")
def test_a_forked_child_waits_for_no_thread_of_its_parent(index_path: Path) -> None:
    with simindex.open(index_path, "n") as index:
        of = index._handle.turns
        with of, index._handle.lock:
            thread = threading.Thread(target=index.commit)
            thread.start()
            assert queued(of, 1)

            def child() -> None:
                for name, call in calls(index).items():
                    try:
                        call()
                    except ClosedIndex:
                        continue
                    assert name == "close"

            assert in_child(child) == 0
        thread.join(PATIENCE_S)
