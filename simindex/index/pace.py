"""Whether two threads that call without a pause are faster beside each other or in turn.

    stretch    128 calls in one way; its time is what that way takes
    trial      some stretches of one way and then of the other, without the first calls after the
               change, in which caches are cold: the way of the fastest stretch stays. It ends with
               the first stretch that takes far longer than the other way

Beside each other, every call moves what the interpreter works with to the other core. Where both
cores share a cache, two threads make a fifth more calls than one; where they do not, half as many.
A virtual machine may be moved from the one to the other while it runs.
"""

from __future__ import annotations

from math import inf

CALLS = 128
"""Of a stretch."""

WARM = 32
"""Calls after a change that are not in a stretch."""

TRIED = 3
"""Stretches of a trial in each way: other work on the machine disturbs some."""

FAR = 2.0
"""A stretch that takes so many times longer than one of the other way takes far longer."""

FEWEST, MOST = 16, 512
"""Stretches in one way until the other is tried again: twice as many each time that it is slower.
The most take a second, of which a trial that takes far longer takes 4 ms; the fewest mend a trial
that was disturbed."""


class Pace:
    """Of calls of threads that have others waiting, or beside them."""

    __slots__ = ("_began", "_fastest", "_left", "_pause", "_trial", "calls", "paired")

    def __init__(self) -> None:
        self.paired: bool = True
        """Whether calls are to be made beside each other."""
        self.calls: int = -WARM
        """Of the stretch so far; below 0 of those before it, and 0 as it begins."""
        self._began = 0.0
        self._fastest = {True: inf, False: inf}
        """Seconds of the fastest of the last stretches of both ways."""
        self._left, self._trial = TRIED, False
        """Stretches until something is decided; whether that is which way is the faster."""
        self._pause = FEWEST // 2
        """Stretches between the last two trials."""

    def pause(self) -> None:
        """Nobody else calls: the stretch does not count."""
        self.calls = -WARM

    def count(self, now: float, *, paired: bool) -> None:
        """A call has ended that ran beside another one, or had one waiting for it."""
        if paired is not self.paired:  # threads have not changed to it yet
            self.calls = -WARM
        elif self.calls < 0:
            self.calls += 1
        elif not self.calls:
            self._began, self.calls = now, 1
        elif self.calls < CALLS:
            self.calls += 1
        else:
            self.calls = 0
            self._ended(now - self._began)

    def _ended(self, seconds: float) -> None:
        way = self.paired
        if self._left == TRIED:  # what was before is no longer so
            self._fastest[way] = inf
        self._fastest[way] = min(self._fastest[way], seconds)
        self._left -= 1
        far = self._trial and self._fastest[way] > FAR * self._fastest[not way]
        if self._left and not far:
            return
        if self._trial:
            faster = self._fastest[True] < self._fastest[False]
            self._pause = FEWEST if faster is way else min(2 * self._pause, MOST)
            self.paired, self._left, self._trial = faster, self._pause, False
        else:
            self.paired, self._left, self._trial = not way, TRIED, True
        if self.paired is not way:
            self.calls = -WARM
