"""Reading ahead: the next documents are read and parsed while the last ones are worked on.

    thread of its own   documents -> chunk | chunk | chunk        one made, one waiting
    the main thread                          chunk -> fingerprints, index, output

Fingerprinting and searching let go of the interpreter, so both sides run at once. Errors arrive as
they would without: Ctrl-C is raised in the main thread, and what reading raises once all that was
read before is done.
"""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Generic, TypeVar

from simindex.cli.interrupt import uninterrupted

T = TypeVar("T")


def read_ahead(source: Iterable[T]) -> Generator[T, None, None]:
    """The items of `source`, in order; the next are made by another thread meanwhile.

    One item waits and one is being made at most. What `source` raises is raised here, after the
    items before it. The thread is not waited for when this iterator is closed: a pipe that nobody
    writes to may hold it.
    """
    slot: _Slot[T] = _Slot()
    try:
        # A signal that is raised within `start` may end in an error of its lock.
        with uninterrupted():
            Thread(
                target=_fill, args=(slot, source), name="simindex-reading", daemon=True
            ).start()
        yield from slot
    finally:
        slot.abandon()


def _fill(slot: _Slot[T], source: Iterable[T]) -> None:
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


WAKE_S = 0.5
"""A signal that comes just before the main thread waits is seen when it wakes."""


@dataclass(frozen=True, slots=True)
class _End:
    error: BaseException | None


class _Slot(Generic[T]):
    """Hands items from one thread to another, one at a time.

    By queues, for a signal that is raised while a Condition is waited for leaves its lock as none
    of its users expects.
    """

    def __init__(self) -> None:
        self._items: SimpleQueue[T | _End] = SimpleQueue()
        self._room: SimpleQueue[None] = SimpleQueue()
        """An entry for each item that may be put, and one for the end of taking."""
        self._room.put(None)
        self._abandoned = False

    def put(self, item: T) -> bool:
        """Waits until the item before is taken; False if nobody will take this one."""
        self._room.get()
        if self._abandoned:
            return False
        self._items.put(item)
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
            self._room.put(None)
            yield item
