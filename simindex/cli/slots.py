"""Items that a thread of its own makes while those before are worked on.

    thread of its own   source -> item | item        one made, one or some waiting
    the main thread                      item -> fingerprints, index, output

Fingerprinting and searching let go of the interpreter, so both sides run at once. Errors arrive as
they would without: Ctrl-C is raised in the main thread, and what reading raises once all that was
read before is done.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Generic, TypeVar

from simindex.cli.app import uninterrupted
from simindex.values import dataclass

T = TypeVar("T")

AHEAD_ITEMS, AHEAD_BYTES = 4, 24 << 20
"""Where several items may wait, at most so many, of about so much memory; or one. So a thread that
is faster now and slower then works on meanwhile."""

WAKE_S = 0.5
"""A signal that comes just before the main thread waits is seen when it wakes."""

LEAVE_S = 1.0
"""Who takes no more waits so long for the thread to end. Python aborts if it exits while a thread
is within a library such as pyarrow."""


def read_ahead(
    source: Iterable[T], slot: Slot[T] | None = None
) -> Generator[T, None, None]:
    """The items of `source`, in order; the next are made by another thread meanwhile.

    One item waits and one is being made at most, unless the caller's `slot` has room for more; it
    tells whether one waits. What `source` raises is raised here, after the items before it. The
    thread is waited for when this iterator ends or is closed, for `LEAVE_S` at most: a pipe that
    nobody writes to may hold it.
    """
    slot = Slot() if slot is None else slot
    left: SimpleQueue[None] = SimpleQueue()
    started = False
    try:
        # A signal that is raised within `start` may end in an error of its lock.
        with uninterrupted():
            Thread(
                target=_run, args=(slot, source, left), name="simindex-reading", daemon=True
            ).start()
            started = True
        yield from slot
    finally:
        slot.abandon()
        if started:
            with suppress(Empty):
                left.get(timeout=LEAVE_S)


def _run(slot: Slot[T], source: Iterable[T], left: SimpleQueue[None]) -> None:
    try:
        _fill(slot, source)
    finally:  # what the frame of the call held is released
        left.put(None)


def _fill(slot: Slot[T], source: Iterable[T]) -> None:
    # The interpreter closes standard input as it exits, and aborts if a thread is reading it then;
    # not if that thread, which is never resumed, still refers to it.
    standard_input = sys.stdin  # noqa: F841
    error: BaseException | None = None
    try:
        for item in source:
            if not slot.put(item):
                break
        close = getattr(source, "close", None)
        if close is not None:
            close()
    except BaseException as raised:  # the other thread raises it
        error = raised
    slot.end(error)


@dataclass(frozen=True, slots=True)
class _End:
    error: BaseException | None


class Slot(Generic[T]):
    """Hands items from one thread to another.

    By queues, for a signal that is raised while a Condition is waited for leaves its lock as none
    of its users expects.

    Parameters
    ----------
    size_of : callable, optional
        What an item takes in memory. With it `AHEAD_ITEMS` may wait, of `AHEAD_BYTES` at most, or
        one that is larger. Without it one waits.
    """

    def __init__(self, size_of: Callable[[T], int] | None = None) -> None:
        self._size_of = size_of
        self._items: SimpleQueue[tuple[T, int] | _End] = SimpleQueue()
        self._room: SimpleQueue[None] = SimpleQueue()
        """An entry for each share of the room that is free, and one for the end of taking."""
        for _ in range(1 if size_of is None else AHEAD_ITEMS):
            self._room.put(None)
        self._abandoned = self._was_full = False

    def _shares(self, item: T) -> int:
        """How many shares of the room it takes; a large item takes all."""
        if self._size_of is None:
            return 1
        shares = -(-self._size_of(item) * AHEAD_ITEMS // AHEAD_BYTES)
        return min(AHEAD_ITEMS, max(1, shares))

    @property
    def waits(self) -> bool:
        """Whether an item can be taken at once, or the end be seen."""
        return not self._items.empty()

    def was_full(self) -> bool:
        """Whether the other thread has had to wait for room since this was asked last."""
        full, self._was_full = self._was_full, False
        return full

    def put(self, item: T) -> bool:
        """Waits until there is room; False if nobody will take this one."""
        shares = self._shares(item)
        for _ in range(shares):
            if self._room.empty():
                self._was_full = True
            self._room.get()
            if self._abandoned:
                return False
        self._items.put((item, shares))
        return True

    def end(self, error: BaseException | None) -> None:
        """No item follows, because of an error or because these were all."""
        self._items.put(_End(error))

    def abandon(self) -> None:
        """Nobody takes any more."""
        self._abandoned = True
        self._room.put(None)

    def __iter__(self) -> Iterator[T]:
        while True:
            try:
                item = self._items.get(timeout=WAKE_S)
            except Empty:
                continue
            if isinstance(item, _End):
                if item.error is not None:
                    raise item.error
                return
            taken, shares = item
            for _ in range(shares):
                self._room.put(None)
            del item
            yield taken
