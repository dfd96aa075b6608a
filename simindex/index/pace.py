"""Whether two threads that call without a pause are faster beside each other or in turn.

    stretch    128 calls in one way; its time is what that way takes now
    trial      the first stretches of both ways, and some of the other way later: the faster stays

Beside each other, every call moves what the interpreter works with to the other core. Where both
cores share a cache, two threads make a fifth more calls than one; where they do not, half as many.
A virtual machine may be moved from the one to the other while it runs.
"""

from __future__ import annotations

CALLS = 128
"""Of a stretch."""

FEWEST, MOST = 16, 256
"""Stretches in one way until the other is tried again: twice as many each time that it is slower.
The most take half a second, of which a slow trial takes 4 ms; the fewest mend a first trial that
was disturbed."""


class Pace:
    """Of calls of threads that have others waiting, or beside them."""

    __slots__ = ("_began", "_left", "_pause", "_seconds", "_trial", "calls", "paired")

    def __init__(self) -> None:
        self.paired: bool = True
        """Whether calls are to be made beside each other."""
        self.calls: int = 0
        """Of the stretch so far; 0 before it begins."""
        self._began = 0.0
        self._seconds = {True: 0.0, False: 0.0}
        """Of the last stretch of both ways."""
        self._left, self._trial = 0, False
        """Stretches until the other way is tried; whether this one is a trial."""
        self._pause = FEWEST // 2
        """Stretches between the last two trials."""

    def pause(self) -> None:
        """Nobody else calls: the stretch does not count."""
        self.calls = 0

    def count(self, now: float, *, paired: bool) -> None:
        """A call has ended that ran beside another one, or had one waiting for it."""
        if paired is not self.paired:  # threads have not changed to it yet
            self.calls = 0
        elif not self.calls:
            self._began, self.calls = now, 1
        elif self.calls < CALLS:
            self.calls += 1
        else:
            self._seconds[paired], self.calls = now - self._began, 0
            self._decide()

    def _decide(self) -> None:
        if self._trial:
            faster = self._seconds[True] < self._seconds[False]
            self._pause = FEWEST if faster is self.paired else min(2 * self._pause, MOST)
            self.paired, self._left, self._trial = faster, self._pause, False
        elif self._left:
            self._left -= 1
        else:
            self.paired, self._trial = not self.paired, True
