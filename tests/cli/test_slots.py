"""Reading ahead: order, bounds, errors, and an end on either side."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import closing

import pytest

from simindex.cli import slots
from simindex.cli.slots import read_ahead


def reading_threads() -> list[threading.Thread]:
    return [one for one in threading.enumerate() if one.name == "simindex-reading"]


def test_items_come_in_their_order() -> None:
    assert list(read_ahead(range(1000))) == list(range(1000))
    assert list(read_ahead([])) == []


def test_a_slot_tells_whether_an_item_waits_or_the_end() -> None:
    slot: slots.Slot[int] = slots.Slot()
    assert not slot.waits
    slot.put(1)
    assert slot.waits
    items = iter(slot)
    assert next(items) == 1
    assert not slot.waits
    slot.end(None)
    assert slot.waits


def test_an_error_is_raised_after_the_items_before_it() -> None:
    def failing() -> Iterator[int]:
        yield 1
        yield 2
        raise ValueError("third")

    read = read_ahead(failing())
    assert [next(read), next(read)] == [1, 2]
    with pytest.raises(ValueError, match="third"):
        next(read)


def test_the_next_item_is_made_while_one_is_worked_on_and_no_more() -> None:
    made: list[int] = []
    third = threading.Event()

    def source() -> Iterator[int]:
        for number in range(10):
            made.append(number)
            if number == 2:
                third.set()
            yield number

    read = read_ahead(source())
    assert next(read) == 0
    assert third.wait(30)  # one waits, the next is made
    assert made == [0, 1, 2]
    assert next(read) == 1
    read.close()


@pytest.mark.parametrize(("size", "waiting"), [
    (0, slots.AHEAD_ITEMS), (slots.AHEAD_BYTES // slots.AHEAD_ITEMS, slots.AHEAD_ITEMS),
    (slots.AHEAD_BYTES // 2, 2), (slots.AHEAD_BYTES // 2 + 1, 1), (9 * slots.AHEAD_BYTES, 1),
])
def test_as_many_items_wait_as_memory_allows(size: int, waiting: int) -> None:
    """One more is being made. A large item waits alone."""
    made: list[int] = []
    last = threading.Event()

    def source() -> Iterator[int]:
        for number in range(waiting + 9):
            made.append(number)
            if number == waiting + 1:
                last.set()
            yield number

    slot = slots.Slot[int](lambda item: size)
    with closing(read_ahead(source(), slot)) as read:
        assert next(read) == 0
        assert last.wait(30)
        assert made == list(range(waiting + 2))
        assert list(read) == list(range(1, waiting + 9))


def test_a_slot_tells_once_whether_its_room_was_used_up() -> None:
    slot = slots.Slot[int](lambda item: 0)
    for number in range(slots.AHEAD_ITEMS):
        slot.put(number)
    assert not slot.was_full()
    slot.abandon()
    assert not slot.put(9)  # the room for the end of taking
    assert not slot.was_full()
    putting = threading.Thread(target=slot.put, args=(10,))
    putting.start()
    while not slot.was_full():
        os.sched_yield()
    assert not slot.was_full()
    slot.abandon()
    putting.join(30)
    assert not putting.is_alive()


@pytest.mark.slow
def test_signal_that_the_wait_does_not_see_ends_it() -> None:
    """One that comes just before the main thread waits; here another thread gets it meanwhile."""
    ended = threading.Event()
    in_time: list[bool] = []

    def source() -> Iterator[int]:
        seen = 0
        while seen < 3:  # for it to be where it waits, not on its way there
            frame = sys._current_frames()[threading.main_thread().ident or 0]
            seen += frame.f_code is slots.Slot.__iter__.__code__
            os.sched_yield()
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)
        in_time.append(ended.wait(30))
        yield 1

    with pytest.raises(KeyboardInterrupt):
        list(read_ahead(source()))
    ended.set()
    for thread in reading_threads():
        thread.join()
    assert in_time == [True]


def test_the_source_is_closed_when_the_reader_stops() -> None:
    closed = threading.Event()

    def source() -> Iterator[int]:
        try:
            yield from range(10)
        finally:
            closed.set()

    read = read_ahead(source())
    assert next(read) == 0
    read.close()
    assert closed.wait(30)


def test_the_thread_is_waited_for_when_the_reader_stops() -> None:
    release = threading.Event()

    def source() -> Iterator[int]:
        yield 0
        release.wait(30)
        yield 1

    read = read_ahead(source())
    assert next(read) == 0
    threading.Timer(0.1, release.set).start()
    read.close()
    assert release.is_set()


def test_a_source_that_never_answers_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slots, "LEAVE_S", 0.05)
    asked, answered = threading.Event(), threading.Event()

    def source() -> Iterator[int]:
        yield 0
        asked.set()
        answered.wait()

    read = read_ahead(source())
    assert next(read) == 0
    assert asked.wait(30)
    read.close()
    assert reading_threads()
    answered.set()
    for thread in reading_threads():
        thread.join(30)
        assert not thread.is_alive()
