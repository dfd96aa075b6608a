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
from threading import Condition, Thread
from typing import Generic, TypeVar

T = TypeVar("T")


def read_ahead(source: Iterable[T]) -> Generator[T, None, None]:
    """The items of `source`, in order; the next are made by another thread meanwhile.

    One item waits and one is being made at most. What `source` raises is raised here, after the
    items before it. The thread is not waited for when this iterator is closed: a pipe that nobody
    writes to may hold it.
    """
    slot: _Slot[T] = _Slot()
    Thread(target=_fill, args=(slot, source), name="simindex-reading", daemon=True).start()
    try:
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


class _Slot(Generic[T]):
    """Hands items from one thread to another, one at a time."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._waiting: list[T] = []
        self._ended = self._abandoned = False
        self._error: BaseException | None = None

    def put(self, item: T) -> bool:
        """Waits until the item before is taken; False if nobody will take this one."""
        with self._changed:
            while self._waiting and not self._abandoned:
                self._changed.wait()
            if self._abandoned:
                return False
            self._waiting.append(item)
            self._changed.notify_all()
            return True

    def end(self, error: BaseException | None) -> None:
        """No item follows, because of an error or because these were all."""
        with self._changed:
            self._ended, self._error = True, error
            self._changed.notify_all()

    def abandon(self) -> None:
        """Nobody takes any more."""
        with self._changed:
            self._abandoned = True
            self._waiting.clear()
            self._changed.notify_all()

    def __iter__(self) -> Iterator[T]:
        while True:
            with self._changed:
                while not (self._waiting or self._ended):
                    self._changed.wait()
                if not self._waiting:
                    if self._error is not None:
                        raise self._error
                    return
                item = self._waiting.pop()
                self._changed.notify_all()
            yield item
