"""Calls a method of a handle at a time, without another call of the handle and without keeping it.

A thread sleeps until the time, makes the call and ends. It begins when a time is told at which no
thread looks yet: there is none while nothing is expected, and usually one while something is.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from math import inf
from threading import Thread
from time import monotonic, sleep
from types import MethodType
from weakref import WeakMethod

from simindex.resources.threads import begin

LOOK_S = 0.25
"""A thread that sleeps looks so often whether its handle is still there."""

NAME = "simindex deadline"
"""Of the threads."""


class Deadline:
    """Of one handle, under whose lock it is told of times.

    Parameters
    ----------
    call : method
        Does what is due; called without the lock. Its object may be dropped meanwhile.
    """

    def __init__(self, call: Callable[[], None]) -> None:
        assert isinstance(call, MethodType)
        self._call: WeakMethod[Callable[[], None]] = WeakMethod(call)
        self._looks = inf

    def expect(self, due: float) -> None:
        """Has a thread look at this time of `monotonic`, or earlier.

        Where the system gives no thread, nobody looks before the next call does.
        """
        if due < self._looks:
            thread = Thread(target=self._wait, args=(due,), name=NAME, daemon=True)
            with suppress(RuntimeError):
                begin(thread)
                self._looks = due

    def reached(self) -> None:
        """Told by a thread that looks now."""
        self._looks = inf

    def _wait(self, due: float) -> None:
        while (left := due - monotonic()) > 0:
            sleep(min(left, LOOK_S))
            if self._call() is None:
                return
        call = self._call()
        if call is not None:
            call()
