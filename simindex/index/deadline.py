"""Commits the rows that `seen_or_add` has added once they have waited long enough.

A thread sleeps until they are due, commits them and ends. It begins when a row is added that is due
before any thread looks: there is none while nothing waits, and usually one while something does.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from math import inf
from threading import Thread
from time import monotonic, sleep
from types import MethodType
from weakref import WeakMethod

LOOK_S = 0.25
"""A thread that sleeps looks so often whether its handle is still there."""

NAME = "simindex deadline"
"""Of the threads."""


class Deadline:
    """Of one handle, under whose lock it is told of rows.

    Parameters
    ----------
    commit : method
        Commits what is due; called without the lock. Its object may be dropped meanwhile.
    """

    def __init__(self, commit: Callable[[], None]) -> None:
        assert isinstance(commit, MethodType)
        self._commit: WeakMethod[Callable[[], None]] = WeakMethod(commit)
        self._looks = inf

    def expect(self, due: float) -> None:
        """Has a thread look at this time of `monotonic`, or earlier.

        Where the system gives no thread, nobody looks before the next call does.
        """
        if due < self._looks:
            thread = Thread(target=self._wait, args=(due,), name=NAME, daemon=True)
            with suppress(RuntimeError):
                thread.start()
                self._looks = due

    def reached(self) -> None:
        """Told by a thread that looks now."""
        self._looks = inf

    def _wait(self, due: float) -> None:
        while (left := due - monotonic()) > 0:
            sleep(min(left, LOOK_S))
            if self._commit() is None:
                return
        commit = self._commit()
        if commit is not None:
            commit()
