"""Threads that call one handle again and again take turns, of several calls each.

    begun      a thread comes, and nobody else has the turn: it goes on
    kept       it comes straight back after a call, as in a loop: others wait, without any work
    queued     others wait in the order in which they came, each on a lock of its own
    passed on  a turn that is over ends with its call, or with the next one, which then waits: the
               first in the queue is next
    left       a thread that does other work between calls, such as to fetch a page, passes its turn
               on after each; one that ends passes it on at once; one that was expected back and
               stays away loses it to the first in the queue

Without turns each call is by another thread than the one before. That costs switches of threads and
of the interpreter's lock, which kernels release, about as much as the call itself; and a plain lock
may pass a thread over for more than a second.

A turn is advice. The lock that the caller takes within it keeps threads apart:

    with turns, lock:
        ...

Calls that hold the lock for a small part of their time run beside each other, by two threads at
most. The second has a place of its own beside the turn, of the same rules:

    with turns.beside as accompanied:
        ...

The first in the queue gets it, or who finds the queue empty, if it makes such calls without a pause
and so does the thread of the turn, and if two are faster than one (pace.py). It ends as a turn
does, or as soon as a call of another kind has the turn or is the first in the queue.

1. So an interrupt between any two steps here harms the order at most. The first in the queue
   overrules what is left of a turn once it is PATIENCE_S late; it then waits for the lock.
2. Nothing relies on the interpreter's lock: where two threads begin a turn at once, one of them
   waits for the lock during a call.
3. A call within a call of the same thread is a part of it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from math import inf
from threading import Lock, local
from time import monotonic
from types import TracebackType
from weakref import ReferenceType, ref

from simindex.index.pace import Pace

ROUND_S = 0.16
"""All threads that wait have had their turns by then, unless a call takes long. To pass a turn on
takes 0.1 ms, and the calls after it are slower: eight threads lose a twentieth by that."""

LEAST_TURN_S, MOST_TURN_S = 0.002, 0.02
"""A turn ends with the first call that ends after its share of a round, within these bounds."""

BACK_S = 0.0002
"""Who was back within this time is expected back after the next call, too, and waited for as long.
"""

QUICK_S = 0.00003
"""Who was back within this time makes calls without a pause. Two threads beside each other have the
interpreter's lock in turn, so with longer work between their calls they would wait for it."""

PATIENCE_S = 1.0
"""Whether a turn takes so long for its work, or nobody will end it, cannot be seen."""


class _Caller:
    """A thread that calls."""

    __slots__ = ("accompanied", "aside", "comes_back", "depth", "ends", "left", "quick")

    def __init__(self) -> None:
        self.depth = 0
        """Calls that it is within."""
        self.left = -inf
        """When it left the last one; inf while it has a turn and is in a call."""
        self.comes_back = False
        """Whether it was back soon after the one before."""
        self.quick = False
        """Whether it was back at once, with a call that may run beside another."""
        self.aside = False
        """Whether its call may run beside another."""
        self.accompanied = False
        """Whether it does, as it seemed when it began."""
        self.ends = -inf
        """When its last turn is over."""

    def vacant(self, now: float) -> bool:
        """Whether a turn of its own is free: it is in no call, and not expected back in time."""
        return self.left < inf and (
            not self.comes_back or now - self.left >= BACK_S or now >= self.ends
        )


class _Ticket:
    """Of a thread in the queue, which waits until `called` is released."""

    __slots__ = ("called", "caller")

    def __init__(self, caller: _Caller) -> None:
        self.caller, self.called = caller, Lock()
        self.called.acquire()


class _End:
    """Of a thread: the interpreter drops it with the other values of the thread's own."""

    __slots__ = ("caller", "turns")

    def __init__(self, caller: _Caller, turns: ReferenceType[Turns]) -> None:
        self.caller, self.turns = caller, turns

    def __del__(self) -> None:
        turns = self.turns()
        if turns is not None:
            turns._ended(self.caller)


class _Own(local):
    """Of the thread that looks."""

    def __init__(self, turns: ReferenceType[Turns]) -> None:
        self.caller = _Caller()
        self.end = _End(self.caller, turns)


_NOBODY = _Caller()


class _Beside:
    """The `with` block around a call that may run beside another; whether it does, as it seems."""

    __slots__ = ("_turns",)

    def __init__(self, turns: ReferenceType[Turns]) -> None:
        self._turns = turns

    def __enter__(self) -> bool:
        turns = self._turns()
        assert turns is not None
        return turns._enter(aside=True)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        turns = self._turns()
        assert turns is not None
        turns._leave()


