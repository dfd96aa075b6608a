"""Work in the background: one piece at a time, done by a thread while the caller goes on.

    caller     begin(write 1)  search 2 ........ wait  begin(write 2)  search 3 ...
    thread         write 1 ..........                       write 2 .........

The thread is not waited for when the caller leaves: a pipe that nobody reads may hold it.
"""

from __future__ import annotations

from collections.abc import Callable
from queue import Empty, SimpleQueue
from threading import Thread
from time import monotonic

from simindex.cli.app import uninterrupted
from simindex.cli.slots import WAKE_S

LEAVE_S = 1.0
"""Who leaves because of a signal waits so long for the work to end."""


class Background:
    """By queues, as chunks are read ahead: a signal may be raised while the caller waits."""

    def __init__(self) -> None:
        self._given: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._ended: SimpleQueue[BaseException | None] = SimpleQueue()
        self._started = False
        self.busy: bool = False
        """Whether work was begun that nobody has waited for."""

    def begin(self, work: Callable[[], None]) -> None:
        """Has the thread do it. What was begun before must have been waited for."""
        assert not self.busy
        if not self._started:
            # A signal that is raised within `start` may end in an error of its lock.
            with uninterrupted():
                Thread(target=self._run, name="simindex-writing", daemon=True).start()
                self._started = True
        self.busy = True
        self._given.put(work)

    def wait(self) -> None:
        """Returns once the work has ended, if any was begun; raises what it raised."""
        while self.busy and not self._has_ended(WAKE_S):
            pass

    def leave(self) -> bool:
        """Whether the work ends within `LEAVE_S`. Raises what it raised."""
        until = monotonic() + LEAVE_S
        while self.busy and not self._has_ended(max(0.0, until - monotonic())):
            if monotonic() >= until:
                return False
        return True

    def close(self) -> None:
        """Ends the thread once it has no work."""
        self._given.put(None)

    def _has_ended(self, most_s: float) -> bool:
        try:
            error = self._ended.get(timeout=most_s)
        except Empty:
            return False
        self.busy = False
        if error is not None:
            raise error
        return True

    def _run(self) -> None:
        while (work := self._given.get()) is not None:
            error: BaseException | None = None
            try:
                work()
            except BaseException as raised:  # the caller raises it
                error = raised
            del work  # which may hold a buffer
            self._ended.put(error)