class Turns:
    """Of one handle; the `with` block around that of its lock."""

    def __init__(self, *, most: int = 2) -> None:
        self._own = _Own(ref(self))
        self.beside: _Beside = _Beside(ref(self))
        self._turn = _Caller()
        """Who has the turn, or had the last one."""
        self._second = _NOBODY
        """Who has the place beside it, or had it last."""
        self._most = most
        """Threads that run calls beside each other: 1 or 2."""
        self._pace = Pace()
        self._queue: deque[_Ticket] = deque()

    def __enter__(self) -> None:
        self._enter(aside=False)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._leave()

    def _enter(self, *, aside: bool) -> bool:
        caller = self._own.caller
        if caller.depth:
            caller.depth += 1
            return False
        try:
            now = monotonic()
            away_s = now - caller.left
            caller.comes_back, caller.aside = away_s < BACK_S, aside
            caller.quick = aside and away_s < QUICK_S
            if now < caller.ends and (
                self._turn is caller or (self._second is caller and self._open())
            ):
                caller.left = inf
            elif not self._queue and (self._turn is caller or self._turn.vacant(now)):
                self._begin(caller, now)
            elif not self._queue and self._may_join(caller, now):
                self._join(caller, now)
            else:
                self._pass_on(caller, now)  # what was over between two calls
                self._wait(_Ticket(caller))
            caller.depth = 1
            other = self._second if self._turn is caller else self._turn
            caller.accompanied = other.aside and other is not caller and now - other.left < BACK_S
            return aside and caller.accompanied
        except BaseException:
            self._give_up(caller)
            raise

    def _leave(self) -> None:
        caller = self._own.caller
        caller.depth -= 1
        if not caller.depth:
            caller.left = now = monotonic()
            if caller.accompanied or self._queue:
                self._pace.count(now, paired=caller.accompanied)
            elif self._pace.calls > 0:
                self._pace.pause()
            if self._queue and (now >= caller.ends or not caller.comes_back):
                self._pass_on(caller, now)
                caller.left = monotonic()  # to wake another takes longer than to come back

    def _begin(self, caller: _Caller, now: float) -> None:
        if self._second is caller:
            self._second = _NOBODY
        caller.left, caller.ends = inf, now + self._turn_s()
        self._turn = caller

    def _join(self, caller: _Caller, now: float) -> None:
        caller.left, caller.ends = inf, now + self._turn_s()
        self._second = caller

    def _open(self) -> bool:
        """Whether calls may run beside the turn: that is faster, and it and who waits first are of
        their kind."""
        try:
            return self._pace.paired and self._turn.aside and self._queue[0].caller.aside
        except IndexError:
            return True

    def _may_join(self, caller: _Caller, now: float) -> bool:
        return (
            caller.quick and self._turn.quick and self._most > 1 and self._open()
            and (self._second is caller or self._second.vacant(now))
        )

    def _turn_s(self) -> float:
        return max(LEAST_TURN_S, min(MOST_TURN_S, ROUND_S / (1 + len(self._queue))))

    def _wait(self, ticket: _Ticket) -> None:
        """In the queue, until the ticket is called, or its thread sees that it need not wait."""
        caller = ticket.caller
        try:
            self._queue.append(ticket)
            while not ticket.called.acquire(timeout=self._until_look_s(ticket)):
                now, turn, place = monotonic(), self._turn, self._place(ticket)
                if caller in (turn, self._second):
                    return  # the call got lost in an interrupt, or is that of a signal handler
                patience_s = PATIENCE_S if place == 0 else 2 * PATIENCE_S  # lest the first is gone
                if now - turn.ends >= patience_s or (place == 0 and turn.vacant(now)):
                    self._begin(caller, now)
                    return
                if place == 0 and self._may_join(caller, now):
                    self._join(caller, now)
                    return
        finally:
            with suppress(ValueError):  # it was called
                self._queue.remove(ticket)

    def _place(self, ticket: _Ticket) -> int:
        """Tickets before it; 0 once it was called."""
        try:
            return self._queue.index(ticket)
        except ValueError:
            return 0

    def _until_look_s(self, ticket: _Ticket) -> float:
        """Until its thread looks whether it need not wait any longer, uncalled.

        It is the first by then if each turn before its own takes its usual time.
        """
        place, turn, turn_s = self._place(ticket), self._turn, self._turn_s()
        if place or turn.left < inf:
            return BACK_S + place * turn_s
        return max(turn.ends - monotonic(), LEAST_TURN_S)

    def _pass_on(self, caller: _Caller, now: float) -> None:
        """What a caller has goes to the first in the queue, if it has anything."""
        if self._turn is caller:
            self._call(self._begin, now)
        elif self._second is caller:
            self._second = _NOBODY
        else:
            return
        with suppress(IndexError):
            if self._second is not caller and self._may_join(self._queue[0].caller, now):
                self._call(self._join, now)

    def _call(self, give: Callable[[_Caller, float], None], now: float) -> None:
        with suppress(IndexError):  # it was given up
            ticket = self._queue.popleft()
            give(ticket.caller, now)
            ticket.called.release()

    def _ended(self, caller: _Caller) -> None:
        """Of a thread that will not come back, whether it was expected or not."""
        if not caller.depth:
            self._give_up(caller)

    def _give_up(self, caller: _Caller) -> None:
        """Of a call that does not begin."""
        caller.left = -inf
        self._pass_on(caller, monotonic())
